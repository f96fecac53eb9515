"""The verdict: from the paired intervals, and never from answers that nobody could read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.comparison import compare, compare_audits, verdict
from harness.results import Evaluation, Row, verdict_reason
from metrics.score import Score
from metrics.statistics import PairedDifference, aggregate

UNREADABLE, ENDPOINT, PROGRAM, JUDGE = "unreadable", "endpoint", "program", "judge"
fast = settings(max_examples=25, deadline=None)


def evaluation(name, values, groups=None, audit=None):
    """Rows with these scores; a text is a row that failed so, None one the metric could not score."""
    rows = [
        Row(
            f"e{number}",
            groups[number] if groups else None,
            {},
            {},
            {},
            _score(value),
            {"strict": Score(audit[number])} if audit else {},
            failure=JUDGE if value is None else value if isinstance(value, str) else None,
        )
        for number, value in enumerate(values)
    ]
    totals = {"strict": aggregate(audit)} if audit else {}
    return Evaluation(name, "test", rows, aggregate([row.score.value for row in rows], groups), {}, totals)


def _score(value):
    if value == PROGRAM:
        return Score(0.0)
    return Score.unscored(value or "no verdict") if value is None or isinstance(value, str) else Score(value)


def compared(before, after, groups=None):
    return compare(evaluation("baseline", before, groups), evaluation("tuned", after, groups))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([0.2] * 10, [0.5, 0.6, 0.4, 0.7, 0.5, 0.6, 0.5, 0.4, 0.6, 0.5], "improved"),
        ([0.5, 0.6, 0.4, 0.7, 0.5, 0.6, 0.5, 0.4, 0.6, 0.5], [0.2] * 10, "worse"),
        ([0.5, 0.2, 0.9, 0.4] * 2, [0.4, 0.3, 0.8, 0.5] * 2, "no detectable change"),
        ([0.5] * 8, [0.5] * 8, "no detectable change"),
        ([0.1] * 5, [0.9] * 5, "no detectable change"),
        ([0.5] * 20, [0.8] + [0.5] * 19, "no detectable change"),
        ([0.8] + [0.5] * 19, [0.5] * 20, "no detectable change"),
        ([0.5], [0.9], "not comparable"),
        ([None, None], [0.5, 0.6], "not comparable"),
    ],
)
def test_verdict(before, after, expected):
    assert compared(before, after).verdict == expected


LOW, HIGH = [0.2, 0.3, 0.25, 0.2, 0.35, 0.3] * 3, [0.8, 0.9, 0.7, 0.75, 0.85, 0.95] * 3


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # What is left gained, and a few answers were lost: still a gain when they count as 0.
        (LOW, [*HIGH[:16], UNREADABLE, UNREADABLE], "improved"),
        # The half that can still be read gained 0.1; counted as 0, the rest lost more.
        (HIGH, [*[value + 0.05 for value in HIGH[:9]], *[UNREADABLE] * 9], "worse"),
        # Each of a few more lost answers takes the certainty.
        (LOW, [*[value + 0.1 for value in LOW[:14]], *[UNREADABLE] * 4], "no detectable change"),
        # Answers where there were none are a gain only with what both could answer.
        ([*HIGH[:9], *[UNREADABLE] * 9], HIGH, "no detectable change"),
        ([*LOW[:9], *[UNREADABLE] * 9], HIGH, "improved"),
        ([UNREADABLE] * 18, HIGH, "not comparable"),
        (HIGH, [UNREADABLE] * 18, "worse"),
        ([UNREADABLE] * 18, [UNREADABLE] * 18, "not comparable"),
        (HIGH, [PROGRAM] * 18, "worse"),
        # The place's trouble, and the judge's, are nobody's.
        (HIGH, [*HIGH[:9], *[ENDPOINT] * 9], "no detectable change"),
        (HIGH, [*HIGH[:9], *[None] * 9], "no detectable change"),
        (HIGH, [*HIGH[:9], *["budget"] * 9], "no detectable change"),
        ([ENDPOINT] * 18, HIGH, "not comparable"),
        # Worthless answers became good ones or none at all, half and half: not called a gain.
        ([0.0] * 18, [*HIGH[:9], *[UNREADABLE] * 9], "no detectable change"),
    ],
)
def test_unreadable_answers_guard_the_verdict(before, after, expected):
    assert compared(before, after).verdict == expected


SCORES = st.floats(0, 1).map(lambda value: round(value, 3))


@st.composite
def pairs(draw, *, least=6):
    n = draw(st.integers(least, 24))
    return draw(st.lists(SCORES, min_size=n, max_size=n)), draw(st.lists(SCORES, min_size=n, max_size=n))


@fast
@given(pairs(), st.sampled_from([UNREADABLE, PROGRAM]), st.randoms(use_true_random=False))
def test_who_turns_half_the_answers_unreadable_has_not_improved(scores, failure, random):
    before, after = scores
    for place in random.sample(range(len(after)), -(-len(after) // 2)):
        after[place] = failure
    assert compared(before, after).verdict != "improved"


@fast
@given(pairs(), st.randoms(use_true_random=False), st.sampled_from([ENDPOINT, "budget", None]), st.booleans())
def test_trouble_that_is_not_the_programs_counts_as_if_the_examples_were_not_there(scores, random, failure, first):
    before, after = scores
    gone = set(random.sample(range(len(after)), random.randint(0, len(after))))
    troubled = [failure if place in gone else value for place, value in enumerate(before if first else after)]
    with_trouble = compared(troubled, after) if first else compared(before, troubled)
    rest = [place for place in range(len(after)) if place not in gone]
    without = compared([before[place] for place in rest], [after[place] for place in rest])
    allowed = {without.verdict}
    if failure == ENDPOINT and without.verdict == "improved":
        allowed.add("no detectable change")  # a gain that would be none if the missing answers were worth nothing
    assert with_trouble.verdict in allowed
    assert with_trouble.floor == with_trouble.delta


@fast
@given(pairs(), st.randoms(use_true_random=False), st.booleans())
def test_trouble_of_the_endpoint_on_one_side_alone_changes_nothing(scores, random, first):
    same = scores[0]
    gone = set(random.sample(range(len(same)), random.randint(0, len(same))))
    troubled = [ENDPOINT if place in gone else value for place, value in enumerate(same)]
    found = compared(troubled, same) if first else compared(same, troubled)
    assert found.verdict in ("no detectable change", "not comparable")


@fast
@given(pairs(least=8), st.randoms(use_true_random=False))
def test_an_answer_that_becomes_unreadable_never_helps(scores, random):
    before, after = scores
    fewer = [*after]
    for place in random.sample(range(len(after)), 3):
        fewer[place] = UNREADABLE
    floors = compared(before, after).floor, compared(before, fewer).floor
    assert floors[1].mean <= floors[0].mean + 1e-12


def test_a_sentence_says_where_the_two_differences_part():
    found = compared(LOW, [*[value + 0.1 for value in LOW[:14]], *[UNREADABLE] * 4])
    [note] = found.notes
    assert note.startswith("the difference is +0.100 [+0.100, +0.100] on 14 examples; with every unreadable answer ")
    assert note.endswith("on 18 examples")
    assert "what could be read got better, but" in verdict_reason(found.verdict, found.delta, found.floor)
    assert compared(LOW, HIGH).notes == ()
    assert compared(LOW, LOW).notes == ()


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (HIGH, [UNREADABLE] * 18, "with every unreadable answer counted as 0, the whole 95% interval"),
        ([UNREADABLE] * 18, HIGH, "no example was scored for both programs"),
        ([0.0] * 18, [*HIGH[:9], *[UNREADABLE] * 9], "half the answers that could be read before no longer can"),
        ([0.5] * 20, [0.9, *[0.5] * 19], "1 of 20 independent examples changed at all; chance alone explains fewer"),
        (LOW, HIGH, "the whole 95% interval of the difference lies above zero"),
        (HIGH, LOW, "the whole 95% interval of the difference lies below zero"),
        (LOW[:4], HIGH[:4], "4 independent test examples are too few"),
        ([0.5], [0.9], "too few independent examples were scored"),
        ([0.5, 0.2] * 8, [0.2, 0.5] * 8, "the 95% interval of the difference includes zero"),
    ],
)
def test_reasons(before, after, reason):
    found = compared(before, after)
    assert reason in verdict_reason(found.verdict, found.delta, found.floor)


@pytest.mark.parametrize("changed", range(1, 6))
def test_a_few_changed_answers_among_equal_ones_show_nothing(changed):
    found = compared([0.5] * 20, [*[0.9] * changed, *[0.5] * (20 - changed)])
    assert found.verdict == "no detectable change"
    assert found.delta.n_changed == changed


def test_six_that_all_got_better_are_shown():
    assert compared([0.5] * 20, [*[0.9] * 6, *[0.5] * 14]).verdict == "improved"


def test_only_examples_scored_on_both_sides_are_paired():
    delta = compared([0.0, None, 0.2, 0.4], [0.5, 1.0, None, 0.9]).delta
    assert delta is not None
    assert delta.n_pairs == 2
    assert delta.mean == pytest.approx(0.5)


def test_one_group_is_one_observation():
    assert compared([0.1] * 6, [0.9] * 6, ["p"] * 6).verdict == "not comparable"


def test_different_examples_are_refused():
    with pytest.raises(ValueError, match="same examples"):
        compared([0.1, 0.2], [0.1])


def test_an_interval_that_touches_zero_is_no_improvement():
    touching = PairedDifference(0.1, (0.0, 0.2), 0.1, 9, 9)
    assert verdict(touching, touching, touching) == "no detectable change"


def test_audits_are_compared_on_the_same_pairs():
    before = evaluation("b", [0.1, 0.2, 0.3], audit=[0.5, 0.5, 0.5])
    after = evaluation("t", [0.9, 0.9, 0.9], audit=[0.4, 0.4, 0.4])
    change = compare_audits(before, after)["strict"]
    assert change.delta is not None
    assert change.delta.mean == pytest.approx(-0.1)
    assert (change.baseline.score, change.tuned.score) == (pytest.approx(0.5), pytest.approx(0.4))


def test_answers_that_the_endpoint_lost_on_one_side_carry_no_improvement():
    before = [0.9] * 12 + [0.2] * 8
    after = [ENDPOINT] * 12 + [0.9] * 8

    found = compared(before, after)

    assert found.delta is not None
    assert found.delta.mean > 0.6
    assert found.verdict == "no detectable change"
    assert compared([ENDPOINT, *LOW[1:]], HIGH).verdict == "improved"
    assert compared(LOW, [ENDPOINT, *HIGH[1:]]).verdict == "improved"
