"""FigureMetric: what costs, what does not, and what it says about it."""

import math

import dspy
import pytest
from pydantic import BaseModel

from metrics import FigureMetric, Metric
from metrics.figure.matching import NAME_SHARE

TRUTH = {
    "name_to_coordinates": {
        "Pd/ZrO2": [[350, 36], [400, 77], [450, 98], [500, 100]],
        "Ni/Al2O3": [[350, 2], [400, 8], [450, 29], [500, 64]],
        "blank": [[350, 1], [400, 5], [450, 13], [500, 33]],
    },
    "title": None,
    "x_axis_label": "Temperature",
    "x_axis_unit": "°C",
    "y_left_axis_label": "Conversion",
    "y_left_axis_unit": "%",
}
SERIES = TRUTH["name_to_coordinates"]


def with_series(series):
    return {**TRUTH, "name_to_coordinates": series}


def figure(*ys, **series):
    """One series `a` at x = 0, 1, ..., or the series given."""
    given = series or {"a": [[x, y] for x, y in enumerate(ys)]}
    return {"name_to_coordinates": given}


def score(predicted, expected=TRUTH, **options):
    return FigureMetric(**options).compare(expected, predicted)


def value(predicted, expected=TRUTH, **options):
    return score(predicted, expected, **options).value


# --- inputs that an error over found points alone takes for perfect ------------------------------------------------


def test_one_true_point_only_is_low():
    assert value(figure(1), figure(1, 3, 2, 5, 4, 6)) == pytest.approx(1 / 6)
    one = {"Pd/ZrO2": SERIES["Pd/ZrO2"][:1]}
    assert value(with_series(one)) < 0.15


def test_empty_lists_are_nothing():
    assert value(with_series({name: [] for name in SERIES})) == 0.0
    assert value(with_series({})) == 0.0
    assert value(None) == 0.0


def test_the_case_of_a_legend_does_not_matter():
    assert value(with_series({name.upper(): points for name, points in SERIES.items()})) == 1.0


@pytest.mark.parametrize("level", [0.0, 1.0, 50.0])
def test_a_flat_series_slightly_off_is_slightly_off(level):
    assert value(figure(*[level + 0.01] * 5), figure(*[level] * 5)) > 0.99
    assert value(figure(*[level + 1000] * 5), figure(*[level] * 5)) == 0.0


def test_an_empty_true_series_is_answered():
    empty = figure(a=[], b=[[0, 1], [1, 2]])
    assert value(empty, empty) == 1.0
    assert value(figure(b=[[0, 1], [1, 2]]), empty) == 1.0  # it holds nothing to find
    assert value(figure(a=[[0, 0]], b=[[0, 1], [1, 2]]), empty) == 0.5  # and what was found of it is false
    assert value(figure(a=[[0, 0]]), figure(a=[])) == 0.0


# --- series ----------------------------------------------------------------------------------------------------


def test_missing_and_extra_series_cost():
    two = {name: SERIES[name] for name in ("Pd/ZrO2", "blank")}
    assert value(with_series(two)) == pytest.approx(2 / 3)
    assert value(with_series({**SERIES, "invented": [[350, 60], [400, 60]]})) == pytest.approx(3 / 4)
    assert value(with_series({**SERIES, "invented": []})) == pytest.approx(3 / 4)


def test_an_ocr_error_in_a_name_costs_nothing():
    assert value(with_series({name.replace("O", "0"): points for name, points in SERIES.items()})) == 1.0


def test_a_series_of_another_name_is_known_by_its_points_and_pays_for_the_name():
    renamed = {"Series 1" if name == "blank" else name: points for name, points in SERIES.items()}
    found = score(with_series(renamed))
    assert found.value == pytest.approx((2 + 1 - NAME_SHARE) / 3)
    assert found.feedback == "series 'blank': its name was read as 'Series 1'"


def test_a_misspelt_name_pays_a_little():
    truth = figure(**{"ZrO2 nanorods": [[0, 1], [1, 3]]})
    assert 0.9 < value(figure(**{"ZrO2 nanorod": [[0, 1], [1, 3]]}), truth) < 1.0


