"""Operations on JSON Schemas: checking one, and deriving what a model is asked for. Plain data in and out.

A record's schema is kept as its author wrote it. What a model is asked for is derived from it: every reference
local and resolvable wherever the schema is nested, optional values nullable (so that a model which must write
every key can say "not reported"), objects closed. How records are read back with the same schema is the business
of `programs.json_record`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

Schema = dict[str, Any]

_SAME_VALUE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else"))
_ONE_SCHEMA = frozenset(
    ("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then")
) | {"unevaluatedItems", "unevaluatedProperties"}
_SCHEMA_LIST = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_SCHEMA_MAP = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))
_IDENTITY = frozenset(("$schema", "$id", "$comment", "$anchor", "$vocabulary"))
_ANNOTATIONS = frozenset(("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"))
_LONGEST_MESSAGE = 300
_DEEPEST = 120
"""Levels of lists and mappings; an object in an object is two. What checks a schema gives up not far beyond."""
_MOST_PARTS = 1_000_000
"""Values on one level: more are a structure that holds itself."""


class RecordError(ValueError):
    """A record does not fit its schema.

    Attributes:
        path: where, dotted: `steps[0].conditions.temperature`; empty for the record as a whole.
        message: what is wrong there.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def dotted(path: Iterable[str | int]) -> str:
    """A path of keys and positions as people write it.

    >>> dotted(["steps", 0, "conditions", "temperature"])
    'steps[0].conditions.temperature'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def checked_schema(schema: Mapping[str, Any], where: str) -> Schema:
    """A deep copy of `schema`, checked against Draft 2020-12 and for references that lead nowhere.

    Args:
        schema: the JSON Schema, as JSON data.
        where: what to call it in an error, for example the file's name.

    Raises:
        ValueError: not JSON data, not a valid schema, or a reference that is remote, dangling or circular;
            the sentence names the place inside the schema.

    >>> checked_schema({"type": "objekt"}, "invoice.json")
    Traceback (most recent call last):
    ValueError: invoice.json is not a valid JSON Schema at type: 'objekt' is not valid under any of the given schemas
    """
    if _is_deeper(schema, _DEEPEST):
        raise ValueError(f"{where} is nested more than {_DEEPEST} levels deep, which no model can be asked for")
    try:
        copy = json.loads(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} is not a JSON Schema: {error}") from error
    if not isinstance(copy, dict):
        raise ValueError(f"{where} is not a JSON Schema: an object is expected, got {type(copy).__name__}")
    try:
        Draft202012Validator.check_schema(copy)
    except SchemaError as error:
        place = dotted(error.absolute_path) or "the top"
        raise ValueError(f"{where} is not a valid JSON Schema at {place}: {short(error.message)}") from error
    _check_references(copy, copy, where, ())
    return copy


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and mappings stand in each other more than `levels` deep; asked level by level, not recursively."""
    layer = [value]
    for _ in range(levels):
        layer = [part for each in layer for part in _parts(each)]
        if not layer:
            return False
        if len(layer) > _MOST_PARTS:
            return True
    return any(isinstance(part, Mapping | list) for part in layer)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def short(message: str) -> str:
    """A message cut to a length people read: a validator quotes the whole value it refuses, then says why."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    reason = _LONGEST_MESSAGE // 3
    return f"{message[: _LONGEST_MESSAGE - reason]}…{message[-reason:]}"


def _check_references(part: Schema, root: Schema, where: str, path: tuple[str | int, ...]) -> None:
    if path and "$id" in part:
        raise ValueError(f"{where} has an $id at {dotted(path)}; only the schema as a whole may have one")
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if keyword in part:
            raise ValueError(f"{where} uses {keyword} at {dotted(path) or 'the top'}; write the reference as $ref")
    try:
        _follow(part, root, ())
    except ValueError as error:
        raise ValueError(f"{where} has a reference that cannot be followed at {dotted(path)}: {error}") from error
    for step, child in _subschemas(part):
        _check_references(child, root, where, (*path, *step))


def _follow(part: Any, root: Schema, followed: tuple[str, ...]) -> None:
    """Follow what applies to the same value as `part`; a reference met twice would apply without end."""
    if not isinstance(part, dict):
        return
    if "$ref" in part:
        if part["$ref"] in followed:
            raise ValueError(f"{part['$ref']!r} only leads to itself")
        _follow(_pointed_at(part["$ref"], root), root, (*followed, part["$ref"]))
    for key in _SAME_VALUE & part.keys():
        for child in part[key] if key in _SCHEMA_LIST else [part[key]]:
            _follow(child, root, followed)


def _subschemas(schema: Schema) -> list[tuple[tuple[str | int, ...], Schema]]:
    """Every schema directly inside `schema`, with the path to it. Boolean schemas are left out."""
    found: list[tuple[tuple[str | int, ...], Any]] = []
    for key, part in schema.items():
        if key in _ONE_SCHEMA:
            found.append(((key,), part))
        elif key in _SCHEMA_LIST:
            found += [((key, index), child) for index, child in enumerate(part)]
        elif key in _SCHEMA_MAP:
            found += [((key, name), child) for name, child in part.items()]
    return [(step, child) for step, child in found if isinstance(child, dict)]


def _map_subschemas(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A copy of `schema` with every schema directly inside it changed. Boolean schemas stay."""

    def apply(part: Any) -> Any:
        return change(part) if isinstance(part, dict) else part

    changed: Schema = {}
    for key, part in schema.items():
        if key in _ONE_SCHEMA:
            changed[key] = apply(part)
        elif key in _SCHEMA_LIST:
            changed[key] = [apply(child) for child in part]
        elif key in _SCHEMA_MAP:
            changed[key] = {name: apply(child) for name, child in part.items()}
        else:
            changed[key] = part
    return changed


