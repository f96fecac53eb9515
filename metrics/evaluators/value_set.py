"""set: several values in no order."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from metrics.evaluators.base import BaseEvaluator, EvaluatorConfig, compared, placed
from metrics.evaluators.states import State, has_value, state_of
from metrics.evaluators.text import shown
from metrics.score import Score

_UNSCORED = 0.01
"""What a pair that cannot be scored is worth while pairing: enough to be paired, and so to be reported."""
_MOST_NAMED = 5
_LONGEST_NAMED = 60


class SetConfig(EvaluatorConfig):
    """Options of `set`.

    Attributes:
        evaluator: what compares two values: an alias, `{alias: {options}}` or a BaseEvaluator.
        separator: what stands between the values of a text, such as ","; None: a text is one value.
    """

    evaluator: Any = "exact"
    separator: str | None = Field(None, min_length=1)


class SetEvaluator(BaseEvaluator):
    """How well a list of values was found, in any order: the F1 of what was found.

        precision = credit / extracted values      recall = credit / expected values
        value     = 2 * credit / (extracted values + expected values)

    Credit is the sum of what the inner evaluator says of the pairs, one to one, under the pairing with the highest sum
    (H. Kuhn, Naval Research Logistics 2, 1955; scipy's implementation). A value given twice where it is expected once
    costs precision. Values that are null or empty do not count. What is no list is a list of one; a text is split only
    where `separator` is given. An object cannot be compared: where one is expected the result is unscored. The parts
    of the score are precision and recall, unscored where there is nothing to divide by.

    Args:
        config: see `SetConfig`.

    Raises:
        ValueError: an evaluator that is none, or one that needs a model or the fields beside a value.

    >>> score = SetEvaluator().score(["N2", "Ar", "Ar"], ["Ar", "N2"])
    >>> score.value, score.parts["precision"].value, score.parts["recall"].value
    (0.8, 0.6666666666666666, 1.0)
    >>> SetEvaluator({"evaluator": "levenshtein", "separator": ","}).evaluate("John Doe, Jon Doe", ["John Doe"])
    0.6666666666666666
    """

    alias: ClassVar[str] = "set"
    config_model: ClassVar[type[BaseModel]] = SetConfig

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(config)
        try:
            self._inner = _evaluator(cast(SetConfig, self.config).evaluator)
        except ValueError as error:
            raise ValueError(f"{self.name}: evaluator: {error}") from None

    def options(self) -> dict[str, Any]:
        return {
            "evaluator": {self._inner.name: self._inner.options()},
            "separator": cast(SetConfig, self.config).separator,
        }

    def prepared(self) -> Self:
        ready = copy.copy(self)
        ready._inner = self._inner.prepared()
        return ready

    def score(
        self,
        extracted: Any,
        expected: Any,
        input_data: Mapping[str, Any] | None = None,
        field_path: str | None = None,
    ) -> Score:
        if isinstance(expected, Mapping) and expected:
            return Score.unscored(placed("set compares values, not objects; name the values inside", field_path))
        states = state_of(extracted), state_of(expected)
        if State.VALUE not in states:
            return Score(float(states[0] is states[1]), compared(extracted, expected, field_path))
        got, wanted = self._values(extracted), self._values(expected)
        pairs: list[tuple[int, int, Score]] = []
        for row, column in self._pairs(got, wanted):
            score = self._inner.score(got[row], wanted[column], input_data, field_path)
            if score.value is None:
                return Score.unscored(score.error or "", feedback=score.feedback, details=score.details)
            if score.value > 0.0:
                pairs.append((row, column, score))
        credit = math.fsum(score.as_float() for _, _, score in pairs)
        parts = {"precision": _rate("precision", credit, len(got)), "recall": _rate("recall", credit, len(wanted))}
        details = {"n_expected": len(wanted), "n_extracted": len(got), "n_matched": len(pairs)}
        note = _note(got, wanted, pairs)
        return Score(
            _f1(credit, len(got), len(wanted)), compared(extracted, expected, field_path, note), parts, details=details
        )

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        sides = [[self._values(value) for value in side] for side in (extracted, expected)]
        (rows, row_ends), (columns, column_ends) = (_joined(side) for side in sides)
        values = np.ones((len(extracted), len(expected)))
        likeness = self._inner.similarities(rows, columns) if rows and columns else np.zeros((len(rows), len(columns)))
        for i, got in enumerate(sides[0]):
            for j, wanted in enumerate(sides[1]):
                block = likeness[row_ends[i] : row_ends[i + 1], column_ends[j] : column_ends[j + 1]]
                pairs = _best_pairs(block)
                values[i, j] = _f1(math.fsum(block[pair] for pair in pairs), len(got), len(wanted))
        values[:, [isinstance(value, Mapping) for value in expected]] = np.nan
        return values

    def _values(self, value: Any) -> list[Any]:
        """The values of one side, in an order that does not depend on theirs."""
        separator = cast(SetConfig, self.config).separator
        if isinstance(value, str) and separator is not None:
            value = [piece.strip() for piece in value.split(separator)]
        items = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
        return sorted((item for item in items if has_value(item)), key=repr)

    def _pairs(self, got: list[Any], wanted: list[Any]) -> list[tuple[int, int]]:
        return _best_pairs(self._inner.similarities(got, wanted)) if got and wanted else []


def _evaluator(given: Any) -> BaseEvaluator:
    from metrics.evaluators.catalogue import create_evaluator  # which lists this class as well

    if isinstance(given, Mapping) and len(given) == 1:
        ((alias, options),) = given.items()
        given = create_evaluator(str(alias), options)
    elif isinstance(given, str):
        given = create_evaluator(given)
    if not isinstance(given, BaseEvaluator):
        raise ValueError(f"an alias, {{alias: {{options}}}} or a BaseEvaluator, got {shown(given)}")
    if given.needs_lm:
        raise ValueError(
            f"{given.name} asks a model, once per pair of values; name the list's items as a field instead"
        )
    if given.siblings:
        raise ValueError(f"nothing stands beside a single value, so {given.siblings[0]!r} cannot be read")
    return given


def _best_pairs(likeness: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Pairs (row, column), each at most once, with the highest sum of likeness; only what is alike at all."""
    if not likeness.size:
        return []
    gain = np.where(np.isnan(likeness), _UNSCORED, likeness)
    if 1 in gain.shape:
        row, column = np.unravel_index(int(gain.argmax()), gain.shape)
        found = [(int(row), int(column))]
    else:
        from scipy.optimize import linear_sum_assignment  # takes a third of a second to import

        rows, columns = linear_sum_assignment(gain, maximize=True)
        found = list(zip(rows.tolist(), columns.tolist(), strict=True))
    return [(row, column) for row, column in found if gain[row, column] > 0.0]


def _joined(side: list[list[Any]]) -> tuple[list[Any], list[int]]:
    return [item for items in side for item in items], [0, *accumulate(len(items) for items in side)]


def _f1(credit: float, extracted: int, expected: int) -> float:
    """1 for two empty sides: nothing was there and nothing was claimed. NaN stays NaN."""
    return float(np.minimum(1.0, 2.0 * credit / (extracted + expected))) if extracted + expected else 1.0


def _rate(name: str, credit: float, count: int) -> Score:
    return Score(min(1.0, credit / count)) if count else Score.unscored(f"{name}: nothing to divide by")


def _note(got: list[Any], wanted: list[Any], pairs: list[tuple[int, int, Score]]) -> str:
    """What is missing, what is too much, and what is only partly right."""
    rows, columns = ({pair[side] for pair in pairs} for side in (0, 1))
    partly = [f"{_named(got[row])} for {_named(wanted[column])}" for row, column, score in pairs if score.value != 1.0]
    notes = [
        ("missing", [_named(value) for index, value in enumerate(wanted) if index not in columns]),
        ("not expected", [_named(value) for index, value in enumerate(got) if index not in rows]),
        ("partly right", partly),
    ]
    return "; ".join(f"{name} {_listed(named)}" for name, named in notes if named)


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _named(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= _LONGEST_NAMED else text[: _LONGEST_NAMED - 1] + "…"
