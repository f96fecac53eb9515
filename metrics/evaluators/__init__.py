"""Evaluators: one file each, one extracted value against the expected one."""

from metrics.evaluators.base import BaseEvaluator, EvaluatorConfig, ValueEvaluator
from metrics.evaluators.catalogue import CATALOGUE, create_evaluator
from metrics.evaluators.exact import StringCheckEvaluator
from metrics.evaluators.formula import FormulaEvaluator
from metrics.evaluators.label_model_grader import LabelModelGrader
from metrics.evaluators.levenshtein import LevenshteinEvaluator
from metrics.evaluators.numeric import NumericEvaluator
from metrics.evaluators.predefined_score import PredefinedScoreEvaluator
from metrics.evaluators.python_code import PythonCodeEvaluator
from metrics.evaluators.quantity import QuantityEvaluator
from metrics.evaluators.score_judge import ScoreJudge
from metrics.evaluators.siblings import WithSiblings
from metrics.evaluators.states import MISSING, State, state_of
from metrics.evaluators.text_similarity import TextSimilarityEvaluator
from metrics.evaluators.value_set import SetEvaluator

__all__ = [
    "CATALOGUE",
    "MISSING",
    "BaseEvaluator",
    "EvaluatorConfig",
    "FormulaEvaluator",
    "LabelModelGrader",
    "LevenshteinEvaluator",
    "NumericEvaluator",
    "PredefinedScoreEvaluator",
    "PythonCodeEvaluator",
    "QuantityEvaluator",
    "ScoreJudge",
    "SetEvaluator",
    "State",
    "StringCheckEvaluator",
    "TextSimilarityEvaluator",
    "ValueEvaluator",
    "WithSiblings",
    "create_evaluator",
    "state_of",
]
