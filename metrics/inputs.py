"""Where a metric finds the expected record in an example, and the extracted one in a prediction."""

from __future__ import annotations

from typing import Any

from metrics.nearest import nearest


def columns(row: Any) -> dict[str, Any]:
    """The fields of a dspy.Example or dspy.Prediction, of a mapping, or of any object with attributes.

    >>> columns({"figure": 1})
    {'figure': 1}
    """
    return dict(row.items()) if hasattr(row, "items") else dict(vars(row))


def expected_of(example: Any) -> Any:
    """The record to reach.

    Raises:
        ValueError: the example has no `expected`.
    """
    held = columns(example)
    if "expected" not in held:
        raise ValueError(f"an example holds the record to reach in 'expected'; this one has {sorted(held)}")
    return held["expected"]


def predicted_in(prediction: Any, field: str | None) -> Any:
    """What the prediction holds in `field`; None: its only one, `reasoning` aside. None as a prediction holds nothing.

    Raises:
        ValueError: there is no such field (the nearest one is named), or more than one to choose from.

    >>> predicted_in({"reasoning": "...", "links": []}, None)
    []
    >>> predicted_in({"figures": []}, "figure")
    Traceback (most recent call last):
    ValueError: the prediction has no field 'figure', did you mean 'figures'?
    """
    if prediction is None:
        return None
    held = columns(prediction)
    if field is None:
        names = [name for name in held if name != "reasoning"] or list(held)
        if len(names) != 1:
            listed = ", ".join(names) or "none"
            raise ValueError(f"a prediction has one field, or the metric an output_field; the fields are: {listed}")
        field = names[0]
    if field not in held:
        raise ValueError(f"the prediction has no field {field!r}, {nearest(field, held)}")
    return held[field]
