"""numeric: numbers, with a tolerance and a declared way down from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from metrics.evaluators.base import ValueEvaluator
from metrics.evaluators.states import is_container
from metrics.evaluators.text import equal, equal_matrix, identity, is_number, number_in, trimmed
from metrics.evaluators.tolerance import ToleranceConfig


class NumericConfig(ToleranceConfig):
    """Options of `numeric`: those of `ToleranceConfig`."""


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
        with np.errstate(over="ignore"):  # a tolerance without end is one, too
            tolerance = np.maximum(config.absolute_tolerance, config.relative_tolerance * np.abs(expected))
        return config.credit(difference, tolerance)


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
