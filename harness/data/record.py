"""One row of the user's data, and the plain JSON values it may hold."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from harness.errors import UsageError

_LARGEST = int(sys.float_info.max)
"""Whole numbers past it have no distance from any other, and no float field takes them."""
DEEPEST = 100
"""Levels of lists and objects a value may be nested; deeper ones break every later writer of JSON."""


@dataclass(frozen=True, slots=True)
class Record:
    """One example of the user's data before it becomes a `dspy.Example`.

    Every value is plain JSON: None, bool, int, finite float, text that is valid Unicode, list, dict with text keys.
    """

    id: str
    """Unique in its file; the row's own `id`, else its line number as text."""
    fields: Mapping[str, Any]
    """Every column but `id` and `expected`; a missing or empty value has no key."""
    expected: Any
    """The record to reach; None when the row has none."""
    group: str | None
    """Rows that share a group never land on two sides of a split; None stands alone."""
    where: str
    """The place for people: `invoices.csv line 4`."""


Reader = Callable[[Path, Mapping[str, str]], Iterable[Any]]
"""Reads (path, columns) to Records, or to dicts {"id": ..., INPUT: ..., "expected": ..., "group": ...} of a user's own.

`columns` maps the name the program uses to the name in the file. It runs before any model call; whatever it yields is
checked by `harness.data.read`.
"""


def plain(value: Any, where: str, at: str = "") -> Any:
    """`value` as plain JSON data; dates become ISO text, decimals and numpy scalars numbers, pydantic models dicts.

    Args:
        value: anything a reader produced.
        where: the row, for errors: `a.jsonl line 3`.
        at: the path to the value within the row.

    Raises:
        UsageError: a NaN or infinity, a whole number past the largest float, half a Unicode character, a key that is
            not text, nesting past `DEEPEST`, or a type that JSON has no place for.

    >>> plain({"total": Decimal("12.50"), "when": date(2024, 5, 1)}, "row 1")
    {'total': 12.5, 'when': '2024-05-01'}
    """
    return _plain(value, where, at, 0)


def _plain(value: Any, where: str, at: str, depth: int) -> Any:
    if depth > DEEPEST:
        raise UsageError(f"{where}, {at:.60}...: nested more than {DEEPEST} levels deep.")
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {
            _text(key, where, at): _plain(item, where, f"{at}.{key}" if at else str(key), depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item, where, f"{at}[{index}]", depth + 1) for index, item in enumerate(value)]
    return _scalar(value, where, at)


def _scalar(value: Any, where: str, at: str) -> bool | int | float | str | None:
    if isinstance(value, Decimal):
        value = int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise UsageError(
            f"{_place(where, at)}: a whole number of more than 308 digits is no number that can be compared; write it "
            "as text, or leave it out."
        )
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(
                f"{_place(where, at)}: {value} is not a number that can be compared; leave the value out instead."
            )
        return value
    if isinstance(value, (date, time)):
        return value.isoformat()
    return _text(value, where, at)


def _text(value: Any, where: str, at: str) -> str:
    if not isinstance(value, str):
        raise UsageError(
            f"{_place(where, at)}: {repr(value)[:60]} is of type {type(value).__name__}, which has no place in JSON."
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{_place(where, at)}: character {error.start + 1} of the text is half a Unicode character "
            f"({value[error.start]!a})."
        ) from None
    return value


def _place(where: str, at: str) -> str:
    return f"{where}, {at}" if at else where
