"""exact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.evaluators import StringCheckEvaluator

JSON_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@pytest.mark.parametrize(
    ("extracted", "expected", "config", "value"),
    [
        ("ABC123", "ABC123", {}, 1.0),
        ("abc123", "ABC123", {}, 0.0),
        ("abc123", "ABC123", {"case_sensitive": False}, 1.0),
        (" ABC123 ", "ABC123", {}, 1.0),
        (" ABC123 ", "ABC123", {"strip_whitespace": False}, 0.0),
        (500, 500.0, {}, 1.0),
        ("500", 500, {}, 1.0),
        ("500 °C", "500 ℃", {}, 1.0),
        ("Schro\u0308dinger", "Schr\u00f6dinger", {}, 1.0),
        ("STRASSE", "straße", {"case_sensitive": False}, 1.0),
        (True, 1, {}, 0.0),
        ("5 h", "50 h", {}, 0.0),
        (["a", 1], ["a", 1.0], {}, 1.0),
        ({"a": " x"}, {"a": "x"}, {}, 1.0),
    ],
)
def test_right_values(extracted, expected, config, value):
    assert StringCheckEvaluator(config).evaluate(extracted, expected) == value


@given(JSON_LEAVES)
def test_everything_equals_itself(value):
    assert StringCheckEvaluator().evaluate(value, value) == 1.0


@given(JSON_LEAVES, JSON_LEAVES)
def test_neither_side_comes_first(first, second):
    exact = StringCheckEvaluator()

    assert exact.evaluate(first, second) == exact.evaluate(second, first)


def test_matrix_rows_are_extracted_values():
    exact = StringCheckEvaluator({"case_sensitive": False})

    assert exact.similarities(["A", 1], ["a", "1", "b"]).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
