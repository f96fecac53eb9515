"""What a program promises to produce, taken from the program itself.

A program is any dspy module that names its result with a class attribute:

    class MyProgram(dspy.Module):
        output_field = "record"

Everything else is read off it. The output's type is that of the predictor which produces the field (of the last
one when several do); a program that assembles its result in Python declares `output_type` as well. The inputs
are the parameters of `forward` that have no default, or what `input_fields` declares; when `forward` takes only
`**kwargs`, they are the input fields of the first predictor.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import json
from collections.abc import Mapping
from typing import Any

import dspy
import pydantic
from pydantic_core import PydanticSerializationError, to_jsonable_python

from programs.json_record import JsonRecord, from_validation_error, plain_data, record_type
from programs.json_schema import RecordError

__all__ = ["OutputContract", "ProgramDeclarationError", "RecordError", "output_contract", "predictors_of"]


class ProgramDeclarationError(ValueError):
    """A program does not say what it produces; the sentence names what is missing."""


@dataclasses.dataclass(frozen=True)
class OutputContract:
    """The result of a program: where it is, what it needs, what it looks like.

    Attributes:
        field: the output field that holds the result.
        inputs: the names the program is called with.
        schema: JSON Schema of the result, verbatim.
        annotation: the result's type; made from `schema` when it is left out.
    """

    field: str
    inputs: tuple[str, ...]
    schema: Mapping[str, Any]
    annotation: Any = dataclasses.field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.annotation is None:
            object.__setattr__(self, "annotation", record_type(self.schema, f"the schema of {self.field}"))

    def validate(self, record: Any) -> Any:
        """The value the program would output for a record.

        Args:
            record: plain JSON data.

        Raises:
            RecordError: it does not fit; says where and why.

        >>> contract = OutputContract("n", ("text",), {"type": "object", "properties": {"n": {"type": "integer"}}})
        >>> contract.validate({"n": 1})
        {'n': 1}
        >>> contract.validate({"n": "one"})
        Traceback (most recent call last):
        programs.json_schema.RecordError: n: 'one' is not of type 'integer'
        """
        try:
            text = json.dumps(record, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise RecordError("", f"this is not JSON data: {error}") from error
        try:
            return pydantic.TypeAdapter(self.annotation).validate_json(text)
        except pydantic.ValidationError as error:
            raise from_validation_error(error) from error

    def result(self, prediction: Any) -> Any:
        """The result in what the program returned.

        Raises:
            RecordError: it returned no dspy.Prediction, or one without the output field.

        >>> OutputContract("items", ("text",), {"type": "array"}).result(dspy.Prediction(items=[1]))
        [1]
        """
        if not isinstance(prediction, dspy.Prediction):
            raise RecordError("", f"the program returned {type(prediction).__name__}, not a dspy.Prediction")
        if self.field not in prediction:
            raise RecordError("", f"the program's prediction has no {self.field!r}, its declared output field")
        return prediction[self.field]  # as an attribute, a field called `items` or `get` would be a method

    def plain(self, value: Any) -> Any:
        """A value the program put out, as plain JSON data that `validate` reads back.

        Raises:
            RecordError: JSON cannot hold it (an open file, NaN, a value pydantic does not know).

        >>> OutputContract("n", ("text",), {"type": "number"}).plain(0.5)
        0.5
        """
        by_alias = None if is_json_record(self.annotation) else True
        try:
            plain = plain_data(value, by_alias=by_alias)
            json.dumps(plain, allow_nan=False, ensure_ascii=False).encode()  # half a character has no bytes
        except (PydanticSerializationError, TypeError, ValueError) as error:
            raise RecordError("", f"JSON cannot hold this value: {error}") from error
        return plain


def is_json_record(annotation: Any) -> bool:
    """Whether an annotation is a type that `record_type` made."""
    return isinstance(annotation, type) and issubclass(annotation, JsonRecord)


def output_contract(program: dspy.Module) -> OutputContract:
    """The contract of any dspy module that declares `output_field`.

    Raises:
        ProgramDeclarationError: `output_field` is missing, nothing produces it, its type has no JSON Schema, or
            no input can be found.
    """
    name = type(program).__name__
    produced = predictors_of(program)
    outputs = list(dict.fromkeys(output for _, predictor in produced for output in predictor.signature.output_fields))
    field_name = getattr(program, "output_field", None)
    if not isinstance(field_name, str) or not field_name:
        raise ProgramDeclarationError(
            f"{name} does not say which output is its result: add the class attribute output_field = "
            f"{(outputs[-1] if outputs else 'record')!r}"
        )
    annotation = getattr(program, "output_type", None)
    if annotation is None:
        annotation = _annotation(field_name, produced, outputs, name)
    return OutputContract(
        field_name, _inputs(program, produced, name), _schema(annotation, field_name, name), annotation
    )


def predictors_of(program: dspy.Module) -> list[tuple[str, Any]]:
    """Every predictor of a program, named as dspy's `named_parameters` names it.

    Unlike there, predictors inside compiled (frozen) parts are included. What optimizers hang on a program besides
    (`candidate_programs`, `trial_logs`) is no part of it: only modules that are attributes, or items of a list,
    tuple or dict that is one, are followed.
    """
    found: list[tuple[str, Any]] = []
    seen: set[int] = set()

    def visit(name: str, part: Any) -> None:
        if not isinstance(part, dspy.Module) or id(part) in seen:
            return
        seen.add(id(part))
        if isinstance(part, dspy.Predict):
            found.append((name or "self", part))
            return
        for attribute, value in vars(part).items():
            path = f"{name}.{attribute}" if name else attribute
            visit(path, value)
            if isinstance(value, list | tuple):
                for index, item in enumerate(value):
                    visit(f"{path}[{index}]", item)
            elif isinstance(value, dict):
                for key, item in value.items():
                    visit(f"{path}['{key}']", item)

    visit("", program)
    return found


def _annotation(field_name: str, produced: list[tuple[str, Any]], outputs: list[str], name: str) -> Any:
    for _, predictor in reversed(produced):
        if field_name in predictor.signature.output_fields:
            return predictor.signature.output_fields[field_name].annotation
    close = difflib.get_close_matches(field_name, outputs, n=1)
    known = f"they produce {', '.join(outputs)}" if outputs else "it has none"
    hint = f"did you mean {close[0]!r}?" if close else "or declare output_type if forward assembles the result"
    raise ProgramDeclarationError(f"{name}: no predictor produces its output_field {field_name!r}, {known}; {hint}")


def _schema(annotation: Any, field_name: str, name: str) -> Mapping[str, Any]:
    if is_json_record(annotation):
        return annotation.schema
    try:
        return to_jsonable_python(pydantic.TypeAdapter(annotation).json_schema())
    except (pydantic.PydanticUserError, pydantic.errors.PydanticInvalidForJsonSchema) as error:
        raise ProgramDeclarationError(f"{name}: the type of {field_name!r} has no JSON Schema: {error}") from error


def forward_parameters(program: dspy.Module) -> list[inspect.Parameter]:
    """The parameters of a program's `forward` that can be given by name."""
    if not hasattr(type(program), "forward"):
        return []
    # Asking the module itself for `forward` makes dspy warn about calling it directly.
    parameters = inspect.signature(object.__getattribute__(program, "forward")).parameters.values()
    return [part for part in parameters if part.kind in (part.POSITIONAL_OR_KEYWORD, part.KEYWORD_ONLY)]


def _inputs(program: dspy.Module, produced: list[tuple[str, Any]], name: str) -> tuple[str, ...]:
    declared = getattr(program, "input_fields", None)
    if declared is not None:
        return tuple(declared)
    named = forward_parameters(program)
    needed = [part.name for part in named if part.default is part.empty] or [part.name for part in named]
    if needed:
        return tuple(needed)
    if produced:
        return tuple(produced[0][1].signature.input_fields)
    raise ProgramDeclarationError(f"{name} takes no input: give forward a parameter such as `text`")
