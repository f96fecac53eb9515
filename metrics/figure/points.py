"""The points of two series against each other: how many true ones were found, how many predicted ones are true.

The credit of a point depends on its distance d to the nearest point of the other series, in units of the axes:

    credit(d) = 1                                                    up to `exact` (0.01)
                1 - ((d - exact) / (worthless - exact))**2           up to `worthless` (0.15)
                0                                                    beyond

Of a true point it says how well it was found. Of a predicted point it counts only where that point is the nearest one
to some true point; any other is false by 1 - credit, so a copy of a right point changes nothing and does not make
up for a false one.

    recall    = sum of the credits of the true points / their number
    precision = right / (right + false), right = sum of the best credits of those predicted points that found something
    value     = 1 / (1/recall + 1/precision - 1)

which is, for points that are just right or wrong, right / (right + missed + false): the critical success index of
forecasting (P. Roebber, Weather and Forecasting 24, 2009, eq. 2), better known as the Jaccard index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metrics.figure.reading import Points

_FEW = 100
"""Up to here all distances at once are faster than a tree."""

Distances = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far off a point may be, in units of the axes.

    Attributes:
        exact: up to here nobody could read it better.
        worthless: from here on it is another point.
    """

    exact: float = 0.01
    worthless: float = 0.15

    def credit(self, distances: Distances) -> Distances:
        """1 down to 0 for each distance.

        >>> Tolerance().credit(np.array([0.0, 0.01, 0.08, 0.15, 9.0])).round(3).tolist()
        [1.0, 1.0, 0.75, 0.0, 0.0]
        """
        beyond = np.maximum(distances - self.exact, 0.0) / (self.worthless - self.exact)
        return np.maximum(1.0 - beyond**2, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class PointScore:
    """Two series compared.

    Attributes:
        value, recall, precision: 0..1.
        found: credit of each true point, 0..1.
        false: how false each predicted point is, 0..1.
        nearest: for each true point, which predicted point is nearest to it (meaningless where there is none).
        to_true: from each predicted point the distance to the nearest true one (infinite where there is none).
        right: the number of predicted points that are right, a sum of credits.
    """

    value: float
    recall: float
    precision: float
    found: Distances
    false: Distances
    nearest: Indices
    to_true: Distances
    right: float


def compare_points(true: Points, predicted: Points, tolerance: Tolerance, unreadable: int = 0) -> PointScore:
    """Compare two series of distinct points, both in units of the axes.

    Args:
        true: shape (n, 2).
        predicted: shape (m, 2).
        tolerance: how far off a point may be.
        unreadable: entries of the predicted series that are no point: each one is false.

    >>> true = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
    >>> score = compare_points(true, true[:2], Tolerance())
    >>> round(score.recall, 3), score.precision, round(score.value, 3)
    (0.667, 1.0, 0.667)
    """
    if not len(true) or not len(predicted):
        found, false, nearest = np.zeros(len(true)), np.ones(len(predicted)), np.zeros(len(true), dtype=np.intp)
        return PointScore(0.0, 0.0, 0.0, found, false, nearest, np.full(len(predicted), np.inf), 0.0)
    to_predicted, nearest = _nearest(true, predicted)
    to_true, _ = _nearest(predicted, true)
    found = tolerance.credit(to_predicted)
    best = np.zeros(len(predicted))
    np.maximum.at(best, nearest, found)
    false = np.where(best > 0, 0.0, 1.0 - tolerance.credit(to_true))
    recall = float(found.mean())
    right, wrong = float(best.sum()), float(false.sum()) + unreadable
    if not right:
        return PointScore(0.0, 0.0, 0.0, found, false, nearest, to_true, 0.0)
    value = 1.0 / (1.0 / recall + wrong / right)
    return PointScore(min(value, 1.0), recall, right / (right + wrong), found, false, nearest, to_true, right)


def nearest_distances(points: Points, others: Points) -> Distances:
    """From each of `points` the distance to the nearest of `others`; both shape (n, 2), neither empty.

    >>> nearest_distances(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0], [9.0, 9.0]])).tolist()
    [5.0]
    """
    return _nearest(points, others)[0]


def _nearest(points: Points, others: Points) -> tuple[Distances, Indices]:
    """From each of `points` the distance to the nearest of `others`, and which one that is."""
    if max(len(points), len(others)) <= _FEW:
        from scipy.spatial.distance import cdist

        matrix = np.asarray(cdist(points, others), dtype=np.float64)
        nearest = matrix.argmin(axis=1)
        return matrix[np.arange(len(points)), nearest], nearest
    from scipy.spatial import cKDTree  # pyright: ignore[reportAttributeAccessIssue]  # missing in scipy's stubs

    distances, nearest = cKDTree(others).query(points)
    return distances, nearest