def test_three_catalysts_are_three():
    names = ("Pd-Cu/ZrO2", "Cu-Pd/ZrO2", "CuPd/ZrO2")
    truth = figure(**{name: [[x, 3 * n + x * (n + 1)] for x in range(5)] for n, name in enumerate(names)})
    points = list(truth["name_to_coordinates"].values())
    rotated = dict(zip(names, points[1:] + points[:1], strict=True))
    assert value(truth, truth) == 1.0
    assert value(figure(**rotated), truth) < 0.6


def test_swapped_names_cost_more_than_leaving_both_out():
    swapped = {**SERIES, "Pd/ZrO2": SERIES["blank"], "blank": SERIES["Pd/ZrO2"]}
    assert value(with_series(swapped)) < 0.6


def test_every_series_counts_the_same():
    truth = figure(long=[[x / 100, 1.0] for x in range(100)], short=[[0, 0], [1, 0]])
    assert value(figure(short=[[0, 0], [1, 0]]), truth) == 0.5


def test_a_small_series_is_not_hidden_by_a_large_one():
    truth = figure(large=[[0, 0], [1, 50], [2, 100]], small=[[0, 1], [1, 3], [2, 6]])
    flattened = {**truth["name_to_coordinates"], "small": [[0, 3], [1, 3], [2, 3]]}
    assert value(figure(**flattened), truth) < 0.98
    assert "small" in score(figure(**flattened), truth).feedback


# --- points ----------------------------------------------------------------------------------------------------


def test_missing_and_false_points_cost():
    truth = figure(0, 10, 5, 20)
    assert value(figure(0, 10), truth) == pytest.approx(0.5)
    assert value(figure(a=[[0, 0], [1, 10], [2, 5], [3, 20], [0, 20], [3, 0]]), truth) == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    "entry", [None, "x", [1], [1, 2, 3], [None, 2], ["a", "b"], [math.nan, 1], [math.inf, 1], {}, True]
)
def test_what_is_no_point_is_a_false_one(entry):
    found = score(figure(a=[[0, 0], [1, 10], entry]), figure(0, 10))
    assert found.value == pytest.approx(2 / 3)
    assert found.feedback == "series 'a': 1 entry is no [x, y] of two finite numbers"


@pytest.mark.parametrize("coordinates", ["[[0, 0]]", 7, {"x": 0}, [[]], [[[0, 0]]]])
def test_what_is_no_list_of_points_finds_nothing(coordinates):
    assert value(figure(a=coordinates), figure(0, 10)) == 0.0


def test_single_points():
    assert value(figure(5), figure(5)) == 1.0
    assert 0.9 < value(figure(5.2), figure(5)) < 1.0
    assert value(figure(10), figure(5)) == 0.0


def test_logarithmic_axes_forgive_factors():
    truth = figure(1e-4, 1e-2, 1, 1e2)
    off = figure(1.1e-4, 1.1e-2, 1.1, 1.1e2)
    assert value(off, truth) > 0.99
    assert score(off, truth).details["log_axes"] == ["y"]
    assert value(figure(1e-4, 0, -1, 1e2), truth) == pytest.approx(0.5 / 1.5)
    assert value(figure(0, 0, 0, 1e2), truth) < value(figure(0, 0, 0, 1e2), truth, y_scale="linear")


def test_the_tolerance_is_declared():
    truth, off = figure(0, 100), figure(8, 92)
    assert value(off, truth) == pytest.approx(0.75)
    assert value(off, truth, exact=0.08) == 1.0
    assert value(off, truth, worthless=0.05) == 0.0


# --- labels ----------------------------------------------------------------------------------------------------


def test_labels_decide_a_tenth():
    bare = {"name_to_coordinates": SERIES}
    assert value(bare) == pytest.approx(0.9)
    assert value(bare, label_share=0.0) == 1.0
    assert value({**TRUTH, "x_axis_unit": "K"}) == pytest.approx(1 - 0.1 * 2 / 8)
    assert value(TRUTH, bare) == 1.0  # a truth without texts says nothing about them


def test_right_labels_alone_are_nothing():
    assert value({**TRUTH, "name_to_coordinates": {}}) == 0.0


