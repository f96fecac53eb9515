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
    from metrics.grounded import GroundedMetric
    from metrics.judge.linking import (
        DspyLinkingJudge,
        LinkingEvaluation,
        LinkingEvaluationScore,
        LinkingFailureFlags,
        make_linking_judge_signature,
    )
    from metrics.judge.metric import JudgeMetric
    from metrics.judge.rubric import Rubric, load_rubric
    from metrics.judge.rubric_judge import RubricJudge
    from metrics.judge.synthesis import (
        DspyGeneralSynthesisJudge,
        GeneralSynthesisEvaluation,
        GeneralSynthesisEvaluationScore,
        make_general_synthesis_judge_signature,
    )
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
    "DspyGeneralSynthesisJudge",
    "DspyLinkingJudge",
    "FigureExtractionMetric",
    "FigureMetric",
    "FormulaEvaluator",
    "GeneralSynthesisEvaluation",
    "GeneralSynthesisEvaluationScore",
    "GroundedMetric",
    "JudgeMetric",
    "LabelModelGrader",
    "LevenshteinEvaluator",
    "LinkingEvaluation",
    "LinkingEvaluationScore",
    "LinkingFailureFlags",
    "LinkingMetric",
    "Metric",
    "NumericEvaluator",
    "PairedDifference",
    "PredefinedScoreEvaluator",
    "PythonCodeEvaluator",
    "QuantityEvaluator",
    "RecordMetric",
    "Rubric",
    "RubricJudge",
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
    "load_rubric",
    "make_general_synthesis_judge_signature",
    "make_linking_judge_signature",
    "paired_difference",
]

_HOMES = {
    "RecordMetric": "metrics.record",
    "LinkingMetric": "metrics.linking",
    **dict.fromkeys(("FigureExtractionMetric", "FigureMetric"), "metrics.figure"),
    "CompositeMetric": "metrics.composite",
    "GroundedMetric": "metrics.grounded",
    "JudgeMetric": "metrics.judge.metric",
    "RubricJudge": "metrics.judge.rubric_judge",
    **dict.fromkeys(("Rubric", "load_rubric"), "metrics.judge.rubric"),
    **dict.fromkeys(
        (
            "DspyGeneralSynthesisJudge",
            "GeneralSynthesisEvaluation",
            "GeneralSynthesisEvaluationScore",
            "make_general_synthesis_judge_signature",
        ),
        "metrics.judge.synthesis",
    ),
    **dict.fromkeys(
        (
            "DspyLinkingJudge",
            "LinkingEvaluation",
            "LinkingEvaluationScore",
            "LinkingFailureFlags",
            "make_linking_judge_signature",
        ),
        "metrics.judge.linking",
    ),
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
