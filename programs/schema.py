"""Text to a record of the user's own: a pydantic class or a JSON Schema is all it takes."""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy
import pydantic
from dspy.signatures.signature import make_signature

from programs.json_record import JsonRecord, model_type, record_type

_TAKEN = frozenset(("record", "signature", "demos", "config", "lm", "prediction", "new_signature"))


class SchemaExtraction(dspy.Module):
    """Extracts one record; the result is `prediction.record`.

    From Python:

        class Invoice(pydantic.BaseModel):
            vendor: str
            total: float | None = pydantic.Field(None, description="with tax")

        SchemaExtraction(Invoice)(text="ACME asks for 12.50").record      # Invoice(vendor="ACME", total=12.5)

    Args:
        model: a pydantic class (records are its instances), a JSON Schema as a dict, or the path of a .json file
            that holds one (records are plain dicts). Requests follow from the JSON Schema alone, so both give
            the same bytes.
        instructions: what to do, for the model; the default asks for the record and repeats what the schema's
            description (a class's docstring) says.
        inputs: names of the inputs, all text.

    Raises:
        ValueError: no such file, no JSON in it, not a valid JSON Schema, an input whose name is not free.

    >>> program = SchemaExtraction({"title": "Invoice", "type": "object", "properties": {"total": {"type": "number"}}})
    >>> program.output_field, program.input_fields
    ('record', ('text',))
    >>> SchemaExtraction({"type": "object"}, inputs=("record",))
    Traceback (most recent call last):
    ValueError: an input cannot be called 'record': that name is taken
    """

    output_field = "record"

    def __init__(
        self,
        model: type[pydantic.BaseModel] | Mapping[str, Any] | str | Path,
        instructions: str | None = None,
        inputs: Sequence[str] = ("text",),
    ) -> None:
        super().__init__()
        self.input_fields = _checked_inputs(inputs)
        self._output = output = _output_type(model)
        self.instructions = instructions or _instructions(output, self.input_fields)
        fields: dict[str, Any] = {name: (str, dspy.InputField()) for name in self.input_fields}
        fields[self.output_field] = (output, dspy.OutputField())
        self.extract = dspy.Predict(make_signature(fields, self.instructions))

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Extract the record from the inputs."""
        return self.extract(**inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """`forward` for asynchronous callers."""
        return await self.extract.acall(**inputs)

    def arguments(self) -> dict[str, Any]:
        """Constructor arguments as JSON data, enough to build this program again without any of the user's files."""
        return {"model": self._output.schema, "instructions": self.instructions, "inputs": list(self.input_fields)}


def _checked_inputs(inputs: Sequence[str]) -> tuple[str, ...]:
    if isinstance(inputs, str) or not inputs:
        raise ValueError(f"inputs is a list of names such as ('text',), got {inputs!r}")
    for name in inputs:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"an input's name is a Python identifier such as 'text', got {name!r}")
        if name in _TAKEN or hasattr(dspy.Signature, name):
            raise ValueError(f"an input cannot be called {name!r}: that name is taken")
    if len(set(inputs)) < len(inputs):
        raise ValueError(f"every input has its own name, got {', '.join(inputs)}")
    return tuple(inputs)


def _output_type(model: Any) -> type[JsonRecord]:
    if isinstance(model, type) and issubclass(model, pydantic.BaseModel):
        return model_type(model)
    if isinstance(model, Mapping):
        return record_type(model)
    if isinstance(model, str | Path):
        return record_type(_read_schema(Path(model)), Path(model).name)
    raise ValueError(
        f"model is a pydantic class, a JSON Schema or the path of a .json file, got {type(model).__name__} {model!r}"
    )


def _read_schema(path: Path) -> Any:
    if path.suffix != ".json":
        raise ValueError(
            f"{path} is not a .json file; model is a pydantic class, a JSON Schema or a .json file with one"
        )
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"there is no schema file {path}") from None
    except RecursionError:
        raise ValueError(f"the schema file {path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"the schema file {path} cannot be read: {reason}") from error


def _instructions(output: type[JsonRecord], inputs: Sequence[str]) -> str:
    title = output.schema.get("title")
    wanted = f"the {title} record" if title else "the record"
    sources = " and ".join((", ".join(inputs[:-1]), inputs[-1])) if len(inputs) > 1 else inputs[0]
    about = str(output.schema.get("description", "")).strip()
    sentence = f"Extract {wanted} from the {sources}, and leave empty what is not said there."
    return f"{sentence}\n\n{about}" if about else sentence
