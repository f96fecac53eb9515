"""The evaluator chosen by the type of the expected value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.evaluators.by_type import ByTypeEvaluator

VALUES = st.one_of(
    st.integers(-3, 3), st.booleans(), st.text(min_size=1, max_size=3).filter(str.strip), st.sampled_from(["1", [1]])
)


@pytest.mark.parametrize(
    ("extracted", "expected", "value"),
    [
        (900.0000001, 900, 1.0),
        ("900", 900, 1.0),
        ("Jon Doe", "John Doe", 0.875),
        ("true", True, 1.0),
        (1, True, 0.0),
        ([1, 2], [1, 2], 1.0),
        (None, "None", 0.0),
    ],
)
def test_right_values(extracted, expected, value):
    assert ByTypeEvaluator().evaluate(extracted, expected) == value


@given(st.lists(VALUES, min_size=1, max_size=6), st.lists(VALUES, min_size=1, max_size=6))
def test_the_matrix_says_what_the_single_comparison_says(extracted, expected):
    by_type = ByTypeEvaluator()

    np.testing.assert_array_equal(
        by_type.similarities(extracted, expected), [[by_type.evaluate(a, b) for b in expected] for a in extracted]
    )
