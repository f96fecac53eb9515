"""numeric: numbers, with a tolerance and a declared way down from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from metrics.evaluators.base import EvaluatorConfig, ValueEvaluator
from metrics.evaluators.states import is_container
from metrics.evaluators.text import equal, equal_matrix, identity, is_number, number_in, trimmed


class NumericConfig(EvaluatorConfig):
    """Options of `numeric`.

    Attributes:
        absolute_tolerance: a difference up to this counts 1, in the value's own unit.
        relative_tolerance: a difference up to this share of the expected value counts 1. The larger of the two holds.
        partial: "none": beyond the tolerance 0. "linear": from 1 at the tolerance down to 0.
        width: where "linear" reaches 0: that many tolerances beyond the tolerance.
    """

    absolute_tolerance: float = Field(0.0, ge=0.0)
    relative_tolerance: float = Field(1e-6, ge=0.0)
    partial: Literal["none", "linear"] = "none"
    width: float = Field(1.0, gt=0.0)


class NumericEvaluator(ValueEvaluator):
    """How close two numbers are.

        tolerance = max(absolute_tolerance, relative_tolerance * |expected|)
        excess    = (|extracted - expected| - tolerance) / (width * tolerance)
        value     = 1                     when excess <= 0
                    max(0, 1 - excess)    beyond, with partial "linear"
                    0                     beyond, with partial "none", and whenever the tolerance is 0

    Text that is a number counts as the number. Where one side is none ("overnight"), the two are equal or 0.
    A list or an object cannot be compared: where one is expected the result is unscored.

    >>> NumericEvaluator().evaluate("900", 900.0), NumericEvaluator().evaluate(90, 900)
    (1.0, 0.0)
    >>> close = NumericEvaluator({"absolute_tolerance": 5, "partial": "linear", "width": 2})
    >>> [close.evaluate(extracted, 100) for extracted in (105, 110, 115, 90)]
    [1.0, 0.5, 0.0, 0.5]
    """

    alias: ClassVar[str] = "numeric"
    config_model: ClassVar[type[BaseModel]] = NumericConfig

    def compare(self, extracted: Any, expected: Any) -> tuple[float | None, str]:
        if is_container(expected):
            return None, "numeric compares numbers, not lists or objects; name the values inside"
        first, second = _number(extracted), _number(expected)
        if math.isnan(first) or math.isnan(second):
            same = equal(identity(extracted, trimmed), identity(expected, trimmed))
            return float(same), "" if same else "not both are numbers"
        value = float(self._credit(np.array([abs(first - second)]), np.array([second]))[0])
        return value, f"off by {abs(first - second):.6g}" if value < 1.0 else ""

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        rows, columns = (np.array([_number(value) for value in side]) for side in (extracted, expected))
        with np.errstate(over="ignore"):  # infinitely far apart is an answer
            differences = np.abs(rows[:, None] - columns[None, :])
        values = self._credit(differences, np.broadcast_to(columns, differences.shape))
        others = np.isnan(rows)[:, None] | np.isnan(columns)[None, :]
        if others.any():
            same = equal_matrix([identity(v, trimmed) for v in extracted], [identity(v, trimmed) for v in expected])
            values[others] = same[others]
            values[:, [is_container(value) for value in expected]] = np.nan
        return values

    def _credit(self, difference: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
        config = cast(NumericConfig, self.config)
        tolerance = np.maximum(config.absolute_tolerance, config.relative_tolerance * np.abs(expected))
        credit = (difference <= tolerance).astype(np.float64)
        if config.partial == "linear":
            beyond, reach = difference - tolerance, config.width * tolerance
            sloped = (beyond > 0) & (beyond < reach)
            credit[sloped] = 1.0 - beyond[sloped] / reach[sloped]
        return credit


def _number(value: Any) -> float:
    """The finite number that `value` is or reads as, NaN for everything else."""
    number = number_in(value) if isinstance(value, str) else value
    if not is_number(number):
        return math.nan
    try:
        found = float(cast(float, number))
    except OverflowError:
        return math.nan
    return found if math.isfinite(found) else math.nan
