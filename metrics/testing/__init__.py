"""Conformance suites: what every evaluator, metric and judge must hold, as test classes to inherit.

    from metrics.testing import EvaluatorConformance


    class TestMine(EvaluatorConformance):
        make = lambda self: Mine()
        examples = [("LiCoO2", "LiCoO₂", "LiFePO4")]      # expected, right, wrong

pytest finds the checks by their names; nothing here imports pytest. A check that does not apply to a class of yours is
switched off by name, with the reason beside it: `test_markdown_gains_nothing = None`.
"""

from metrics.testing.evaluators import EvaluatorConformance
from metrics.testing.figures import FigureMetricConformance
from metrics.testing.judges import JudgeConformance
from metrics.testing.records import RecordMetricConformance
from metrics.testing.suites import conformance

__all__ = [
    "EvaluatorConformance",
    "FigureMetricConformance",
    "JudgeConformance",
    "RecordMetricConformance",
    "conformance",
]
