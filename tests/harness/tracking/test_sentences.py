"""The verdict in words, in every case there is."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.results import ExperimentResult
from harness.tracking.sentences import difference, power_sentence, reads_sentence, verdict_sentence
from metrics.statistics import Aggregate, PairedDifference

Make = Callable[..., ExperimentResult]


def sentence(make_result: Make, delta: PairedDifference | None, verdict: str) -> str:
    result = make_result(6, delta=delta, verdict=verdict)
    baseline = replace(result.baseline, total=Aggregate(0.4512, 30, 30, 0.45, (0.4, 0.5)))
    tuned = replace(result.tuned, total=Aggregate(0.7311, 30, 30, 0.73, (0.7, 0.8)))
    return verdict_sentence(replace(result, baseline=baseline, tuned=tuned))


def test_improved(make_result: Make) -> None:
    delta = PairedDifference(0.28, (0.21, 0.35), 0.1, 30, 30)
    assert sentence(make_result, delta, "improved") == (
        "Tuned scores 0.73, baseline 0.45: +0.28 [0.21, 0.35] on 30 held-out examples. "
        "Improved: the whole 95% interval of the difference lies above zero."
    )


def test_groups_are_named_where_they_matter(make_result: Make) -> None:
    delta = PairedDifference(-0.28, (-0.35, -0.21), 0.1, 30, 7)
    assert sentence(make_result, delta, "worse").endswith(
        "-0.28 [-0.35, -0.21] on 30 held-out examples from 7 groups. "
        "Worse: the whole 95% interval of the difference lies below zero."
    )


def test_no_detectable_change(make_result: Make) -> None:
    delta = PairedDifference(0.004, (-0.05, 0.06), 0.1, 30, 30)
    assert sentence(make_result, delta, "no detectable change").endswith(
        "+0.004 [-0.050, 0.060] on 30 held-out examples. "
        "No detectable change: the 95% interval of the difference includes zero."
    )


def test_too_few(make_result: Make) -> None:
    delta = PairedDifference(0.2, None, None, 1, 1)
    assert sentence(make_result, delta, "not comparable").endswith(
        "+0.20 on 1 held-out example. That is too few independent examples to compare them."
    )


def test_nothing_in_common(make_result: Make) -> None:
    assert sentence(make_result, None, "not comparable").endswith(
        "no example was scored on both sides, so they cannot be compared."
    )


@pytest.mark.parametrize("delta", [None, PairedDifference(0.2, None, None, 1, 1)])
def test_nothing_is_said_of_an_unknown_power(delta: PairedDifference | None) -> None:
    assert power_sentence(delta) == ""
    assert difference(None) == "-"


def test_a_split_that_was_read_often() -> None:
    assert reads_sentence(4).startswith("This test split has been read 4 times")
