"""The verdict comes from the paired interval and nothing else."""

import pytest

from harness.comparison import compare, compare_audits, verdict
from harness.results import Evaluation, Row
from metrics.score import Score
from metrics.statistics import PairedDifference, aggregate


def evaluation(name, values, groups=None, audit=None):
    rows = [
        Row(
            f"e{number}",
            groups[number] if groups else None,
            {},
            {},
            {},
            Score.unscored("unreadable") if value is None else Score(value),
            {"strict": Score(audit[number])} if audit else {},
        )
        for number, value in enumerate(values)
    ]
    totals = {"strict": aggregate(audit)} if audit else {}
    return Evaluation(name, "test", rows, aggregate(values, groups), {}, totals)


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
    assert compare(evaluation("baseline", before), evaluation("tuned", after))[1] == expected


def test_only_examples_scored_on_both_sides_are_paired():
    delta, _ = compare(evaluation("b", [0.0, None, 0.2, 0.4]), evaluation("t", [0.5, 1.0, None, 0.9]))
    assert delta is not None
    assert delta.n_pairs == 2
    assert delta.mean == pytest.approx(0.5)


def test_one_group_is_one_observation():
    before, after = evaluation("b", [0.1] * 6, ["p"] * 6), evaluation("t", [0.9] * 6, ["p"] * 6)
    assert compare(before, after)[1] == "not comparable"


def test_different_examples_are_refused():
    with pytest.raises(ValueError, match="same examples"):
        compare(evaluation("b", [0.1, 0.2]), evaluation("t", [0.1]))


def test_an_interval_that_touches_zero_is_no_improvement():
    assert verdict(PairedDifference(0.1, (0.0, 0.2), 0.1, 9, 9)) == "no detectable change"


def test_audits_are_compared_on_the_same_pairs():
    before = evaluation("b", [0.1, 0.2, 0.3], audit=[0.5, 0.5, 0.5])
    after = evaluation("t", [0.9, 0.9, 0.9], audit=[0.4, 0.4, 0.4])
    change = compare_audits(before, after)["strict"]
    assert change.delta is not None
    assert change.delta.mean == pytest.approx(-0.1)
    assert (change.baseline.score, change.tuned.score) == (pytest.approx(0.5), pytest.approx(0.4))
