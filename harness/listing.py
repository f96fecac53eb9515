"""What can be named in an experiment file, by kind, for `harness list`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.assembly import PROGRAMS
from harness.data import READERS
from harness.errors import UsageError, nearest
from harness.judge_choice import JUDGES
from harness.metric_choice import METRICS
from harness.optimizers.catalogue import CATALOGUE
from metrics.evaluators import CATALOGUE as EVALUATORS

_ADAPTERS = (
    ("compact", "instructions, one line per key, demos that look exactly like the question; best for small models"),
    ("json", "DSPy's JSONAdapter"),
    ("chat", "DSPy's ChatAdapter"),
)
_MODELS = (
    ("local/smollm2-135m", "embedded, 135M parameters, no key and no server"),
    ("local/PATH.gguf", "any GGUF file, embedded"),
    ("openai/NAME", "OpenAI, or any compatible server by api_base"),
    ("anthropic/NAME", "Anthropic"),
    ("gemini/NAME", "Google"),
)


def listing(kind: str) -> list[tuple[str, str]]:
    """(name, one line) of everything of one kind, for `harness list`.

    Raises:
        UsageError: an unknown kind.
    """
    kinds: dict[str, Callable[[], list[tuple[str, str]]]] = {
        "programs": lambda: [(path, line) for path, (_, line) in PROGRAMS.items()],
        "evaluators": lambda: [(alias, _summary(made)) for alias, made in EVALUATORS.items()],
        "metrics": lambda: [(name, _summary(made)) for name, made in METRICS.items()],
        "judges": lambda: list(JUDGES.items()),
        "optimizers": lambda: [(entry.name, entry.summary) for entry in CATALOGUE.values()],
        "models": lambda: list(_MODELS),
        "readers": lambda: [(name, _summary(reader)) for name, reader in READERS.items()],
        "adapters": lambda: list(_ADAPTERS),
    }
    if kind not in kinds:
        raise UsageError(f"there is nothing to list under {kind!r}; {nearest(kind, kinds)}")
    return kinds[kind]()


def _summary(made: Any) -> str:
    return (made.__doc__ or "").strip().splitlines()[0]
