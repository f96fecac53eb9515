"""Which predicted series is which true one, and what the two have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics.figure.axes import Axes, own_lengths
from metrics.figure.names import name_matrix
from metrics.figure.points import PointScore, Tolerance, compare_points
from metrics.figure.reading import Points, Series
from metrics.record.assignment import best_pairs

NAME_SHARE = 0.5
"""How much of a series' value a wrong name takes."""
OWN_SHARE = 0.1
"""How much of a series' value is measured in units of its own range, not of the axes'."""
LEAST_OWN_LENGTH = 0.1
"""Units: the shortest range of a series that is a unit of its own. Nobody reads a figure much more closely."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A true series with what was found of it, or a predicted one that is not in the figure.

    Attributes:
        value: 0..1.
        true, predicted: None where the other one is alone.
        alike: the likeness of the names, 0..1.
        points: the points of both in units of the axes, compared; None where one side is missing.
        places: where the true and the predicted points lie, in units of the axes.
    """

    value: float
    true: Series | None
    predicted: Series | None
    alike: float = 0.0
    points: PointScore | None = None
    places: tuple[Points, Points] | None = None

    @property
    def name(self) -> str:
        """The name that the figure has for it, else the predicted one."""
        series = self.true or self.predicted
        return series.name if series else ""


def match_series(
    true: Sequence[Series], predicted: Sequence[Series], axes: Axes, tolerance: Tolerance
) -> tuple[list[Pair], list[Pair]]:
    """Pairs for all true series that have points, and for the predicted ones that belong to none of them.

    Series of the same name (see `metrics.figure.names`) go together whatever their points are. All others are paired
    one to one so that the sum of the values is as high as it can be; a pair that is worth nothing is no pair. What
    has no point on either side is not counted.
    """
    alike, same = name_matrix([each.name for each in true], [each.name for each in predicted])
    free = np.logical_not(np.logical_or.outer(same.any(axis=1), same.any(axis=0)))
    comparison = _Comparison(true, predicted, axes, tolerance)
    pairs = {
        (int(row), int(column)): comparison.pair(int(row), int(column), float(alike[row, column]))
        for row, column in np.argwhere(same | free)
    }
    gain = np.zeros(alike.shape)
    for place, pair in pairs.items():
        # A whole point more than any pair of other names could earn: the same name decides.
        gain[place] = pair.value + (1.0 if same[place] else 0.0)
    chosen = best_pairs(gain, ordered=False) if gain.size else []
    by_row = {row: pairs[row, column] for row, column in chosen}
    taken = {column for row, column in chosen if true[row].points.size or predicted[column].is_empty}
    found = [by_row.get(row, Pair(0.0, each, None)) for row, each in enumerate(true) if each.points.size]
    false = [Pair(0.0, None, each) for column, each in enumerate(predicted) if column not in taken]
    return found, false


class _Comparison:
    """Compares series by their positions, placing each one on the axes once."""

    def __init__(self, true: Sequence[Series], predicted: Sequence[Series], axes: Axes, tolerance: Tolerance) -> None:
        self._true, self._predicted, self._tolerance = true, predicted, tolerance
        self._true_places = [axes.place(each.points) for each in true]
        self._predicted_places = [axes.place(each.points) for each in predicted]

    def pair(self, row: int, column: int, alike: float) -> Pair:
        true, predicted = self._true_places[row], self._predicted_places[column]
        unreadable = self._predicted[column].unreadable
        points = compare_points(true, predicted, self._tolerance, unreadable)
        value = points.value
        lengths = np.maximum(own_lengths(true), LEAST_OWN_LENGTH)
        if (lengths != 1.0).any():
            own = compare_points(true / lengths, predicted / lengths, self._tolerance, unreadable)
            value = (1.0 - OWN_SHARE) * value + OWN_SHARE * own.value
        value *= 1.0 - NAME_SHARE + NAME_SHARE * alike
        return Pair(value, self._true[row], self._predicted[column], alike, points, (true, predicted))


def counts(found: Sequence[Pair], false: Sequence[Pair]) -> dict[str, Any]:
    """How many series and points there are and were found, with the points' recall and precision.

    Recall and precision (0..1) are None where there is no point to divide by.
    """
    recalled = sum(float(pair.points.found.sum()) for pair in found if pair.points)
    right = sum(pair.points.right for pair in found if pair.points)
    wrong = sum(float(pair.points.false.sum()) for pair in found if pair.points)
    wrong += sum(pair.predicted.unreadable for pair in found if pair.predicted)
    wrong += sum(len(pair.predicted.points) + pair.predicted.unreadable for pair in false if pair.predicted)
    n_points = sum(len(pair.true.points) for pair in found if pair.true)
    return {
        "n_series": len(found) + len(false),
        "n_series_expected": len(found),
        "n_series_missing": sum(pair.predicted is None for pair in found),
        "n_series_false": len(false),
        "n_points_expected": n_points,
        "n_points_predicted": sum(len(pair.predicted.points) for pair in (*found, *false) if pair.predicted),
        "recall": recalled / n_points if n_points else None,
        "precision": right / (right + wrong) if right + wrong else None,
    }
