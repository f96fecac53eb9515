"""numeric."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators import NumericEvaluator

NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)
MIXED = st.one_of(NUMBERS, NUMBERS.map(str), st.sampled_from(["overnight", "5 h", True, "true", [1], {"a": 1}]))
CONFIGS = st.fixed_dictionaries(
    {
        "absolute_tolerance": st.sampled_from([0.0, 0.5, 100.0]),
        "relative_tolerance": st.sampled_from([0.0, 1e-6, 0.1]),
        "partial": st.sampled_from(["none", "linear"]),
        "width": st.sampled_from([0.5, 1.0, 10.0]),
    }
)


@pytest.mark.parametrize(
    ("extracted", "expected", "value"),
    [
        (900, 900, 1.0),
        (900, 900.0, 1.0),
        ("900", 900, 1.0),
        ("9e2", "900.0", 1.0),
        ("−5", -5, 1.0),
        (90, 900, 0.0),
        (0.1 + 0.2, 0.3, 1.0),
        (0, 0.0, 1.0),
        (1e-9, 0, 0.0),
        (900.0008, 900, 1.0),
        (900.001, 900, 0.0),
        ("overnight", "overnight", 1.0),
        ("overnight", 12, 0.0),
        (12, "overnight", 0.0),
        (True, 1, 0.0),
        ([1], 1, 0.0),
        (10**400, 10**400, 1.0),
        (10**400, 1, 0.0),
        (math.inf, math.inf, 1.0),
        (math.inf, 1, 0.0),
    ],
)
def test_right_values(extracted, expected, value):
    assert NumericEvaluator().evaluate(extracted, expected) == value


def test_the_larger_tolerance_holds():
    both = NumericEvaluator({"absolute_tolerance": 1, "relative_tolerance": 0.1})

    assert both.evaluate(109, 100) == 1.0
    assert both.evaluate(2.9, 2) == 1.0
    assert both.evaluate(3.1, 2) == 0.0


def test_partial_credit_falls_in_a_line_from_the_tolerance():
    linear = NumericEvaluator({"relative_tolerance": 0.01, "partial": "linear", "width": 4})

    assert [linear.evaluate(value, 100) for value in (101, 102, 103, 105, 106)] == pytest.approx([1, 0.75, 0.5, 0, 0])
    assert linear.evaluate(1, 0) == 0.0


def test_feedback_says_how_far_off():
    assert NumericEvaluator().score(90, 900, field_path="t").feedback == "t: expected 900, got 90 (off by 810)"
    assert NumericEvaluator().score("warm", 900).feedback == "expected 900, got 'warm' (not both are numbers)"
    assert NumericEvaluator().score(900, 900).feedback == "expected 900, got 900"


@pytest.mark.parametrize("expected", [[1], {"a": 1}])
def test_lists_and_objects_are_not_numbers(expected):
    assert NumericEvaluator().score(1, expected).error.startswith("numeric compares numbers")


@settings(max_examples=300)
@given(CONFIGS, NUMBERS, NUMBERS, NUMBERS)
def test_further_away_is_never_better(config, expected, first, second):
    numeric = NumericEvaluator(config)
    near, far = sorted((first, second), key=lambda value: abs(value - expected))

    assert 0.0 <= numeric.evaluate(far, expected) <= numeric.evaluate(near, expected) <= 1.0
    assert numeric.evaluate(expected, expected) == 1.0


@settings(max_examples=300)
@given(CONFIGS, st.lists(MIXED, min_size=1, max_size=6), st.lists(MIXED, min_size=1, max_size=6))
def test_the_matrix_says_what_the_single_comparison_says(config, extracted, expected):
    numeric = NumericEvaluator(config)

    def single(first, second):
        value = numeric.score(first, second).value
        return math.nan if value is None else value

    np.testing.assert_array_equal(
        numeric.similarities(extracted, expected), [[single(a, b) for b in expected] for a in extracted]
    )


def test_numbers_at_the_ends_of_the_range_are_quiet():
    numeric = NumericEvaluator({"partial": "linear"})

    assert numeric.similarities([1.5e308, 1], [-1.5e308, 2.5e-308]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert numeric.evaluate(1.5e308, -1.5e308) == 0.0


def test_a_tolerance_beyond_the_range_is_quiet():
    assert NumericEvaluator({"relative_tolerance": 10}).evaluate(1, 1e308) == 1.0


def test_the_defaults_are_as_documented():
    assert NumericEvaluator().options() == {
        "absolute_tolerance": 0.0,
        "relative_tolerance": 1e-6,
        "partial": "none",
        "width": 1.0,
    }


@settings(max_examples=300)
@given(NUMBERS, NUMBERS, st.sampled_from(["none", "linear"]))
def test_an_absolute_tolerance_knows_no_sides(first, second, partial):
    numeric = NumericEvaluator({"absolute_tolerance": 100, "relative_tolerance": 0, "partial": partial, "width": 3})

    assert numeric.evaluate(first, second) == numeric.evaluate(second, first)
