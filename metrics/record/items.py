"""A record taken apart: its single values by place, its lists item by item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from metrics.evaluators.states import has_value
from metrics.record.fields import Fields
from metrics.record.paths import EVERY, Pattern, written

_ALONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True)
class Item:
    """A record, or one item of a list in it.

    Attributes:
        pattern: the kind of place where it stands: () for the record, ("steps", EVERY) for a step.
        path: the very place, by position: "" for the record, "steps[0]".
        values: what it holds, by place; lists and what is inside them excluded. Where an evaluator asks for fields
            beside the value, a `WithSiblings`.
        names: the path of each of them from here: "conditions.temperature", "" for the item itself.
        absent: the places that are there and hold nothing (null, empty).
        lists: its lists' items, by the pattern of the items. Items that hold nothing are left out.
        rank: equal for equal contents; the items of lists without an order are sorted by it, so that where a list
            is permuted everything comes out the same.
    """

    pattern: Pattern
    path: str
    values: dict[Pattern, Any] = field(default_factory=dict)
    names: dict[Pattern, str] = field(default_factory=dict)
    absent: dict[Pattern, Any] = field(default_factory=dict)
    lists: dict[Pattern, list[Item]] = field(default_factory=dict)
    rank: str = ""

    def place(self, pattern: Pattern) -> str:
        """The path, by position, of one of its values; "$" for a record that is one value."""
        return _joined(self.path, self.names[pattern]) or "$"


def plain(value: Any) -> Any:
    """A value as plain JSON data, copied: models, enums, dates and tuples become what their JSON would hold.

    Raises:
        ValueError: it refers to itself or is nested deeper than some 250 levels.
    """
    try:
        return to_jsonable_python(value, fallback=str)
    except (PydanticSerializationError, ValueError) as error:
        raise ValueError(f"a record is JSON data or a model: {str(error).lower()}") from None


def read_item(record: Any, fields: Fields) -> Item:
    """A record (plain data) taken apart as far as `fields` look at it."""
    return _read(record, (), "", fields)


def _read(value: Any, pattern: Pattern, path: str, fields: Fields) -> Item:
    item = Item(pattern, path)
    _fill(item, value, pattern, "", fields)
    contents = sorted(f"{item.names[place]}={held!r}" for place, held in item.values.items())
    inner = sorted((written(place), [one.rank for one in items]) for place, items in item.lists.items())
    item.rank = json.dumps([contents, inner])
    return item


def _fill(
    item: Item, value: Any, pattern: Pattern, name: str, fields: Fields, holder: Mapping[str, Any] = _ALONE
) -> None:
    """Add `value`, which stands in `holder`, and what it holds."""
    if pattern in fields.excluded:
        return
    if pattern not in fields.rules:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                _fill(item, inner, (*pattern, key), _joined(name, key), fields, value)
            return
        if isinstance(value, list) and value:
            _fill_list(item, value, (*pattern, EVERY), _joined(item.path, name), fields)
            return
    if fields.counts(pattern):
        item.names[pattern] = name
        if _holds_something(value):
            item.values[pattern] = fields.with_siblings(pattern, value, holder)
        else:
            item.absent[pattern] = value


def _fill_list(item: Item, values: list[Any], pattern: Pattern, place: str, fields: Fields) -> None:
    read = [_read(value, pattern, f"{place}[{index}]", fields) for index, value in enumerate(values)]
    kept = [one for one in read if one.values or one.lists]
    if kept:
        item.lists[pattern] = kept if pattern in fields.ordered else sorted(kept, key=lambda one: one.rank)


def _holds_something(value: Any) -> bool:
    """Whether there is a value anywhere in it: a list of nulls, taken whole, holds as little as an empty one."""
    if isinstance(value, dict):
        return any(map(_holds_something, value.values()))
    return any(map(_holds_something, value)) if isinstance(value, list) else has_value(value)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def add_places(value: Any, leaves: set[Pattern], others: set[Pattern], pattern: Pattern = ()) -> None:
    """Add every place of a record (plain data), to `leaves` where it holds one value, null or an empty container."""
    if isinstance(value, dict) and value:
        others.add(pattern)
        for name, inner in value.items():
            add_places(inner, leaves, others, (*pattern, name))
    elif isinstance(value, list) and value:
        others.add(pattern)
        for inner in value:
            add_places(inner, leaves, others, (*pattern, EVERY))
    else:
        leaves.add(pattern)
