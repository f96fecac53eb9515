"""Best pairs of two lists, against every possibility."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from metrics.record.assignment import best_pairs

GAINS = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=4),
    elements=st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0]),
)


def all_pairings(n_rows, n_columns, ordered):
    for size in range(min(n_rows, n_columns) + 1):
        for rows in itertools.combinations(range(n_rows), size):
            choose = itertools.combinations if ordered else itertools.permutations
            for columns in choose(range(n_columns), size):
                yield list(zip(rows, columns, strict=True))


@pytest.mark.parametrize("ordered", [False, True])
@given(gain=GAINS)
def test_no_other_pairing_gains_more(ordered, gain):
    pairs = best_pairs(gain, ordered=ordered)

    best = max(sum(gain[pair] for pair in pairing) for pairing in all_pairings(*gain.shape, ordered))
    assert sum(gain[pair] for pair in pairs) == pytest.approx(best)
    assert pairs in list(all_pairings(*gain.shape, ordered))
    assert all(gain[pair] > 0 for pair in pairs)


def test_order_forbids_crossing():
    gain = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.5]])

    assert best_pairs(gain, ordered=False) == [(0, 1), (1, 0), (2, 2)]
    assert best_pairs(gain, ordered=True) in ([(0, 1), (2, 2)], [(1, 0), (2, 2)])
