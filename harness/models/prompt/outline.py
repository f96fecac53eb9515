"""A JSON Schema as lines people and small models read: one line per key, name, type or choices, description.

    - vendor: text (who sent it)
    - total: number or null (with tax)
    - address.city: text
    - lines: list of {name: text, amount: number or null}

A record that occurs in more than one place is described where it occurs first and named elsewhere; that also ends
recursion. A tenth of the tokens of the schema itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from programs.json_schema import Schema, resolved

_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def outline(schema: Schema) -> list[str]:
    """One line per key of a record, keys of records inside it dotted.

    Args:
        schema: what `programs.json_schema.asked_for` gave, for an object with properties.

    >>> outline({"type": "object", "properties": {"unit": {"enum": ["g", "mg"], "description": "of the mass"}}})
    ['unit: "g" | "mg" (of the mass)']
    """
    return list(_Outline(schema).lines(resolved(schema, schema), ""))


class _Outline:
    def __init__(self, root: Schema) -> None:
        self._root = root
        uses = Counter(_references(root))
        self._repeated = {reference for reference, number in uses.items() if number > 1}
        self._shown: set[str] = set()

    def lines(self, record: Schema, prefix: str) -> Iterator[str]:
        for name, part in record["properties"].items():
            key = f"{prefix}{name}"
            inner, is_nullable = self._inner_record(part)
            if inner is None:
                yield f"{key}: {self._phrase(part)}{self._description(part)}"
                continue
            description = self._description(part) or self._description(inner)
            if is_nullable or description:
                yield f"{key}: record{' or null' if is_nullable else ''}{description}"
            yield from self.lines(inner, f"{key}.")

    def _inner_record(self, part: Any) -> tuple[Schema | None, bool]:
        """The record whose keys get lines of their own, and whether null may stand for it."""
        choices = part.get("anyOf", ()) if isinstance(part, dict) else ()
        real = [choice for choice in choices if choice != {"type": "null"}]
        is_nullable = len(real) == 1 and len(choices) == 2
        inner = real[0] if is_nullable else part
        if not isinstance(inner, dict) or inner.get("$ref") in self._repeated:
            return None, False
        inner = resolved(inner, self._root)
        return (inner if inner.get("properties") else None), is_nullable

    def _description(self, part: Any) -> str:
        if not isinstance(part, dict):
            return ""
        text = " ".join(str(resolved(part, self._root).get("description", "")).split())
        return f" ({text})" if text else ""

    def _phrase(self, part: Any) -> str:
        if not isinstance(part, dict):
            return "anything"
        reference = part.get("$ref")
        target = resolved(part, self._root)
        if target.get("properties"):
            return self._record(reference, target)
        if "const" in target or "enum" in target:
            return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in _choices(target))
        for key in ("anyOf", "oneOf", "allOf"):
            if key in target:
                return _alternatives([self._phrase(choice) for choice in target[key]])
        declared = target.get("type")
        types = declared if isinstance(declared, list) else [declared]
        return _alternatives([self._of_type(name, target) for name in types])

    def _of_type(self, name: str | None, part: Schema) -> str:
        if name == "array":
            return f"list of {self._phrase(part['items'])}" if isinstance(part.get("items"), dict) else "list"
        if name == "object":
            return f"map from names to {self._phrase(part.get('additionalProperties'))}"
        if name is None:
            return "anything"
        notes = [part["format"]] if name == "string" and "format" in part else []
        if name in ("integer", "number"):
            notes = [f"{words} {part[bound]}" for bound, words in _BOUNDS.items() if bound in part]
        return f"{_TYPES[name]} {', '.join(notes)}".rstrip()

    def _record(self, reference: str | None, record: Schema) -> str:
        if reference in self._shown:
            return _name(reference, record)
        named = ""
        if reference in self._repeated:
            self._shown.add(str(reference))
            named = f"{_name(reference, record)} "
        keys = [f"{key}: {self._phrase(part)}{self._description(part)}" for key, part in record["properties"].items()]
        return f"{named}{{{', '.join(keys)}}}"


def _name(reference: str | None, record: Schema) -> str:
    return str(record.get("title") or str(reference).rsplit("/", 1)[-1])


def _choices(part: Schema) -> list[Any]:
    return [part["const"]] if "const" in part else part["enum"]


def _alternatives(phrases: list[str]) -> str:
    return " or ".join(dict.fromkeys(sorted(phrases, key=lambda phrase: phrase == "null")))


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for item in part:
            yield from _references(item)
    elif isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for item in part.values():
            yield from _references(item)
