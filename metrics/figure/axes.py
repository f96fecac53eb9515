"""The axes of a figure: what one unit of distance is, so that x and y, hours and pascals, can be compared.

The true points alone decide. One unit is the length of the axis that they need: from the smallest to the largest of
all true values, in tens on a logarithmic axis. Where they all have one value (the others differ from it by less than
a millionth), the unit is that value, or 1 where it is 0: what is 1% off is 0.01 units off. On a logarithmic axis it is
a factor of ten then.

An axis is logarithmic when it was declared so, or, undeclared, when all its true values are positive, the largest is
at least a thousand times the smallest, and their median lies nearer to the middle of the axis in logarithms than it
does without. Values that are not positive have no place on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from metrics.figure.reading import Points, Series

Scale = Literal["auto", "linear", "log"]
SCALES: tuple[str, ...] = get_args(Scale)

FAR = 1e6
"""Units: where everything farther away, or without a place on the axis, is put. Nothing is near it."""
_FLAT = 1e-6
_LEAST_LOG_RATIO = 1000.0

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """The two axes of a figure. A value v lies at (v / magnitude - start) / length, or with log10(v) in the place of v.

    Attributes:
        is_log: whether x and y are logarithmic.
        is_flat: whether all true values are one, so that the length is made up.
        magnitude: keeps values near the largest float from overflowing; shape (2,), like the others.
        start, length: in magnitudes.
    """

    is_log: tuple[bool, bool]
    is_flat: tuple[bool, bool]
    magnitude: Values
    start: Values
    length: Values

    def place(self, points: Points) -> Points:
        """Where the points lie, in units of the axes from the smallest true values: 0 to 1 for true ones."""
        with np.errstate(all="ignore"):
            if any(self.is_log):
                points = points.copy()
                for column in np.flatnonzero(self.is_log):
                    values = points[:, column]
                    points[:, column] = np.where(values > 0, np.log10(values), np.inf)
            places = (points / self.magnitude - self.start) / self.length
        return np.clip(places, -FAR, FAR)


def axes_of(series: Sequence[Series], x_scale: Scale = "auto", y_scale: Scale = "auto") -> Axes:
    """The axes that the true series need; from 0 to 1 when they have no point.

    >>> points = np.array([[300.0, 1e-3], [320.0, 0.1], [340.0, 10.0]])
    >>> axes = axes_of([Series("a", points, points)])
    >>> axes.is_log, axes.place(np.array([[310.0, 0.1]])).round(3).tolist()
    ((False, True), [[0.25, 0.5]])
    """
    points = np.concatenate([each.points for each in series]) if series else np.empty((0, 2))
    (x_log, x_flat, *x), (y_log, y_flat, *y) = _axis(points[:, 0], x_scale), _axis(points[:, 1], y_scale)
    return Axes((x_log, y_log), (x_flat, y_flat), *np.array([x, y]).T)


def own_lengths(places: Points) -> Values:
    """The range of one series in both directions, in units; 1 where it has none."""
    lengths = np.ptp(places, axis=0) if len(places) else np.zeros(2)
    return np.where((lengths > _FLAT) & (lengths < 1.0 - _FLAT), lengths, 1.0)


def _axis(values: Values, scale: Scale) -> tuple[bool, bool, float, float, float]:
    """Whether it is logarithmic and whether it is flat, its magnitude, start and length."""
    if not len(values):
        return scale == "log", True, 1.0, 0.0, 1.0
    is_log = bool(values.min() > 0) and (scale == "log" or (scale == "auto" and _looks_logarithmic(values)))
    if is_log:
        values = np.log10(values)
    magnitude = 1.0 if is_log else float(np.abs(values).max()) or 1.0
    low, high = float(values.min()) / magnitude, float(values.max()) / magnitude
    is_flat = high - low <= _FLAT
    return is_log, is_flat, magnitude, low, 1.0 if is_flat else high - low


def _looks_logarithmic(values: Values) -> bool:
    low, high = float(values.min()), float(values.max())
    if high < _LEAST_LOG_RATIO * low:
        return False
    logarithms = np.log10(values)
    return _off_middle(logarithms) < _off_middle(values)


def _off_middle(values: Values) -> float:
    """How far the median lies from the middle of the range, as a share of the range; no value may be negative or the
    range be 0, and division comes first so that nothing overflows."""
    scaled = values / np.abs(values).max()
    low = float(scaled.min())
    return abs((float(np.median(scaled)) - low) / (float(scaled.max()) - low) - 0.5)
