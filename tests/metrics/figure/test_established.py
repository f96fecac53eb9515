"""FigureExtractionMetric gives the published numbers: the formula in plain loops is the reference."""

import math
import random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import FigureExtractionMetric

POINTS = st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), max_size=6)
FIGURES = st.dictionaries(st.sampled_from("abcd"), POINTS, max_size=4)


def in_plain_loops(preds, refs, error_metric):
    """The published definition, point by point."""
    common = set(preds) & set(refs)
    if not common:
        return None
    all_x = [x for points in refs.values() for x, _ in points]
    all_y = [y for points in refs.values() for _, y in points]
    x_scale, y_scale = max(all_x) - min(all_x) or 1e-8, max(all_y) - min(all_y) or 1e-8
    errors = []
    for name in common:
        squares = [
            min(((x - true_x) / x_scale) ** 2 + ((y - true_y) / y_scale) ** 2 for true_x, true_y in refs[name])
            for x, y in preds[name]
        ]
        if not squares:
            errors.append(0.0)
        elif error_metric == "rmse":
            errors.append(math.sqrt(sum(squares) / len(squares)))
        else:
            errors.append(sum(map(math.sqrt, squares)) / len(squares))
    return sum(errors) / len(errors)


def figure(series):
    return {"name_to_coordinates": series}


@settings(max_examples=300)
@given(FIGURES, FIGURES, st.sampled_from(["rmse", "mae"]))
def test_the_published_numbers(preds, refs, error_metric):
    try:
        wanted = in_plain_loops(preds, refs, error_metric)
    except ValueError:  # no true point to measure from
        with pytest.raises(ValueError, match="no true point"):
            FigureExtractionMetric()(figure(preds), figure(refs), error_metric)
        return
    found = FigureExtractionMetric()(figure(preds), figure(refs), error_metric)
    assert found == (wanted if wanted is None else pytest.approx(wanted, rel=1e-6, abs=1e-6))


def test_many_points_as_few():
    chance = random.Random(0)
    refs = {"a": [(x, chance.random()) for x in range(400)]}
    preds = {"a": [(x + chance.gauss(0, 1), y + chance.gauss(0, 0.1)) for x, y in refs["a"]]}
    for error_metric in ("rmse", "mae"):
        found = FigureExtractionMetric()(figure(preds), figure(refs), error_metric)
        assert found == pytest.approx(in_plain_loops(preds, refs, error_metric), rel=1e-12)


def test_models_and_mappings_are_taken():
    truth = SimpleNamespace(name_to_coordinates={"a": [[0, 0], [1, 2]]})
    assert FigureExtractionMetric()(figure({"a": [[0, 1]]}), truth) == 0.5


def test_what_it_is_known_to_reward():
    """Why it must not drive an optimizer; the other metric of this package is there for that."""
    truth = figure({"a": [[0, 0], [1, 1]], "b": [[0, 5]]})
    for extracted in ({"a": [[0, 0]]}, {"a": []}, {"a": [], "invented": [[9, 9]]}):
        assert FigureExtractionMetric()(figure(extracted), truth) == 0.0
    assert FigureExtractionMetric()(figure({"A": [[0, 0]]}), truth) is None
    assert FigureExtractionMetric()(figure({"a": [[0, 1.01]]}), figure({"a": [[0, 1]]})) == pytest.approx(1e6)


def test_the_static_parts():
    assert FigureExtractionMetric.compute_scale({"a": [[1, 2], [3, 2]]}) == (2.0, 1e-8)
    assert FigureExtractionMetric.pointwise_rmse([], [[1, 2]], 1.0, 1.0) == 0.0
    assert FigureExtractionMetric.pointwise_mae([[1, 2], [1, 6]], [[1, 2]], 1.0, 2.0) == 1.0


@pytest.mark.parametrize("coordinates", [[[1, None]], [[1, 2, 3]], ["ab"], [[1, float("nan")]], [[[1]], [2, 3]]])
def test_coordinates_that_are_none_are_refused(coordinates):
    with pytest.raises(ValueError, match="coordinates are pairs of"):
        FigureExtractionMetric()(figure({"a": coordinates}), figure({"a": [[1, 2]]}))


def test_what_numbers_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="too far apart"):
        FigureExtractionMetric()(figure({"a": [[0, 1e308]]}), figure({"a": [[0, 0]]}))


def test_another_error_metric_is_refused():
    with pytest.raises(ValueError, match="'rmse' or 'mae', got 'mse'"):
        FigureExtractionMetric()(figure({}), figure({}), "mse")
