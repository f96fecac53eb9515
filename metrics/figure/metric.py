"""FigureMetric: the series extracted from a figure against the true ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from metrics.evaluators.text import is_number
from metrics.figure.axes import FAR, SCALES, Axes, Scale, axes_of
from metrics.figure.established import FigureExtractionMetric
from metrics.figure.feedback import feedback, what_is_off
from metrics.figure.labels import LABEL_WEIGHTS, label_scores
from metrics.figure.matching import Pair, counts, match_series
from metrics.figure.points import Tolerance
from metrics.figure.reading import Figure, read_figure
from metrics.inputs import expected_of, predicted_in
from metrics.nearest import nearest
from metrics.score import Score, config_version

_FORMULA = 1
"""Part of the version: raised whenever the same configuration would score differently than before."""


class FigureMetric:
    """How much of a figure's data was extracted rightly, 0..1; higher is better, and there is always a number.

        value  = series * (1 - label_share * (1 - labels))
        series = sum of the values of the true series / (true series + false series)

    Each series counts the same, however many points it has. A missing or empty series is worth 0; a predicted series
    that is none of the true ones makes the denominator longer.

    Which is which: the same name goes together (case, Unicode, LaTeX, separators and look-alikes aside: "Pd/Zr02" is
    "Pd/ZrO₂", while "Pd-Cu", "Cu-Pd" and "CuPd" are three; see `metrics.figure.names`). Series whose names are on one
    side only are paired by their points, so that the sum is as high as it can be, and lose up to half for the name.

    Points: how far a true point is found, and a predicted one true, depends on the distance d to the nearest point of
    the other series, in lengths of the axes: 1 up to d = `exact`, then 1 - ((d - exact) / (worthless - exact))², which
    is 0 at `worthless`. With recall, the mean over the true points, and precision, right / (right + false) of the
    predicted ones,

        value of a series = 1 / (1/recall + 1/precision - 1)

    so missing and false points both cost, and repeating points does not pay (`metrics.figure.points`). Nine tenths of
    it are measured in lengths of the figure's axes, one tenth in ranges of the series itself (at least 0.1 of the
    axis), so that a small series beside a large one is not hidden.

    Axes: as long as all true points together need. A flat one is as long as its value; logarithmic ones are declared or
    recognised (`metrics.figure.axes`). An entry that is no pair of finite numbers is a false point.

    Labels: likeness of the axis labels (weight 2 each) and the title (1), equality of the units (2 each). What is on
    neither side does not count, and a truth without any text says nothing about texts.

    Identical figures are 1. The order of series and points, and repeated points, change nothing. Leaving out points
    or series that are right, or adding false ones, never raises the value, and neither does more noise as long as
    each point stays nearest to its own. Two figures without any point are 1, with `n_series` 0 in the details.

    Args:
        name: what reports call this metric.
        output_field: the prediction's field that holds the figure; None: its only one (`reasoning` aside).
        exact, worthless: the distances, in lengths of the axes, up to which a point is as good as exact, and from
            which on it is another one.
        x_scale, y_scale: "linear", "log", or "auto": recognise it from the true points of each figure.
        label_share: what the texts decide, 0 (nothing; they are reported) to 1.

    Raises:
        ValueError: an argument out of its range.

    >>> truth = {"name_to_coordinates": {"Pd/ZrO2": [[350, 20], [400, 50], [450, 90]], "blank": [[350, 1], [450, 13]]}}
    >>> read = {"name_to_coordinates": {"Pd/Zr02": [[350, 20], [400, 50], [450, 90]]}}
    >>> score = FigureMetric().compare(truth, read)
    >>> score.value, score.feedback
    (0.5, "series 'blank': missing, with its 2 points")
    """

    def __init__(
        self,
        name: str = "figure",
        output_field: str | None = "figure",
        exact: float = 0.01,
        worthless: float = 0.15,
        x_scale: Scale = "auto",
        y_scale: Scale = "auto",
        label_share: float = 0.1,
    ) -> None:
        for axis, scale in (("x_scale", x_scale), ("y_scale", y_scale)):
            if scale not in SCALES:
                raise ValueError(f"figure: {axis} is none of the scales: {scale!r}, {nearest(str(scale), SCALES)}")
        if not (is_number(exact) and is_number(worthless) and 0 <= exact < worthless < math.inf):
            raise ValueError(f"figure: 0 <= exact < worthless, two lengths; got {exact!r} and {worthless!r}")
        if not is_number(label_share) or not 0 <= label_share <= 1:
            raise ValueError(f"figure: label_share is a number in 0..1, got {label_share!r}")
        self._name = name
        self.output_field = output_field
        self._tolerance = Tolerance(float(exact), float(worthless))
        self._label_share = float(label_share)
        self._scales: tuple[Scale, Scale] = (x_scale, y_scale)

    def __repr__(self) -> str:
        return f"FigureMetric(name={self._name!r}, {self._tolerance})"

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._name

    @property
    def version(self) -> str:
        """A digest of everything that can change a score."""
        options = {"tolerance": astuple(self._tolerance), "scales": self._scales, "label_share": self._label_share}
        return config_version("figure", {"formula": _FORMULA, **options})

    def __call__(self, example: Any, prediction: Any) -> Score:
        """Compare `example.expected` with the figure in `prediction`; a prediction of None holds nothing.

        Raises:
            ValueError: the example has no `expected`, or the prediction not the field (the nearest one is named).
        """
        return self.compare(expected_of(example), predicted_in(prediction, self.output_field))

    def compare(self, expected: Any, predicted: Any) -> Score:
        """Compare two figures: models like ExtractedLinePlotData, plain data or None. Neither is changed.

        Returns:
            A Score with the parts `series` and, where they count, the five texts by name. Its details hold the numbers
            of series and points, `recall` and `precision` of all points (None where there is none), `series` with
            value and fault of each, `log_axes`, and `established`, the root mean squared error of
            FigureExtractionMetric (None where it cannot be computed; lower is better, and missing series are perfect
            to it).
        """
        truth, read = read_figure(expected), read_figure(predicted)
        axes = axes_of(truth.series, *self._scales)
        found, false = match_series(truth.series, read.series, axes, self._tolerance)
        pairs = [*found, *false]
        series = math.fsum(pair.value for pair in found) / len(pairs) if pairs else 1.0
        labels = label_scores(truth.labels, read.labels)
        weight = math.fsum(LABEL_WEIGHTS[label] for label in labels)
        right = math.fsum(LABEL_WEIGHTS[label] * score.as_float() for label, score in labels.items())
        value = series * (1.0 - self._label_share * (1.0 - right / weight)) if weight else series
        faults = [what_is_off(pair) for pair in pairs]
        said = feedback(pairs, faults, labels)
        if not pairs:
            said = "\n".join(filter(None, ("no series was expected and none was extracted", said)))
        parts = {"series": Score(min(series, 1.0), f"{sum(pair.value >= 1 for pair in found)} of {len(pairs)} right")}
        details = {
            **counts(found, false),
            "series": [_described(pair, fault) for pair, fault in zip(pairs, faults, strict=True)],
            "log_axes": [name for name, is_log in zip("xy", axes.is_log, strict=True) if is_log],
            "established": _established(truth, read, found, axes),
        }
        return Score(min(value, 1.0), said or "all series are right", {**parts, **labels}, details=details)


def _described(pair: Pair, fault: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": pair.true.name if pair.true else None,
        "predicted": pair.predicted.name if pair.predicted else None,
        "value": pair.value,
    }
    if pair.points:
        described |= {"recall": pair.points.recall, "precision": pair.points.precision}
    return {**described, "fault": fault} if fault else described


def _established(truth: Figure, read: Figure, found: Sequence[Pair], axes: Axes) -> float | None:
    """The published error of what could be read; None where it has no answer or none that a report can show."""
    measured = _already_measured(truth, read, found, axes)
    if measured is not None:
        return measured
    given, true = (
        {"name_to_coordinates": {series.name: series.given for series in figure.series}} for figure in (read, truth)
    )
    try:
        return FigureExtractionMetric()(given, true)
    except ValueError:
        return None


def _already_measured(truth: Figure, read: Figure, found: Sequence[Pair], axes: Axes) -> float | None:
    """The same from the distances at hand, where they are those of its definition: on most figures."""
    if any((*axes.is_log, *axes.is_flat)):
        return None
    names = {series.name for series in read.series}
    common = [series.name for series in truth.series if series.name in names]
    pairs = {pair.name: pair for pair in found if pair.predicted and pair.predicted.name == pair.name}
    errors: list[float] = []
    for name in common:
        pair = pairs.get(name)
        if pair is None or pair.predicted is None or pair.points is None:
            return None
        distances = pair.points.to_true
        if len(distances) != len(pair.predicted.given) or distances.max(initial=0.0) >= FAR / 2:
            return None
        errors.append(float(np.sqrt(np.mean(distances**2))) if len(distances) else 0.0)
    return math.fsum(errors) / len(errors) if errors else None
