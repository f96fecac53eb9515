"""Agreement against other implementations and published figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from metrics.agreement import STATISTICS, agreement, percentile_interval, recall_of_failed, spread_ratio

GRID = st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0])
PAIRS = st.lists(st.tuples(GRID, GRID), min_size=4, max_size=40)


@given(PAIRS)
def test_correlations_and_kappa_as_other_libraries_have_them(pairs):
    judge, people = (list(side) for side in zip(*pairs, strict=True))
    found = agreement(judge, people, resamples=0)
    if len(set(judge)) > 1 and len(set(people)) > 1:
        assert found.spearman == pytest.approx(stats.spearmanr(judge, people)[0], abs=1e-9)
        assert found.pearson == pytest.approx(stats.pearsonr(judge, people)[0], abs=1e-9)
        grid = [round(2 * score) for score in judge], [round(2 * score) for score in people]
        kappa = cohen_kappa_score(*grid, weights="quadratic", labels=list(range(2, 11)))
        assert found.kappa == pytest.approx(kappa, abs=1e-9)
    assert found.bias == pytest.approx(np.mean(judge) - np.mean(people))


def test_icc_of_the_published_example():
    # Shrout and Fleiss, table 2: six targets; ICC(2,1) of raters 1 and 2 by their formula from the mean squares.
    first, second = [9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2]
    ratings = np.column_stack([first, second])
    n, k = ratings.shape
    whole = ratings.mean()
    rows = k * ((ratings.mean(1) - whole) ** 2).sum() / (n - 1)
    columns = n * ((ratings.mean(0) - whole) ** 2).sum() / (k - 1)
    total = ((ratings - whole) ** 2).sum()
    rest = (total - rows * (n - 1) - columns * (k - 1)) / ((n - 1) * (k - 1))
    expected = (rows - rest) / (rows + (k - 1) * rest + k * (columns - rest) / n)
    assert agreement(first, second, resamples=0).icc2 == pytest.approx(expected)
    assert agreement(first, first, resamples=0).icc2 == pytest.approx(1.0)


def test_rows_that_one_side_did_not_score_are_left_out():
    found = agreement([1, None, 3, 4, 5], [1, 2, None, 4, 5], ["a", "a", "b", "b", "c"], resamples=0)
    assert (found.n, found.groups, found.mae) == (3, 3, 0.0)


def test_what_is_not_defined_is_none():
    flat = agreement([4, 4, 4, 4], [1, 2, 3, 4], resamples=50)
    assert (flat.spearman, flat.pearson) == (None, None)
    assert flat.mae == 1.5
    assert "spearman" not in flat.interval
    assert "mae" in flat.interval
    few = agreement([1, 2], [1, 2])
    assert (few.n, few.mae) == (2, None)
    assert agreement([], []).n == 0


def test_rows_of_one_group_are_no_independent_evidence():
    chance = np.random.default_rng(1)
    centres = np.repeat(chance.normal(3, 1, 8), 10)
    judge = (centres + chance.normal(0, 0.1, 80)).tolist()
    people = (centres + np.repeat(chance.normal(0, 1, 8), 10)).tolist()
    groups = [str(row // 10) for row in range(80)]
    width = {
        clustered: np.diff(agreement(judge, people, groups if clustered else None).interval["mae"])[0]
        for clustered in (True, False)
    }
    assert width[True] > 1.5 * width[False]


def test_the_interval_is_the_same_every_time_and_holds_the_value():
    judge, people = [1, 2, 3, 4, 5, 3, 2], [2, 2, 3, 5, 5, 2, 1]
    found = agreement(judge, people)
    assert found == agreement(judge, people)
    for name in STATISTICS:
        low, high = found.interval[name]
        assert low <= getattr(found, name) <= high
    assert agreement(judge, people, ["one"] * 7).interval == {}


def test_intervals_need_values():
    assert percentile_interval([]) is None
    assert percentile_interval([float("nan")] * 5 + [1.0] * 5) is None


def test_spread_and_what_people_failed():
    assert spread_ratio([3.0, 3.0], [1.0, 1.0]) is None
    assert recall_of_failed([1.0], [4.0], 2) == (None, 0)
