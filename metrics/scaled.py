"""ScaledMetric: a number of any scale and direction as a score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metrics.asking import AsksModels
from metrics.score import Score, config_version

_ROUNDING = 1e-9
"""A number beyond the better end of its scale by less than this share of the scale is that end."""


class ScaledMetric:
    """A metric of another scale or direction as a Score: 0 at the worse end of the scale, 1 at its better end.

        value = (number - low) / (high - low), or 1 minus that with `minimize`

    A number beyond the worse end counts 0.0, and the feedback says so: errors have no upper bound, and leaving the
    worst answers out would flatter a program. A number beyond the better end is unscored: then the scale is wrong.

    Args:
        measure: `measure(example, prediction)` gives a number, or a Score on that scale, whose parts are on it, too. A
            plain function will do, with `name` and `version` given.
        minimize: the lower end is the better one.
        scale: (low, high), the ends of the scale.
        name, version: of `measure`, where it has none of its own. Another version, another metric: raise it when the
            function changes.

    Raises:
        ValueError: the scale is none, or name or version is missing.

    >>> def rmse(example, prediction):
    ...     return prediction
    >>> metric = ScaledMetric(rmse, minimize=True, scale=(0, 10), name="rmse", version="1")
    >>> [metric(None, number).value for number in (0, 2.5, 10, 1234)]
    [1.0, 0.75, 0.0, 0.0]
    >>> metric(None, 2.5).feedback
    'rmse 2.5 on a scale from 0 (best) to 10 (worst)'
    """

    def __init__(
        self,
        measure: Callable[[Any, Any], Any],
        minimize: bool = False,
        scale: Sequence[float] = (0.0, 1.0),
        name: str | None = None,
        version: str | None = None,
    ) -> None:
        if not callable(measure):
            raise ValueError(f"scaled: a metric is called with an example and a prediction, {measure!r} cannot be")
        if not isinstance(minimize, bool):
            raise ValueError(f"scaled: minimize is true or false, got {minimize!r}")
        self._measure = measure
        self._minimize = minimize
        self._low, self._high = _ends(scale)
        self._name = _text(name, measure, "name")
        self._version = _text(version, measure, "version")

    def __repr__(self) -> str:
        return f"ScaledMetric({self._name!r}, minimize={self._minimize}, scale=({self._low:g}, {self._high:g}))"

    @property
    def name(self) -> str:
        """The wrapped metric's name."""
        return self._name

    @property
    def version(self) -> str:
        """A digest of the wrapped metric's version, direction and scale."""
        scale = {"minimize": self._minimize, "scale": [self._low, self._high]}
        return config_version("scaled", {"measure": [self._name, self._version], **scale})

    def __call__(self, example: Any, prediction: Any) -> Score:
        """The wrapped metric's number as a Score; unscored where it gives none."""
        return self._scaled(self._measure(example, prediction))

    def compare(self, expected: Any, predicted: Any) -> Score:
        """The same for two records.

        Raises:
            NotImplementedError: the wrapped metric compares no records.
        """
        compare = getattr(self._measure, "compare", None)
        if compare is None:
            raise NotImplementedError(f"{self._name} compares no records")
        return self._scaled(compare(expected, predicted))

    def model_calls(self, expected: Any) -> Mapping[str, int]:
        """Calls by role that one score takes at most."""
        return self._measure.model_calls(expected) if isinstance(self._measure, AsksModels) else {}

    def bind(self, lms: Mapping[str, Any]) -> ScaledMetric:
        """The same metric with its models in place."""
        measure = self._measure.bind(lms) if isinstance(self._measure, AsksModels) else self._measure
        return ScaledMetric(measure, self._minimize, (self._low, self._high), self._name, self._version)

    def _scaled(self, found: Any, name: str | None = None) -> Score:
        name = name or self._name
        scale = {"scale": [self._low, self._high], "minimize": self._minimize}
        if not isinstance(found, Score):
            return self._placed(found, name, "", {}, scale)
        parts = {part: self._scaled(score, part) for part, score in found.parts.items()}
        details = {**found.details, **scale}
        if found.error is not None:
            return Score.unscored(found.error, feedback=found.feedback, parts=parts, details=details)
        return self._placed(found.value, name, found.feedback, parts, details)

    def _placed(
        self, found: Any, name: str, said: str, parts: Mapping[str, Score], details: Mapping[str, Any]
    ) -> Score:
        """A number on its place between the ends."""
        number = _finite(found)
        if number is None:
            return Score.unscored(f"{name} gave {found!r}, not a finite number", parts=parts, details=details)
        share = (number - self._low) / (self._high - self._low)
        value = 1.0 - share if self._minimize else share
        worst, best = (self._high, self._low) if self._minimize else (self._low, self._high)
        sentence = f"{name} {number:g} on a scale from {best:g} (best) to {worst:g} (worst)"
        details = {**details, "number": number}
        if value > 1.0 + _ROUNDING:
            return Score.unscored(
                f"{sentence}: better than the best, so the scale is wrong", parts=parts, details=details
            )
        if value < 0.0:
            sentence += "; beyond the worst, it counts as that"
        return Score(min(max(value, 0.0), 1.0), f"{sentence}\n{said}".rstrip(), parts, details=details)


def _ends(scale: Sequence[float]) -> tuple[float, float]:
    ends = [_finite(end) for end in scale] if isinstance(scale, Sequence) and not isinstance(scale, str) else []
    if len(ends) != 2 or ends[0] is None or ends[1] is None or ends[0] >= ends[1]:
        raise ValueError(f"scaled: scale is [low, high], two numbers of which the first is lower, got {scale!r}")
    return ends[0], ends[1]


def _text(given: str | None, measure: object, attribute: str) -> str:
    text = given if given is not None else getattr(measure, attribute, None)
    if not isinstance(text, str) or not text:
        raise ValueError(f"scaled: a metric has a {attribute}; {measure!r} has none, so give {attribute}=")
    return text


def _finite(number: Any) -> float | None:
    if number is None or isinstance(number, str | bytes):
        return None
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
