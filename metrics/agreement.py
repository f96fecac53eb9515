"""How far a judge agrees with people: correlations, kappa, ICC, errors, each with an interval clustered by group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Interval = tuple[float, float]

STATISTICS = ("spearman", "pearson", "kappa", "icc2", "mae", "bias")
RESAMPLES, CONFIDENCE = 1000, 0.95
FEWEST, FEWEST_GROUPS = 3, 2
"""Rows, and groups, below which nothing is said."""
_NOTHING = 1e-18
_DEFINED = 0.9
"""Share of the resamples in which a statistic must be defined for its interval to be given."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two raters agree on the same things.

    Attributes:
        n, groups: rows that both rated, and groups (papers) they come from.
        spearman, pearson: rank and linear correlation, -1 to 1.
        kappa: Cohen's, weighted by squared distance, of the scores as given.
        icc2: intraclass correlation ICC(2,1): absolute agreement of single raters, both drawn at random.
        mae: mean absolute difference, in steps of the scale's unit.
        bias: mean of judge minus people.
        interval: 95% interval by statistic; of a bootstrap over groups.

    A statistic is None where it is not defined: fewer than three rows, or a rater who always says the same.
    """

    n: int
    groups: int
    spearman: float | None = None
    pearson: float | None = None
    kappa: float | None = None
    icc2: float | None = None
    mae: float | None = None
    bias: float | None = None
    interval: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def to_document(self) -> dict[str, Any]:
        """As JSON data."""
        numbers = {name: getattr(self, name) for name in STATISTICS}
        intervals = {name: list(ends) for name, ends in self.interval.items()}
        return {"n": self.n, "groups": self.groups, **numbers, "interval": intervals}


def agreement(
    judge: Sequence[float | None],
    people: Sequence[float | None],
    groups: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Agreement:
    """Agreement on the rows that both sides scored.

    Args:
        judge, people: a score per row, None where there is none.
        groups: what the rows cluster in, such as papers; None takes every row by itself.
        resamples: of the bootstrap; 0 gives no intervals.
        seed: of the bootstrap.

    Sources: Spearman and Pearson as in scipy; weighted kappa: J. Cohen, Psychological Bulletin 70, 1968; ICC(2,1):
    P. Shrout and J. Fleiss, Psychological Bulletin 86, 1979. The interval is that of the percentiles over resamples of
    whole groups.

    >>> found = agreement([1, 2, 3, 4], [2, 3, 4, 5], resamples=0)
    >>> found.spearman, found.mae, found.bias, round(found.icc2, 3)
    (1.0, 1.0, -1.0, 0.769)
    """
    named = [str(row) for row in range(len(judge))] if groups is None else list(groups)
    rows = [
        (float(first), float(second), group)
        for first, second, group in zip(judge, people, named, strict=True)
        if first is not None and second is not None
    ]
    first, second = (np.array([row[side] for row in rows], dtype=np.float64) for side in (0, 1))
    clusters = _clusters([row[2] for row in rows])
    if len(rows) < FEWEST:
        return Agreement(len(rows), len(clusters))
    found = {name: float(value[0]) for name, value in _statistics(first, second, np.ones((1, len(rows)))).items()}
    interval = _intervals(first, second, clusters, resamples, seed) if len(clusters) >= FEWEST_GROUPS else {}
    return Agreement(
        len(rows),
        len(clusters),
        **{name: None if math.isnan(value) else value for name, value in found.items()},
        interval={name: ends for name, ends in interval.items() if not math.isnan(found[name])},
    )


def _clusters(groups: Sequence[str]) -> Scores:
    """Which rows are in which group: 1 or 0, shape (groups, rows)."""
    places = {group: index for index, group in enumerate(dict.fromkeys(groups))}
    clusters = np.zeros((len(places), len(groups)))
    for row, group in enumerate(groups):
        clusters[places[group], row] = 1.0
    return clusters


def _intervals(first: Scores, second: Scores, clusters: Scores, resamples: int, seed: int) -> dict[str, Interval]:
    """The middle of each statistic over resamples; a resample is how often each row is in it."""
    if not resamples:
        return {}
    many = np.random.default_rng(seed).multinomial(len(clusters), [1 / len(clusters)] * len(clusters), size=resamples)
    drawn = _statistics(first, second, many @ clusters)
    return {name: ends for name, values in drawn.items() if (ends := percentile_interval(values.tolist())) is not None}


def percentile_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The middle 95% of the values; None where too many of them are not defined."""
    finite = [value for value in values if not math.isnan(value)]
    if not values or len(finite) < _DEFINED * len(values):
        return None
    low, high = np.quantile(finite, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _statistics(first: Scores, second: Scores, times: Scores) -> dict[str, Scores]:
    """Every statistic of every sample; `times` says how often each row is in each, shape (samples, rows)."""
    n = times.sum(axis=1)

    def mean(values: Scores) -> Scores:
        return (times * values).sum(axis=1) / n

    def correlation(one: Scores, other: Scores) -> Scores:
        one, other = one - mean(one)[:, None], other - mean(other)[:, None]
        size = np.sqrt(mean(one * one) * mean(other * other))
        return np.clip(_ratio(mean(one * other), size), -1.0, 1.0)

    difference = first - second
    bias, squares = mean(difference), mean(difference**2)
    spread = mean((first - mean(first)[:, None]) ** 2) + mean((second - mean(second)[:, None]) ** 2)
    # ICC(2,1) from the mean squares of rows, raters and the rest.
    middle = (first + second) / 2
    rows = 2 * n * mean((middle - mean(middle)[:, None]) ** 2) / (n - 1)
    raters = n * bias**2 / 2
    rest = n * (squares - bias**2) / 2 / (n - 1)
    return {
        "spearman": correlation(_ranks(first, times), _ranks(second, times)),
        "pearson": correlation(first, second),
        # 1 - mean squared difference / its expectation when the two sides have nothing to do with each other
        "kappa": _ratio(spread + bias**2 - squares, spread + bias**2),
        "icc2": _ratio(rows - rest, rows + rest + 2 * (raters - rest) / n),
        "mae": mean(np.abs(difference)),
        "bias": bias,
    }


def _ratio(above: Scores, below: Scores) -> Scores:
    """NaN where there is nothing to divide by; rounding leaves a spread of nothing at some 1e-31."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > _NOTHING)


def _ranks(values: Scores, times: Scores) -> Scores:
    """Average ranks of every row in every sample, shape (samples, rows)."""
    distinct, places = np.unique(values, return_inverse=True)
    each = times @ (places[:, None] == np.arange(len(distinct))).astype(np.float64)
    return (np.cumsum(each, axis=1) - each / 2)[:, places]


def spread_ratio(judge: Sequence[float], people: Sequence[float]) -> float | None:
    """Standard deviation of the judge's scores over that of people's; None where people always say the same.

    >>> spread_ratio([3, 3, 4], [1, 3, 5])
    0.2886751345948129
    """
    if len(judge) < 2 or not np.std(people, ddof=1) > 0:
        return None
    return float(np.std(judge, ddof=1) / np.std(people, ddof=1))


def recall_of_failed(judge: Sequence[float], people: Sequence[float], failed: float) -> tuple[float | None, int]:
    """Share of what people failed (score at most `failed`) that the judge fails too, and how many that were.

    >>> recall_of_failed([1, 4, 5], [2, 2, 5], 2)
    (0.5, 2)
    """
    both = [given <= failed for given, said in zip(judge, people, strict=True) if said <= failed]
    return (sum(both) / len(both) if both else None), len(both)
