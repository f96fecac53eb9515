"""Did it get better? The verdict of a paired comparison on the same held-out examples."""

from __future__ import annotations

from harness.results import AuditChange, Evaluation, Verdict
from metrics.statistics import FEWEST_GROUPS, PairedDifference, paired_difference


def compare(baseline: Evaluation, tuned: Evaluation, *, seed: int = 0) -> tuple[PairedDifference | None, Verdict]:
    """The paired difference tuned - baseline and what it means.

    Examples scored on both sides are paired; the 95% interval is a bootstrap over groups where examples share
    one. The verdict is "improved" only when the whole interval lies above zero and "worse" only when it lies
    below, and only with at least `FEWEST_GROUPS` independent examples; with fewer than two there is no interval.

    Raises:
        ValueError: the two evaluations are not of the same examples in the same order.
    """
    if [row.example_id for row in baseline.rows] != [row.example_id for row in tuned.rows]:
        raise ValueError("baseline and tuned were not measured on the same examples in the same order")
    difference = paired_difference(
        [row.score.value for row in baseline.rows],
        [row.score.value for row in tuned.rows],
        [row.group for row in baseline.rows],
        seed=seed,
    )
    return difference, verdict(difference)


_ROUNDING = 1e-9
"""A bound this near zero is zero: one example in twenty that differs must not decide a verdict by rounding."""


def verdict(difference: PairedDifference | None) -> Verdict:
    """The verdict an interval allows.

    >>> verdict(PairedDifference(0.2, (0.1, 0.3), 0.1, 30, 30))
    'improved'
    >>> verdict(PairedDifference(0.2, (-0.1, 0.5), 0.4, 30, 30))
    'no detectable change'
    >>> verdict(PairedDifference(0.2, (0.1, 0.3), 0.1, 12, 4))
    'no detectable change'
    """
    if difference is None or difference.interval is None:
        return "not comparable"
    if difference.n_groups < FEWEST_GROUPS:
        return "no detectable change"
    low, high = difference.interval
    if low > _ROUNDING:
        return "improved"
    return "worse" if high < -_ROUNDING else "no detectable change"


def compare_audits(baseline: Evaluation, tuned: Evaluation, *, seed: int = 0) -> dict[str, AuditChange]:
    """Each audit metric on both sides. A judge that rises while its audit does not is being gamed."""
    groups = [row.group for row in baseline.rows]
    return {
        name: AuditChange(
            baseline.audit[name],
            tuned.audit[name],
            paired_difference(
                [row.audit[name].value if name in row.audit else None for row in baseline.rows],
                [row.audit[name].value if name in row.audit else None for row in tuned.rows],
                groups,
                seed=seed,
            ),
        )
        for name in baseline.audit
    }
