"""levenshtein: spelling and formatting differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from metrics.evaluators.likeness import LikenessEvaluator
from metrics.evaluators.text import similarity, similarity_matrix


class LevenshteinEvaluator(LikenessEvaluator):
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

    def likeness(self, first: str, second: str) -> float:
        return similarity(first, second)

    def likenesses(self, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
        return similarity_matrix(rows, columns)
