"""CompositeMetric: several metrics as one, by declared weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, get_args

from metrics.asking import bound, model_calls, replicated
from metrics.evaluators.base import BaseEvaluator
from metrics.nearest import nearest
from metrics.score import Metric, Score, config_version

Missing = Literal["unscored", "renormalise"]

_NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})
_MAX_CHARACTERS = 4000
"""Of the feedback of all parts together."""


class CompositeMetric:
    """Several metrics as one number.

        value = sum(weight * value of the part) / sum(weight)

    A part that gives no value leaves the whole without one, with the reason: a mean of what happened to be there would
    be another metric from one example to the next. `missing="renormalise"` takes that mean all the same, and its
    details say each time which parts were `missing` and how much of the weight was used (`weight_used`, 0..1). A part
    of weight 0 is reported and decides nothing. 0.0 is a value like any other.

    The Score holds the parts' Scores as its parts, and their feedback, the part that cost most first.

    Args:
        parts: the metrics by name. A metric that needs another direction or scale is wrapped in a `ScaledMetric`.
        weights: weight by name, 0 or more; a part without one weighs 1.
        missing: "unscored" or "renormalise".
        name: what reports call this metric.

    Raises:
        ValueError: no parts, something that is no metric, a wrong weight or option; one sentence.

    >>> from metrics import RecordMetric
    >>> parts = {"target": RecordMetric({"target": "exact"}), "steps": RecordMetric({"steps[*]": "exact"})}
    >>> metric = CompositeMetric(parts, {"target": 3})
    >>> score = metric.compare({"target": "LiCoO2", "steps": ["mix", "heat"]}, {"target": "LiCoO2", "steps": ["mix"]})
    >>> score.value, score.parts["steps"].value
    (0.875, 0.5)
    >>> print(score.feedback)
    steps: 0.50 of 1, weight 1
    steps[1]: missing, expected 'heat'
    """

    def __init__(
        self,
        parts: Mapping[str, Metric],
        weights: Mapping[str, float] = _NO_WEIGHTS,
        missing: Missing = "unscored",
        name: str = "composite",
    ) -> None:
        if not isinstance(parts, Mapping) or not parts:
            raise ValueError(f"composite: parts are metrics by name, at least one, got {parts!r}")
        for part, metric in parts.items():
            _refuse_other_things(part, metric)
        if missing not in get_args(Missing):
            raise ValueError(f"composite: missing is {' or '.join(get_args(Missing))}, got {missing!r}")
        self._parts = dict(parts)
        self._weights = _checked_weights(weights, self._parts)
        self._missing: Missing = missing
        self._name = name

    def __repr__(self) -> str:
        return f"CompositeMetric(name={self._name!r}, weights={self._weights})"

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._name

    @property
    def version(self) -> str:
        """A digest of all parts' versions, their weights and what happens to missing ones."""
        parts = {name: [metric.version, self._weights[name]] for name, metric in self._parts.items()}
        return config_version("composite", {"parts": parts, "missing": self._missing})

    @property
    def parts(self) -> Mapping[str, Metric]:
        """The metrics by name."""
        return MappingProxyType(self._parts)

    @property
    def weights(self) -> Mapping[str, float]:
        """Every part's weight, as given."""
        return MappingProxyType(self._weights)

    def __call__(self, example: Any, prediction: Any) -> Score:
        """Every part once on the same example and prediction; what a part raises is raised."""
        return self._combined({name: metric(example, prediction) for name, metric in self._parts.items()})

    def compare(self, expected: Any, predicted: Any) -> Score:
        """Compare two records by every part.

        Returns:
            Unscored where a part with a weight compares no records (it has no `compare`, or that raises
            NotImplementedError), with the Scores of those that do; `missing` is not about such parts.
        """
        scores = {name: _compared(metric, expected, predicted) for name, metric in self._parts.items()}
        unable = [name for name, score in scores.items() if score is None and self._weights[name]]
        told = {name: Score.unscored("it needs the example") if one is None else one for name, one in scores.items()}
        if unable:
            return Score.unscored(f"{', '.join(unable)}: compares no records, it needs the example", parts=told)
        return self._combined(told)

    def model_calls(self, expected: Any) -> Mapping[str, int]:
        """Calls by role that one score takes at most: those of all parts."""
        calls: Counter[str] = Counter()
        for metric in self._parts.values():
            calls.update(model_calls(metric, expected))
        return dict(calls)

    def bind(self, lms: Mapping[str, Any]) -> CompositeMetric:
        """The same metric with every part's models in place."""
        parts = {name: bound(metric, lms) for name, metric in self._parts.items()}
        return CompositeMetric(parts, self._weights, self._missing, self._name)

    def replicated(self, number: int) -> CompositeMetric:
        """The same metric whose parts ask their models anew."""
        parts = {name: replicated(metric, number) for name, metric in self._parts.items()}
        return CompositeMetric(parts, self._weights, self._missing, self._name)

    def _combined(self, scores: Mapping[str, Score]) -> Score:
        for name, score in scores.items():
            if not isinstance(score, Score):
                raise TypeError(f"composite: the part {name!r} gave {type(score).__name__}, not a metrics.Score")
        counted = {name: score for name, score in scores.items() if self._weights[name]}
        missing = {name: score.error for name, score in counted.items() if score.value is None}
        values = {name: score.value for name, score in counted.items() if score.value is not None}
        weight = math.fsum(self._weights[name] for name in values)
        details: dict[str, Any] = {"weights": dict(self._weights)}
        if missing:
            used = weight / math.fsum(self._weights[name] for name in counted)
            details |= {"missing": list(missing), "weight_used": used}
        feedback = self._feedback(scores)
        if missing and (self._missing == "unscored" or not values):
            name, reason = next(iter(missing.items()))
            return Score.unscored(f"{name}: {reason}", feedback=feedback, parts=scores, details=details)
        mean = math.fsum(self._weights[name] * value for name, value in values.items()) / weight
        # Rounding may carry a mean past its own parts by the last digit.
        return Score(min(max(mean, min(values.values())), max(values.values())), feedback, scores, details=details)

    def _feedback(self, scores: Mapping[str, Score]) -> str:
        """The feedback of every part that is not fully right, the most weight lost first; unscored parts before all."""

        def cost(name: str) -> tuple[bool, float]:
            value = scores[name].value
            return (value is None, self._weights[name] * (1.0 - (value or 0.0)))

        wrong = [name for name, score in scores.items() if score.value is None or score.value < 1.0]
        if not wrong:
            return "every part is fully right"
        lines: list[str] = []
        for name in sorted(wrong, key=cost, reverse=True):
            value = scores[name].value
            said = "no score" if value is None else f"{value:.2f} of 1"
            lines += [f"{name}: {said}, weight {self._weights[name]:g}", *scores[name].feedback.splitlines()]
        return _capped(lines)


