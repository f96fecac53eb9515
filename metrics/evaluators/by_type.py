"""The evaluator of a field for which none is named: chosen by the type of the expected value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.evaluators.base import ValueEvaluator
from metrics.evaluators.exact import StringCheckEvaluator
from metrics.evaluators.levenshtein import LevenshteinEvaluator
from metrics.evaluators.numeric import NumericEvaluator
from metrics.evaluators.text import is_number

FREE_TEXT = LevenshteinEvaluator({"threshold": 0.5})
"""For text of which nothing else is known. Two unrelated words are a fifth alike by chance, which is no merit; from
half on they have something to do with each other."""


class ByTypeEvaluator(ValueEvaluator):
    """Numbers by `numeric`, text by `levenshtein` from 0.5 on, true and false, lists and objects by `exact`.

    >>> by_type = ByTypeEvaluator()
    >>> by_type.evaluate(900.0, 900), by_type.evaluate("Jon Doe", "John Doe"), by_type.evaluate(False, True)
    (1.0, 0.875, 0.0)
    >>> by_type.evaluate("Jane Smith", "John Doe")
    0.0
    """

    alias = "by_type"
    _evaluators = (NumericEvaluator(), FREE_TEXT, StringCheckEvaluator())

    def compare(self, extracted: Any, expected: Any) -> tuple[float | None, str]:
        return self._evaluators[_choice(expected)].compare(extracted, expected)

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        choices = [_choice(value) for value in expected]
        values = np.empty((len(extracted), len(expected)))
        for choice, evaluator in enumerate(self._evaluators):
            columns = [column for column, chosen in enumerate(choices) if chosen == choice]
            if columns:
                values[:, columns] = evaluator.similarities(extracted, [expected[column] for column in columns])
        return values


def _choice(expected: Any) -> int:
    if is_number(expected):
        return 0
    return 1 if isinstance(expected, str) else 2
