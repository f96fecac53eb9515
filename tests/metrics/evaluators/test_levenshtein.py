"""levenshtein."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.evaluators import LevenshteinEvaluator

MIXED = st.one_of(
    st.sampled_from(["5 h", "50 h", "~5 h", "1 mmol", "3 samples", "4 samples", "heat", "heats", "5", 5, 5.0, True]),
    st.sampled_from(["true", ["a"], {"a": 1}]),
    st.text(min_size=1, max_size=4).filter(str.strip),
)


@pytest.mark.parametrize(
    ("extracted", "expected", "value"),
    [
        ("John Doe", "John Doe", 1.0),
        ("Jon Doe", "John Doe", 0.875),
        ("Jane Smith", "John Doe", 0.2),
        ("", "", 1.0),
        (" heat ", "heat", 1.0),
        ("LiCoO₂", "LiCoO2", 1.0),
        ("5 h", "50 h", 0.0),
        ("1 mmol", "1 mol", 0.0),
        ("5 h", "5 h", 1.0),
        ("5h", "5 hours", 1.0),
        ("90 min", "1.5 h", 0.0),
        ("~5 h", "5 h", 0.75),
        (None, "None", 0.0),
        (500, "500", 1.0),
        (500, 50, 0.0),
        (500, 500.0, 1.0),
        (500, "500 °C", 0.0),
        (True, "true", 1.0),
        (["heat"], "heat", 0.0),
        ("12 Main Street", "13 Main Street", 13 / 14),
    ],
)
def test_right_values(extracted, expected, value):
    assert LevenshteinEvaluator().evaluate(extracted, expected) == pytest.approx(value)


def test_below_the_threshold_nothing_counts():
    strict = LevenshteinEvaluator({"threshold": 0.8})

    assert strict.evaluate("Jane", "John") == 0.0
    assert strict.evaluate("Jon Doe", "John Doe") == 0.875
    assert strict.score("Jane", "John").feedback.endswith("(similarity 0.25 is below the threshold 0.8)")


def test_different_amounts_send_to_quantity():
    score = LevenshteinEvaluator().score("5 h", "50 h", field_path="time")

    assert score.feedback == (
        "time: expected '50 h', got '5 h' (different amounts; to compare numbers with units use quantity)"
    )
    assert "quantity" not in LevenshteinEvaluator().score("5 h", "5 hours").feedback


@pytest.mark.parametrize("expected", [["a"], {"a": 1}, [["a"]]])
def test_lists_and_objects_are_not_texts(expected):
    score = LevenshteinEvaluator().score("a", expected)

    assert score.value is None
    assert score.error == "levenshtein compares texts, not lists or objects; name the values inside"


@given(st.text(), st.text())
def test_bounds_and_symmetry(first, second):
    levenshtein = LevenshteinEvaluator()
    value = levenshtein.evaluate(first, second)

    assert 0.0 <= value <= 1.0
    assert levenshtein.evaluate(second, first) == value
    assert levenshtein.evaluate(first, first) == 1.0


@given(st.lists(MIXED, min_size=1, max_size=6), st.lists(MIXED, min_size=1, max_size=6), st.sampled_from([0.0, 0.6]))
def test_the_matrix_says_what_the_single_comparison_says(extracted, expected, threshold):
    levenshtein = LevenshteinEvaluator({"threshold": threshold})

    def single(first, second):
        value = levenshtein.score(first, second).value
        return math.nan if value is None else value

    np.testing.assert_array_equal(
        levenshtein.similarities(extracted, expected), [[single(a, b) for b in expected] for a in extracted]
    )
