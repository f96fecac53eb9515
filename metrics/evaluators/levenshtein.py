"""levenshtein: spelling and formatting differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from metrics.evaluators.amounts import Amount, amount_in, are_comparable
from metrics.evaluators.base import EvaluatorConfig, ValueEvaluator
from metrics.evaluators.states import is_container
from metrics.evaluators.text import (
    equal,
    equal_matrix,
    identity,
    same_matrix,
    similarity,
    similarity_matrix,
    trimmed,
)

_USE_QUANTITY = "different amounts; to compare numbers with units use quantity"


class LevenshteinConfig(EvaluatorConfig):
    """Options of `levenshtein`.

    Attributes:
        threshold: 0..1; a similarity below it counts 0.
    """

    threshold: float = Field(0.0, ge=0.0, le=1.0)


class LevenshteinEvaluator(ValueEvaluator):
    """How alike two texts are: 1 - edit distance / length of the longer one, after normalising and stripping both.

    V. Levenshtein, Soviet Physics Doklady 10, 1966; the distance counts insertions, deletions and substitutions of
    one character. Numbers are not compared as text: a number equals a number or counts 0. Neither are amounts:
    "5 h" and "50 h" count 0 and the feedback sends to `quantity`; the same amount spelled differently counts 1.
    A list or an object cannot be compared: where one is expected the result is unscored.

    >>> LevenshteinEvaluator().evaluate("Jon Doe", "John Doe"), LevenshteinEvaluator().evaluate("5 h", "50 h")
    (0.875, 0.0)
    >>> LevenshteinEvaluator({"threshold": 0.8}).evaluate("Jane", "John")
    0.0
    """

    alias: ClassVar[str] = "levenshtein"
    config_model: ClassVar[type[BaseModel]] = LevenshteinConfig

    def compare(self, extracted: Any, expected: Any) -> tuple[float | None, str]:
        if is_container(expected):
            return None, "levenshtein compares texts, not lists or objects; name the values inside"
        if not (isinstance(extracted, str) and isinstance(expected, str)):
            return float(equal(identity(extracted, trimmed), identity(expected, trimmed))), ""
        if extracted == expected:
            return 1.0, ""
        told = _compared(amount_in(extracted), amount_in(expected))
        if told is not None:
            return told, "" if told else _USE_QUANTITY
        value = similarity(trimmed(extracted), trimmed(expected))
        if value < self._threshold:
            return 0.0, f"similarity {value:.3g} is below the threshold {self._threshold:g}"
        return value, f"similarity {value:.3g}" if value < 1.0 else ""

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        texts = [[trimmed(value) if isinstance(value, str) else "" for value in side] for side in (extracted, expected)]
        values = similarity_matrix(*texts)
        values[values < self._threshold] = 0.0
        _fill_amounts(values, _amounts(extracted), _amounts(expected))
        _fill_others(values, extracted, expected)
        values[:, [index for index, value in enumerate(expected) if is_container(value)]] = np.nan
        return values

    @property
    def _threshold(self) -> float:
        return cast(LevenshteinConfig, self.config).threshold


def _compared(first: Amount | None, second: Amount | None) -> float | None:
    """1.0 or 0.0 where both are amounts, None where the texts decide."""
    if first is None or second is None or not are_comparable(first, second):
        return None
    if first == second:
        return 1.0
    # The same number after another sign ("~5 h", "5 h") is a matter of wording.
    return None if first.without_sign == second.without_sign else 0.0


def _fill_amounts(values: NDArray[np.float64], rows: dict[int, Amount], columns: dict[int, Amount]) -> None:
    """`_compared` for all amounts at once, in place of the likeness of their texts."""
    if not rows or not columns:
        return
    first, second = list(rows.values()), list(columns.values())
    measured = np.outer([amount.is_unit for amount in first], [amount.is_unit for amount in second])
    comparable = measured | same_matrix([amount.unit for amount in first], [amount.unit for amount in second])
    same = same_matrix(first, second)
    wording = same_matrix([amount.without_sign for amount in first], [amount.without_sign for amount in second])
    cells = np.ix_(list(rows), list(columns))
    block = values[cells]
    block[comparable & same] = 1.0
    block[comparable & ~wording] = 0.0
    values[cells] = block


def _fill_others(values: NDArray[np.float64], extracted: Sequence[Any], expected: Sequence[Any]) -> None:
    """Put equality in place of likeness wherever one side is no text."""
    rows, columns = (
        np.array([not isinstance(value, str) for value in side], dtype=bool) for side in (extracted, expected)
    )
    if rows.any() or columns.any():
        mask = rows[:, None] | columns[None, :]
        same = equal_matrix([identity(value, trimmed) for value in extracted], [identity(v, trimmed) for v in expected])
        values[mask] = same[mask]


def _amounts(values: Sequence[Any]) -> dict[int, Amount]:
    found = ((index, amount_in(value)) for index, value in enumerate(values) if isinstance(value, str))
    return {index: amount for index, amount in found if amount is not None}
