"""exact: ids, codes, enums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from metrics.evaluators.base import EvaluatorConfig, ValueEvaluator
from metrics.evaluators.text import Identity, equal, equal_matrix, identity, normalized


class StringCheckConfig(EvaluatorConfig):
    """Options of `exact`.

    Attributes:
        case_sensitive: False lets "abc" equal "ABC".
        strip_whitespace: ignore white space at both ends.
    """

    case_sensitive: bool = True
    strip_whitespace: bool = True


class StringCheckEvaluator(ValueEvaluator):
    """1.0 when both are the same, else 0.0.

    Numbers compare as numbers (500 is 500.0, and "500" is 500), text in normal form (`text.normalized`) and then by
    the two options, lists and objects whole.

    >>> exact = StringCheckEvaluator()
    >>> exact.evaluate(" ABC123 ", "ABC123"), exact.evaluate("abc123", "ABC123"), exact.evaluate(500, 500.0)
    (1.0, 0.0, 1.0)
    >>> exact.score(90, 900, field_path="conditions.temperature").feedback
    'conditions.temperature: expected 900, got 90'
    """

    alias: ClassVar[str] = "exact"
    config_model: ClassVar[type[BaseModel]] = StringCheckConfig

    def compare(self, extracted: Any, expected: Any) -> tuple[float | None, str]:
        return float(equal(self._identity(extracted), self._identity(expected))), ""

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        rows, columns = ([self._identity(value) for value in side] for side in (extracted, expected))
        return equal_matrix(rows, columns).astype(np.float64)

    def _identity(self, value: Any) -> Identity:
        return identity(value, self._form)

    def _form(self, text: str) -> str:
        config = cast(StringCheckConfig, self.config)
        text = normalized(text)
        if config.strip_whitespace:
            text = text.strip()
        return text if config.case_sensitive else text.casefold()
