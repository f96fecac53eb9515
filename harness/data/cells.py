"""What the text in a CSV cell means: a CSV has no types, the record to reach does.

Two steps. Without a schema, `read_columns` decides per column, so that one column never holds numbers in some rows
and text in others: a column is read as JSON when every cell of it is JSON whose number would be written just so
again. `007`, `1e5` and `12.50` would not be, so their columns stay text. With the program's schema, `fit` then turns
text into the declared numbers and booleans, and numbers back into the declared text; nothing is lost on the way.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LONGEST = 4000
"""Digits of a whole number; Python refuses to read more than 4,300."""


def read_columns(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[dict[str, Any]]:
    """The cells of `rows` with the columns `names` given their types, column by column.

    A cell that is a JSON object or list is read as such whatever the rest of its column holds.

    >>> read_columns([{"n": "5", "id": "007"}, {"n": "2.5", "id": "12"}], ["n", "id"])
    [{'n': 5, 'id': '007'}, {'n': 2.5, 'id': '12'}]
    """
    typed: list[dict[str, Any]] = [dict(row) for row in rows]
    for name in names:
        values = {number: _read(row[name]) for number, row in enumerate(rows) if name in row}
        scalars = [value for value in values.values() if not isinstance(value, (dict, list))]
        uniform = not any(value is _TEXT for value in scalars)
        for number, value in values.items():
            if isinstance(value, (dict, list)) or uniform:
                typed[number][name] = value
    return typed


_TEXT = object()
"""A cell that is nothing but text."""


def _read(cell: str) -> Any:
    text = cell.strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _TEXT
    if isinstance(value, float) and not math.isfinite(value):
        return _TEXT
    if isinstance(value, (int, float)) and json.dumps(value) != text:
        return _TEXT
    return value


def fit(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """A record built from CSV cells with its scalars of the types that a JSON Schema declares.

    Text becomes a number or boolean only where the schema takes no text there, a number becomes text only where it
    takes no number. What does not fit stays as it is, for validation to name.

    Args:
        value: the record, or a part of it while descending.
        schema: the JSON Schema of `value`; `$ref` into the same document, `anyOf` and `oneOf` are followed.
        root: the whole document, for `$ref`; `schema` itself when omitted.

    >>> schema = {"properties": {"total": {"type": "number"}, "number": {"type": "string"}}}
    >>> fit({"total": "12.50", "number": 1001}, schema)
    {'total': 12.5, 'number': '1001'}
    """
    root = schema if root is None else root
    possible = branches(schema, root)
    if isinstance(value, dict):
        declared = {key: part for branch in possible for key, part in branch.get("properties", {}).items()}
        return {key: fit(item, declared[key], root) if key in declared else item for key, item in value.items()}
    if isinstance(value, list):
        items = next((branch["items"] for branch in possible if isinstance(branch.get("items"), Mapping)), None)
        return value if items is None else [fit(item, items, root) for item in value]
    return _fit_scalar(value, {name for branch in possible for name in _types(branch)})


def branches(schema: Any, root: Mapping[str, Any], depth: int = 0) -> list[Mapping[str, Any]]:
    """The schema with references and alternatives opened; alternatives of alternatives end at ten levels.

    >>> root = {"n": {"type": "number"}}
    >>> [part.get("type") for part in branches({"anyOf": [{"$ref": "#/n"}, {"type": "null"}]}, root)]
    [None, 'number', 'null']
    """
    if not isinstance(schema, Mapping) or depth > 10:
        return []
    if "$ref" in schema:
        target: Any = root
        for step in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) and step else target
        return branches(target, root, depth + 1)
    alternatives = [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", [])]
    return [schema, *(branch for option in alternatives for branch in branches(option, root, depth + 1))]


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type")
    names: set[str] = {declared} if isinstance(declared, str) else set(declared or ())
    for choice in [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]:
        names.add("string" if isinstance(choice, str) else "boolean" if isinstance(choice, bool) else "number")
    return names


def _fit_scalar(value: Any, types: set[str]) -> Any:
    if not types:
        return value
    if isinstance(value, str) and "string" not in types:
        return _from_text(value.strip(), types, value)
    if isinstance(value, bool):
        return json.dumps(value) if "string" in types and "boolean" not in types else value
    if isinstance(value, (int, float)) and "string" in types and not types & {"number", "integer"}:
        return json.dumps(value)
    return value


def _from_text(text: str, types: set[str], otherwise: Any) -> Any:
    if "boolean" in types and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not types & {"number", "integer"} or not _NUMBER.fullmatch(text):
        return otherwise
    if len(text) <= _LONGEST and text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    if "number" not in types:
        return int(number) if number.is_integer() else otherwise
    return number if math.isfinite(number) else otherwise
