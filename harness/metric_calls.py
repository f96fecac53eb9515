"""The calls that metrics make themselves: which roles their evaluators and judges ask, and how often at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from metrics.asking import model_calls
from metrics.score import Metric


def calls_of_scoring(metrics: Iterable[Metric], examples: Iterable[Any]) -> dict[str, int]:
    """Calls by role that scoring every example once by every metric takes at most.

    Args:
        metrics: as `assemble` made them, before they are bound to a run's models.
        examples: dspy.Examples; `expected` is the record to reach.
    """
    known = list(metrics)
    calls = Counter[str]()
    for example in examples:
        for metric in known:
            calls.update(model_calls(metric, example["expected"]))
    return {role: count for role, count in calls.items() if count}


def most_calls_of_a_score(metrics: Sequence[Metric], examples: Iterable[Any]) -> Mapping[str, int]:
    """Calls by role that scoring any one of the examples by every metric takes at most."""
    most = Counter[str]()
    for example in examples:
        most |= Counter(calls_of_scoring(metrics, [example]))  # | of Counters is the larger of each
    return most
