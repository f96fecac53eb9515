"""The tuned state of a program as plain data: instructions and demos per predictor, with the fields they belong to.

No LM, no key, no endpoint is part of it. A wrapper that holds state of its own (see `StatefulWrapper`) is written
as its class and what its `dump_bundle` gives.
"""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import dspy
import pydantic
from dspy.signatures.signature import make_signature
from pydantic_core import PydanticSerializationError

from harness.errors import UsageError
from harness.foreign import told
from programs.contract import predictors_of
from programs.json_record import plain_data

_WRAPPER = re.compile(r"(harness\.optimizers\.[a-z_]+):([A-Z]\w+)")


@runtime_checkable
class StatefulWrapper(Protocol):
    """A module around a program, made by an optimizer of this package, with state that a bundle must keep.

    Calls: `dump_bundle` at export; at load, the wrapped program is restored first, then `load_bundle` puts the
    wrapper around it. The state is JSON data.
    """

    program: Any

    def dump_bundle(self) -> dict[str, Any]:
        """The wrapper's own state."""
        ...

    @classmethod
    def load_bundle(cls, program: Any, state: Mapping[str, Any]) -> Any:
        """The wrapper again, around `program`."""
        ...


def unwrapped(program: dspy.Module) -> dspy.Module:
    """The program inside a wrapper; the program itself when there is none."""
    return program.program if isinstance(program, StatefulWrapper) else program


def captured_state(program: dspy.Module, *, by_alias: bool) -> dict[str, Any]:
    """What tuning has changed, as plain data.

    Args:
        program: the tuned program, wrapped or not.
        by_alias: write demos' pydantic values with their aliases, as the compact adapter does.

    Raises:
        UsageError: a demo holds a value that JSON cannot.
    """
    state: dict[str, Any] = {
        "predictors": {
            name: _predictor_state(name, predictor, by_alias) for name, predictor in predictors_of(unwrapped(program))
        }
    }
    if isinstance(program, StatefulWrapper):
        kind = type(program)
        state["wrapper"] = {"class": f"{kind.__module__}:{kind.__qualname__}", "state": program.dump_bundle()}
    return state


def _predictor_state(name: str, predictor: Any, by_alias: bool) -> dict[str, Any]:
    signature = predictor.signature
    state: dict[str, Any] = {
        "instructions": signature.instructions,
        "inputs": [_field_state(field, info) for field, info in signature.input_fields.items()],
        "outputs": [_field_state(field, info) for field, info in signature.output_fields.items()],
        "demos": [
            # Only the signature's fields: a demo is a training example, and the rest of it is nobody's business.
            {
                field: _demo_value(demo[field], f"demo {number} of {name}", by_alias)
                for field in signature.fields
                if field in demo
            }
            for number, demo in enumerate(predictor.demos, 1)
        ],
    }
    if predictor.fields:
        state["decisions"] = copy.deepcopy(predictor.fields)
    return state


def _field_state(name: str, info: Any) -> dict[str, Any]:
    return {"name": name, "description": info.json_schema_extra["desc"], "schema": _schema(info.annotation)}


def _schema(annotation: Any) -> Any:
    try:
        return pydantic.TypeAdapter(annotation).json_schema()
    except (pydantic.PydanticUserError, pydantic.errors.PydanticInvalidForJsonSchema):
        return {"python type": getattr(annotation, "__name__", str(annotation))}


def _demo_value(value: Any, where: str, by_alias: bool) -> Any:
    try:
        # fallback=str: so dspy's adapters write what pydantic does not know.
        return plain_data(value, by_alias=by_alias or None, fallback=str)
    except (PydanticSerializationError, ValueError) as error:
        raise UsageError(f"{where} cannot be written as JSON: {error}") from error


def restored(program: dspy.Module, state: Mapping[str, Any], where: str) -> dspy.Module:
    """`program` with the captured state put into it, and the wrapper around it if there was one.

    Args:
        program: an instance of the program the state was captured from; changed in place.
        state: what `captured_state` gave, after a trip through JSON.
        where: the bundle's name, for errors.

    Raises:
        UsageError: the program's predictors or their fields are others; the difference is named.
    """
    predictors = dict(predictors_of(program))
    saved = state["predictors"]
    for name in [*saved, *predictors]:
        if name not in predictors or name not in saved:
            side = "the bundle" if name in saved else type(program).__name__
            raise UsageError(f"{where} belongs to another program: only {side} has a predictor {name!r}")
    for name, predictor in predictors.items():
        _refuse_other_fields(name, predictor, saved[name], where)
    for name, predictor in predictors.items():
        _restore(predictor, saved[name])
    wrapper = state.get("wrapper")
    return program if wrapper is None else _wrapped(program, wrapper, where)


def _restore(predictor: Any, saved: Mapping[str, Any]) -> None:
    fields = copy.deepcopy(predictor.signature.fields)
    for field in [*saved["inputs"], *saved["outputs"]]:
        info = fields[field["name"]]
        info.json_schema_extra = {**info.json_schema_extra, "desc": field["description"]}
    predictor.signature = make_signature(fields, saved["instructions"])
    inputs = [field["name"] for field in saved["inputs"]]
    predictor.demos = [dspy.Example(demo).with_inputs(*inputs) for demo in saved["demos"]]
    predictor.fields = copy.deepcopy(saved.get("decisions", {}))


def _refuse_other_fields(name: str, predictor: Any, saved: Mapping[str, Any], where: str) -> None:
    signature = predictor.signature
    for side, fields in (("inputs", signature.input_fields), ("outputs", signature.output_fields)):
        names = [field["name"] for field in saved[side]]
        if names != list(fields):
            raise UsageError(
                f"{where} belongs to another program: the {side} of {name!r} are {', '.join(names)} in the bundle and "
                f"{', '.join(fields) or 'none'} in the program"
            )
        for field in saved[side]:
            difference = first_difference(field["schema"], _schema(fields[field["name"]].annotation))
            if difference:
                what = f"the type of {field['name']!r} of {name!r} differs at {difference}"
                raise UsageError(f"{where} belongs to another program: {what}")


def first_difference(saved: Any, present: Any, path: str = "") -> str | None:
    """Where two pieces of JSON data differ first, with both values; None when they are equal.

    >>> first_difference({"a": {"b": 1}}, {"a": {"b": 2}})
    'a.b: 1 in the bundle, 2 in the program'
    """
    if isinstance(saved, dict) and isinstance(present, dict):
        for key in [*saved, *(key for key in present if key not in saved)]:
            below = f"{path}.{key}" if path else str(key)
            if key not in saved or key not in present:
                return f"{below}: only in the {'bundle' if key in saved else 'program'}"
            if difference := first_difference(saved[key], present[key], below):
                return difference
        return None
    if saved == present:
        return None
    return f"{path or 'the top'}: {_cut(saved)} in the bundle, {_cut(present)} in the program"


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _wrapped(program: dspy.Module, wrapper: Mapping[str, Any], where: str) -> dspy.Module:
    # Only modules of this package: a bundle must not be able to name code to import.
    match = _WRAPPER.fullmatch(str(wrapper.get("class")))
    try:
        kind = getattr(importlib.import_module(match[1]), match[2]) if match else None
    except (ImportError, AttributeError):
        kind = None
    if kind is None or not hasattr(kind, "load_bundle"):
        raise UsageError(f"{where} needs {wrapper.get('class')!r}, which this version of the package does not have")
    try:
        return kind.load_bundle(program, wrapper["state"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{where}: the wrapper.state in program.json cannot be used: {told(error)}") from error
