"""Fields of expected records that the schema of the record does not know: a misspelt name costs every row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.data.cells import branches
from harness.errors import nearest

_OPEN = ("additionalProperties", "patternProperties", "unevaluatedProperties")
"""Keywords by which a schema takes fields it does not name."""


def unknown_fields(records: Iterable[Any], schema: Mapping[str, Any]) -> dict[str, str]:
    """Paths of fields, at any depth, that the schema has no place for, each with the nearest field there.

    Args:
        records: expected records as plain JSON data.
        schema: JSON Schema of the record.

    >>> line = {"type": "object", "properties": {"amount": {"type": "number"}, "name": {"type": "string"}}}
    >>> schema = {"properties": {"lines": {"type": "array", "items": line}}}
    >>> unknown_fields([{"lines": [{"amont": 1, "name": "a"}]}], schema)
    {'lines[*].amont': "did you mean 'amount'?"}
    """
    found: dict[str, str] = {}
    for record in records:
        found.update(_unknown(record, [schema], schema, ""))
    return dict(sorted(found.items()))


def _unknown(value: Any, schemas: Iterable[Any], root: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """The unknown fields of one value, which any of the schemas may describe."""
    possible = [branch for schema in schemas for branch in branches(schema, root)]
    if isinstance(value, list):
        items = [branch["items"] for branch in possible if isinstance(branch.get("items"), Mapping)]
        for item in value if items else ():
            yield from _unknown(item, items, root, f"{path}[*]")
    if not isinstance(value, Mapping):
        return
    known: dict[str, list[Any]] = {}
    for branch in possible:
        for name, part in branch.get("properties", {}).items():
            known.setdefault(name, []).append(part)
    is_open = any(branch.get(keyword) for branch in possible for keyword in _OPEN)
    for name, item in value.items() if known else ():
        below = f"{path}.{name}" if path else name
        if name in known:
            yield from _unknown(item, known[name], root, below)
        elif not is_open:
            yield below, nearest(name, known)