def test_parts_and_details():
    found = score({**with_series({"Pd/ZrO2": SERIES["Pd/ZrO2"], "x": [[350, 90]]}), "title": "T"})
    assert set(found.parts) == {
        "series",
        "title",
        "x_axis_label",
        "x_axis_unit",
        "y_left_axis_label",
        "y_left_axis_unit",
    }
    assert found.parts["series"].value == pytest.approx(1 / 4)
    assert found.parts["title"].value == 0.0
    details = found.details
    assert (details["n_series"], details["n_series_missing"], details["n_series_false"]) == (4, 2, 1)
    assert (details["n_points_expected"], details["n_points_predicted"]) == (12, 5)
    assert details["recall"] == pytest.approx(1 / 3)
    assert details["precision"] == pytest.approx(4 / 5)
    assert details["established"] == 0.0
    assert details["series"][-1] == {
        "name": None, "predicted": "x", "value": 0.0, "fault": "not in the figure, with its 1 point",
    }  # fmt: skip


def test_the_published_error_is_there_for_comparison():
    assert score(figure(1, 9), figure(0, 10)).details["established"] == pytest.approx(0.1)
    assert score(figure(b=[[0, 0]]), figure(0, 10)).details["established"] is None
    assert score(figure(1e308), figure(0)).details["established"] is None  # no finite number


# --- feedback --------------------------------------------------------------------------------------------------


def test_feedback_names_each_series_worst_first():
    points = SERIES["Pd/ZrO2"]
    lines = score(with_series({
        "Pd/ZrO2": [[x, y + 8] for x, y in points],
        "Ni/Al2O3": [*SERIES["Ni/Al2O3"][:3], [400, 99]],
        "fake": [[1, 1], [2, 2]],
    })).feedback.splitlines()  # fmt: skip
    assert lines == [
        "series 'blank': missing, with its 4 points",
        "series 'fake': not in the figure, with its 2 points",
        "series 'Ni/Al2O3': 1 of 4 points not found, such as (500, 64); "
        "1 of 4 points extracted false, such as (400, 99)",
        "series 'Pd/ZrO2': y is 8.1% of the axis too high on average",
    ]


def test_feedback_is_short_whatever_the_figure():
    many = figure(**{f"series {n} " + "x" * 200: [[n, n]] for n in range(500)})
    feedback = score(None, many).feedback
    assert len(feedback) < 4100
    assert feedback.endswith("more lines")


def test_nothing_expected_and_nothing_extracted():
    found = score({}, {})
    assert (found.value, found.details["n_series"], found.feedback) == (
        1.0, 0, "no series was expected and none was extracted",
    )  # fmt: skip


# --- as a metric -----------------------------------------------------------------------------------------------


class Plot(BaseModel):
    name_to_coordinates: dict[str, list[list[float]]]
    title: str | None
    x_axis_label: str | None
    x_axis_unit: str | None
    y_left_axis_label: str | None
    y_left_axis_unit: str | None


def test_it_is_a_metric_of_examples_and_predictions():
    metric = FigureMetric()
    assert isinstance(metric, Metric)
    example = dspy.Example(expected=TRUTH, image="x.png")
    assert metric(example, dspy.Prediction(figure=Plot.model_validate(TRUTH), reasoning="...")).value == 1.0
    assert metric(example, None).value == 0.0
    assert FigureMetric(output_field=None)(example, {"reasoning": "...", "plot": TRUTH}).value == 1.0


def test_a_prediction_without_the_field_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="no field 'figure', did you mean 'figures'"):
        FigureMetric()({"expected": TRUTH}, {"figures": TRUTH})
    with pytest.raises(ValueError, match="in 'expected'"):
        FigureMetric()({"image": 1}, {"figure": TRUTH})


def test_the_version_is_the_configuration():
    version = FigureMetric().version
    assert FigureMetric(name="other", output_field="x").version == version
    for option in ({"exact": 0.02}, {"worthless": 0.2}, {"x_scale": "log"}, {"y_scale": "log"}, {"label_share": 0.2}):
        assert FigureMetric(**option).version != version


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"x_scale": "logarithmic"}, "did you mean 'log'|known: auto, linear, log"),
        ({"worthless": 0.0}, "0 <= exact < worthless"),
        ({"exact": "x"}, "0 <= exact < worthless"),
        ({"worthless": math.inf}, "0 <= exact < worthless"),
        ({"label_share": 2}, "0..1, got 2"),
    ],
)
def test_options_out_of_range_are_refused(option, words):
    with pytest.raises(ValueError, match=words):
        FigureMetric(**option)
