"""Upper bounds on lists and strings of the JSON Schema a local model decodes under.

A small model at temperature 0 loops inside open-ended lists and strings until the answer is cut. Bounds stop it; a
repeat penalty would destroy the copying that extraction is. They go into the schema sent, never into the user's
model, and are drawn from the training records, generously, field by field.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SMALLEST_ITEMS = 6
SMALLEST_LENGTH = 48
FREE_TEXT_LENGTH = 400
LARGEST_REPETITION = 2000
"""llama.cpp refuses a grammar that repeats anything more often than this."""

_HEADROOM = 2


@dataclass(frozen=True, slots=True)
class SchemaBounds:
    """How long lists and strings may get.

    Attributes:
        max_items, max_length: for fields no record speaks of.
        items, lengths: for the others, by path from the root of the answer ("record.steps[*].action").
        free_text: characters of a string beside the record, such as a reasoning field.

    >>> SchemaBounds(lengths={"record.title": 300}).length("record.title")
    300
    """

    max_items: int = SMALLEST_ITEMS
    max_length: int = SMALLEST_LENGTH
    items: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    free_text: int = FREE_TEXT_LENGTH

    def length(self, path: str) -> int:
        """Characters for the string at `path`; one directly under the root is free text unless records say more."""
        if path in self.lengths:
            return self.lengths[path]
        return self.max_length if "." in path or "[" in path else max(self.max_length, self.free_text)

    def describe(self) -> str:
        """One sentence for the run's notes.

        >>> SchemaBounds().describe()
        'the schema sent to a local model is bounded: lists to 6 items, strings to 48 characters, or twice the longest seen in training'
        """  # noqa: E501
        return (
            f"the schema sent to a local model is bounded: lists to {self.max_items} items, strings to "
            f"{self.max_length} characters, or twice the longest seen in training"
        )


UNKNOWN_ANSWERS = SchemaBounds(max_items=16, max_length=FREE_TEXT_LENGTH)
"""For answers no record describes, such as a judge's reasons."""


def bounds_from_records(records: Iterable[Any], output_field: str = "") -> SchemaBounds:
    """Bounds with room for twice the longest list and string seen at each path; at least 6 items, 48 characters.

    Args:
        records: expected records as plain JSON data.
        output_field: the program's output field, the key under which a record stands in an answer.

    >>> bounds_from_records([{"title": "x" * 40, "tags": ["a"] * 5}], "record").lengths
    {'record.title': 80, 'record.tags[*]': 48}
    """
    items: dict[str, int] = {}
    lengths: dict[str, int] = {}

    def see(value: Any, path: str) -> None:
        if isinstance(value, str):
            lengths[path] = max(lengths.get(path, SMALLEST_LENGTH), _room(len(value)))
        elif isinstance(value, list):
            items[path] = max(items.get(path, SMALLEST_ITEMS), _room(len(value)))
            for item in value:
                see(item, f"{path}[*]")
        elif isinstance(value, dict):
            for name, item in value.items():
                see(item, _join(path, name))

    for record in records:
        see(record, output_field)
    return SchemaBounds(items=items, lengths=lengths)


def apply_bounds(schema: Mapping[str, Any], bounds: SchemaBounds) -> dict[str, Any]:
    """A copy of `schema` in which every list and open string has an upper bound.

    A bound of the schema's own stays, unless llama.cpp could not repeat that often. Strings with an enum, const,
    pattern or format are left alone. A definition reached on several paths gets the largest of their bounds.

    >>> apply_bounds({"type": "string"}, SchemaBounds(free_text=60))
    {'type': 'string', 'maxLength': 60}
    """
    bounded = copy.deepcopy(dict(schema))
    _Walk(bounded, bounds).visit(bounded, "", ())
    return bounded


class _Walk:
    """Follows a schema along the paths of the data it describes, references included."""

    def __init__(self, root: dict[str, Any], bounds: SchemaBounds) -> None:
        self._root = root
        self._bounds = bounds
        self._own: dict[int, set[str]] = {}

    def visit(self, node: Any, path: str, through: tuple[str, ...]) -> None:
        if not isinstance(node, dict):
            return
        reference = node.get("$ref")
        if isinstance(reference, str) and through.count(reference) < 2:  # twice: a tree's children are bounded too
            self.visit(self._resolve(reference), path, (*through, reference))
        for union in ("anyOf", "oneOf", "allOf"):
            for option in node.get(union, ()):
                self.visit(option, path, through)
        for name, child in node.get("properties", {}).items():
            self.visit(child, _join(path, name), through)
        self.visit(node.get("additionalProperties"), _join(path, "*"), through)
        self._visit_list(node, path, through)
        if _has_type(node, "string") and not any(key in node for key in ("enum", "const", "pattern", "format")):
            self._bound(node, "maxLength", self._bounds.length(path))

    def _visit_list(self, node: dict[str, Any], path: str, through: tuple[str, ...]) -> None:
        if not _has_type(node, "array"):
            return
        self.visit(node.get("items"), f"{path}[*]", through)
        for child in node.get("prefixItems", ()):
            self.visit(child, f"{path}[*]", through)
        if "prefixItems" not in node:
            self._bound(node, "maxItems", self._bounds.items.get(path, self._bounds.max_items))

    def _bound(self, node: dict[str, Any], key: str, bound: int) -> None:
        ours = self._own.setdefault(id(node), set())
        if key in node and key not in ours:
            node[key] = min(node[key], LARGEST_REPETITION)
            return
        ours.add(key)
        least = node.get("minItems" if key == "maxItems" else "minLength", 0)
        node[key] = min(max(node.get(key, 0), bound, least), LARGEST_REPETITION)

    def _resolve(self, reference: str) -> Any:
        node: Any = self._root
        for part in reference.removeprefix("#/").split("/"):
            node = node.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(node, dict) else {}
        return node


def _has_type(node: Mapping[str, Any], name: str) -> bool:
    kind = node.get("type")
    return kind == name or (isinstance(kind, list) and name in kind)


def _room(seen: int) -> int:
    return min(_HEADROOM * seen, LARGEST_REPETITION)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
