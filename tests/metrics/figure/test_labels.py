"""Title, axis labels and units: what counts, what is the same."""

import pytest

from metrics.figure.labels import label_scores, same_unit


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("cm³/g", "cm3 g-1"),
        ("(W/(m·K))", "W/m/K"),
        ("°C", "degC"),
        ("[min]", "(min)"),
        ("mA cm−2", "mA/cm^2"),
        ("Ω·m", "ohm m"),
        ("a.u.", "a.u."),
        ("", ""),
    ],
)
def test_one_unit(first, second):
    assert same_unit(first, second)


@pytest.mark.parametrize(
    ("first", "second"), [("min", "h"), ("mS", "MS"), ("K", "°C"), ("foo", "bar"), ("%", "h"), ("(a", "b)")]
)
def test_two_units(first, second):
    assert not same_unit(first, second)


def values(expected, predicted):
    return {label: score.value for label, score in label_scores(expected, predicted).items()}


def test_what_is_on_neither_side_does_not_count():
    assert values({"title": "T"}, {"title": "T"}) == {"title": 1.0}


def test_a_truth_without_texts_says_nothing_about_them():
    assert values({}, {"title": "T", "x_axis_label": "Time"}) == {}


def test_missing_and_invented_texts_are_wrong():
    scores = label_scores({"title": "T"}, {"x_axis_unit": "h"})
    assert [(label, score.value, score.feedback) for label, score in scores.items()] == [
        ("title", 0.0, "title: missing, expected 'T'"),
        ("x_axis_unit", 0.0, "x_axis_unit: not in the figure, got 'h'"),
    ]


def test_labels_count_by_likeness():
    assert values({"x_axis_label": "Annealing Temperature"}, {"x_axis_label": "annealing  temperature"}) == {
        "x_axis_label": 1.0
    }
    assert 0.8 < values({"x_axis_label": "Temperature"}, {"x_axis_label": "Temperatur"})["x_axis_label"] < 1.0
    assert values({"x_axis_label": "Porosity"}, {"x_axis_label": "Time"}) == {"x_axis_label": 0.0}


@pytest.mark.parametrize("written", ["Time (h)", "Time [h]", "Time / h", "Time(h)"])
def test_a_unit_behind_a_label_is_its_unit(written):
    right = {"x_axis_label": "Time", "x_axis_unit": "h"}
    assert set(values(right, {"x_axis_label": written}).values()) == {1.0}
    assert set(values(right, {"x_axis_label": written, "x_axis_unit": "hours"}).values()) == {1.0}


def test_brackets_that_hold_no_unit_stay():
    label = {"y_left_axis_label": "Yield (normalised)"}
    assert values(label, {"y_left_axis_label": "yield (normalised)"}) == {"y_left_axis_label": 1.0}
    assert 0.0 < values(label, {"y_left_axis_label": "Yield (normalized)"})["y_left_axis_label"] < 1.0


def test_long_texts_are_answered_at_once():
    long = "(((" * 100_000
    assert values({"x_axis_label": "Time", "x_axis_unit": "h"}, {"x_axis_label": long, "x_axis_unit": long}) == {
        "x_axis_label": 0.0,
        "x_axis_unit": 0.0,
    }
