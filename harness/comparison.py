"""Did it get better? The verdict of a paired comparison on the same held-out examples.

Two paired differences decide. `delta` is over the examples scored on both sides: what the answers are worth where both
programs gave one. `floor` counts an answer that could not be read as 0, because a user of the program would have got
nothing: it keeps a program from looking better by leaving the hard examples out. Trouble of the endpoint or of the
judge says nothing about either program, so such examples are left out of both; only an improvement must also hold with
the endpoint's missing answers counted as 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.results import AuditChange, Evaluation, Row, Verdict, lies_above_zero, lies_below_zero
from metrics.statistics import PairedDifference, paired_difference

LOST_AT_MOST = 0.5
"""A program that loses this share of the answers that could be read before is never called improved, whatever the
rest of them gained."""
_OWN_FAILURES = ("unreadable", "program")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two evaluations of the same examples say together.

    Attributes:
        delta: the difference tuned - baseline over the examples scored on both sides; None without any.
        floor: the same with every answer counted as 0 that could not be read on one side.
        verdict: what they allow to say.
        notes: a sentence where the two differ.
    """

    delta: PairedDifference | None
    floor: PairedDifference | None
    verdict: Verdict
    notes: tuple[str, ...] = ()


def compare(baseline: Evaluation, tuned: Evaluation, *, seed: int = 0) -> Comparison:
    """The paired differences tuned - baseline and what they mean.

    The 95% intervals are a bootstrap over groups where examples share one (`metrics.statistics`). The verdict is
    "improved" only when both intervals lie above zero and most answers that could be read before still can, and
    "worse" when one of them lies below; always on at least `FEWEST_GROUPS` independent examples. With fewer than two
    there is no interval.

    Raises:
        ValueError: the two evaluations are not of the same examples in the same order.
    """
    if [row.example_id for row in baseline.rows] != [row.example_id for row in tuned.rows]:
        raise ValueError("baseline and tuned were not measured on the same examples in the same order")
    groups = [row.group for row in baseline.rows]
    delta = paired_difference(
        [row.score.value for row in baseline.rows], [row.score.value for row in tuned.rows], groups, seed=seed
    )

    def with_zeros_for(failures: tuple[str, ...]) -> PairedDifference | None:
        if not any(row.failure in failures for row in (*baseline.rows, *tuned.rows)):
            return delta
        return paired_difference(
            [_at_least(row, failures) for row in baseline.rows],
            [_at_least(row, failures) for row in tuned.rows],
            groups,
            seed=seed,
        )

    floor, without_any = with_zeros_for(_OWN_FAILURES), with_zeros_for((*_OWN_FAILURES, "endpoint"))
    found = verdict(delta, floor, without_any, loses_answers=_loses_answers(baseline, tuned))
    return Comparison(delta, floor, found, _notes(delta, floor))


def verdict(
    delta: PairedDifference | None,
    floor: PairedDifference | None,
    without_any: PairedDifference | None,
    *,
    loses_answers: bool = False,
) -> Verdict:
    """The verdict that the intervals allow.

    Args:
        delta: over the examples scored on both sides.
        floor: with unreadable answers counted as 0.
        without_any: with every answer that never came counted as 0 as well. Trouble of the endpoint says nothing about
            a program, so it makes none worse; but a gain must not rest on answers missing on one side.
        loses_answers: the tuned program no longer gives `LOST_AT_MOST` of the answers that could be read before.

    >>> gain, unclear = PairedDifference(0.2, (0.1, 0.3), 0.1, 30, 30), PairedDifference(0.2, (-0.1, 0.5), 0.4, 30, 30)
    >>> verdict(gain, gain, gain), verdict(unclear, unclear, unclear), verdict(gain, unclear, unclear)
    ('improved', 'no detectable change', 'no detectable change')
    >>> few = PairedDifference(0.2, (0.1, 0.3), 0.1, 12, 4)
    >>> verdict(few, few, few)
    'no detectable change'
    """
    if lies_below_zero(delta) or lies_below_zero(floor):
        return "worse"
    if delta is None or delta.interval is None:
        return "not comparable"
    if all(map(lies_above_zero, (delta, floor, without_any))) and not loses_answers:
        return "improved"
    return "no detectable change"


def _at_least(row: Row, failures: tuple[str, ...]) -> float | None:
    """The score, 0 where one of these failures is why there is none."""
    return 0.0 if row.failure in failures else row.score.value


def _loses_answers(baseline: Evaluation, tuned: Evaluation) -> bool:
    """Whether so many answers that could be read before no longer can."""
    lost = (*_OWN_FAILURES, "endpoint")
    read = [
        after.failure in lost
        for before, after in zip(baseline.rows, tuned.rows, strict=True)
        if before.failure is None and (after.failure is None or after.failure in lost)
    ]
    return any(read) and sum(read) >= LOST_AT_MOST * len(read)


def _notes(delta: PairedDifference | None, floor: PairedDifference | None) -> tuple[str, ...]:
    """One sentence where unreadable answers change what there is to say."""
    if floor is None or (delta is not None and _direction(delta) == _direction(floor)):
        return ()
    where = "no example was scored on both sides" if delta is None else f"the difference is {_told(delta)}"
    return (f"{where}; with every unreadable answer counted as 0 it is {_told(floor)}",)


def _direction(difference: PairedDifference | None) -> int:
    return lies_above_zero(difference) - lies_below_zero(difference)


def _told(difference: PairedDifference) -> str:
    interval = difference.interval
    between = f" [{interval[0]:+.3f}, {interval[1]:+.3f}]" if interval else ""
    return f"{difference.mean:+.3f}{between} on {difference.n_pairs} examples"


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
