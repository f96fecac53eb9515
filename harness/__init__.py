"""Tune LM extraction programs with DSPy optimizers, and say with an interval whether they got better.

>>> import harness
>>> sorted(set(harness.__all__) - {"__version__"})
['agree', 'evaluate', 'export', 'load', 'load_card_spec', 'load_experiment', 'open_model', 'predict', 'run']

Importing this package imports nothing heavy; each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.agreement.run import agree
    from harness.assembly import load_experiment
    from harness.bundle import load
    from harness.experiment import run
    from harness.exporting import export_run as export
    from harness.measurement import evaluate_program as evaluate
    from harness.prediction import open_model, predict
    from harness.spec import load_card_spec

    __version__: str

__all__ = [
    "__version__",
    "agree",
    "evaluate",
    "export",
    "load",
    "load_card_spec",
    "load_experiment",
    "open_model",
    "predict",
    "run",
]

_HOMES = {
    "agree": ("harness.agreement.run", "agree"),
    "evaluate": ("harness.measurement", "evaluate_program"),
    "export": ("harness.exporting", "export_run"),
    "load": ("harness.bundle", "load"),
    "load_card_spec": ("harness.spec", "load_card_spec"),
    "load_experiment": ("harness.assembly", "load_experiment"),
    "open_model": ("harness.prediction", "open_model"),
    "predict": ("harness.prediction", "predict"),
    "run": ("harness.experiment", "run"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("dspy-judge-harness")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from harness.references import check_own_packages

    check_own_packages()
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
