"""Where two answers differ from the expected record, value by value, as a person would list it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MAX_ALIGNED = 40
"""Lists with more items on both sides are compared by position: finding the likeliest pairs is quadratic."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value of the record. A text of None stands for null and for absent alike.

    `baseline_differs` and `tuned_differs` say that this answer's value is not the expected one; neither is true
    of a program that gave no answer at all.
    """

    path: str
    expected: str | None
    baseline: str | None
    tuned: str | None
    baseline_differs: bool
    tuned_differs: bool


def record_differences(expected: Any, baseline: Any, tuned: Any) -> list[Difference]:
    """The values on which either answer differs from the expected record, in the record's order.

    An answer that is None, because its program failed, differs nowhere.

    Items of lists are paired with the expected item they resemble most, because their order rarely means
    anything; an item nothing was expected for is shown as `[+1]`, `[+2]`, ... after the others.

    >>> for found in record_differences({"a": 1, "b": ["x", "y"]}, {"a": 2, "b": ["y", "x"]}, {"a": 1, "b": ["x"]}):
    ...     print(found.path, found.expected, found.baseline, found.tuned)
    a 1 2 1
    b[1] y y None
    """
    wanted = _leaves(expected, expected)
    before, after = _leaves(expected, baseline), _leaves(expected, tuned)
    rows: list[Difference] = []
    for path in dict.fromkeys([*wanted, *before, *after]):
        value = wanted.get(path)
        wrong = [
            answer is not None and leaves.get(path) != value for answer, leaves in ((baseline, before), (tuned, after))
        ]
        if any(wrong):
            rows.append(Difference(path, value, before.get(path), after.get(path), *wrong))
    return rows


def _leaves(expected: Any, record: Any, path: str = "") -> dict[str, str]:
    """Path -> text of every value of `record` that is not null, list positions being those of `expected`."""
    leaves: dict[str, str] = {}
    if isinstance(record, Mapping):
        known = expected if isinstance(expected, Mapping) else {}
        for key, value in record.items():
            leaves |= _leaves(known.get(key), value, f"{path}.{key}" if path else str(key))
    elif isinstance(record, list):
        for label, other, value in _aligned(expected if isinstance(expected, list) else [], record):
            leaves |= _leaves(other, value, f"{path}[{label}]")
    elif record is not None:
        leaves[path] = _text(record)
    return leaves


def _aligned(expected: Sequence[Any], items: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    """(position label, expected item, item): equal ones first, then by likeness, then what is left over."""
    if len(expected) * len(items) > _MAX_ALIGNED**2:
        pairs = {position: position for position in range(min(len(expected), len(items)))}
    else:
        pairs = _likeliest([_text(each) for each in expected], [_text(each) for each in items])
    placed = [(str(place), expected[place], items[position]) for place, position in sorted(pairs.items())]
    used = set(pairs.values())
    extra = [item for position, item in enumerate(items) if position not in used]
    return placed + [(f"+{number}", None, item) for number, item in enumerate(extra, start=1)]


def _likeliest(expected: Sequence[str], items: Sequence[str]) -> dict[int, int]:
    """Greedy pairs (expected position -> item position), most alike first."""
    likeness = [
        (1.0 if one == other else difflib.SequenceMatcher(None, one, other, autojunk=False).quick_ratio(), place, spot)
        for place, one in enumerate(expected)
        for spot, other in enumerate(items)
    ]
    pairs: dict[int, int] = {}
    used: set[int] = set()
    for _, place, spot in sorted(likeness, key=lambda each: (-each[0], abs(each[1] - each[2]), each[1])):
        if place not in pairs and spot not in used:
            pairs[place] = spot
            used.add(spot)
    return pairs


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
