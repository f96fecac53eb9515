"""Means with intervals, clustered where examples share a group; paired differences; the effect a test can see.

Examples from one group (one paper, one author) resemble each other, so the group is what is resampled. The mean
over rows is then a ratio of two sums over groups,

    mean = sum_g s_g / sum_g n_g        s_g: sum of the values of group g, n_g: how many it has

and one bootstrap resample draws groups with replacement and forms that ratio again (B. Efron, R. Tibshirani, An
Introduction to the Bootstrap, 1993, ch. 8 and 14; D. Cameron, J. Gelbach, D. Miller, Review of Economics and
Statistics 90, 2008). Intervals are bias corrected and accelerated (BCa: B. Efron, JASA 82, 1987), at a level expanded
for the number of groups, since a bootstrap of few groups is too narrow (T. Hesterberg, The American Statistician 69,
2015). Very few groups remain doubtful: read `n_scored` and `n_groups` beside an interval.

The smallest detectable difference is the normal approximation

    (z[1 - (1 - confidence)/2] + z[power]) * standard error

(H. Bloom, Evaluation Review 19, 1995; 2.8 standard errors at 95% and power 0.8) with the clustered standard error of
the ratio, linearised (W. Cochran, Sampling Techniques, 1977, ch. 6), over G groups and N pairs:

    sqrt( G/(G-1) * sum_g (s_g - mean*n_g)^2 ) / N

Where most pairs are equal a bootstrap is too sure of itself: with three of twenty groups changed it hardly ever draws
none of them, and its spread rests on those three. So the interval of a difference leaves out zero only where a sign
flip test does too: had nothing changed, each group's difference could as well have had the other sign, and the observed
sum must be among the 5% of all such sums that lie farthest out (R. Fisher, The Design of Experiments, 1935, sec. 21;
E. Pitman, JRSS Supplement 4, 1937). The test is exact for scores of any shape and any number of ties. With m groups
changed it cannot reach below 2 * 0.5 ** m, the sign test without its ties (W. Dixon, A. Mood, JASA 41, 1946), so fewer
than `FEWEST_GROUPS` changed groups never show a difference. Where the test does not agree, the interval is widened to
zero.

What could not be scored is None. It never enters a mean; it is counted, and `lower_bound` shows what the mean
would be if each of them were worth nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

FEWEST_GROUPS = 6
"""Independent examples below which no difference can be shown. With five that all agree, chance alone does as well in
one of 16 cases (sign test, two-sided: 2 * 0.5 ** 5), and a bootstrap of so few is far too sure of itself."""

_RESAMPLES = 10_000
_WIDEST = 0.999
"""Level beyond which ten thousand resamples have no tail left to look at."""
_SAME = 1e-12
"""Group means that differ by less than this are the same number, apart from rounding."""
_DECIMALS = 12
_DRAWS_AT_ONCE = 1_000_000
"""Bounds the memory of one batch of resamples to some ten megabytes, however many groups there are."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What many Scores say together.

    Attributes:
        score: mean of the scored values, None when there is none.
        n_scored: how many values the mean rests on.
        n_total: how many there should have been.
        lower_bound: the mean with every unscored value counted as 0; 0.0 when there is nothing at all.
        interval: confidence interval of `score`, or None with fewer than two independent units.
    """

    score: float | None
    n_scored: int
    n_total: int
    lower_bound: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of after - before over the same examples.

    Attributes:
        mean: positive when `after` is higher.
        interval: confidence interval of `mean`, or None with fewer than two groups.
        smallest_detectable: the true difference that a test of this size finds with the asked power; None with
            fewer than `FEWEST_GROUPS` groups, which can find none, and when all pairs differ by the same amount,
            which says nothing about noise.
        n_pairs: examples scored on both sides.
        n_groups: independent units among them.
        n_changed: how many of those differ at all; fewer than `FEWEST_GROUPS` show nothing. None when nobody counted.
    """

    mean: float
    interval: tuple[float, float] | None
    smallest_detectable: float | None
    n_pairs: int
    n_groups: int
    n_changed: int | None = None


