"""Reading a figure: models and plain data, and whatever a model may have written instead."""

import numpy as np
import pytest
from pydantic import BaseModel

from metrics.figure.reading import read_figure


class Plot(BaseModel):
    name_to_coordinates: dict[str, list[list[float]]]
    title: str | None
    x_axis_label: str | None = None


class Point(BaseModel):
    x: float
    y: float


def only_series(coordinates):
    (series,) = read_figure({"name_to_coordinates": {"a": coordinates}}).series
    return series


def test_a_model_and_its_dump_are_the_same_figure():
    plot = Plot(name_to_coordinates={"a": [[1, 2]]}, title="T")
    for figure in (read_figure(plot), read_figure(plot.model_dump())):
        assert figure.series[0].name == "a"
        assert figure.series[0].points.tolist() == [[1.0, 2.0]]
        assert figure.labels == {"title": "T"}


@pytest.mark.parametrize(
    "value", [None, 3, "text", [], [1], {}, {"name_to_coordinates": None}, {"name_to_coordinates": []}]
)
def test_what_is_no_figure_has_no_series(value):
    assert read_figure(value).series == ()


def test_points_are_distinct_and_sorted():
    series = only_series([[2, 1], [1, 5], [2, 1], [1, 4]])
    assert series.points.tolist() == [[1, 4], [1, 5], [2, 1]]
    assert len(series.given) == 4


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "ab",
        7,
        [],
        [1],
        [1, 2, 3],
        [1, None],
        [True, 2],
        [float("nan"), 1],
        [1, float("inf")],
        {"x": 1},
        [10**400, 1],
        "12",
    ],
)
def test_an_entry_that_is_no_point_is_counted(entry):
    series = only_series([[1, 2], entry, entry])
    assert (series.points.tolist(), series.unreadable) == ([[1.0, 2.0]], 1)


@pytest.mark.parametrize(
    "entry", [["1", "2.0"], {"x": 1, "y": "2"}, Point(x=1, y=2), (1, 2), [np.float64(1), np.int64(2)]]
)
def test_other_ways_to_write_a_point(entry):
    assert only_series([entry, [3, 4]]).points.tolist() == [[1, 2], [3, 4]]


def test_an_array_is_read():
    assert only_series(np.array([[1.0, 2.0]])).points.tolist() == [[1, 2]]


@pytest.mark.parametrize("coordinates", ["[[1, 2]]", 5, {"x": 1}])
def test_a_series_that_is_no_list_is_one_unreadable_entry(coordinates):
    series = only_series(coordinates)
    assert (len(series.points), series.unreadable, series.is_empty) == (0, 1, False)


@pytest.mark.parametrize("coordinates", [None, [], "", {}])
def test_a_series_without_anything_is_empty(coordinates):
    assert only_series(coordinates).is_empty
