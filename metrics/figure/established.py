"""FigureExtractionMetric: the figure error of published work, for comparing with its numbers and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from metrics.figure.points import nearest_distances
from metrics.figure.reading import pairs_of_numbers

Coordinates = Sequence[Sequence[float]] | NDArray[np.float64]
"""Pairs of x and y; shape (n, 2) as an array."""

_FLAT_SCALE = 1e-8
_LARGEST = 1e150
"""In ranges of the axes: what is farther out has no square."""


class FigureExtractionMetric:
    """Mean distance of extracted points to the nearest true ones: an error, lower is better, without an upper end.

    For each series name that both figures have, letter for letter, every extracted point is compared with the nearest
    true point, both axes divided by the range of all true points (1e-8 where that is 0); the errors of the series are
    averaged. This is the definition that published numbers of figure extraction rest on (LeMat-Synth,
    arXiv 2510.26824), kept as it is so that they can be compared.

    Never let an optimizer see it: a single right point, a series without points and a series left out are all perfect
    to it, extra series are free, and one letter in a name makes a figure unmeasurable. `FigureMetric` is the one to
    optimize; it reports this number in its details.

    >>> truth = {"name_to_coordinates": {"a": [[0, 0], [10, 5]], "b": [[0, 1]]}}
    >>> round(FigureExtractionMetric()({"name_to_coordinates": {"a": [[0, 0.5], [10, 5]]}}, truth), 4)
    0.0707
    >>> FigureExtractionMetric()({"name_to_coordinates": {"A": [[0, 0]]}}, truth) is None
    True
    """

    def __call__(self, preds: Any, refs: Any, error_metric: Literal["rmse", "mae"] = "rmse") -> float | None:
        """The error of `preds` against `refs`.

        Args:
            preds, refs: models with `name_to_coordinates`, or mappings that hold it.
            error_metric: "rmse" (root of the mean squared distance) or "mae" (mean distance).

        Returns:
            The mean over the common series, in ranges of the axes, 0 or more; None without a common name.

        Raises:
            ValueError: another `error_metric`; no true point to measure from; coordinates that are not pairs of
                finite numbers, or too far apart for numbers to hold.
        """
        if error_metric not in ("rmse", "mae"):
            raise ValueError(f"error_metric is 'rmse' or 'mae', got {error_metric!r}")
        extracted, truth = _coordinates(preds), _coordinates(refs)
        common = [name for name in truth if name in extracted]
        if not common:
            return None
        arrays = {name: _array(truth[name]) for name in truth}
        x_scale, y_scale = self.compute_scale(arrays)
        pointwise = self.pointwise_rmse if error_metric == "rmse" else self.pointwise_mae
        errors = [pointwise(extracted[name], arrays[name], x_scale, y_scale) for name in common]
        return math.fsum(errors) / len(errors)

    @staticmethod
    def compute_scale(ground_truth: Mapping[str, Coordinates]) -> tuple[float, float]:
        """The range of all true x and of all true y; 1e-8 for an axis on which they are all equal.

        Raises:
            ValueError: there is no true point.

        >>> FigureExtractionMetric.compute_scale({"a": [[0, 3], [10, 3]]})
        (10.0, 1e-08)
        """
        points = np.concatenate([np.empty((0, 2)), *(_array(coordinates) for coordinates in ground_truth.values())])
        if not len(points):
            raise ValueError("there is no true point, so the axes have no range")
        with np.errstate(over="ignore"):
            x_range, y_range = np.ptp(points, axis=0).tolist()
        return x_range or _FLAT_SCALE, y_range or _FLAT_SCALE

    @staticmethod
    def pointwise_rmse(extracted_coords: Coordinates, gt_coords: Coordinates, x_scale: float, y_scale: float) -> float:
        """Root of the mean squared distance from the extracted points to the nearest true ones; 0 without any.

        >>> FigureExtractionMetric.pointwise_rmse([[0, 2], [4, 0]], [[0, 0]], 1.0, 2.0) ** 2
        8.5
        """
        distances = _distances(extracted_coords, gt_coords, x_scale, y_scale)
        return math.sqrt(_mean(distances**2)) if len(distances) else 0.0

    @staticmethod
    def pointwise_mae(extracted_coords: Coordinates, gt_coords: Coordinates, x_scale: float, y_scale: float) -> float:
        """Mean distance from the extracted points to the nearest true ones; 0 without any.

        >>> FigureExtractionMetric.pointwise_mae([[0, 2], [4, 0]], [[0, 0]], 1.0, 2.0)
        2.5
        """
        distances = _distances(extracted_coords, gt_coords, x_scale, y_scale)
        return _mean(distances) if len(distances) else 0.0


def _coordinates(figure: Any) -> Mapping[str, Coordinates]:
    return figure["name_to_coordinates"] if isinstance(figure, Mapping) else figure.name_to_coordinates


def _array(coordinates: Coordinates) -> NDArray[np.float64]:
    if not isinstance(coordinates, np.ndarray):
        points = pairs_of_numbers(coordinates)
        if points is not None:
            return points
    try:
        points = np.asarray(coordinates, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"coordinates are pairs of numbers, got {str(coordinates)[:80]}") from None
    points = points.reshape(-1, 2) if not points.size else points
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ValueError(f"coordinates are pairs of finite numbers, got {str(coordinates)[:80]}")
    return points


def _distances(
    extracted_coords: Coordinates, gt_coords: Coordinates, x_scale: float, y_scale: float
) -> NDArray[np.float64]:
    extracted, truth = _array(extracted_coords), _array(gt_coords)
    if not len(extracted):
        return np.empty(0)
    if not len(truth):
        raise ValueError("a series has no true point to measure from")
    scale = np.array([x_scale, y_scale])
    with np.errstate(over="ignore"):
        extracted, truth = extracted / scale, truth / scale
    if max(np.abs(extracted).max(), np.abs(truth).max()) > _LARGEST:
        raise ValueError("the coordinates are too far apart to measure, in ranges of the axes")
    return nearest_distances(extracted, truth)


def _mean(numbers: NDArray[np.float64]) -> float:
    return float(np.mean(numbers))
