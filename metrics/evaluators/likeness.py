"""What evaluators of the likeness of texts have in common: numbers and amounts are not measured by likeness."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from metrics.evaluators.amounts import Amount, amount_in, are_comparable
from metrics.evaluators.base import EvaluatorConfig, ValueEvaluator
from metrics.evaluators.states import is_container
from metrics.evaluators.text import equal, equal_matrix, identity, same_matrix, trimmed
from metrics.score import UnscoredError

_USE_QUANTITY = "different amounts; to compare numbers with units use quantity"


class LikenessConfig(EvaluatorConfig):
    """Options of every likeness of texts.

    Attributes:
        threshold: 0..1; a similarity below it counts 0.
    """

    threshold: float = Field(0.0, ge=0.0, le=1.0)


class LikenessEvaluator(ValueEvaluator):
    """How alike two texts are, 0..1, after normalising and stripping both; a subclass says how that is measured.

    Numbers are not compared as text: a number equals a number or counts 0. Neither are amounts: "5 h" and "50 h" count
    0 and the feedback sends to `quantity`; the same amount spelled differently counts 1. A list or an object cannot be
    compared: where one is expected the result is unscored.
    """

    config_model: ClassVar[type[BaseModel]] = LikenessConfig

    @abstractmethod
    def likeness(self, first: str, second: str) -> float:
        """Of two normalised texts, 0..1.

        Raises:
            UnscoredError: it cannot be measured; the message says why.
        """

    @abstractmethod
    def likenesses(self, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
        """`likeness` of every row with every column, NaN where it cannot be measured."""

    def compare(self, extracted: Any, expected: Any) -> tuple[float | None, str]:
        if is_container(expected):
            return None, f"{self.name} compares texts, not lists or objects; name the values inside"
        if not (isinstance(extracted, str) and isinstance(expected, str)):
            return float(equal(identity(extracted, trimmed), identity(expected, trimmed))), ""
        if extracted == expected:
            return 1.0, ""
        told = _compared(amount_in(extracted), amount_in(expected))
        if told is not None:
            return told, "" if told else _USE_QUANTITY
        try:
            value = self.likeness(trimmed(extracted), trimmed(expected))
        except UnscoredError as error:
            return None, str(error)
        if value < self._threshold:
            return 0.0, f"similarity {value:.3g} is below the threshold {self._threshold:g}"
        return value, f"similarity {value:.3g}" if value < 1.0 else ""

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        values = np.zeros((len(extracted), len(expected)))
        rows, columns = (
            [index for index, value in enumerate(side) if isinstance(value, str)] for side in (extracted, expected)
        )
        if rows and columns:
            texts = [trimmed(extracted[index]) for index in rows], [trimmed(expected[index]) for index in columns]
            found = self.likenesses(*texts)
            found[found < self._threshold] = 0.0
            values[np.ix_(rows, columns)] = found
        _fill_amounts(values, _amounts(extracted), _amounts(expected))
        _fill_others(values, extracted, expected)
        values[:, [index for index, value in enumerate(expected) if is_container(value)]] = np.nan
        return values

    @property
    def _threshold(self) -> float:
        return cast(LikenessConfig, self.config).threshold


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
