"""The JSON files of a bundle as this package writes them; a bundle made by hand is checked against this, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.data.formats import parse_json
from harness.errors import UsageError
from harness.foreign import whole
from programs.json_schema import dotted, short

_DEEPEST = 200
_T = TypeVar("_T", bound=BaseModel)
_Count = Annotated[int, Field(ge=1)]


class _Document(BaseModel):
    """Nothing is converted and nothing is added: what this package did not write is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", populate_by_name=True, allow_inf_nan=False, frozen=True)


class Bounds(_Document):
    """Limits of the schema that a local model decodes under."""

    max_items: _Count | None = None
    max_length: _Count | None = None
    items: dict[str, _Count] | None = None
    lengths: dict[str, _Count] | None = None
    free_text: _Count | None = None


class ModelSettings(_Document):
    """What a bundle says of its model."""

    model: str | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    max_tokens: _Count | None = None
    top_p: float | None = None
    seed: int | None = None
    bounds: Bounds | None = None
    own_endpoint: bool = False


class Reference(_Document):
    """The program's class and the arguments it is made from."""

    name: str = Field(alias="class")
    arguments: dict[str, Any]


class Manifest(_Document):
    """manifest.json."""

    format: str
    format_version: int
    program: Reference
    output_field: str
    inputs: list[str]
    adapter: str
    model: ModelSettings
    versions: dict[str, str]


class _FieldState(_Document):
    name: str
    description: Any
    type_schema: Any = Field(alias="schema")


class _PredictorState(_Document):
    instructions: str
    inputs: list[_FieldState]
    outputs: list[_FieldState]
    demos: list[dict[str, Any]]
    decisions: dict[str, Any] = {}


class _WrapperState(_Document):
    name: str = Field(alias="class")
    state: dict[str, Any]


class ProgramState(_Document):
    """program.json."""

    predictors: dict[str, _PredictorState]
    wrapper: _WrapperState | None = None


def read_json(folder: Path, files: Mapping[str, str], name: str) -> Any:
    """One JSON file of a bundle.

    Raises:
        UsageError: it is not there, or not JSON.
    """
    if name not in files:
        raise UsageError(f"{folder} is not complete: {name} is missing")
    try:
        document = parse_json(files[name], name, lines=True)
    except UsageError as error:
        raise UsageError(f"{folder}: {name} is not JSON: {error}") from error
    _refuse_odd(document, f"{folder}: {name}")
    return document


def _refuse_odd(document: Any, where: str) -> None:
    """Refuse halves of characters and nesting without end, which nothing behind here is made for."""
    left: list[tuple[Any, tuple[str | int, ...]]] = [(document, ())]
    while left:
        value, path = left.pop()
        if len(path) > _DEEPEST:
            raise UsageError(f"{where} is nested more than {_DEEPEST} levels deep at {short(dotted(path))}")
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, child in children:
            for text in (key, child):
                if isinstance(text, str) and whole(text) != text:
                    raise UsageError(f"{where} holds half a Unicode character at {short(whole(dotted((*path, key))))}")
            left.append((child, (*path, key)))


def checked(folder: Path, name: str, document: Any, model: type[_T]) -> _T:
    """The document as `model`.

    Raises:
        UsageError: something in it is not as this package writes it; the first key that is not is named.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = short(dotted(first["loc"])) or "the top"
        raise UsageError(f"{folder}: {name} is not as this package writes it: {where}: {first['msg']}") from error
