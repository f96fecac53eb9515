"""The experiment file as frozen models, and `load_spec`, which reads one and says everything that is wrong with it.

This module imports neither dspy nor mlflow nor optuna: a mistake in a file is told in a blink.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema

from harness.errors import UsageError, nearest
from harness.spec.overrides import ShortForms
from harness.spec.spec_file import (
    Arguments,
    CountFromOne,
    CountFromZero,
    NotNegative,
    Positive,
    Section,
    SpecFile,
    arguments_of,
    load_file,
)

ROLES = ("task", "teacher", "prompt", "judge")
"""The roles a model can have in an experiment; only the task is required."""

DEFAULT_OPTIMIZER = "bootstrap_random_search"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def _share(value: object) -> object:
    """A count (10), a fraction (0.4), or text that reads as one, which is what the environment gives."""
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            raise ValueError("must be a number of examples (40) or a fraction of them (0.4)") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number of examples (40) or a fraction of them (0.4)")
    if value < 0 or (isinstance(value, float) and value > 1):
        raise ValueError("must be a count from 0 upwards (40) or a fraction between 0 and 1 (0.4)")
    return value


def _schema_switch(value: object) -> object:
    """auto, true or false; as text too, which is what the environment gives."""
    switch = {"auto": "auto", "true": True, "false": False}.get(str(value).lower())
    if switch is None:
        raise ValueError("must be auto, true or false")
    return switch


Share = Annotated[int | float, BeforeValidator(_share)]


class Named(BaseModel):
    """Something chosen by name: `NAME` or `{NAME: {arguments}}`.

    >>> Named.model_validate({"nearest_demos": {"k": 4}})
    Named(name='nearest_demos', arguments={'k': 4})
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    arguments: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _open_short_form(cls, data: object) -> object:
        if isinstance(data, str):
            return {"name": data}
        if not isinstance(data, dict):
            raise ValueError("must be NAME or {NAME: {arguments}}")
        if isinstance(data.get("name"), str) and set(data) <= {"name", "arguments"}:
            return data
        if len(data) != 1:
            names = ", ".join(map(str, data)) or "nothing"
            raise ValueError(f"must hold one name with its arguments below it; it holds {names}")
        ((name, arguments),) = data.items()
        if not isinstance(arguments_of(arguments), dict):
            raise ValueError(f"{name} must be followed by its arguments as keys, such as {{{name}: {{key: value}}}}")
        return {"name": name, "arguments": arguments_of(arguments)}

    @model_serializer
    def _short_form(self) -> str | dict[str, Any]:
        return {self.name: self.arguments} if self.arguments else self.name

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The two forms a file may use."""
        arguments = {"type": ["object", "null"]}
        mapping = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": arguments}
        return {"description": "NAME or {NAME: {arguments}}", "anyOf": [{"type": "string", "minLength": 1}, mapping]}


class SplitSpec(Section):
    """Sizes of the three splits: counts or fractions; all absent means 40, 20 and 40 percent."""

    train: Share | None = None
    validation: Share | None = None
    test: Share | None = None
    seed: CountFromZero = 0

    @model_validator(mode="after")
    def _at_most_everything(self) -> Self:
        total = sum(size for size in (self.train, self.validation, self.test) if isinstance(size, float))
        if total > 1 + 1e-9:
            raise ValueError(f"the fractions add up to {total:g}; they can be 1 at most")
        return self


class DataSpec(Section):
    """The examples and how they are split; a plain path will do."""

    main_key: ClassVar[str | None] = "path"

    path: str = Field(min_length=1)
    reader: str = Field("records", min_length=1)
    columns: dict[str, str] = Field(default_factory=dict)
    group_by: str | None = None
    split: SplitSpec = SplitSpec()


class PriceSpec(Section):
    """US dollars per million tokens."""

    input: NotNegative
    output: NotNegative


class ModelSpec(Section):
    """One model: local/NAME, local/FILE.gguf or provider/NAME, and how it is asked."""

    main_key: ClassVar[str | None] = "model"

    model: str
    api_base: str | None = None
    api_key_env: str | None = None
    temperature: NotNegative | None = None
    max_tokens: CountFromOne | None = None
    timeout: Positive | None = Field(None, description="seconds per request")
    requests_per_minute: CountFromOne | None = None
    response_schema: Annotated[Literal["auto"] | bool, BeforeValidator(_schema_switch)] = "auto"
    price: PriceSpec | None = None

    @property
    def is_local(self) -> bool:
        """True for a model that runs in this process."""
        return self.model.startswith("local/")

    @field_validator("model")
    @classmethod
    def _has_provider(cls, model: str) -> str:
        provider, slash, name = model.partition("/")
        if not slash or not re.fullmatch(r"[A-Za-z0-9_.-]+", provider) or not name.strip():
            raise ValueError("must be local/NAME or provider/NAME, such as local/smollm2-135m or openai/gpt-5-mini")
        return model

    @field_validator("api_base")
    @classmethod
    def _plain_address(cls, address: str) -> str:
        try:
            parts = urlsplit(address)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            raise ValueError("is not an address; write it like http://127.0.0.1:8000/v1") from None
        if "@" in parts.netloc or parts.query:
            raise ValueError("must not carry a user, a password or a key; name a variable that holds it: api_key_env")
        if not valid:
            raise ValueError("must start with http:// or https:// and name a host, like http://127.0.0.1:8000/v1")
        return address

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, name: str) -> str:
        """Refuse what looks like the key itself. The value is never shown."""
        if not _VARIABLE.fullmatch(name) or (name != name.upper() and name not in os.environ):
            raise ValueError(
                "must be the name of an environment variable that holds the key, such as OPENAI_API_KEY, "
                "never the key itself"
            )
        return name

    @model_validator(mode="after")
    def _local_needs_no_endpoint(self) -> Self:
        if self.is_local and (self.api_base or self.api_key_env):
            raise ValueError(f"{self.model} runs in this process; api_base and api_key_env do not apply to it")
        return self


class RolesSpec(Section):
    """Which model plays which role. The task model is the one being tuned for."""

    task: ModelSpec
    teacher: ModelSpec | None = None
    prompt: ModelSpec | None = None
    judge: ModelSpec | None = None
    judges: dict[str, ModelSpec] = Field(default_factory=dict, description="further judges, for a panel")

    def given(self) -> dict[str, ModelSpec]:
        """The roles this file names, in the order of `ROLES`; further judges as `judges.NAME`."""
        models = {role: getattr(self, role) for role in ROLES}
        further = {f"judges.{name}": model for name, model in self.judges.items()}
        return {role: model for role, model in models.items() if model is not None} | further


class BudgetSpec(Section):
    """Limits of one run; the run stops before it exceeds one and keeps what is finished."""

    calls: CountFromOne | None = None
    tokens: Annotated[CountFromOne | None, Field(description="input and output together")] = None
    usd: NotNegative | None = None
    minutes: Positive | None = None


AdapterName = Literal["json", "chat", "compact"]


def _default_adapter(given: Mapping[str, Any]) -> AdapterName:
    models = given["models"]
    return "compact" if models.task.is_local else "json"


class ExperimentSpec(SpecFile):
    """One experiment: what is tuned, on which data, against which metric, with which models, within which limits."""

    name: str = Field("experiment", pattern=r"^[^\x00-\x1f/\\]{1,100}$")
    program: Named
    data: DataSpec
    models: RolesSpec
    adapter: AdapterName = Field(
        default_factory=_default_adapter,
        description="decides the prompt's bytes; absent: compact for a local task model, else json",
    )
    metric: Named | None = Field(None, description="absent: record, with evaluators by the type of each field")
    audit: dict[str, Arguments] = Field(default_factory=dict)
    optimizer: Named = Named(name=DEFAULT_OPTIMIZER)
    budget: BudgetSpec = BudgetSpec()

    def to_document(self) -> dict[str, Any]:
        """The experiment as JSON data that would load again; keys left at "none" are left out."""
        return self.model_dump(mode="json")


_SHORT_FORMS = ShortForms(
    main_keys={("data",): "path", ("models", "*"): "model"},
    named=("program", "metric", "optimizer"),
)


def load_spec(path: str | Path, overrides: Sequence[str] = ()) -> ExperimentSpec:
    """Read and validate an experiment file.

    Args:
        path: the file; its stem is the experiment's name unless the file gives one.
        overrides: `KEY=VALUE` texts, applied in order before anything is checked.

    Raises:
        UsageError: one line per thing that is wrong, each with its place in the file.
    """
    return load_file(ExperimentSpec, _SHORT_FORMS, path, overrides)


def json_schema(kind: str = "experiment") -> dict[str, Any]:
    """The JSON Schema of a file, for editors.

    Raises:
        UsageError: there is no such kind of file.
    """
    from harness.spec.card_file import CardSpec

    kinds: dict[str, type[SpecFile]] = {"experiment": ExperimentSpec, "card": CardSpec}
    if kind not in kinds:
        raise UsageError(f"there is no schema {kind!r}; {nearest(kind, kinds)}")
    schema = kinds[kind].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


__all__ = [
    "DEFAULT_OPTIMIZER",
    "ROLES",
    "BudgetSpec",
    "DataSpec",
    "ExperimentSpec",
    "ModelSpec",
    "Named",
    "PriceSpec",
    "RolesSpec",
    "SplitSpec",
    "json_schema",
    "load_spec",
]
