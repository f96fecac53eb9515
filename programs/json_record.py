"""Records described by a JSON Schema: reading them, writing them as demos, and the type for dspy signatures.

Reading changes three things, each without loss: a null where the schema allows absence is absence, a text that
spells the number or boolean that was asked for is that value, and keys nobody asked for are dropped. What does
not validate after that is a `RecordError` with its path.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pydantic
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from programs.json_schema import RecordError, Schema, asked_for, checked_schema, dotted, empty_value, resolved, short

_NUMBER_TYPES = frozenset(("integer", "number"))


def read_record(value: Any, schema: Schema) -> Any:
    """`value` as the record `schema` describes.

    Args:
        value: plain JSON data, for example a parsed answer.
        schema: a checked JSON Schema.

    Returns:
        The record as plain data, keys in the schema's order.

    Raises:
        RecordError: it does not validate.

    >>> schema = {"type": "object", "properties": {"vendor": {"type": "string"}, "total": {"type": "number"}}}
    >>> read_record({"total": "12.5", "vendor": None, "mood": "good"}, schema)
    {'total': 12.5}
    """
    validator = Draft202012Validator(schema)
    record = fitted(value, schema)
    error = best_match(validator.iter_errors(record))
    if error is not None:
        raise RecordError(dotted(error.absolute_path), short(error.message))
    return record


def fitted(value: Any, schema: Schema) -> Any:
    """`read_record` without the validation: what does not fit stays as it is."""
    return _fit(value, schema, Draft202012Validator(schema))


def _fit(value: Any, schema: Any, validator: Any) -> Any:
    if not isinstance(schema, dict):
        return value
    schema = resolved(schema, validator.schema)
    for part in schema.get("allOf", ()):
        value = _fit(value, part, validator)
    for choice in ("anyOf", "oneOf"):
        value = _fit_choice(value, schema.get(choice, ()), validator)
    if isinstance(value, dict) and "properties" in schema:
        return _fit_object(value, schema, validator)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_fit(item, schema["items"], validator) for item in value]
    return _fit_text(value, schema) if isinstance(value, str) else value


def _fit_choice(value: Any, choices: Any, validator: Any) -> Any:
    """The value as the first alternative it fits; unchanged when one takes it as it is, or when none does."""
    for choice in choices:
        candidate = _fit(value, choice, validator)
        if validator.evolve(schema=choice).is_valid(candidate):
            return candidate
    return value


def _fit_object(value: Mapping[str, Any], schema: Schema, validator: Any) -> dict[str, Any]:
    properties, required = schema["properties"], schema.get("required", ())
    fitted = {}
    for name, part in properties.items():
        is_absence = name in value and value[name] is None and name not in required
        if name not in value or (is_absence and not validator.evolve(schema=part).is_valid(None)):
            continue
        fitted[name] = _fit(value[name], part, validator)
    more = schema.get("additionalProperties")
    if more is None and "patternProperties" not in schema and "anyOf" not in schema and "allOf" not in schema:
        return fitted
    return fitted | {name: _fit(item, more, validator) for name, item in value.items() if name not in properties}


def _fit_text(text: str, schema: Schema) -> Any:
    declared = schema.get("type")
    types = {declared} if isinstance(declared, str) else set(declared or ())
    if not types or "string" in types:
        return text
    try:
        spelled = json.loads(text)
    except ValueError:
        return text
    is_boolean = isinstance(spelled, bool)
    if is_boolean and "boolean" in types:
        return spelled
    is_number = isinstance(spelled, int | float) and not is_boolean and spelled - spelled == 0  # neither NaN nor inf
    return spelled if is_number and types & _NUMBER_TYPES else text


def arranged(value: Any, schema: Schema) -> Any:
    """A record as a model is asked to write it: every declared key, in order, absent ones empty.

    Args:
        value: plain JSON data.
        schema: what `programs.json_schema.asked_for` gave.

    >>> schema = asked_for({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}}})
    >>> arranged({}, schema)
    {'a': None, 'b': []}
    """
    return _arrange(value, schema, Draft202012Validator(schema))


def _arrange(value: Any, schema: Any, validator: Any) -> Any:
    if not isinstance(schema, dict) or not isinstance(value, dict | list):
        return value
    schema = resolved(schema, validator.schema)
    for choice in [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        if validator.evolve(schema=choice).is_valid(value):
            return _arrange(value, choice, validator)
    if isinstance(value, list):
        return [_arrange(item, schema.get("items"), validator) for item in value]
    properties = schema.get("properties", {})
    ordered = {}
    for name, part in properties.items():
        if name in value:
            ordered[name] = _arrange(value[name], part, validator)
        elif name not in schema.get("required", ()):
            ordered[name] = _absent(part, validator)
    return ordered | {name: item for name, item in value.items() if name not in properties}


def _absent(part: Schema, validator: Any) -> Any:
    """What an absent key reads like: its default (a pydantic class writes that too), null, or an empty list or map."""
    part = resolved(part, validator.schema)
    if "default" in part:
        return copy.deepcopy(part["default"])
    return None if validator.evolve(schema=part).is_valid(None) else empty_value(part, validator.schema)


class JsonRecord:
    """Base of the types `record_type` makes; usable as the annotation of a dspy output field.

    Prompts and structured output see the class name and `asked`; parsing goes through `read`.
    """

    schema: ClassVar[Schema]
    """The JSON Schema as its author wrote it."""
    asked: ClassVar[Schema]
    """What a model is asked for: `asked_for(schema)`."""
    convert: ClassVar[Callable[[Any], Any] | None]
    """Makes the program's value of a plain record that validates; None leaves it plain."""

    @classmethod
    def read(cls, value: Any) -> Any:
        """The program's value for plain JSON data (or for a value this type made before).

        Raises:
            RecordError: it does not validate.
        """
        if isinstance(value, pydantic.BaseModel):
            value = value.model_dump(mode="json")
        record = read_record(value, cls.schema)
        return record if cls.convert is None else cls.convert(record)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls.read)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        # dspy changes the schema it gets in place, hence the copy.
        body = copy.deepcopy(cls.asked)
        definitions = body.pop("$defs", {})
        if not definitions:
            return body
        # Definitions must live where pydantic keeps its own, or a schema around this one could not be made.
        marks = {name: f"{name}:{cls.__name__}" for name in definitions}
        places: list[CoreSchema] = [core_schema.any_schema(ref=mark) for mark in marks.values()]
        first = core_schema.definition_reference_schema(next(iter(marks.values())))
        handler(core_schema.definitions_schema(first, places))
        references = {
            f"#/$defs/{name}": handler(core_schema.definition_reference_schema(mark)) for name, mark in marks.items()
        }
        for name, part in definitions.items():
            target = handler.resolve_ref_schema(dict(references[f"#/$defs/{name}"]))
            target.update(_with_references(part, references))
        return _with_references(body, references)


