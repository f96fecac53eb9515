"""What must hold for any figure: identity, bounds, order, and that neither damage nor invention pays."""

import copy
import itertools
import json
import random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from metrics import FigureExtractionMetric, FigureMetric

NAMES = st.sampled_from(
    ["a", "A", "Pd/ZrO2", "Pd/Zr02", "Pd-Cu", "Cu-Pd", "CuPd", "0.1% X", "0.2% X", "CO", "Co", "", "γ"]
)
NUMBERS = (
    st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1e-320, 1e300, -1.7e308, 6.02e23, 1e-9, 10**300])
)
LABELS = {
    label: st.none() | st.sampled_from(["", "Time", "Time (h)", "h", "°C", "cm³/g", "\ud800", "x" * 300])
    for label in ("title", "x_axis_label", "x_axis_unit", "y_left_axis_label", "y_left_axis_unit")
}
POINTS = st.lists(st.lists(NUMBERS, min_size=2, max_size=2), max_size=6)
FIGURES = st.fixed_dictionaries({"name_to_coordinates": st.dictionaries(NAMES, POINTS, max_size=4)}, optional=LABELS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | NAMES, inner, max_size=3),
    max_leaves=8,
)
ANYTHING = JSON | st.fixed_dictionaries(
    {"name_to_coordinates": st.dictionaries(NAMES, JSON, max_size=3)}, optional=dict.fromkeys(LABELS, JSON)
)
FAR = 1e9

thorough = settings(max_examples=200)


@st.composite
def scatters(draw):
    """One to three series without two points of one x or one y: each stays nearest to its own for a while."""
    series = {}
    for name in draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True)):
        size = draw(st.integers(2, 8))
        xs, ys = draw(st.permutations(range(size))), draw(st.permutations(range(size)))
        stretch, start = draw(st.sampled_from([1, 1, 1000, 1e-6])), draw(st.sampled_from([0, 0, -3, 1e4]))
        series[name] = [[x, start + y * stretch] for x, y in zip(xs, ys, strict=True)]
    return {"name_to_coordinates": series}


def value(expected, predicted):
    return FigureMetric().compare(expected, predicted).value


def moved(figure, size, chance):
    """Every point moved up or down by less than `size` times the distance to the next one."""
    series = {}
    for name, points in figure["name_to_coordinates"].items():
        ys = sorted(y for _, y in points)
        step = min((after - before for before, after in itertools.pairwise(ys)), default=1.0)
        series[name] = [[x, y + size * step * chance.uniform(-0.49, 0.49)] for x, y in points]
    return {"name_to_coordinates": series}


def with_series(figure, series):
    return {**figure, "name_to_coordinates": series}


@thorough
@given(FIGURES)
@example({"name_to_coordinates": {"a": [[1e-320, 1e308], [2e-320, -1e308]]}})
@example({"name_to_coordinates": {"a": [[0, 1.0], [1, 1.0 + 2e-16]], "b": [[5, 5]]}})
def test_a_figure_against_itself_is_one(figure):
    score = FigureMetric().compare(figure, copy.deepcopy(figure))
    assert score.value == 1.0
    assert (
        "series" not in score.feedback or "no series was expected" in score.feedback or "all series" in score.feedback
    )


@thorough
@given(ANYTHING, ANYTHING)
def test_anything_has_a_score_in_bounds_and_no_side_effect(expected, predicted):
    before = copy.deepcopy((expected, predicted))
    score = FigureMetric().compare(expected, predicted)
    assert 0.0 <= score.value <= 1.0
    assert all(part.value is not None for part in score.parts.values())
    json.dumps(score.to_dict(), allow_nan=False)
    assert repr((expected, predicted)) == repr(before)


@thorough
@given(FIGURES, FIGURES, st.randoms(use_true_random=False))
def test_the_order_of_series_and_points_changes_nothing(expected, predicted, rng):
    def shuffled(figure):
        series = list(figure["name_to_coordinates"].items())
        return with_series(
            figure, {name: rng.sample(points, len(points)) for name, points in rng.sample(series, len(series))}
        )

    assert value(shuffled(expected), shuffled(predicted)) == pytest.approx(value(expected, predicted), abs=1e-9)