def _pointed_at(reference: str, root: Schema) -> Any:
    if not reference.startswith("#"):
        raise ValueError(f"{reference!r} is outside this schema; copy it into $defs")
    target: Any = root
    for raw in reference[1:].split("/")[1:]:
        key = unquote(raw).replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and key.isdigit() and int(key) < len(target):
            target = target[int(key)]
        elif isinstance(target, dict) and key in target:
            target = target[key]
        else:
            raise ValueError(f"there is no {reference!r}")
    if not isinstance(target, dict | bool) or (len(reference) > 1 and reference[1] != "/"):
        raise ValueError(f"{reference!r} is not a schema of this document")
    return target


def resolved(schema: Schema, root: Schema) -> Schema:
    """`schema` with its own `$ref` followed (not those inside it); keywords beside the reference win."""
    while "$ref" in schema:
        target = _pointed_at(schema["$ref"], root)
        beside = {key: part for key, part in schema.items() if key != "$ref"}
        schema = {**(target if isinstance(target, dict) else {}), **beside}
    return schema


def asked_for(schema: Mapping[str, Any]) -> Schema:
    """The schema a model is asked to fill: the same records, in a form that can be nested and sent.

    References point to `#/$defs/NAME` and `$defs` holds exactly what is referenced; identifiers of the
    document are dropped; a property that may be left out may also be null (lists and maps: empty), because structured
    output makes a model write every key. `fit` turns such a null back into absence.

    >>> asked_for({"type": "object", "properties": {"total": {"type": "number", "title": "Total"}}})["properties"]
    {'total': {'title': 'Total', 'anyOf': [{'type': 'number'}, {'type': 'null'}]}}
    """
    lifted = _lift_references(dict(schema))
    validator = Draft202012Validator(lifted)
    return _nullable_optionals(lifted, validator)


def _lift_references(root: Schema) -> Schema:
    names: dict[str, str] = {}
    pending: list[str] = []

    def name_of(reference: str) -> str:
        if reference not in names:
            names[reference] = _definition_name(reference, root, set(names.values()))
            pending.append(reference)
        return names[reference]

    def rewrite(part: Schema) -> Schema:
        kept = {key: value for key, value in part.items() if key not in _IDENTITY | {"$defs", "definitions"}}
        changed = _map_subschemas(kept, rewrite)
        if "$ref" in kept:
            changed["$ref"] = f"#/$defs/{name_of(kept['$ref'])}"
        return changed

    body = rewrite(root)
    definitions: Schema = {}
    while pending:
        reference = pending.pop(0)
        target = _pointed_at(reference, root)
        definitions[names[reference]] = rewrite(target) if isinstance(target, dict) else {} if target else {"not": {}}
    if not definitions:
        return body
    return _bare_recursive_references({**body, "$defs": definitions})


