"""What every file of this package has in common: sections of known keys, and how a file becomes one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema

from harness.errors import UsageError
from harness.files import named_path
from harness.foreign import whole
from harness.spec.document import SpecDocument, read_document
from harness.spec.overrides import ShortForms, apply_override
from harness.spec.problems import problems_of

S = TypeVar("S", bound="SpecFile")


def _number(value: object) -> object:
    """Keep `true` from being read as the number 1."""
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {str(value).lower()}")
    return value


def arguments_of(value: object) -> object:
    """`NAME:` with nothing behind it has no arguments."""
    return {} if value is None else value


CountFromZero = Annotated[int, Field(ge=0), BeforeValidator(_number)]
CountFromOne = Annotated[int, Field(ge=1), BeforeValidator(_number)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_number)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_number)]
Arguments = Annotated[dict[str, Any], BeforeValidator(arguments_of), WithJsonSchema({"type": ["object", "null"]})]


class Section(BaseModel):
    """A mapping of known keys. A key without a value counts as not given; a plain value stands for `main_key`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    main_key: ClassVar[str | None] = None

    @model_validator(mode="before")
    @classmethod
    def _open_short_form(cls, data: object) -> object:
        if isinstance(data, str) and cls.main_key is not None:
            return {cls.main_key: data}
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}
        return data

    @model_serializer(mode="wrap")
    def _given_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema of the mapping, or of its short form."""
        schema = handler.resolve_ref_schema(handler(core))
        return dict(schema) if cls.main_key is None else {"anyOf": [{"type": "string"}, dict(schema)]}


class SpecFile(Section):
    """A whole file, which knows where it came from."""

    _path: Path = PrivateAttr(default=Path("experiment.yaml"))
    _document: SpecDocument | None = PrivateAttr(default=None)

    @property
    def path(self) -> Path:
        """The file, as it was named."""
        return self._path

    @property
    def label(self) -> str:
        """What errors call the file."""
        return str(self._path)

    @property
    def folder(self) -> Path:
        """The folder that paths in the file are relative to."""
        return self._path.parent

    def resolve(self, path: str) -> Path:
        """A path of the file: absolute and `~` paths as they are, all others relative to the file's folder."""
        return named_path(path, self.folder)

    def where(self, *keys: str | int) -> str:
        """Where a key was written, for errors: "experiments/x.yaml line 12", or the file when it was not.

        A key that is not in the file is looked for upwards: `where("data", "reader")` may name the line of `data`.
        """
        return self._document.place(keys) if self._document is not None else self.label


def load_file(model: type[S], forms: ShortForms, path: str | Path, overrides: Sequence[str] = ()) -> S:
    """Read and validate a file.

    Args:
        model: what the file holds; `name` is the file's stem unless the file gives one.
        forms: its short forms.
        path: the file.
        overrides: `KEY=VALUE` texts, applied in order before anything is checked.

    Raises:
        UsageError: one line per thing that is wrong, each with its place in the file.
    """
    file = Path(path)
    document = read_document(file, str(path))
    for text in overrides:
        apply_override(document, text, forms)
    document.refuse_secrets()
    data = document.substituted(os.environ)
    if data.get("name") is None:
        data["name"] = whole(file.stem)
    spec: S | None = None
    try:
        spec = model.model_validate(data)
    except ValidationError as invalid:
        problems_of(invalid, model, document)
    if spec is None or document.problems:
        raise UsageError("\n".join(document.sentences()))
    spec._path, spec._document = file, document
    return spec
