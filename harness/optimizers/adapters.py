"""From a Score to what an optimizer calls for: a bool, a float, or a Prediction with feedback.

An optimizer cannot be told apart by the arguments it calls a metric with, so each catalogue entry names its
adapter. All adapters share one policy for a Score without a value: it counts as 0 for the optimizer, never
as a success, and it is counted so that the run can say how often that happened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from harness.scoring import Scoring

UNSCORED_FOR_OPTIMIZERS = 0.0
"""What an optimizer is told where nothing could be scored. Reports still say "unscored"."""


class MetricAdapter:
    """Calls the scoring and counts what an optimizer asked for.

    Args:
        scoring: the metric, remembered.
        told: called after every metric call, for progress.
    """

    def __init__(self, scoring: Scoring, told: Callable[[], None] = lambda: None) -> None:
        self._scoring = scoring
        self._told = told
        self._lock = threading.Lock()
        self.calls = 0
        self.unscored = 0

    def value(self, example: Any, prediction: Any) -> float:
        """The Score's value in 0..1, or `UNSCORED_FOR_OPTIMIZERS`, counted."""
        score = self._scoring.score(example, prediction)
        with self._lock:
            self.calls += 1
            self.unscored += score.value is None
        self._told()
        return UNSCORED_FOR_OPTIMIZERS if score.value is None else score.value


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
        score = self._scoring.score(example, prediction)
        value = self.value(example, prediction)
        if trace is None:
            return value
        reached = score.value is not None and score.value >= self._threshold
        with self._lock:
            self.tried += 1
            self.reached += reached
        return reached
