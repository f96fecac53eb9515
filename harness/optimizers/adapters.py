"""From a Score to what an optimizer calls for: a bool, a float, or a Prediction with feedback.

An optimizer cannot be told apart by the arguments it calls a metric with, so each catalogue entry names its
adapter. All adapters share one policy for a Score without a value and for a program that gave no record: it counts as
0 for the optimizer, never as a success, and it is counted so that the run can say how often that happened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from harness.scoring import Scoring
from programs.contract import RecordError

UNSCORED_FOR_OPTIMIZERS = 0.0
"""What an optimizer is told where nothing could be scored. Reports still say "unscored"."""


class MetricAdapter:
    """Calls the scoring and counts what an optimizer asked for.

    Args:
        scoring: the metric, remembered.
        told: called after every metric call, for progress.

    Attributes:
        calls: how often the optimizer asked.
        unscored: how often there was no score.
        without_record: how often the program had given no record that could be scored.
    """

    def __init__(self, scoring: Scoring, told: Callable[[], None] = lambda: None) -> None:
        self._scoring = scoring
        self._told = told
        self._lock = threading.Lock()
        self.calls = 0
        self.unscored = 0
        self.without_record = 0

    def scored(self, example: Any, prediction: Any) -> float | None:
        """The Score's value in 0..1, or None where there is none; counted."""
        score = None
        if prediction is not None:
            try:
                score = self._scoring.score(example, prediction)
            except RecordError:
                score = None
        value = None if score is None else score.value
        with self._lock:
            self.calls += 1
            self.without_record += score is None
            self.unscored += score is not None and value is None
        self._told()
        return value

    def value(self, example: Any, prediction: Any) -> float:
        """The Score's value in 0..1, or `UNSCORED_FOR_OPTIMIZERS`, counted."""
        value = self.scored(example, prediction)
        return UNSCORED_FOR_OPTIMIZERS if value is None else value

    def notes(self) -> list[str]:
        """What was counted, as sentences for the report; nothing when every call gave a score."""
        notes = []
        if self.unscored:
            notes.append(f"{self.unscored} of {self.calls} metric calls while tuning gave no score and counted as 0")
        if self.without_record:
            notes.append(
                f"on {self.without_record} of {self.calls} metric calls while tuning the program had given no record, "
                "which counted as 0"
            )
        return notes


class AsFloat(MetricAdapter):
    """`metric(example, prediction, trace=None) -> float`: for optimizers that only rank."""

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float:
        return self.value(example, prediction)


class AsBootstrap(MetricAdapter):
    """A bool while bootstrapping (a trace is given), a float while evaluating.

    DSPy keeps a bootstrapped demo when the metric's return is truthy, and any Prediction or positive float is;
    so the threshold is applied here, and it applies to every candidate set.
    """

    def __init__(self, scoring: Scoring, threshold: float, told: Callable[[], None] = lambda: None) -> None:
        super().__init__(scoring, told)
        self._threshold = threshold
        self.tried = 0
        self.reached = 0

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> bool | float:
        value = self.scored(example, prediction)
        if trace is None:
            return UNSCORED_FOR_OPTIMIZERS if value is None else value
        reached = value is not None and value >= self._threshold
        with self._lock:
            self.tried += 1
            self.reached += reached
        return reached

    def notes(self) -> list[str]:
        """The same, and how many answers became demos."""
        notes = super().notes()
        if self.tried:
            notes.append(f"{self.reached} of {self.tried} answers on training examples reached metric_threshold")
        return notes
