"""What is wrong with an extracted figure, in sentences, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from metrics.evaluators.text import shown
from metrics.figure.matching import Pair
from metrics.figure.reading import Points
from metrics.score import Score

_MAX_CHARACTERS = 4000
_NOTICED = 0.005
"""Units: a deviation smaller than this is not worth a word."""
_FALSE = 0.5
"""A predicted point is called false from here on."""


def feedback(pairs: Sequence[Pair], faults: Sequence[str], labels: Mapping[str, Score]) -> str:
    """One line per series that has a fault, worst first, then one per text; "" when nothing is wrong."""
    wrong = [(pair.value, pair.name, fault) for pair, fault in zip(pairs, faults, strict=True) if fault]
    lines = [f"series {shown(name)}: {fault}" for _, name, fault in sorted(wrong)]
    lines += [score.feedback for score in labels.values() if score.feedback]
    kept: list[str] = []
    length = 0
    for line in lines:
        length += len(line) + 1
        if length > _MAX_CHARACTERS:
            return "\n".join([*kept, f"... and {len(lines) - len(kept)} more lines"])
        kept.append(line)
    return "\n".join(kept)


def what_is_off(pair: Pair) -> str:
    """Half a sentence about one series; "" when it is perfect."""
    if pair.value >= 1.0:
        return ""
    if pair.true is None or pair.predicted is None:
        series = pair.true or pair.predicted
        size = _points(len(series.points)) if series else ""
        return f"missing, with its {size}" if pair.true else f"not in the figure, with its {size}"
    if pair.predicted.is_empty:
        return f"no point was extracted, {_points(len(pair.true.points))} expected"
    return "; ".join(_faults(pair)) or "slightly off"


def _faults(pair: Pair) -> Iterator[str]:
    true, predicted, score = pair.true, pair.predicted, pair.points
    if true is None or predicted is None or score is None or pair.places is None:
        return
    if pair.alike < 1.0:
        yield f"its name was read as {shown(predicted.name)}"
    missed = true.points[score.found == 0]
    if len(missed):
        yield f"{len(missed)} of {_points(len(true.points))} not found, such as {_point(missed)}"
    false = predicted.points[score.false >= _FALSE]
    if len(false):
        yield f"{len(false)} of {_points(len(predicted.points))} extracted false, such as {_point(false)}"
    if predicted.unreadable:
        entries = "entry is" if predicted.unreadable == 1 else "entries are"
        yield f"{predicted.unreadable} {entries} no [x, y] of two finite numbers"
    yield from _deviation(pair.places, score.found, score.nearest)


def _deviation(places: tuple[Points, Points], found: NDArray[np.float64], nearest: NDArray[np.intp]) -> Iterator[str]:
    """How far the points that were found lie from where they should, along each axis."""
    hit = found > 0
    if not hit.any():
        return
    offsets = places[1][nearest[hit]] - places[0][hit]
    for axis, along in zip("xy", offsets.T, strict=True):
        mean, size = float(along.mean()), float(np.abs(along).mean())
        if size < _NOTICED:
            continue
        one_way = len(along) > 1 and abs(mean) > 0.8 * size
        way = (" too high" if mean > 0 else " too low") if one_way else " off"
        yield f"{axis} is {size:.1%} of the axis{way} on average"


def _points(number: int) -> str:
    return "1 point" if number == 1 else f"{number} points"


def _point(points: Points) -> str:
    x, y = points[0].tolist()
    return f"({x:.6g}, {y:.6g})"
