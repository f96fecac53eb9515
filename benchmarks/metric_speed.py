"""What the metrics cost beside plain Python and beside other libraries: ratios, measured side by side in one run.

Run it with `make bench`; it takes a minute or two, nearly all of it in the plain loops. Every way is repeated and its
fastest run counts, since a busy machine only adds. The table is printed and written to
mlruns/benchmarks/metric_speed.json. jellyfish and deepdiff (the extra `bench`) are compared with where they are
installed.

The file is not called metrics.py: that would stand in for the package when any benchmark is run as a script.
"""

from __future__ import annotations

import difflib
import importlib
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

from metrics import FigureExtractionMetric, FigureMetric, RecordMetric
from metrics.evaluators.text import similarity_matrix

Row = dict[str, Any]
Points = list[list[float]]

POINTS = (30, 100, 1_000, 10_000)
STRINGS, LETTERS = 500, 24
STEPS = 40


def main() -> None:
    """Measure, print, write."""
    rows: list[Row] = []
    for part in (figures, strings, records):
        for row in part():
            rows.append(row)
            print(f"{row['what']:58} {row['way']:36} {row['ms']:11.3f} ms  {row['ratio']:9.1f} x", flush=True)
    target = Path("mlruns") / "benchmarks" / "metric_speed.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"written to {target}")


# --- figures -------------------------------------------------------------------------------------------------------


def figures() -> Iterator[Row]:
    """One series of n points and its reading, by the published formula in plain loops and by this package.

    FigureExtractionMetric computes that very formula; FigureMetric measures both directions, matches names and points,
    says what is off, and computes the published number as well.
    """
    for n in POINTS:
        chance = random.Random(n)
        true = [[100 * x / n, 20 * math.sin(x * 7 / n)] for x in range(n)]
        read = [[x + chance.gauss(0, 0.4), y + chance.gauss(0, 0.2)] for x, y in true]
        truth, found = ({"name_to_coordinates": {"a": points}} for points in (true, read))
        repeats = max(2, 3_000 // n)
        loops, wanted = _fastest(lambda true=true, read=read: rmse_in_loops(read, true), 1 if n > 1_000 else 3)
        error, same = _fastest(lambda truth=truth, found=found: FigureExtractionMetric()(found, truth), repeats)
        ours, _ = _fastest(lambda truth=truth, found=found: FigureMetric().compare(truth, found), repeats)
        if same is None or not math.isclose(wanted, same, rel_tol=1e-9):
            raise AssertionError(f"the same formula gives {wanted} in loops and {same} here")
        what = f"figure, {n:,} points"
        yield _row(what, "the published formula in loops", loops, loops)
        yield _row(what, "FigureExtractionMetric", error, loops)
        yield _row(what, "FigureMetric", ours, loops)


def rmse_in_loops(extracted: Points, true: Points) -> float:
    """The published error of one series, point by point."""
    all_x, all_y = [x for x, _ in true], [y for _, y in true]
    x_scale, y_scale = max(all_x) - min(all_x) or 1e-8, max(all_y) - min(all_y) or 1e-8
    total = sum(
        min(((true_x - x) / x_scale) ** 2 + ((true_y - y) / y_scale) ** 2 for true_x, true_y in true)
        for x, y in extracted
    )
    return (total / len(extracted)) ** 0.5


# --- strings -------------------------------------------------------------------------------------------------------


def strings() -> Iterator[Row]:
    """The likeness of every string of one list with every one of another, as the matching of lists needs it."""
    chance = random.Random(0)
    first, second = (
        ["".join(chance.choices("abcdefgh ", k=LETTERS + chance.randint(-8, 8))) for _ in range(STRINGS)]
        for _ in range(2)
    )
    what = f"likeness, {STRINGS} x {STRINGS} strings of about {LETTERS} letters"
    loop, _ = _fastest(
        lambda: [[Levenshtein.normalized_similarity(one, other) for other in second] for one in first], 3
    )
    yield _row(what, "rapidfuzz in a Python loop", loop, loop)
    yield _row(what, "similarity_matrix", _fastest(lambda: similarity_matrix(first, second), 5)[0], loop)
    some = first[:20]  # a twenty-fifth of it, then multiplied: the whole takes minutes
    share = STRINGS / len(some)
    ratio = _fastest(lambda: [difflib.SequenceMatcher(None, one, other).ratio() for one in some for other in second], 1)
    yield _row(what, "difflib (a part, multiplied)", ratio[0] * share, loop)
    jellyfish = _installed("jellyfish")
    if jellyfish is not None:
        distance = jellyfish.levenshtein_distance
        took, _ = _fastest(lambda: [distance(one, other) for one in some for other in second], 1)
        yield _row(what, "jellyfish (a part, multiplied)", took * share, loop)


# --- records -------------------------------------------------------------------------------------------------------


def records() -> Iterator[Row]:
    """A record of a paper with its steps in another order and one in three wrong; deepdiff gives one number for it."""
    chance = random.Random(0)
    steps = [
        {"action": f"action {n % 9}", "materials": [{"name": f"material {n}", "amount": n * 0.5}], "hours": n % 13}
        for n in range(STEPS)
    ]
    expected = {"target": "LiCoO2", "steps": steps}
    read = json.loads(json.dumps(chance.sample(steps, STEPS)))
    for step in read[::3]:
        step["materials"][0]["name"] += " powder"
    predicted = {"target": "LiCoO₂", "steps": read}
    what = f"record, {STEPS} steps in another order"
    ours, _ = _fastest(lambda: RecordMetric().compare(expected, predicted), 3)
    deepdiff = _installed("deepdiff")
    if deepdiff is None:
        yield _row(what, "RecordMetric", ours, ours)
        return
    theirs, _ = _fastest(
        lambda: deepdiff.DeepDiff(expected, predicted, ignore_order=True, get_deep_distance=True)["deep_distance"], 2
    )
    yield _row(what, "deepdiff, order ignored", theirs, theirs)
    yield _row(what, "RecordMetric", ours, theirs)


# --- measuring -----------------------------------------------------------------------------------------------------


def _installed(name: str) -> Any | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _fastest(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Seconds of the fastest run, and what it gave; more than one run begins with one that only warms up."""
    result = work() if repeats > 1 else None
    best = math.inf
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - started)
    return best, result


def _row(what: str, way: str, seconds: float, base: float) -> Row:
    return {"what": what, "way": way, "ms": round(seconds * 1000, 4), "ratio": round(base / seconds, 2)}


if __name__ == "__main__":
    main()
