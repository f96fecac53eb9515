"""The evaluators by alias."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from metrics.evaluators.base import BaseEvaluator
from metrics.evaluators.exact import StringCheckEvaluator
from metrics.evaluators.formula import FormulaEvaluator
from metrics.evaluators.label_model_grader import LabelModelGrader
from metrics.evaluators.levenshtein import LevenshteinEvaluator
from metrics.evaluators.numeric import NumericEvaluator
from metrics.evaluators.predefined_score import PredefinedScoreEvaluator
from metrics.evaluators.python_code import PythonCodeEvaluator
from metrics.evaluators.quantity import QuantityEvaluator
from metrics.evaluators.score_judge import ScoreJudge
from metrics.evaluators.text_similarity import TextSimilarityEvaluator
from metrics.evaluators.value_set import SetEvaluator
from metrics.nearest import nearest

_CLASSES: tuple[type[BaseEvaluator], ...] = (
    StringCheckEvaluator,
    LevenshteinEvaluator,
    TextSimilarityEvaluator,
    ScoreJudge,
    LabelModelGrader,
    PythonCodeEvaluator,
    PredefinedScoreEvaluator,
    NumericEvaluator,
    QuantityEvaluator,
    FormulaEvaluator,
    SetEvaluator,
)
CATALOGUE: Mapping[str, type[BaseEvaluator]] = MappingProxyType({cls.alias: cls for cls in _CLASSES})
"""Alias -> class; what a file may name."""


def create_evaluator(alias: str, config: Mapping[str, Any] | None = None) -> BaseEvaluator:
    """The evaluator of that alias.

    Raises:
        ValueError: an unknown alias or option (the nearest one is named), or a wrong value of an option.

    >>> create_evaluator("levenshtein", {"threshold": 0.8}).evaluate("Jane", "John")
    0.0
    >>> create_evaluator("levenstein")
    Traceback (most recent call last):
    ValueError: unknown evaluator 'levenstein', did you mean 'levenshtein'?
    """
    if alias not in CATALOGUE:
        raise ValueError(f"unknown evaluator {alias!r}, {nearest(str(alias), CATALOGUE)}")
    return CATALOGUE[alias](config)
