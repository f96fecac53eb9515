"""Metrics: what measures an extracted record. Usable on its own, without the rest of the package.

>>> Score(0.5, "half of it").value
0.5
"""

from metrics.score import Metric, Score, UnscoredError, config_version
from metrics.statistics import Aggregate, PairedDifference, aggregate, paired_difference

__all__ = [
    "Aggregate",
    "Metric",
    "PairedDifference",
    "Score",
    "UnscoredError",
    "aggregate",
    "config_version",
    "paired_difference",
]
