"""A figure as data: its series with their points, and the texts at its axes. Whatever was extracted can be read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from metrics.evaluators.states import has_value
from metrics.evaluators.text import number_in

LABELS = ("title", "x_axis_label", "x_axis_unit", "y_left_axis_label", "y_left_axis_unit")

Points = NDArray[np.float64]
"""Shape (n, 2): x and y in the figure's own units, finite."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One series.

    Attributes:
        name: as it is written.
        points: each distinct point once, sorted by x and y: neither order nor repetition means anything.
        given: the points as they were given, repetitions included.
        unreadable: how many distinct entries are no point (not two finite numbers).
    """

    name: str
    points: Points
    given: Points
    unreadable: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it, not even something unreadable."""
        return not len(self.points) and not self.unreadable


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Series in the order given, and those of the five texts (see `LABELS`) that are there."""

    series: tuple[Series, ...]
    labels: Mapping[str, str]


def read_figure(value: Any) -> Figure:
    """A figure from a model like ExtractedLinePlotData, from plain data or from None. Never raises on JSON data.

    What is no figure has no series. An entry of a series is a point when it is two finite numbers, `[x, y]` or
    `{"x": x, "y": y}`; text that is a number counts as one.

    >>> figure = read_figure({"name_to_coordinates": {"a": [[1, 2], [1, 2], [0, "3.5"], [4, None]]}, "title": ""})
    >>> figure.series[0].points.tolist(), figure.series[0].unreadable, dict(figure.labels)
    ([[0.0, 3.5], [1.0, 2.0]], 1, {})
    """
    names = _field(value, "name_to_coordinates")
    series = tuple(_series(str(name), given) for name, given in names.items()) if isinstance(names, Mapping) else ()
    texts = {label: _field(value, label) for label in LABELS}
    return Figure(series, {label: str(text) for label, text in texts.items() if has_value(text)})


def is_figure(value: Any) -> bool:
    """Whether there are series to read.

    >>> is_figure({"name_to_coordinates": {"a": [[1, 2]]}}), is_figure({"a": [[1, 2]]}), is_figure(None)
    (True, False, False)
    """
    return isinstance(_field(value, "name_to_coordinates"), Mapping)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _series(name: str, given: Any) -> Series:
    if isinstance(given, np.ndarray):
        given = given.tolist()
    none = np.empty((0, 2))
    if not has_value(given):
        return Series(name, none, none)
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        return Series(name, none, none, unreadable=1)
    points = pairs_of_numbers(given)
    if points is not None:
        return Series(name, distinct(points), points)
    read = [_point(entry) for entry in given]
    wrong = {repr(entry) for entry, point in zip(given, read, strict=True) if point is None}
    points = np.array([point for point in read if point is not None], dtype=np.float64).reshape(-1, 2)
    return Series(name, distinct(points), points, unreadable=len(wrong))


def distinct(points: Points) -> Points:
    """Each distinct point once, sorted by x, then y.

    >>> distinct(np.array([[2.0, 0.0], [1.0, 5.0], [2.0, 0.0]])).tolist()
    [[1.0, 5.0], [2.0, 0.0]]
    """
    if (points[1:, 0] > points[:-1, 0]).all():  # as most series are written
        return points
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[new]


def pairs_of_numbers(given: Sequence[Any]) -> Points | None:
    """All entries at once where every one is a pair of finite numbers, the usual case; else None.

    >>> pairs_of_numbers([[1, 2.5]]).tolist(), pairs_of_numbers([[1, None]])
    ([[1.0, 2.5]], None)
    """
    if not set(map(type, given)) <= {list, tuple} or set(map(len, given)) != {2}:
        return None
    numbers = list(chain.from_iterable(given))
    if not set(map(type, numbers)) <= {int, float}:
        return None
    try:
        points = np.fromiter(numbers, np.float64, len(numbers)).reshape(-1, 2)
    except OverflowError:  # a whole number too long for a float
        return None
    return points if np.isfinite(points).all() else None


def _point(entry: Any) -> tuple[float, float] | None:
    if isinstance(entry, BaseModel | Mapping):
        entry = [_field(entry, "x"), _field(entry, "y")]
    if not isinstance(entry, Sequence) or isinstance(entry, str | bytes) or len(entry) != 2:
        return None
    x, y = map(_number, entry)
    return None if x is None or y is None else (x, y)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        value = number_in(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError):
        return None
    return number if math.isfinite(number) else None
