"""The texts of a figure: its title, what its axes show and in which units."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType

from metrics.evaluators.text import normalized, shown, similarity
from metrics.evaluators.units import unit_of
from metrics.figure.reading import LABELS
from metrics.score import Score

LABEL_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"title": 1.0, "x_axis_label": 2.0, "x_axis_unit": 2.0, "y_left_axis_label": 2.0, "y_left_axis_unit": 2.0}
)
"""Of the texts among themselves."""

_LEAST_ALIKE = 0.5
"""Unrelated words are a fifth alike by chance; below this likeness a label is wrong."""
_UNIT_AT_END = re.compile(r"^(.*\S)\s*(?:\(([^()]+)\)|\[([^\[\]]+)\]|/\s*([^/]+))$", re.DOTALL)
_LONGEST_WITH_UNIT = 200


def label_scores(expected: Mapping[str, str], predicted: Mapping[str, str]) -> dict[str, Score]:
    """A Score for each text that either side has; none at all when the truth has no text, which says nothing then.

    Labels count by their likeness (1 - edit distance / length, 0 below 0.5), case aside; a unit repeated behind a
    label, "Time (h)", is no part of it. Units are the same or not: "cm³/g" is "cm3 g-1".

    >>> scores = label_scores({"x_axis_label": "Time", "x_axis_unit": "cm³/g"}, {"x_axis_label": "time (cm3 g-1)"})
    >>> scores["x_axis_label"].value, scores["x_axis_unit"].value
    (1.0, 1.0)
    """
    if not expected:
        return {}
    expected, predicted = _split(expected), _split(predicted)
    return {
        label: _scored(label, expected.get(label), predicted.get(label))
        for label in LABELS
        if label in expected or label in predicted
    }


def same_unit(first: str, second: str) -> bool:
    """Whether two spellings are one unit.

    >>> same_unit("W/(m·K)", "W m-1 K-1"), same_unit("℃", "degC"), same_unit("min", "h"), same_unit("mS", "MS")
    (True, True, False, False)
    """
    one, other = unit_of(_bare(first)), unit_of(_bare(second))
    return one.kind == other.kind and math.isclose(one.factor, other.factor) and one.offset == other.offset


def _scored(label: str, expected: str | None, predicted: str | None) -> Score:
    if expected is None:
        return Score(0.0, f"{label}: not in the figure, got {shown(predicted)}")
    if predicted is None:
        return Score(0.0, f"{label}: missing, expected {shown(expected)}")
    if label.endswith("_unit"):
        credit = float(same_unit(expected, predicted))
    else:
        alike = similarity(_text_form(expected), _text_form(predicted))
        credit = alike if alike >= _LEAST_ALIKE else 0.0
    said = "" if credit == 1.0 else f"{label}: expected {shown(expected)}, got {shown(predicted)}"
    return Score(credit, said)


def _split(labels: Mapping[str, str]) -> dict[str, str]:
    """The texts with a unit that stands behind a label moved to its own place, or dropped where it is there already."""
    parted = dict(labels)
    for label in LABELS:
        unit = f"{label.removesuffix('_label')}_unit"
        text = parted.get(label, "") if label.endswith("_label") else ""
        found = _UNIT_AT_END.match(text) if len(text) <= _LONGEST_WITH_UNIT else None
        if found is None:
            continue
        written = next(group for group in found.groups()[1:] if group is not None)
        if same_unit(written, parted[unit]) if unit in parted else unit_of(written).is_known:
            parted |= {label: found.group(1), unit: parted.get(unit, written)}
    return parted


def _text_form(text: str) -> str:
    return " ".join(normalized(text).casefold().split())


def _bare(unit: str) -> str:
    """A unit without the brackets around all of it."""
    text = unit.strip()
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if depth == 0:
            return text[1:-1] if 0 < place == len(text) - 1 else text
    return text
