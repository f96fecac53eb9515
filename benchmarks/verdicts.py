"""How often the verdict is right: simulated pairs of programs whose true difference is known.

Run it with `make bench`; it takes some minutes. For every shape of scores and every number of examples, 1,000 data sets
are drawn and compared as a run compares baseline and tuned. The table is printed and written to
mlruns/benchmarks/verdicts.json: the share called "improved" and the share called "worse".

Where there is no difference, at most 2.5% should be called either, give or take a percentage point of chance. The last
shape is the hard one: its differences have mean zero, but a long tail on one side, which no test of so few can see
through; it shows what to expect, and from how many examples on it is harmless.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.comparison import verdict
from metrics.statistics import paired_difference

Side = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], tuple[Side, Side]]

SETS, RESAMPLES = 1000, 1999
SIZES = (6, 12, 30, 60, 120)
GAINS = (0.0, 0.05, 0.1)


def normal(gain: float) -> Draw:
    """Differences of standard deviation 0.2."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        before = rng.normal(0.5, 0.2, n)
        return before, before + rng.normal(gain, 0.2, n)

    return draw


def clipped(gain: float) -> Draw:
    """Easy examples: many scores are exactly 1."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        level = rng.normal(0.85, 0.2, n)
        before, after = (np.clip(level + rng.normal(shift, 0.2, n), 0, 1) for shift in (0.0, gain))
        return before, after

    return draw


def tied(gain: float) -> Draw:
    """Four of five examples get the very same score from both programs."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        before = rng.normal(0.5, 0.2, n)
        return before, before + np.where(rng.random(n) < 0.2, rng.normal(5 * gain, 0.45, n), 0.0)

    return draw


def skewed(gain: float) -> Draw:
    """Most scores near 0, a few near 1."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        return rng.beta(0.3, 2, n), np.clip(rng.beta(0.3, 2, n) + gain, 0, 1)

    return draw


def right_or_wrong(gain: float) -> Draw:
    """Scores of 0 and 1."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        return (rng.random(n) < 0.7).astype(float), (rng.random(n) < 0.7 + gain).astype(float)

    return draw


def long_tail(gain: float) -> Draw:
    """Most examples gain a little, a few lose a lot; together `gain`."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Side, Side]:
        before = np.full(n, 0.5)
        return before, before + gain + 0.2 - rng.exponential(0.2, n)

    return draw


SHAPES: dict[str, Callable[[float], Draw]] = {
    "normal": normal,
    "clipped at 1": clipped,
    "mostly tied": tied,
    "skewed": skewed,
    "right or wrong": right_or_wrong,
    "a long tail of losses": long_tail,
}


def rates(draw: Draw, n: int, sets: int) -> dict[str, float]:
    """Share of data sets called improved and worse."""
    rng = np.random.default_rng(7)
    found = []
    for number in range(sets):
        before, after = draw(rng, n)
        difference = paired_difference(before.tolist(), after.tolist(), seed=number, resamples=RESAMPLES)
        found.append(verdict(difference, difference, difference))
    return {name: found.count(name) / sets for name in ("improved", "worse")}


def main(sets: int = SETS) -> None:
    """Simulate, print, write."""
    rows = []
    print(f"{'shape':22} {'examples':>8} {'true gain':>9} {'improved':>9} {'worse':>9}")
    for name, shape in SHAPES.items():
        for gain in GAINS:
            for n in SIZES:
                shares = rates(shape(gain), n, sets)
                rows.append({"shape": name, "examples": n, "true_gain": gain, **shares})
                print(f"{name:22} {n:8} {gain:9.2f} {shares['improved']:9.1%} {shares['worse']:9.1%}", flush=True)
    target = Path("mlruns") / "benchmarks" / "verdicts.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    document = {"data_sets": sets, "resamples": RESAMPLES, "rows": rows}
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written to {target}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SETS)
