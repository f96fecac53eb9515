"""Score and Metric: the contract of everything that measures, and nothing else.

A `Score` either holds a number in 0..1 (higher is better) or says why there is none. There is no default
score anywhere: what could not be read stays unscored and is counted as such.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class UnscoredError(ValueError):
    """Raised where a plain float is asked for and there is none; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Score:
    """The result of measuring one thing once.

    Attributes:
        value: 0.0 (worst) to 1.0 (best), or None when nothing could be measured.
        feedback: why, for people and for optimizers that read it.
        parts: named sub-scores (fields of a record, criteria of a judge).
        error: the reason there is no value; set exactly when `value` is None.
        details: anything worth keeping (a raw reply, counts, repairs). Never a secret.

    Raises:
        TypeError: feedback that is not text, parts that are not Scores by name.
        ValueError: a value that is not a finite number in 0..1, or value and error both set or both missing.
            Use `Score.measured` for a number from elsewhere: it turns such values into an unscored result.

    >>> Score(0.5, "half of it").value
    0.5
    >>> Score.unscored("the judge's answer could not be read").value is None
    True
    >>> Score(1.5)
    Traceback (most recent call last):
    ValueError: a score is a number in 0..1, got 1.5; use Score.measured for a number from elsewhere
    """

    value: float | None
    feedback: str = ""
    parts: Mapping[str, Score] = field(default_factory=lambda: _EMPTY)
    error: str | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    def __post_init__(self) -> None:
        # Copies of its own: what a caller does to its mapping later does not change a Score.
        object.__setattr__(self, "parts", dict(self.parts))
        object.__setattr__(self, "details", dict(self.details))
        if not isinstance(self.feedback, str):
            raise TypeError(f"feedback is text, got {type(self.feedback).__name__}")
        # Feedback quotes what models say, and they say halves of characters, which no file and no database takes.
        object.__setattr__(self, "feedback", _whole(self.feedback))
        if isinstance(self.error, str):
            object.__setattr__(self, "error", _whole(self.error))
        for name, part in self.parts.items():
            if not isinstance(name, str) or not isinstance(part, Score):
                raise TypeError(f"parts are Scores by name, got {name!r}: {type(part).__name__}")
        if self.value is None:
            if not self.error:
                raise ValueError("a Score without a value says why: give error=")
            return
        if self.error is not None:
            raise ValueError(f"a Score with a value has no error, got {self.error!r}")
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not 0.0 <= self.value <= 1.0:
            raise ValueError(
                f"a score is a number in 0..1, got {self.value!r}; use Score.measured for a number from elsewhere"
            )
        object.__setattr__(self, "value", float(self.value))

    @classmethod
    def unscored(
        cls,
        error: str,
        *,
        feedback: str = "",
        parts: Mapping[str, Score] = _EMPTY,
        details: Mapping[str, Any] = _EMPTY,
    ) -> Score:
        """No value, and the reason. `feedback` defaults to the reason."""
        return cls(None, feedback or error, parts, error, details)

    @classmethod
    def measured(
        cls,
        number: object,
        feedback: str = "",
        *,
        parts: Mapping[str, Score] = _EMPTY,
        details: Mapping[str, Any] = _EMPTY,
    ) -> Score:
        """A Score from a number that comes from elsewhere; what is not a number in 0..1 becomes unscored.

        >>> Score.measured(0.25).value
        0.25
        >>> Score.measured(float("nan")).error
        'not a finite number: nan'
        >>> Score.measured(4).error
        'out of range 0..1: 4'
        """
        if isinstance(number, bool):
            number = float(number)
        try:
            value = float(number)  # pyright: ignore[reportArgumentType]  # the whole point is to try
        except (TypeError, ValueError):
            return cls.unscored(f"not a number: {number!r}", parts=parts, details=details)
        if not math.isfinite(value):
            return cls.unscored(f"not a finite number: {value}", parts=parts, details=details)
        if not 0.0 <= value <= 1.0:
            return cls.unscored(f"out of range 0..1: {number}", parts=parts, details=details)
        return cls(value, feedback, parts, None, details)

    def as_float(self) -> float:
        """The value, or `UnscoredError` with the reason."""
        if self.value is None:
            raise UnscoredError(self.error)
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `Score.from_dict` reads it back."""
        plain: dict[str, Any] = {"value": self.value, "feedback": self.feedback}
        if self.error is not None:
            plain["error"] = self.error
        if self.parts:
            plain["parts"] = {name: part.to_dict() for name, part in self.parts.items()}
        if self.details:
            plain["details"] = dict(self.details)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Score:
        """The Score that `to_dict` wrote.

        >>> score = Score(0.5, "f", parts={"a": Score.unscored("no gold")})
        >>> Score.from_dict(score.to_dict()) == score
        True
        """
        parts = {name: cls.from_dict(part) for name, part in plain.get("parts", {}).items()}
        return cls(plain["value"], plain["feedback"], parts, plain.get("error"), plain.get("details", {}))


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@runtime_checkable
class Metric(Protocol):
    """What an optimizer believes: one example and one prediction to one Score.

    A metric reads no ambient LM, mutates neither argument and tracks nothing. `name` is what reports call it;
    `version` is `config_version` of its whole configuration, so that a stored score is reused only while
    nothing that could change it has changed.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def __call__(self, example: Any, prediction: Any) -> Score:
        """Measure `prediction` against `example` (a dspy.Example or any object with the same fields)."""
        ...

    def compare(self, expected: Any, predicted: Any) -> Score:
        """Measure one record against another, where the metric needs no source text."""
        ...


def config_version(name: str, config: Mapping[str, Any]) -> str:
    """A short digest of a configuration: equal configurations, equal versions; keys' order does not matter.

    >>> config_version("exact", {"a": 1, "b": 2}) == config_version("exact", {"b": 2, "a": 1})
    True
    >>> config_version("exact", {"a": 1}) == config_version("exact", {"a": 2})
    False
    """
    text = json.dumps([name, config], sort_keys=True, ensure_ascii=False, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