def _definition_name(reference: str, root: Schema, taken: set[str]) -> str:
    last = unquote(reference.rsplit("/", 1)[-1]) if "/" in reference else str(root.get("title", "Record"))
    wanted = "".join(char if char.isascii() and char.isalnum() else "_" for char in last) or "Part"
    free = (f"{wanted}_{number}" for number in itertools.count(2))
    return wanted if wanted not in taken else next(name for name in free if name not in taken)


def _bare_recursive_references(schema: Schema) -> Schema:
    """Without keywords beside references to recursive definitions: who inlines those would never end."""
    definitions = schema["$defs"]
    uses = {name: _referenced(part) for name, part in definitions.items()}

    def reaches_itself(name: str) -> bool:
        seen: set[str] = set()
        pending = set(uses[name])
        while pending:
            current = pending.pop()
            seen.add(current)
            pending |= uses[current] - seen
        return name in seen

    recursive = {f"#/$defs/{name}" for name in definitions if reaches_itself(name)}

    def strip(part: Schema) -> Schema:
        return {"$ref": part["$ref"]} if part.get("$ref") in recursive else _map_subschemas(part, strip)

    return {**strip(schema), "$defs": {name: strip(part) for name, part in definitions.items()}}


def _referenced(schema: Schema) -> set[str]:
    found = {schema["$ref"].rsplit("/", 1)[-1]} if "$ref" in schema else set()
    return found.union(*(_referenced(child) for _, child in _subschemas(schema)))


def _nullable_optionals(schema: Schema, validator: Any) -> Schema:
    changed = _map_subschemas(schema, lambda part: _nullable_optionals(part, validator))
    if "properties" not in changed:
        return changed
    required = schema.get("required", ())
    changed["properties"] = {
        name: part
        if name in required or not isinstance(part, dict) or _may_be_empty(schema["properties"][name], validator)
        else _nullable(part)
        for name, part in changed["properties"].items()
    }
    return changed


def _may_be_empty(part: Schema, validator: Any) -> bool:
    return empty_value(part, validator.schema) is not None or validator.evolve(schema=part).is_valid(None)


def empty_value(part: Schema, root: Schema) -> list[Any] | dict[str, Any] | None:
    """How a list or a map from free keys says that there is nothing; None where only null can say so."""
    part = resolved(part, root)
    if part.get("type") == "array":
        return []
    return {} if part.get("type") == "object" and not part.get("properties") else None


def _nullable(part: Schema) -> Schema:
    outside = {key: value for key, value in part.items() if key in _ANNOTATIONS}
    inside = {key: value for key, value in part.items() if key not in _ANNOTATIONS}
    return {**outside, "anyOf": [inside, {"type": "null"}]}


def closed(schema: Schema) -> tuple[Schema, bool]:
    """The schema to decode under, and whether it is strict (every object lists all its keys).

    Args:
        schema: what `asked_for` gave.

    Every object with declared properties requires all of them, in order, and no others. A map from free keys
    (`dict[str, float]`) stays open; the schema is then not strict.
    """
    definitions = schema.get("$defs", {})
    body = {**resolved(schema, schema), "$defs": definitions} if "$ref" in schema else schema
    return _closed(body), not has_open_object(body)


def _closed(part: Schema) -> Schema:
    if "$ref" in part:
        return {"$ref": part["$ref"]}
    changed = _map_subschemas({key: value for key, value in part.items() if key != "default"}, _closed)
    if changed.get("properties") and not isinstance(changed.get("additionalProperties"), dict):
        changed["required"] = list(changed["properties"])
        changed["additionalProperties"] = False
    return changed


def has_open_object(schema: Schema) -> bool:
    """Whether some object in the schema takes free keys, which strict structured output cannot express.

    >>> has_open_object({"type": "object", "additionalProperties": {"type": "number"}})
    True
    """
    no_keys = schema.get("type") == "object" and not schema.get("properties")
    is_map = no_keys and schema.get("additionalProperties") is not False
    is_open = is_map or isinstance(schema.get("additionalProperties"), dict) or "patternProperties" in schema
    return is_open or any(has_open_object(child) for _, child in _subschemas(schema))
