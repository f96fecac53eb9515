"""Which evaluator a JSON Schema suggests for a field: choices exactly, numbers as numbers, free text by likeness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from metrics.record.paths import EVERY, Pattern

_BY_TYPE = {"string": "levenshtein", "number": "numeric", "integer": "numeric", "boolean": "exact"}


def suggested(schema: Mapping[str, Any], pattern: Pattern) -> str | None:
    """The alias of the evaluator for the place `pattern`, or None where the schema leaves it open.

    A choice (enum, const), true/false and text of a declared format or pattern (dates, codes) are compared by
    `exact`, numbers by `numeric`, other text by `levenshtein`. Null beside one of them changes nothing; different
    kinds beside each other leave it open.

    >>> schema = {"properties": {"unit": {"enum": ["K", "C"]}, "notes": {"type": ["string", "null"]}}}
    >>> suggested(schema, ("unit",)), suggested(schema, ("notes",)), suggested(schema, ("other",))
    ('exact', 'levenshtein', None)
    """
    places = list(_alternatives(schema, schema, frozenset()))
    for part in pattern:
        places = [
            alternative
            for place in places
            for child in _children(place, part)
            for alternative in _alternatives(child, schema, frozenset())
        ]
    aliases = {alias for place in places for alias in _aliases(place)}
    return aliases.pop() if len(aliases) == 1 else None


def _alternatives(place: Any, root: Mapping[str, Any], seen: frozenset[str]) -> Iterator[Mapping[str, Any]]:
    """`place` with its references followed and its unions taken apart."""
    if not isinstance(place, Mapping):
        return
    yield place
    reference = place.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        yield from _alternatives(_resolved(reference, root), root, seen | {reference})
    for union in ("anyOf", "oneOf", "allOf"):
        for branch in place.get(union, ()):
            yield from _alternatives(branch, root, seen)


def _resolved(reference: str, root: Mapping[str, Any]) -> Any:
    if not reference.startswith("#"):
        return None
    place: Any = root
    for name in reference.removeprefix("#").split("/")[1:]:
        place = place.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place


def _children(place: Mapping[str, Any], part: object) -> Iterator[Any]:
    if part is EVERY:
        yield place.get("items")
        yield from place.get("prefixItems", ())
    elif part in place.get("properties", {}):
        yield place["properties"][part]
    else:
        yield place.get("additionalProperties")


def _aliases(place: Mapping[str, Any]) -> Iterator[str]:
    if "enum" in place or "const" in place:
        yield "exact"
        return
    types = place.get("type", ())
    for name in [types] if isinstance(types, str) else types:
        if name == "string" and ("format" in place or "pattern" in place):
            yield "exact"
        elif name in _BY_TYPE:
            yield _BY_TYPE[name]
