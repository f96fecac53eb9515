"""Points against points: credit, recall, precision; few by all distances, many by a tree, the same either way."""

import numpy as np
import pytest

from metrics.figure import points as module
from metrics.figure.points import Tolerance, compare_points, nearest_distances

LINE = np.column_stack((np.arange(5) / 4, np.arange(5) / 4))


def compared(predicted, unreadable=0):
    return compare_points(LINE, np.array(predicted, dtype=float).reshape(-1, 2), Tolerance(), unreadable)


def test_half_the_points_are_half_the_recall():
    score = compare_points(LINE[:4], LINE[:2], Tolerance())
    assert (score.recall, score.precision, score.value) == (0.5, 1.0, 0.5)


def test_false_points_cost_precision():
    score = compared([*LINE, [0.0, 1.0], [0.1, 0.9], [5.0, 5.0], [6.0, 6.0], [7.0, 7.0]])
    assert (score.recall, score.precision, score.value) == (1.0, 0.5, 0.5)


def test_what_cannot_be_read_is_false():
    assert compared(LINE, unreadable=5).value == 0.5


def test_a_copy_of_a_right_point_does_not_make_up_for_a_false_one():
    false = [[0.0, 1.0]]
    copies = LINE[0] + np.arange(1, 30)[:, None] * 1e-4
    assert compared([*LINE, *copies, *false]).value == pytest.approx(compared([*LINE, *false]).value)


def test_points_everywhere_are_worth_little():
    everywhere = [[x / 40, y / 40] for x in range(41) for y in range(41)]
    assert compared(everywhere).value < 0.02


def test_a_dense_curve_may_be_sampled_otherwise():
    x = np.linspace(0, 1, 2000)
    curve = np.column_stack((x, np.sin(6 * x)))
    assert compare_points(curve, curve[::20], Tolerance()).value > 0.99
    half = compare_points(curve, curve[:1000:20], Tolerance())
    assert 0.45 < half.value < 0.6
    spray = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    assert compare_points(curve, np.concatenate([spray, curve[::40]]), Tolerance()).value < 0.3


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_nothing_on_a_side_is_nothing(empty):
    true, predicted = (np.empty((0, 2)) if empty in (side, 2) else LINE for side in (0, 1))
    assert compare_points(true, predicted, Tolerance()).value == 0.0


def test_too_far_is_nothing():
    assert compared(LINE + np.array([0.0, 3.0])).value == 0.0


def test_a_tree_and_all_distances_agree(monkeypatch):
    rng = np.random.default_rng(1)
    true, predicted = rng.random((90, 2)), rng.random((70, 2))
    few = compare_points(true, predicted, Tolerance())
    monkeypatch.setattr(module, "_FEW", 0)
    many = compare_points(true, predicted, Tolerance())
    assert many.value == pytest.approx(few.value, abs=1e-12)
    assert many.nearest.tolist() == few.nearest.tolist()


def test_distances_to_the_nearest():
    assert nearest_distances(np.array([[0.0, 0.0], [9.0, 9.0]]), np.array([[3.0, 4.0], [9.0, 8.0]])).tolist() == [5, 1]
