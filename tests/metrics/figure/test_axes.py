"""One unit of an axis: its length, flat ones, logarithmic ones, the largest and smallest numbers."""

import numpy as np
import pytest

from metrics.figure.axes import FAR, axes_of, own_lengths
from metrics.figure.reading import read_figure


def axes(*points, **scales):
    return axes_of(read_figure({"name_to_coordinates": {"a": list(points)}}).series, **scales)


def placed(measure, *points):
    return measure.place(np.array(points, dtype=float)).tolist()


def test_all_true_points_lie_between_zero_and_one():
    places = placed(axes([300, -5], [500, 15]), [300, 15], [400, 5], [600, -25])
    assert np.allclose(places, [[0, 1], [0.5, 0.5], [1.5, -1]])


@pytest.mark.parametrize(("level", "off", "units"), [(5.0, 5.05, 0.01), (-5.0, -4.95, 0.01), (0.0, 0.01, 0.01)])
def test_a_flat_axis_is_as_long_as_its_value(level, off, units):
    measure = axes([0, level], [1, level])
    (_, at), (_, beside) = placed(measure, [0, level], [0, off])
    assert beside - at == pytest.approx(units)


def test_digits_that_only_a_computer_sees_do_not_make_an_axis():
    assert axes([0, 5.0], [1, 5.0000001]).length[1] == 1.0
    assert axes([0, 3.905], [1, 3.908]).length[1] < 1e-3  # lattice parameters vary that little


@pytest.mark.parametrize(
    ("values", "is_log"),
    [
        ([1e-4, 1e-2, 1, 1e2], True),
        ([1, 3, 10, 30, 100, 300, 1000], True),
        ([0.1, 25, 50, 75, 100], False),  # three decades, evenly spread without logarithms
        ([1, 2, 5, 300], False),  # two and a half decades
        ([0, 1, 10, 1000], False),
        ([-1, 1, 10, 1000], False),
        ([5, 5], False),
    ],
)
def test_logarithmic_axes_are_recognised(values, is_log):
    assert axes(*([1, value] for value in values)).is_log == (False, is_log)


def test_a_declared_scale_wins_where_it_can():
    decades = [[0, 1e-3], [1, 1], [2, 1e3]]
    assert axes(*decades, y_scale="linear").is_log == (False, False)
    assert axes([1, 2], [3, 4], x_scale="log", y_scale="log").is_log == (True, True)
    assert axes([0, 2], [3, 4], x_scale="log").is_log == (False, False)


def test_what_is_not_positive_has_no_place_on_a_logarithmic_axis():
    assert [y for _, y in placed(axes([0, 1], [0, 1e4], y_scale="log"), [0, 0], [0, -5], [0, 100])] == [FAR, FAR, 0.5]


def test_a_flat_logarithmic_axis_is_a_decade_long():
    assert placed(axes([0, 1e300], [1, 1e300], y_scale="log"), [0, 1e299])[0][1] == pytest.approx(-1.0)


def test_the_largest_and_smallest_numbers():
    measure = axes([-1.7e308, 5e-324], [1.7e308, 1e-323])
    assert placed(measure, [-1.7e308, 5e-324], [1.7e308, 1e-323], [0, 1e300]) == [[0, 0], [1, 1], [0.5, FAR]]
    assert axes([1e-320, 1e300], [1e300, 1e-320]).is_log == (False, False)


def test_no_point_no_axes():
    assert placed(axes(), [0.25, 0.5]) == [[0.25, 0.5]]


def test_a_series_has_its_own_range_unless_it_is_flat_or_the_whole_axis():
    assert own_lengths(np.array([[0.0, 0.2], [1.0, 0.4]])).tolist() == pytest.approx([1.0, 0.2])
    assert own_lengths(np.array([[0.0, 0.2], [0.3, 0.2]])).tolist() == pytest.approx([0.3, 1.0])
    assert own_lengths(np.empty((0, 2))).tolist() == [1.0, 1.0]
