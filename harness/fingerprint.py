"""What could change a result, by name, as one digest: equal fingerprints have equal results.

Besides what the file says, a result is decided by code. Of this package's own, the sources that prompt, score and
compare are digested, not a constant that is raised by hand: nobody has to remember it, an installed release never
changes, and a run made again by a changed source replays its answers from the store and costs nothing. Of the user's,
the named files and every file beside them that they import.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import inspect
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.assembly import PROGRAMS, Experiment
from harness.files import named_path
from harness.references import is_reference
from harness.run_folder import Fingerprint
from metrics.score import Metric
from programs.contract import predictors_of

_PACKAGES = ("dspy", "mlflow", "optuna", "dspy-judge-harness")
_HOME = Path(__file__).resolve().parents[1]
_DECIDING = (
    "metrics",
    "programs",
    "harness/optimizers",
    "harness/comparison.py",
    "harness/evaluation.py",
    "harness/failures.py",
    "harness/scoring.py",
    "harness/models/prompt",
)
"""Sources of this package by which the same answers of the same models could get another verdict."""
_OWN_NAMES = ("harness", "metrics", "programs")


def fingerprint(experiment: Experiment, endpoints: Mapping[str, str]) -> Fingerprint:
    """Everything that could change the result, by name.

    Args:
        experiment: what `assemble` made.
        endpoints: role -> digest of all that decides its model's answers (`Provider.endpoint`).
    """
    return Fingerprint.of(
        {
            "program": _program_components(experiment),
            "adapter": experiment.adapter,
            "data": experiment.data_digest,
            "splits": experiment.splits.to_document(),
            "metric": _metric_components(experiment.metric),
            "audit": {name: _metric_components(audit) for name, audit in experiment.audits.items()},
            "code": own_code(_references(experiment), experiment.spec.folder),
            "optimizer": {experiment.optimizer.name: experiment.arguments.model_dump(mode="json")},
            "models": {
                role: {
                    "endpoint": endpoint,
                    "temperature": experiment.models[role].temperature,
                    "max_tokens": experiment.models[role].output_limit,
                    "response_schema": experiment.models[role].response_schema,
                }
                for role, endpoint in endpoints.items()
            },
            "scoring": _deciding_sources(),
            "versions": versions(),
        }
    )


def versions() -> dict[str, str]:
    """Versions of what decides a result."""
    return {name: importlib.metadata.version(name) for name in _PACKAGES}


def own_code(references: Iterable[str], folder: Path) -> dict[str, str]:
    """The user's own Python files behind `references`, each with its sha256.

    From the file a reference names to the files beside it that it imports, at the top or inside a function, and
    theirs; what is installed is left to its version. A module imported by a name made at run time is not seen.

    Args:
        references: `FILE.py:NAME` or `PACKAGE.MODULE:NAME`, as experiment files have them.
        folder: the experiment's folder, which relative files are relative to.

    >>> own_code(["programs.schema:SchemaExtraction"], Path("nowhere"))
    {}
    """
    found: dict[Path, str] = {}
    waiting = [file for reference in references for file in _files_of(reference, folder)]
    while waiting:
        file = waiting.pop().resolve()
        if file in found:
            continue
        content = file.read_bytes()
        found[file] = hashlib.sha256(content).hexdigest()
        waiting += _imported_files(content, file, folder)
    home = folder.resolve()
    return {Path(os.path.relpath(file, home)).as_posix(): found[file] for file in sorted(found)}


def _references(experiment: Experiment) -> Iterator[str]:
    """Every text of the file that names code: the program, its arguments, metrics, evaluators."""
    spec = experiment.spec
    waiting: list[Any] = [spec.program.model_dump(), spec.metric and spec.metric.model_dump(), spec.audit]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            waiting += part
        elif isinstance(part, str) and is_reference(part):
            yield part


def _files_of(reference: str, folder: Path) -> list[Path]:
    module = reference.rpartition(":")[0]
    if module.endswith(".py"):
        file = named_path(module, folder)
        return [file] if file.is_file() else []
    return list(_module_files(module, [folder]))


def _imported_files(content: bytes, file: Path, folder: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # what cannot be parsed was not imported: it stands in a function never called
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_files(alias.name, [file.parent, folder])
        elif isinstance(node, ast.ImportFrom):
            bases = list(file.parents)[node.level - 1 : node.level] if node.level else [file.parent, folder]
            for name in [node.module] if node.module else []:
                yield from _module_files(name, bases)
            for alias in node.names:  # a name taken from a package may be a module of it
                yield from _module_files(".".join(filter(None, (node.module, alias.name))), bases)


def _module_files(name: str, bases: Iterable[Path]) -> Iterator[Path]:
    """The files that `import name` reads when it is found below one of `bases`: the module and its packages."""
    parts = name.split(".")
    if parts[0] in _OWN_NAMES:
        return
    for base in bases:
        for length in range(1, len(parts) + 1):
            place = base.joinpath(*parts[:length])
            yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())


def _deciding_sources() -> str:
    digest = hashlib.sha256()
    for name in _DECIDING:
        place = _HOME / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(f"{file.relative_to(_HOME).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _metric_components(metric: Metric) -> dict[str, Any]:
    own = type(metric).__module__.partition(".")[0] == "metrics"
    return {"version": metric.version, "source": None if own else _source(metric)}


def _source(thing: object) -> str | None:
    """A digest of the text of a user's class, whose version nobody raises for every edit; None when it has no text."""
    try:
        return hashlib.sha256(inspect.getsource(type(thing)).encode()).hexdigest()
    except (OSError, TypeError):
        return None


def _program_components(experiment: Experiment) -> dict[str, Any]:
    return {
        "class": experiment.program_reference["class"],
        "arguments": json.loads(json.dumps(dict(experiment.program_reference["arguments"]), default=str)),
        "source": None if experiment.program_reference["class"] in PROGRAMS else _source(experiment.program),
        "schema": experiment.contract.schema,
        "predictors": {
            name: {
                "instructions": predictor.signature.instructions,
                "fields": {
                    field: str((info.json_schema_extra or {}).get("desc", ""))
                    for field, info in predictor.signature.fields.items()
                },
            }
            for name, predictor in predictors_of(experiment.program)
        },
    }