def aggregate(
    values: Sequence[float | None],
    groups: Sequence[str | None] | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = _RESAMPLES,
) -> Aggregate:
    """Mean, counts, lower bound and interval of scores.

    Args:
        values: one score in 0..1 per example; None, NaN and infinity are unscored.
        groups: the group of each example; None stands alone. Without groups every example stands alone.
        confidence: of the interval, between 0 and 1.
        seed: of the resampling. Equal input and seed give equal intervals; the order of rows does not matter.
        resamples: bootstrap resamples.

    Raises:
        ValueError: `groups` of another length than `values`; `confidence` outside 0..1.

    >>> aggregate([1.0, 1.0, 1.0, None])
    Aggregate(score=1.0, n_scored=3, n_total=4, lower_bound=0.75, interval=(1.0, 1.0))
    >>> aggregate([0.0, 1.0], groups=["paper 1", "paper 1"]).interval is None
    True
    """
    _check(confidence, len(values), groups)
    clusters = _clusters(values, groups)
    n_scored = int(clusters.counts.sum())
    total = math.fsum(clusters.sums)
    if not n_scored:
        return Aggregate(None, 0, len(values), 0.0, None)
    # A mean lies between its smallest and largest value, and its interval around it; rounding may leave that by 1e-16.
    scored = [value for value in values if value is not None and math.isfinite(value)]
    lowest, highest = min(scored), max(scored)
    score = min(max(total / n_scored, lowest), highest)
    interval = clusters.interval(confidence, seed, resamples)
    return Aggregate(
        score=score,
        n_scored=n_scored,
        n_total=len(values),
        lower_bound=min(total / len(values), score),
        interval=interval and (min(max(lowest, interval[0]), score), max(min(highest, interval[1]), score)),
    )


def paired_difference(
    before: Sequence[float | None],
    after: Sequence[float | None],
    groups: Sequence[str | None] | None = None,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    seed: int = 0,
    resamples: int = _RESAMPLES,
) -> PairedDifference | None:
    """The mean difference of two evaluations of the same examples, in the same order; None without a common one.

    Only examples scored on both sides count. How the smallest detectable difference is had stands at the top.

    Args:
        before, after: one score per example on each side; None, NaN and infinity are unscored.
        groups: as in `aggregate`.
        confidence: of the interval and of the detectable difference.
        power: probability of finding a true difference of that size.
        seed, resamples: as in `aggregate`.

    Raises:
        ValueError: sequences of different length; `confidence` or `power` outside 0..1.

    >>> difference = paired_difference([0.2, 0.4, None, 0.5], [0.4, 0.7, 0.9, 0.6])
    >>> round(difference.mean, 6), difference.n_pairs
    (0.2, 3)
    >>> paired_difference([None], [1.0]) is None
    True
    """
    if len(before) != len(after):
        raise ValueError(f"before and after are scores of the same examples, got {len(before)} and {len(after)}")
    _check(confidence, len(before), groups)
    _check_probability("power", power)
    differences = [
        None if first is None or second is None else second - first for first, second in zip(before, after, strict=True)
    ]
    clusters = _clusters(differences, groups)
    n_pairs = int(clusters.counts.sum())
    if not n_pairs:
        return None
    interval = clusters.interval(confidence, seed, resamples)
    if interval is not None and not interval[0] <= 0.0 <= interval[1]:
        chance = clusters.chance(seed, resamples)
        if chance > 1 - confidence:
            interval = min(interval[0], 0.0), max(interval[1], 0.0)
    return PairedDifference(
        mean=clusters.mean,
        interval=interval,
        smallest_detectable=clusters.detectable(confidence, power),
        n_pairs=n_pairs,
        n_groups=len(clusters.sums),
        n_changed=len(clusters.changed),
    )