def _compared(metric: Metric, expected: Any, predicted: Any) -> Score | None:
    compare = getattr(metric, "compare", None)
    if compare is None:
        return None
    try:
        return compare(expected, predicted)
    except NotImplementedError:
        return None


def _refuse_other_things(name: object, metric: object) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError(f"composite: a part has a name, got {name!r}")
    if isinstance(metric, BaseEvaluator):
        raise ValueError(f"composite: {name!r} is an evaluator of single values; give it a place in a RecordMetric")
    lacking = [attribute for attribute in ("name", "version") if not hasattr(metric, attribute)]
    if lacking or not callable(metric):
        raise ValueError(
            f"composite: {name!r} is no metric: it has no {' and no '.join(lacking or ['__call__'])}; a function that "
            "gives numbers becomes one in a ScaledMetric"
        )
    if getattr(metric, "needs_lm", False) and getattr(metric, "lm", None) is None:
        raise ValueError(f"composite: {name!r} asks a model and was given none; give it its lm")


def checked_weight(name: str, weight: Any) -> float:
    """The weight of the part `name`.

    Raises:
        ValueError: it is no finite number from 0 upwards.
    """
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
        raise ValueError(f"composite: the weight of {name!r} is a number, 0 or more, got {weight!r}")
    return float(weight)


def _checked_weights(weights: Mapping[str, float], parts: Mapping[str, Metric]) -> dict[str, float]:
    if not isinstance(weights, Mapping):
        raise ValueError(f"composite: weights are numbers by the name of a part, got {weights!r}")
    for name, weight in weights.items():
        if name not in parts:
            raise ValueError(f"composite: there is no part {name!r} for the weight {weight!r}, {nearest(name, parts)}")
    checked = {name: checked_weight(name, weights.get(name, 1.0)) for name in parts}
    if not any(checked.values()):
        raise ValueError("composite: every weight is 0, so nothing would be measured")
    return checked


def _capped(lines: Sequence[str]) -> str:
    kept: list[str] = []
    length = 0
    for line in lines:
        length += len(line) + 1
        if length > _MAX_CHARACTERS and kept:
            break
        kept.append(line[:_MAX_CHARACTERS])
    more = len(lines) - len(kept)
    return "\n".join([*kept, f"... and {more} more lines"] if more else kept)