def _with_references(part: Any, references: Mapping[str, Schema]) -> Any:
    if isinstance(part, list):
        return [_with_references(item, references) for item in part]
    if not isinstance(part, dict):
        return part
    changed = {key: _with_references(item, references) for key, item in part.items()}
    reference = changed.get("$ref")
    return {**changed, **references[reference]} if isinstance(reference, str) and reference in references else changed


def record_type(
    schema: Mapping[str, Any], where: str = "the schema", convert: Callable[[Any], Any] | None = None
) -> type[JsonRecord]:
    """An output type whose records `schema` describes.

    Two types made of equal schemas give equal prompts and equal requests, whatever `convert` does: that is how
    a program tuned with a pydantic class is used later without it.

    Args:
        schema: JSON Schema, Draft 2020-12; its title names the type.
        where: what to call it in an error.
        convert: makes the program's value of a validated plain record.

    Raises:
        ValueError: not a valid schema; see `checked_schema`.

    >>> Total = record_type({"title": "Total", "type": "object", "properties": {"total": {"type": "number"}}})
    >>> Total.__name__, pydantic.TypeAdapter(Total).validate_python({"total": "3"})
    ('Total', {'total': 3})
    """
    checked = checked_schema(schema, where)
    name = str(checked.get("title") or "Record")
    members = {
        "schema": checked,
        "asked": asked_for(checked),
        "convert": None if convert is None else staticmethod(convert),
        "__doc__": None,
    }
    return type(name, (JsonRecord,), members)


def model_type(model: type[pydantic.BaseModel]) -> type[JsonRecord]:
    """The same for a pydantic class: requests follow its JSON Schema, values are its instances.

    Field names are used throughout, unless the class itself writes its aliases (`serialize_by_alias`); records
    may use either.

    Raises:
        ValueError: pydantic cannot express the class as a JSON Schema; the sentence names the class.
    """
    by_alias = bool(model.model_config.get("serialize_by_alias", False))
    try:
        schema = model.model_json_schema(by_alias=by_alias)
    except (pydantic.PydanticUserError, pydantic.errors.PydanticInvalidForJsonSchema) as error:
        raise ValueError(f"{model.__name__} has no JSON Schema: {error}") from error

    def convert(record: Any) -> Any:
        try:
            return model.model_validate_json(json.dumps(record), by_alias=True, by_name=True)
        except pydantic.ValidationError as error:
            raise from_validation_error(error) from error

    return record_type(schema, model.__name__, convert)


def plain_data(value: Any, *, by_alias: bool | None = None, fallback: Callable[[Any], Any] | None = None) -> Any:
    """Any value as plain JSON data; infinity and NaN stay what they are, so that they can be refused.

    Args:
        value: models, enums, dates and collections of them.
        by_alias: write pydantic fields under their aliases; None leaves it to each class.
        fallback: for what pydantic does not know, which otherwise raises PydanticSerializationError.
    """
    return _PLAIN.dump_python(value, mode="json", by_alias=by_alias, fallback=fallback)


_PLAIN: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(Any, config=pydantic.ConfigDict(ser_json_inf_nan="constants"))


def from_validation_error(error: pydantic.ValidationError) -> RecordError:
    """The first error pydantic found, as a `RecordError`."""
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, RecordError):
        return RecordError(
            dotted(first["loc"]) + ("." if first["loc"] and cause.path else "") + cause.path, cause.message
        )
    return RecordError(dotted(first["loc"]), short(first["msg"]))
