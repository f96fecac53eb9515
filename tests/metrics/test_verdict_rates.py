"""How often two programs that are equally good are called different, and a better one is called better.

Simulated data from one fixed seed; 499 resamples where a run takes 10,000, which if anything is less careful; and no
interval is made of a mean within one standard error of zero, which none can tell from it. The full table, with nothing
left out, more shapes and more sizes, is written by benchmarks/verdicts.py.
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from metrics.statistics import FEWEST_GROUPS, paired_difference

Side = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], tuple[Side, Side]]
SETS, EXAMPLES, RESAMPLES = 2000, 60, 499


def normal(gain: float = 0.0) -> Draw:
    """Differences of standard deviation 0.2 around a baseline that varies as much."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        before = rng.normal(0.5, 0.2, n)
        return before, before + rng.normal(gain, 0.2, n)

    return draw


def clipped(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
    """Two runs over examples most of which are easy: many scores are exactly 1."""
    level = rng.normal(0.85, 0.2, n)
    return np.clip(level + rng.normal(0, 0.2, n), 0, 1), np.clip(level + rng.normal(0, 0.2, n), 0, 1)


def tied(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
    """Four of five examples get the very same score."""
    before = rng.normal(0.5, 0.2, n)
    return before, before + np.where(rng.random(n) < 0.2, rng.normal(0, 0.45, n), 0.0)


def skewed(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
    """Most scores are near 0, a few near 1."""
    return rng.beta(0.3, 2, n), rng.beta(0.3, 2, n)


def right_or_wrong(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
    """Scores of 0 and 1."""
    return (rng.random(n) < 0.7).astype(float), (rng.random(n) < 0.7).astype(float)


def share_improved(draw: Draw, *, sets: int = SETS) -> float:
    rng = np.random.default_rng(2024)
    improved = 0
    for _ in range(sets):
        before, after = draw(rng, EXAMPLES)
        if np.mean(after - before) <= np.std(after - before, ddof=1) / np.sqrt(EXAMPLES):
            continue
        found = paired_difference(before.tolist(), after.tolist(), resamples=RESAMPLES)
        assert found is not None
        assert found.interval is not None
        improved += found.interval[0] > 0 and found.n_groups >= FEWEST_GROUPS
    return improved / sets


@pytest.mark.parametrize("draw", [normal(), clipped, tied, skewed, right_or_wrong])
def test_equal_programs_are_rarely_called_improved(draw: Draw) -> None:
    assert share_improved(draw) <= 0.035


def test_a_gain_of_ten_points_is_found() -> None:
    assert share_improved(normal(0.1), sets=500) >= 0.9
