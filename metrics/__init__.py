"""Metrics: what measures an extracted record. Usable on its own, without the rest of the package.

>>> create_evaluator("levenshtein", {"threshold": 0.8}).evaluate("Jane", "John")
0.0
"""

from metrics.evaluators import (
    CATALOGUE,
    BaseEvaluator,
    LevenshteinEvaluator,
    NumericEvaluator,
    StringCheckEvaluator,
    create_evaluator,
)
from metrics.record import RecordMetric
from metrics.score import Metric, Score, UnscoredError, config_version
from metrics.statistics import Aggregate, PairedDifference, aggregate, paired_difference

__all__ = [
    "CATALOGUE",
    "Aggregate",
    "BaseEvaluator",
    "LevenshteinEvaluator",
    "Metric",
    "NumericEvaluator",
    "PairedDifference",
    "RecordMetric",
    "Score",
    "StringCheckEvaluator",
    "UnscoredError",
    "aggregate",
    "config_version",
    "create_evaluator",
    "paired_difference",
]
