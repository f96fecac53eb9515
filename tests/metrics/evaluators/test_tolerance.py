"""The curve of partial credit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators.tolerance import ToleranceConfig

DISTANCES = st.floats(0, 1e6)


def test_nothing_beyond_the_tolerance_without_partial_credit():
    credit = ToleranceConfig().credit(np.array([0.0, 1.0, 1.1, np.inf, np.nan]), np.ones(5))

    assert credit.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


@settings(max_examples=300)
@given(DISTANCES, DISTANCES, st.floats(0, 1e3), st.floats(0.1, 10), st.sampled_from(["none", "linear"]))
def test_a_larger_difference_never_counts_more(first, second, tolerance, width, partial):
    config = ToleranceConfig(partial=partial, width=width)
    near, far = config.credit(np.sort([first, second]), np.full(2, tolerance))

    assert 0.0 <= far <= near <= 1.0


def test_a_line_from_the_tolerance_to_nothing():
    config = ToleranceConfig(partial="linear", width=4)

    assert config.credit(np.array([1.0, 2.0, 3.0, 5.0]), np.ones(4)) == pytest.approx([1.0, 0.75, 0.5, 0.0])
