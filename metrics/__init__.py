"""Metrics: what measures an extracted record. Usable on its own, without the rest of the package.

>>> from metrics import create_evaluator
>>> create_evaluator("levenshtein", {"threshold": 0.8}).evaluate("Jane", "John")
0.0

Importing this package imports nothing heavy; each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metrics.composite import CompositeMetric
    from metrics.evaluators import (
        CATALOGUE,
        BaseEvaluator,
        FormulaEvaluator,
        LabelModelGrader,
        LevenshteinEvaluator,
        NumericEvaluator,
        PredefinedScoreEvaluator,
        PythonCodeEvaluator,
        QuantityEvaluator,
        ScoreJudge,
        SetEvaluator,
        StringCheckEvaluator,
        TextSimilarityEvaluator,
        create_evaluator,
    )
    from metrics.figure import FigureExtractionMetric, FigureMetric
    from metrics.linking import LinkingMetric
    from metrics.record import RecordMetric
    from metrics.scaled import ScaledMetric
    from metrics.score import Metric, Score, UnscoredError, config_version
    from metrics.statistics import Aggregate, PairedDifference, aggregate, paired_difference

__all__ = [
    "CATALOGUE",
    "Aggregate",
    "BaseEvaluator",
    "CompositeMetric",
    "FigureExtractionMetric",
    "FigureMetric",
    "FormulaEvaluator",
    "LabelModelGrader",
    "LevenshteinEvaluator",
    "LinkingMetric",
    "Metric",
    "NumericEvaluator",
    "PairedDifference",
    "PredefinedScoreEvaluator",
    "PythonCodeEvaluator",
    "QuantityEvaluator",
    "RecordMetric",
    "ScaledMetric",
    "Score",
    "ScoreJudge",
    "SetEvaluator",
    "StringCheckEvaluator",
    "TextSimilarityEvaluator",
    "UnscoredError",
    "aggregate",
    "config_version",
    "create_evaluator",
    "paired_difference",
]

_HOMES = {
    "RecordMetric": "metrics.record",
    "LinkingMetric": "metrics.linking",
    **dict.fromkeys(("FigureExtractionMetric", "FigureMetric"), "metrics.figure"),
    "CompositeMetric": "metrics.composite",
    "ScaledMetric": "metrics.scaled",
    **dict.fromkeys(("Metric", "Score", "UnscoredError", "config_version"), "metrics.score"),
    **dict.fromkeys(("Aggregate", "PairedDifference", "aggregate", "paired_difference"), "metrics.statistics"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "metrics.evaluators")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
