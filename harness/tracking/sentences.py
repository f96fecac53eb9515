"""Numbers and verdicts in words: the same ones in the report and on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.decimals import fixed
from harness.results import Evaluation, ExperimentResult, FailureCount, FailureSide
from metrics.statistics import Aggregate, PairedDifference


def verdict_sentence(result: ExperimentResult) -> str:
    """The outcome in plain words, scores first, what they mean last.

    For example "Tuned scores 0.73, baseline 0.45: +0.28 [0.21, 0.35] on 30 held-out examples. Improved: the whole
    95% interval of the difference lies above zero."
    """
    scores = f"Tuned scores {score(result.tuned.total.score)}, baseline {score(result.baseline.total.score)}"
    delta = result.delta
    if delta is None and result.verdict == "worse":
        return f"{scores}, and no example was scored on both sides. Worse: {result.reason}."
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


_IN_WORDS: Mapping[FailureSide, str] = {
    "unreadable": "unreadable",
    "endpoint": "without an answer from the endpoint",
    "program": "failed in the program, which scores 0",
    "judge": "not scored by the metric",
    "budget": "not measured, the budget was spent",
}


def failure_words(failures: Sequence[FailureCount], n_total: int) -> str:
    """How many examples failed, by whose failure it is and under which name; empty when none did.

    >>> counts = [FailureCount("unreadable", "cut", 2, "a", ""), FailureCount("unreadable", "invalid", 1, "b", "")]
    >>> failure_words([*counts, FailureCount("judge", None, 4, "c", "")], 30)
    '3 of 30 unreadable: 2 cut, 1 invalid; 4 of 30 not scored by the metric'
    """
    told = []
    for side, words in _IN_WORDS.items():
        own = [each for each in failures if each.failure == side]
        if own:
            named = [f"{each.count} {each.kind}" for each in own if each.kind is not None]
            told.append(f"{sum(each.count for each in own)} of {n_total} {words}" + _listed(named))
    return "; ".join(told)


def _listed(named: Sequence[str]) -> str:
    return f": {', '.join(named)}" if named else ""


def failure_notes(evaluation: Evaluation) -> list[str]:
    """One sentence for a reader: what failed under which names, and the first of them with its id."""
    failures = evaluation.failures
    if not failures:
        return []
    words = failure_words(failures, len(evaluation.rows))
    told = next((each for each in failures if each.failure != "budget"), None)
    first = f"; the first is {told.example_id}: {told.sentence}" if told is not None else ""
    return [f"{evaluation.name}: {words}{first}"]


def score(value: float | None) -> str:
    """A score with two decimals, three where two would round it to nothing; a dash when there is none.

    >>> score(0.7249), score(0.004), score(None)
    ('0.72', '0.004', '-')
    """
    return "-" if value is None else fixed(value, _digits([value]))


def interval(bounds: tuple[float, float] | None) -> str:
    """An interval in brackets, or nothing.

    >>> interval((0.21, 0.35)), interval(None)
    ('[0.21, 0.35]', '')
    """
    if bounds is None:
        return ""
    digits = _digits(bounds)
    return f"[{fixed(bounds[0], digits)}, {fixed(bounds[1], digits)}]"


def difference(delta: PairedDifference | None) -> str:
    """A signed difference and its interval.

    >>> difference(PairedDifference(0.28, (0.21, 0.35), 0.1, 30, 30))
    '+0.28 [0.21, 0.35]'
    """
    if delta is None:
        return "-"
    digits = _digits([delta.mean, *(delta.interval or ())])
    mean = fixed(delta.mean, digits, signed=True)
    if delta.interval is None:
        return mean
    return f"{mean} [{fixed(delta.interval[0], digits)}, {fixed(delta.interval[1], digits)}]"


def change(before: float | None, after: float | None) -> str:
    """after - before with its sign.

    >>> change(0.2, 0.9), change(None, 0.9)
    ('+0.70', '-')
    """
    if before is None or after is None:
        return "-"
    return fixed(after - before, _digits([after - before]), signed=True)


def scored(total: Aggregate) -> str:
    """What a mean rests on.

    >>> scored(Aggregate(0.5, 28, 30, 0.47, None))
    '28 of 30'
    """
    return f"{total.n_scored} of {total.n_total}"


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
