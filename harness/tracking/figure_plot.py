"""One figure's data as a picture: what was extracted over what is true.

Drawn without pyplot, which keeps state for the whole process; see `harness.tracking.plots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from harness.tracking.plots import INK, MUTED, plot_label, png
from metrics.figure.axes import axes_of
from metrics.figure.matching import Pair, match_series
from metrics.figure.points import Tolerance
from metrics.figure.reading import LABELS, Points, Series, read_figure

MAX_SERIES = 12
MAX_POINTS = 5000
"""Of one series: more could not be told apart in a picture."""

_COLOURS = (
    "#0b6e99",
    "#b5471c",
    "#0b7a5b",
    "#7a4fa3",
    "#a67c00",
    "#a3325e",
    "#4a5a6a",
    "#5a7d1e",
    "#1f3a8a",
    "#8a4b2a",
    "#2a8a86",
    "#c2410c",
)
_LARGEST = 1e250
"""Matplotlib's own arithmetic overflows not far beyond."""

_MOST_DECADES = 100.0
"""On either side of 1, for the same reason."""

Ends = tuple[tuple[float, float], tuple[float, float]]
"""Where the two axes end."""


def figure_picture(expected: Any, predicted: Any) -> bytes:
    """Truth (circles on lines) and prediction (crosses) of one figure in one plot; a PNG.

    A series and what was extracted for it share a colour; a predicted series that belongs to none is black. The legend
    says for each series what it was read as. The axes are those of the truth, with room for what lies outside, at most
    a fifth of them on each side; what is farther out is counted in the corner.

    Args:
        expected, predicted: models like ExtractedLinePlotData, plain data or None, as `FigureMetric` takes them.

    Returns:
        The bytes of the picture, at most 12 series of it; the same figures give the same bytes.
    """
    truth, read = read_figure(expected), read_figure(predicted)
    axes = axes_of(truth.series)
    found, false = match_series(truth.series, read.series, axes, Tolerance())
    pairs = [*found, *false]
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    plot = figure.add_subplot()
    ends = _both_ends(_all(truth.series), _all(read.series), axes.is_log)
    _style(plot, axes.is_log, ends, {**read.labels, **truth.labels})
    handles = [_draw(plot, pair, number, ends) for number, pair in enumerate(pairs[:MAX_SERIES])]
    n_outside = int(np.logical_not(_inside(_all(read.series), ends)).sum())
    if n_outside:
        said = f"{n_outside} extracted outside"
        plot.text(0.99, 0.99, said, color=MUTED, fontsize=7, ha="right", va="top", transform=plot.transAxes)
    if len(pairs) > MAX_SERIES:
        handles.append(Line2D([], [], linestyle="", label=f"and {len(pairs) - MAX_SERIES} more series"))
    if handles:
        legend = figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=7, labelcolor=INK)
        for text in legend.get_texts():
            text.set_parse_math(False)
    else:
        plot.text(0.5, 0.5, "no series", color=MUTED, ha="center", va="center", transform=plot.transAxes)
    return png(figure)


def _draw(plot: Axes, pair: Pair, number: int, ends: Ends) -> Line2D:
    """Both sides of one series; returns its line of the legend."""
    colour = _COLOURS[number % len(_COLOURS)] if pair.true else "black"
    if pair.true:
        points = np.clip(_drawn(pair.true.points), *np.array(ends).T)
        plot.plot(*points.T, "o-", color=colour, markersize=5, linewidth=1, fillstyle="none")
    if pair.predicted:
        points = _drawn(pair.predicted.points)
        # What lies outside is not drawn, rather than drawn and cut off: it may be too far out for any arithmetic.
        plot.plot(*points[_inside(points, ends)].T, "x", color=colour, markersize=6, markeredgewidth=1.4)
    return Line2D([], [], marker="o" if pair.true else "x", color=colour, fillstyle="none", label=_said(pair))


def _said(pair: Pair) -> str:
    name = plot_label(pair.name, 30)
    if pair.true is None:
        return f"{name}: not in the figure"
    if pair.predicted is None:
        return f"{name}: missing"
    other = "" if pair.predicted.name == pair.true.name else f", read as {plot_label(pair.predicted.name, 24)}"
    return f"{name}: {pair.value:.2f}{other}"


def _drawn(points: Points) -> Points:
    step = -(-len(points) // MAX_POINTS) or 1
    return np.clip(points[::step], -_LARGEST, _LARGEST)


def _inside(points: Points, ends: Ends) -> NDArray[np.bool_]:
    (left, right), (bottom, top) = ends
    x, y = points.T
    return (x >= left) & (x <= right) & (y >= bottom) & (y <= top)


def _all(series: Sequence[Series]) -> Points:
    return np.concatenate([np.empty((0, 2)), *(_drawn(each.points) for each in series)])


def _both_ends(true: Points, predicted: Points, is_log: tuple[bool, bool]) -> Ends:
    if not len(true):
        true = predicted if len(predicted) else np.zeros((1, 2))
    x, y = (_ends(true[:, column], predicted[:, column], is_log[column]) for column in range(2))
    return x, y


def _ends(true: NDArray[np.float64], predicted: NDArray[np.float64], is_log: bool) -> tuple[float, float]:
    """From the lowest to the highest value, at most a fifth of the true range beyond the true values."""
    if is_log:
        low, high = _ends(np.log10(true), np.log10(predicted[predicted > 0]), False)
        return 10.0 ** max(low, -_MOST_DECADES), 10.0 ** min(high, _MOST_DECADES)
    low, high = float(true.min()), float(true.max())
    length = (high - low) or abs(high) or 1.0
    lowest, highest = float(predicted.min(initial=low)), float(predicted.max(initial=high))
    return max(lowest, low - length / 5) - length / 50, min(highest, high + length / 5) + length / 50


def _style(plot: Axes, is_log: tuple[bool, bool], ends: Ends, labels: dict[str, str]) -> None:
    plot.set_autoscale_on(False)
    plot.set(xscale="log" if is_log[0] else "linear", yscale="log" if is_log[1] else "linear")
    plot.set(xlim=ends[0], ylim=ends[1])
    plot.spines[["top", "right"]].set_visible(False)
    plot.tick_params(colors=MUTED, labelsize=8, length=3)
    title, x_label, x_unit, y_label, y_unit = (plot_label(labels.get(label, ""), 60) for label in LABELS)
    plot.set_title(title, color=INK, fontsize=9, parse_math=False)
    for axis, label, unit in ((plot.xaxis, x_label, x_unit), (plot.yaxis, y_label, y_unit)):
        text = axis.set_label_text(f"{label} ({unit})" if unit else label, color=MUTED, fontsize=9)
        text.set_parse_math(False)
