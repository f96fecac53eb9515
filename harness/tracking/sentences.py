"""Numbers and verdicts in words: the same ones in the report and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from harness.results import ExperimentResult
from metrics.statistics import Aggregate, PairedDifference


def verdict_sentence(result: ExperimentResult) -> str:
    """The outcome in plain words, scores first, what they mean last.

    For example "Tuned scores 0.73, baseline 0.45: +0.28 [0.21, 0.35] on 30 held-out examples. Improved: the whole
    95% interval of the difference lies above zero."
    """
    scores = f"Tuned scores {score(result.tuned.total.score)}, baseline {score(result.baseline.total.score)}"
    delta = result.delta
    if delta is None:
        return f"{scores}: no example was scored on both sides, so they cannot be compared."
    where = f"on {counted(delta.n_pairs, 'held-out example')}"
    if delta.n_groups < delta.n_pairs:
        where += f" from {counted(delta.n_groups, 'group')}"
    if delta.interval is None:
        return f"{scores}: {difference(delta)} {where}. That is too few independent examples to compare them."
    return f"{scores}: {difference(delta)} {where}. {result.verdict.capitalize()}: {result.reason}."


def power_sentence(delta: PairedDifference | None) -> str:
    """How small a true difference this test would have found; empty when nothing is known about its noise.

    >>> power_sentence(PairedDifference(0.28, (0.21, 0.35), 0.1, 30, 30))
    'A test of this size finds a true difference of 0.10 or more in 8 of 10 cases.'
    """
    if delta is None or delta.smallest_detectable is None:
        return ""
    return (
        f"A test of this size finds a true difference of {score(delta.smallest_detectable)} or more in 8 of 10 cases."
    )


def reads_sentence(test_reads: int) -> str:
    """How used up the test split is.

    >>> reads_sentence(1)
    'This is the first time this test split was read.'
    """
    if test_reads <= 1:
        return "This is the first time this test split was read."
    return (
        f"This test split has been read {test_reads} times, this run included. Choosing between runs by the same "
        "examples makes the best of them look better than it is."
    )


def score(value: float | None) -> str:
    """A score with two decimals, three where two would round it to nothing; a dash when there is none.

    >>> score(0.7249), score(0.004), score(None)
    ('0.72', '0.004', '-')
    """
    return "-" if value is None else f"{value:.{_digits([value])}f}"


def interval(bounds: tuple[float, float] | None) -> str:
    """An interval in brackets, or nothing.

    >>> interval((0.21, 0.35)), interval(None)
    ('[0.21, 0.35]', '')
    """
    if bounds is None:
        return ""
    digits = _digits(bounds)
    return f"[{bounds[0]:.{digits}f}, {bounds[1]:.{digits}f}]"


def difference(delta: PairedDifference | None) -> str:
    """A signed difference and its interval.

    >>> difference(PairedDifference(0.28, (0.21, 0.35), 0.1, 30, 30))
    '+0.28 [0.21, 0.35]'
    """
    if delta is None:
        return "-"
    digits = _digits([delta.mean, *(delta.interval or ())])
    if delta.interval is None:
        return f"{delta.mean:+.{digits}f}"
    return f"{delta.mean:+.{digits}f} [{delta.interval[0]:.{digits}f}, {delta.interval[1]:.{digits}f}]"


def change(before: float | None, after: float | None) -> str:
    """after - before with its sign.

    >>> change(0.2, 0.9), change(None, 0.9)
    ('+0.70', '-')
    """
    if before is None or after is None:
        return "-"
    return f"{after - before:+.{_digits([after - before])}f}"


def scored(total: Aggregate) -> str:
    """What a mean rests on.

    >>> scored(Aggregate(0.5, 28, 30, 0.47, None))
    '28 of 30'
    """
    return f"{total.n_scored} of {total.n_total}"


def money(usd: float | None) -> str:
    """US dollars; an unknown price is unknown, not zero.

    >>> money(None), money(0.0), money(0.00012), money(3.4)
    ('unknown', '$0', '$0.00012', '$3.40')
    """
    if usd is None:
        return "unknown"
    if usd == 0:
        return "$0"
    return f"${usd:.2f}" if usd >= 0.1 else f"${usd:.2g}"


def duration(seconds: float) -> str:
    """Wall time in the two largest units.

    >>> duration(4.26), duration(125), duration(7325)
    ('4.3 s', '2 min 5 s', '2 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "example"), counted(1200, "example")
    ('1 example', '1,200 examples')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _digits(values: Sequence[float]) -> int:
    return 3 if any(0 < abs(value) < 0.01 for value in values) else 2
