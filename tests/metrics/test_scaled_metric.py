"""ScaledMetric: other directions and scales as 0..1, higher is better."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import CompositeMetric, Metric, ScaledMetric, Score


def said(example, prediction):
    return prediction


def scaled(**options):
    return ScaledMetric(said, name="rmse", version="1", **options)


def test_the_lowest_error_is_the_best():
    metric = scaled(minimize=True, scale=[0, 2000])
    values = {error: metric(None, error).value for error in (1234, 780, 0, 2000)}

    assert max(values, key=values.get) == 0
    assert values[780] > values[1234] > values[2000] == 0.0
    assert values[780] == 1 - 780 / 2000


def test_negative_scales_and_scales_that_rise():
    assert [scaled(scale=[-1234, -780])(None, number).value for number in (-1234, -780)] == [0.0, 1.0]
    assert scaled(scale=[1, 5])(None, 4).value == 0.75
    assert scaled()(None, 0.25).value == 0.25
    assert scaled(minimize=True)(None, True).value == 0.0
    assert scaled()(None, np.float32(0.5)).value == 0.5


@settings(max_examples=200)
@given(
    st.floats(-1e300, 1e300) | st.integers(-(10**30), 10**30),
    st.floats(-1e300, 1e300),
    st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).filter(lambda ends: ends[1] - ends[0] > 1e-6),
    st.booleans(),
)
def test_bounds_and_direction(first, second, scale, minimize):
    metric = scaled(minimize=minimize, scale=scale)
    better = min(first, second) if minimize else max(first, second)
    values = [metric(None, number).value for number in (better, first, second)]

    assert all(value is None or 0.0 <= value <= 1.0 for value in values)
    if None not in values:
        assert values[0] == max(values)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, None, "0.5", "bad", [1], object(), 10**400])
def test_what_is_no_finite_number_is_unscored(number):
    assert scaled(minimize=True, scale=[0, 10])(None, number).error.startswith("rmse gave ")


def test_beyond_the_worst_is_the_worst_and_beyond_the_best_is_a_wrong_scale():
    metric = scaled(minimize=True, scale=[0, 10])

    assert metric(None, 12).value == 0.0
    assert (
        metric(None, 12).feedback
        == "rmse 12 on a scale from 0 (best) to 10 (worst); beyond the worst, it counts as that"
    )
    assert metric(None, 12).details == {"scale": [0.0, 10.0], "minimize": True, "number": 12.0}
    assert metric(None, -1).error.endswith("better than the best, so the scale is wrong")
    assert metric(None, -1e-12).value == 1.0  # rounding


def test_a_score_on_the_scale_is_turned_with_its_parts():
    inner = Score(0.2, "two of ten are wrong", {"x": Score(1.0, "all wrong"), "y": Score.unscored("no gold")})
    score = scaled(minimize=True)(None, inner)

    assert (score.value, score.parts["x"].value, score.parts["y"].error) == (0.8, 0.0, "no gold")
    assert score.feedback == "rmse 0.2 on a scale from 0 (best) to 1 (worst)\ntwo of ten are wrong"
    assert scaled()(None, Score.unscored("the judge did not answer")).error == "the judge did not answer"


def test_records_where_the_metric_compares_them():
    class Errors:
        name, version = "errors", "2"

        def __call__(self, example, prediction):
            return 1.0

        def compare(self, expected, predicted):
            return abs(expected - predicted)

    metric = ScaledMetric(Errors(), minimize=True, scale=(0, 4))

    assert isinstance(metric, Metric)
    assert (metric.name, metric.compare(5, 4).value) == ("errors", 0.75)
    with pytest.raises(NotImplementedError, match="rmse compares no records"):
        scaled().compare({}, {})


def test_version_follows_the_metric_its_direction_and_its_scale():
    metrics = [
        scaled(),
        scaled(minimize=True),
        scaled(scale=[0, 2]),
        ScaledMetric(said, name="rmse", version="2"),
        ScaledMetric(said, name="mae", version="1"),
    ]
    assert len({metric.version for metric in metrics}) == len(metrics)
    assert scaled(scale=(0, 1)).version == scaled().version
    assert repr(scaled(minimize=True, scale=[0, 10])) == "ScaledMetric('rmse', minimize=True, scale=(0, 10))"


def test_it_is_a_part_like_any_other():
    metric = CompositeMetric(
        {"rmse": scaled(minimize=True, scale=[0, 10]), "x": ScaledMetric(said, name="x", version="1")}
    )

    assert metric(None, 0.5).value == (0.95 + 0.5) / 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"scale": [1, 1]}, r"scale is \[low, high\], two numbers of which the first is lower, got \[1, 1\]"),
        ({"scale": [5, 1]}, "of which the first is lower"),
        ({"scale": [0, math.inf]}, "two numbers"),
        ({"scale": "01"}, "two numbers"),
        ({"scale": [0, 1, 2]}, "two numbers"),
        ({"scale": 5}, "two numbers"),
        ({"minimize": "yes"}, "minimize is true or false, got 'yes'"),
    ],
)
def test_wrong_options_are_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        scaled(**options)


def test_what_has_no_name_or_version_is_refused():
    with pytest.raises(ValueError, match=r"a metric has a name; .* has none, so give name="):
        ScaledMetric(said)
    with pytest.raises(ValueError, match=r"a metric has a version; .* has none, so give version="):
        ScaledMetric(said, name="rmse")
    with pytest.raises(ValueError, match="a metric is called with an example and a prediction, 5 cannot be"):
        ScaledMetric(5)
