"""Records and values made worse step by step, and written in another way that means the same."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metrics.evaluators.states import has_value
from metrics.evaluators.text import is_number, normalized

JUNK = "§§§§"
"""A value that is right nowhere."""

Path = tuple[str | int, ...]

_TWINS = str.maketrans(
    {digit: twin for digit, twin in zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True)}
    | {"-": "−", "'": "’", " ": "\u00a0", "µ": "μ", "(": "（", ")": "）", ",": "，"}
    | {chr(code): chr(code + 0xFEE0) for code in (*range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1))}
)


def damaged_value(value: Any) -> list[Any]:
    """The value made worse and worse: text loses its beginning, a number moves away, a list its items, an object its
    entries.

    >>> damaged_value("mix")
    ['§ix', '§§x', '§§§']
    >>> damaged_value([1, 2])
    [['§§§§', 2], ['§§§§', '§§§§']]
    """
    if isinstance(value, bool):
        return [not value]
    if is_number(value):
        size = abs(value) or 1.0
        return [value + size * step for step in (0.001, 0.01, 0.1, 1.0, 10.0, 1e3, 1e9)]
    if isinstance(value, Mapping):
        names = list(value)
        return [{**value} | dict.fromkeys(names[: n + 1], JUNK) for n in range(len(names))]
    if isinstance(value, list | tuple):
        return [[JUNK] * (n + 1) + list(value[n + 1 :]) for n in range(len(value))]
    text = str(value)
    steps = range(1, len(text) + 1) if len(text) <= 40 else range(len(text) // 20, len(text) + 1, len(text) // 20)
    return ["§" * n + text[n:] for n in steps]


def leaves(record: Any, path: Path = ()) -> Iterator[Path]:
    """Where the single values of a record are; places that hold nothing are left out."""
    if isinstance(record, Mapping):
        for name, inner in record.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(record, list | tuple):
        for index, inner in enumerate(record):
            yield from leaves(inner, (*path, index))
    elif has_value(record):
        yield path


def held(record: Any, path: Path) -> Any:
    """What a record holds at a path."""
    for key in path:
        record = record[key]
    return record


def changed(record: Any, path: Path, value: Any) -> Any:
    """A copy of the record with another value at one place."""
    if not path:
        return value
    record = copy.deepcopy(record)
    held(record, path[:-1])[path[-1]] = value
    return record


def every_leaf(record: Any, change: Any) -> Any:
    """A copy of the record with `change(value)` in place of every single value.

    >>> every_leaf({"a": 1, "b": [2]}, str)
    {'a': '1', 'b': ['2']}
    """
    if isinstance(record, Mapping):
        return {name: every_leaf(inner, change) for name, inner in record.items()}
    if isinstance(record, list | tuple):
        return [every_leaf(inner, change) for inner in record]
    return change(record)


def shuffled(record: Any, turns: int = 1) -> Any:
    """The record with the items of every list turned round by so many places.

    >>> shuffled({"a": [1, 2, 3]})
    {'a': [2, 3, 1]}
    """
    if isinstance(record, Mapping):
        return {name: shuffled(inner, turns) for name, inner in record.items()}
    if isinstance(record, list | tuple):
        items = [shuffled(inner, turns) for inner in record]
        cut = turns % len(items) if items else 0
        return items[cut:] + items[:cut]
    return record


def twin(text: Any) -> Any:
    """The text in other characters that mean the same (full width, subscripts, other dashes and spaces).

    >>> twin("Li2O")
    'Ｌｉ₂Ｏ'
    """
    if not isinstance(text, str):
        return text
    found = text.translate(_TWINS)
    return found if normalized(found) == normalized(text) else text


def shown_path(path: Path) -> str:
    """A path as feedback has it.

    >>> shown_path(("steps", 0, "action"))
    'steps[0].action'
    """
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".") or "$"


def falls(values: Sequence[float]) -> bool:
    """Whether values never rise from one to the next, rounding aside.

    >>> falls([1.0, 0.5, 0.5]), falls([0.5, 0.6])
    (True, False)
    """
    return all(
        later <= earlier or math.isclose(later, earlier, abs_tol=1e-9) for earlier, later in itertools.pairwise(values)
    )