@dataclass(frozen=True, slots=True)
class _Clusters:
    """Sums and counts of the independent units that have at least one scored value."""

    sums: NDArray[np.float64]
    counts: NDArray[np.float64]

    @property
    def mean(self) -> float:
        return math.fsum(self.sums) / int(self.counts.sum())

    @property
    def changed(self) -> NDArray[np.float64]:
        return self.sums[np.abs(self.sums / self.counts) > _SAME]

    def chance(self, seed: int, flips: int) -> float:
        """How often a sum with signs drawn anew lies as far from zero as the observed one; all signs where few are."""
        changed = self.changed
        observed = abs(math.fsum(changed)) - _SAME
        if 2 ** len(changed) <= flips:
            signs = 1.0 - 2.0 * (np.arange(2 ** len(changed))[:, None] >> np.arange(len(changed)) & 1)
            return float(np.mean(np.abs(signs @ changed) >= observed))
        rng, beyond, left = np.random.default_rng(seed), 1, flips
        while left:
            drawn = min(left, max(1, _DRAWS_AT_ONCE // len(changed)))
            signs = 1.0 - 2.0 * rng.integers(0, 2, (drawn, len(changed)), dtype=np.int8)
            beyond += int(np.count_nonzero(np.abs(signs @ changed) >= observed))
            left -= drawn
        return beyond / (flips + 1)  # the observed signs are one way, too

    @property
    def are_all_alike(self) -> bool:
        return float(np.ptp(self.sums / self.counts)) <= _SAME

    def interval(self, confidence: float, seed: int, resamples: int) -> tuple[float, float] | None:
        if len(self.sums) < 2:
            return None
        mean = self.mean
        if self.are_all_alike:  # BCa is 0/0 here, and the answer is known
            return mean, mean
        from scipy import stats  # takes most of a second to import; most commands never need an interval

        found = stats.bootstrap(
            (self.sums - mean * self.counts, self.counts),
            _ratio,
            paired=True,
            vectorized=True,
            n_resamples=resamples,
            batch=max(1, _DRAWS_AT_ONCE // len(self.sums)),
            confidence_level=_expanded(confidence, len(self.sums)),
            method="BCa",
            rng=np.random.default_rng(seed),
        ).confidence_interval
        # With two or three groups few distinct means exist and a tie can leave the observed one just outside.
        return mean + min(float(found.low), 0.0), mean + max(float(found.high), 0.0)

    def detectable(self, confidence: float, power: float) -> float | None:
        n_groups = len(self.sums)
        if n_groups < FEWEST_GROUPS or self.are_all_alike:
            return None
        residuals = self.sums - self.mean * self.counts
        error = math.sqrt(n_groups / (n_groups - 1) * float(residuals @ residuals)) / float(self.counts.sum())
        normal = NormalDist()
        return (normal.inv_cdf(1 - (1 - confidence) / 2) + normal.inv_cdf(power)) * error


def _expanded(confidence: float, n_groups: int) -> float:
    """The level at which a bootstrap of few groups covers what it promises.

    A bootstrap from n groups is too narrow, as a normal interval is where Student's belongs, and once more by
    sqrt((n - 1) / n). The expanded level makes up for both (T. Hesterberg, The American Statistician 69, 2015).
    """
    from scipy import stats

    quantile = stats.t.ppf(1 - (1 - confidence) / 2, n_groups - 1) * math.sqrt(n_groups / (n_groups - 1))
    return min(float(1 - 2 * stats.norm.sf(quantile)), max(confidence, _WIDEST))


def _ratio(residuals: NDArray[np.float64], counts: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    # The bias correction counts resamples below and equal to the observed mean, here 0: ties must stay ties.
    return np.round(residuals.sum(axis=axis) / counts.sum(axis=axis), _DECIMALS)


def _clusters(values: Sequence[float | None], groups: Sequence[str | None] | None) -> _Clusters:
    members: dict[tuple[str, str | int], list[float]] = {}
    for index, value in enumerate(values):
        if value is None or not math.isfinite(value):
            continue
        group = groups[index] if groups is not None else None
        members.setdefault(("row", index) if group is None else ("group", group), []).append(float(value))
    # Sorted, so that the order of rows cannot change what a seed draws; by count first, so that a constant added
    # to every value does not change it either. fsum for the same reason.
    ordered = sorted((len(scored), math.fsum(scored)) for scored in members.values())
    return _Clusters(_column(total for _, total in ordered), _column(count for count, _ in ordered))


def _column(numbers: Iterable[float]) -> NDArray[np.float64]:
    return np.fromiter(numbers, dtype=np.float64)


def _check(confidence: float, n_values: int, groups: Sequence[str | None] | None) -> None:
    _check_probability("confidence", confidence)
    if groups is not None and len(groups) != n_values:
        raise ValueError(f"groups name the group of every value, got {len(groups)} for {n_values} values")


def _check_probability(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} lies between 0 and 1, got {value!r}")
