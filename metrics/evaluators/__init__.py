"""Evaluators: one file each, one extracted value against the expected one."""

from metrics.evaluators.base import BaseEvaluator, EvaluatorConfig, ValueEvaluator
from metrics.evaluators.catalogue import CATALOGUE, create_evaluator
from metrics.evaluators.exact import StringCheckEvaluator
from metrics.evaluators.levenshtein import LevenshteinEvaluator
from metrics.evaluators.numeric import NumericEvaluator
from metrics.evaluators.states import MISSING, State, state_of

__all__ = [
    "CATALOGUE",
    "MISSING",
    "BaseEvaluator",
    "EvaluatorConfig",
    "LevenshteinEvaluator",
    "NumericEvaluator",
    "State",
    "StringCheckEvaluator",
    "ValueEvaluator",
    "create_evaluator",
    "state_of",
]