@thorough
@given(FIGURES | scatters(), FIGURES | scatters())
def test_the_published_error_is_that_of_its_own_metric(expected, predicted):
    try:
        wanted = FigureExtractionMetric()(predicted, expected)
    except ValueError:
        return
    found = FigureMetric().compare(expected, predicted).details["established"]
    assert found == (wanted if wanted is None else pytest.approx(wanted, rel=1e-6, abs=1e-9))


@thorough
@given(FIGURES, FIGURES, st.integers(1, 3))
def test_repeating_points_changes_nothing(expected, predicted, times):
    repeated = {name: points * times + points[:1] for name, points in predicted["name_to_coordinates"].items()}
    assert value(expected, with_series(predicted, repeated)) == value(expected, predicted)


@thorough
@given(scatters(), st.integers(0, 99), st.floats(0, 1), st.floats(0, 1))
def test_more_noise_never_pays(figure, seed, size, other):
    less, more = (moved(figure, step, random.Random(seed)) for step in sorted((size, other)))
    assert value(figure, more) <= value(figure, less) + 1e-9


@thorough
@given(scatters(), st.floats(0, 30), st.floats(0, 30), st.sampled_from([(1, 0), (0, 1), (-1, 0), (1, 1)]))
def test_drifting_out_of_the_figure_never_pays(figure, distance, other, direction):
    """Every point of a series beyond all true ones in one direction, and farther."""
    name, points = next(iter(figure["name_to_coordinates"].items()))
    every = [point for series in figure["name_to_coordinates"].values() for point in series]
    lengths = [max(column) - min(column) or 1 for column in zip(*every, strict=True)]
    ends = [
        max(column) if step >= 0 else min(column)
        for column, step in zip(zip(*every, strict=True), direction, strict=True)
    ]

    def drifted(far):
        return with_series(figure, {**figure["name_to_coordinates"], name: [
            [ends[axis] + direction[axis] * lengths[axis] * far if direction[axis] else point[axis] for axis in (0, 1)]
            for point in points
        ]})  # fmt: skip

    near, far = sorted((distance, other))
    assert value(figure, drifted(far)) <= value(figure, drifted(near)) + 1e-9


@thorough
@given(scatters(), st.integers(0, 99), st.floats(0, 0.2), st.data())
def test_leaving_out_a_point_that_is_right_never_pays(figure, seed, noise, data):
    series = moved(figure, noise, random.Random(seed))["name_to_coordinates"]
    kept = {name: [point for point in points if data.draw(st.booleans())] for name, points in series.items()}
    name = data.draw(st.sampled_from(sorted(kept)))
    assume(kept[name])
    place = data.draw(st.integers(0, len(kept[name]) - 1))
    fewer = {**kept, name: kept[name][:place] + kept[name][place + 1 :]}
    assert value(figure, with_series(figure, fewer)) <= value(figure, with_series(figure, kept)) + 1e-9


@thorough
@given(FIGURES.filter(lambda figure: any(figure["name_to_coordinates"].values())), st.data())
def test_leaving_out_a_series_of_a_true_name_never_pays(expected, data):
    series = {name: data.draw(POINTS) for name in expected["name_to_coordinates"]}
    left_out = data.draw(st.sampled_from([name for name, points in expected["name_to_coordinates"].items() if points]))
    fewer = {name: points for name, points in series.items() if name != left_out}
    assert value(expected, with_series({}, fewer)) <= value(expected, with_series({}, series)) + 1e-9


@thorough
@given(scatters(), scatters(), st.data(), st.integers(1, 3))
def test_adding_false_points_never_pays(expected, predicted, data, number):
    series = predicted["name_to_coordinates"]
    name = data.draw(st.sampled_from(sorted(series)))
    more = {**series, name: [*series[name], *([FAR + n, -FAR] for n in range(number))]}
    assert value(expected, with_series(predicted, more)) <= value(expected, predicted) + 1e-9


@thorough
@given(FIGURES, FIGURES, st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3, unique=True))
def test_adding_false_series_never_pays(expected, predicted, names):
    series = dict(predicted["name_to_coordinates"])
    assume(not set(names) & set(series))
    more = series | {f"false {name}": [[float("nan"), 0.0]] for name in names}
    assert value(expected, with_series(predicted, more)) <= value(expected, predicted) + 1e-9
