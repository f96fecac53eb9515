"""How a program becomes messages: the three prompt adapters by name, and a program's prompts as readable text.

`json` and `chat` are DSPy's own forms. `compact` is for small models: DSPy's adapters put the output requirements
into the last user turn only, so demos and question stop looking alike and a small model stops imitating. There,
the system message holds the instructions and one line per output key, every demo is a plain user turn and one line
of JSON, and the question looks exactly like a demo. System message and demos come first and stay the same from
call to call, so that a server can reuse what it has read. Each of the three asks once more for an answer it cannot
read; see `reask`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import dspy
import pydantic
from dspy.adapters.utils import annotation_allows_none, apply_output_field_defaults, format_field_value
from dspy.signatures.signature import Signature
from dspy.utils.exceptions import AdapterParseError

from harness.errors import nearest
from harness.models.prompt.outline import outline
from harness.models.prompt.reask import ReAsking, joined, validation_fault
from programs.contract import is_json_record, predictors_of
from programs.json_record import arranged, fitted, plain_data
from programs.json_schema import RecordError, Schema, asked_for, closed, has_open_object, resolved

_HEADER = "Answer with one line of JSON. Its keys:"
_DOTTED_HEADER = "Answer with one line of JSON. Its keys, where a dot leads into a record inside the record:"
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A```[A-Za-z]*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)


def prompt_adapter(name: str) -> dspy.Adapter:
    """A fresh adapter: `json`, `chat` or `compact`.

    Raises:
        ValueError: another name; the sentence names the nearest one.

    >>> prompt_adapter("compakt")
    Traceback (most recent call last):
    ValueError: there is no prompt adapter 'compakt'; did you mean 'compact'?
    """
    if name == "json":
        return MapAwareJSONAdapter()
    if name == "chat":
        # The fallback would ask a second, differently formed question.
        return ReAskingChatAdapter(use_json_adapter_fallback=False)
    if name == "compact":
        return CompactAdapter()
    raise ValueError(f"there is no prompt adapter {name!r}; {nearest(name, ('json', 'chat', 'compact'))}")


class ReAskingChatAdapter(ReAsking, dspy.ChatAdapter):
    """DSPy's ChatAdapter."""


class MapAwareJSONAdapter(ReAsking, dspy.JSONAdapter):
    """DSPy's JSONAdapter, except that it completes no answer and loses no data to strict structured output.

    DSPy repairs what is not JSON, so that half an answer becomes a record that nobody gave; here it is unreadable.
    DSPy closes every object, which leaves a map from free keys (`dict[str, float]` inside a record) always
    empty; for such outputs it asks for JSON without a schema instead.
    """

    def _prepare_response_format(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any) -> None:
        if "response_format" in lm.supported_params:
            schema = self.use_native_function_calling, lm.supports_response_schema
            lm_kwargs["response_format"] = _json_response_format(signature, *schema)

    def format_field_structure(self, signature: type[Signature]) -> str:
        """DSPy's words for the fields."""
        return _json_field_structure(cast(Any, signature))

    def parse(self, signature: type[Signature], completion: str) -> dict[str, Any]:
        """The output fields of a complete JSON answer.

        Raises:
            AdapterParseError: no complete JSON object, or a value that does not fit its field.
        """
        try:
            found = _read_object(completion)
        except ValueError as error:
            raise _unreadable(signature, completion, str(error), type(self).__name__) from error
        return super().parse(signature, json.dumps(found))


# A signature is a class and never changes, and what follows from it takes DSPy milliseconds to work out.
@functools.lru_cache(maxsize=256)
def _json_response_format(signature: Any, native_function_calling: bool, with_schema: bool) -> Any:
    able = SimpleNamespace(supported_params=frozenset(("response_format",)), supports_response_schema=with_schema)
    settings: dict[str, Any] = {}
    adapter = dspy.JSONAdapter(use_native_function_calling=native_function_calling)
    adapter._prepare_response_format(able, settings, signature)
    schemas = [_type_adapter(field.annotation).json_schema() for field in signature.output_fields.values()]
    return {"type": "json_object"} if any(map(has_open_object, schemas)) else settings["response_format"]


@functools.lru_cache(maxsize=256)
def _json_field_structure(signature: Any) -> str:
    return dspy.JSONAdapter().format_field_structure(signature)


def _type_adapter(annotation: Any) -> pydantic.TypeAdapter[Any]:
    try:
        return _made_type_adapter(annotation)
    except TypeError:  # an annotation that cannot be hashed
        return pydantic.TypeAdapter(annotation)


@functools.lru_cache(maxsize=256)
def _made_type_adapter(annotation: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(annotation)


@dataclass(frozen=True)
class _Layout:
    """The form of a signature's answers.

    Attributes:
        bare: the output field whose record is the whole answer; None when the answer has one key per field.
        asked: schema of the answer, as `asked_for` gives it.
        sent: the schema to decode under.
        strict: every object in `sent` lists all its keys.
        originals: per field, the schema to read it with; None for types that read themselves.
        system: the lines that follow the instructions.
    """

    bare: str | None
    asked: Schema
    sent: Schema
    strict: bool
    originals: Mapping[str, Schema | None]
    system: str


def _layout(signature: Any) -> _Layout:
    return _made_layout(signature)


@functools.lru_cache(maxsize=256)  # a signature is a class and never changes; making a layout takes milliseconds
def _made_layout(signature: Any) -> _Layout:
    fields = signature.output_fields
    adapters = {name: pydantic.TypeAdapter(field.annotation) for name, field in fields.items()}
    schemas = {name: adapter.json_schema() for name, adapter in adapters.items()}
    only = next(iter(fields)) if len(fields) == 1 else None
    if only and resolved(schemas[only], schemas[only]).get("properties"):
        answer = schemas[only]
    else:
        only, answer = None, _answer_of_fields(fields, adapters)
    asked = asked_for(answer)
    sent, strict = closed(asked)
    lines = outline(asked)
    header = _DOTTED_HEADER if any("." in line.split(":", 1)[0] for line in lines) else _HEADER
    return _Layout(
        bare=only,
        asked=asked,
        sent=sent,
        strict=strict,
        originals={name: None if is_json_record(field.annotation) else schemas[name] for name, field in fields.items()},
        system="\n".join([header, *(f"- {line}" for line in lines)]),
    )


def _answer_of_fields(fields: Mapping[str, Any], adapters: Mapping[str, pydantic.TypeAdapter[Any]]) -> Schema:
    """One object with a key per output field."""
    parts, shared = pydantic.TypeAdapter.json_schemas(
        [(name, "validation", adapter) for name, adapter in adapters.items()]
    )
    properties: Schema = {}
    for name, field in fields.items():
        described = field.json_schema_extra["desc"]
        own = {} if described == f"${{{name}}}" else {"description": described}
        properties[name] = {**parts[name, "validation"], **own}
    required = [name for name, field in fields.items() if field.is_required()]
    return {"type": "object", "properties": properties, "required": required, "$defs": shared.get("$defs", {})}


class CompactAdapter(ReAsking, dspy.JSONAdapter):
    """Instructions, one line per output key, demos that look exactly like the question.

    A program with one output that is a record is asked for the bare record; otherwise the answer has one key per
    output field. Where the model can decode under a JSON Schema, it is sent closed and in the order of the lines.
    Answers are read strictly: white space and code fences around the JSON are passed over, an answer that was cut
    is never completed.
    """

    def format_system_message(self, signature: type[Signature]) -> str:
        """The instructions and one line per output key."""
        return f"{signature.instructions}\n\n{_layout(signature).system}"

    def format_user_message_content(
        self,
        signature: type[Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """The value of the only input, or one `name: value` line per input; the same for demo and question."""
        values = {
            name: _shown(inputs[name], field)
            for name, field in signature.input_fields.items()
            if inputs.get(name) is not None
        }
        if len(signature.input_fields) == 1:
            return "".join(str(value) for value in values.values())
        return "\n".join(f"{name}: {value}" for name, value in values.items())

    def format_assistant_message_content(
        self, signature: type[Signature], outputs: dict[str, Any], missing_field_message: str | None = None
    ) -> str:
        """One line of JSON with the keys of the question's answer; outputs a demo does not have are left out."""
        layout = _layout(signature)
        plain = {
            name: _plain(outputs[name], field.annotation)
            for name, field in signature.output_fields.items()
            if outputs.get(name) is not None
        }
        if layout.bare is not None:
            return json.dumps(arranged(plain[layout.bare], layout.asked), ensure_ascii=False)
        filled = arranged(plain, layout.asked)
        return json.dumps({name: filled[name] for name in filled if name in plain}, ensure_ascii=False)

    def format_demos(self, signature: type[Signature], demos: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A user and an assistant turn per demo, in the given order; one without input or output is skipped."""
        messages = []
        for demo in demos:
            has_input = any(demo.get(name) is not None for name in signature.input_fields)
            has_output = any(demo.get(name) is not None for name in signature.output_fields)
            if has_input and has_output:
                messages += [
                    {"role": "user", "content": self.format_user_message_content(signature, demo)},
                    {"role": "assistant", "content": self.format_assistant_message_content(signature, demo)},
                ]
        return messages

    def parse(self, signature: type[Signature], completion: str) -> dict[str, Any]:
        """The output fields of an answer.

        Raises:
            AdapterParseError: no complete JSON object, or a value that does not fit its field.
        """
        layout = _layout(signature)
        try:
            answer = _read_object(completion)
            if layout.bare is not None and not _is_wrapped(answer, layout):
                answer = {layout.bare: answer}
            fields = {
                name: _read_field(name, answer[name], field.annotation, layout)
                for name, field in signature.output_fields.items()
                if name in answer and not _is_absence(answer[name], field)
            }
        except ValueError as error:
            raise _unreadable(signature, completion, str(error)) from error
        fields = apply_output_field_defaults(signature, fields)
        missing = [name for name in signature.output_fields if name not in fields]
        if missing:
            raise _unreadable(signature, completion, f"the answer lacks {', '.join(missing)}")
        return fields

    def _prepare_response_format(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any) -> None:
        """Nothing yet: `_call_preprocess` may still take fields out of the signature."""

    def _call_preprocess(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, inputs: dict[str, Any]) -> Any:
        processed = super()._call_preprocess(lm, lm_kwargs, signature, inputs)
        if "response_format" in lm.supported_params and processed.output_fields:
            lm_kwargs["response_format"] = _response_format(processed, with_schema=lm.supports_response_schema)
        return processed


def _response_format(signature: type[Signature], *, with_schema: bool) -> dict[str, Any]:
    if not with_schema:
        return {"type": "json_object"}
    layout = _layout(signature)
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": layout.sent, "strict": layout.strict}}


def _shown(value: Any, field: Any) -> Any:
    # dspy makes a pydantic type for every value it shows, which for a text is a long way to the same text.
    return value if type(value) is str else format_field_value(field_info=field, value=value)


def _plain(value: Any, annotation: Any) -> Any:
    by_alias = None if is_json_record(annotation) else True
    return plain_data(value, by_alias=by_alias, fallback=str)


def _read_object(completion: str) -> dict[str, Any]:
    said = _THOUGHTS.sub("", completion)
    fenced = _FENCED.match(said.strip())
    text = fenced.group(1) if fenced else said
    start = text.find("{")
    if start < 0:
        raise ValueError("the answer holds no JSON object")
    try:
        # strict=False: a raw line end inside a string loses nothing. Text after the object is passed over.
        found, _ = json.JSONDecoder(strict=False, parse_constant=_refuse_constant).raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("the answer is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"the answer is not complete JSON: {error.msg} at character {error.pos}") from error
    return found


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"the answer holds {word}, which is not JSON")


def _is_wrapped(answer: Mapping[str, Any], layout: _Layout) -> bool:
    """Whether a bare record came inside a key with the field's name, as large models like to do."""
    name = layout.bare
    keys = resolved(layout.asked, layout.asked)["properties"]
    return name is not None and list(answer) == [name] and name not in keys and isinstance(answer[name], dict)


def _is_absence(value: Any, field: Any) -> bool:
    """Whether a null stands for an output that has a default: in a closed schema a model cannot leave it out."""
    return value is None and not field.is_required() and not annotation_allows_none(field.annotation)


def _read_field(name: str, value: Any, annotation: Any, layout: _Layout) -> Any:
    if annotation is str and isinstance(value, int | float):
        return json.dumps(value)
    original = layout.originals[name]
    data = value if original is None else fitted(value, original)
    try:
        return _type_adapter(annotation).validate_json(json.dumps(data))
    except pydantic.ValidationError as error:
        problem = validation_fault(error)
        path = problem.path if layout.bare else joined(name, problem.path)
        raise RecordError(path, problem.message) from error


def _unreadable(
    signature: type[Signature], completion: str, message: str, adapter: str = "CompactAdapter"
) -> AdapterParseError:
    return AdapterParseError(adapter, signature, completion, message)  # pyright: ignore[reportArgumentType]


def prompt_text(program: dspy.Module, adapter: dspy.Adapter, inputs: Mapping[str, Any]) -> dict[str, str]:
    """The messages each predictor of a program would send, as text; no model is called.

    Args:
        program: any dspy module. One that chooses demos per question (`with_demos(inputs)`) is asked for them.
        adapter: what `prompt_adapter` gave, or any dspy adapter.
        inputs: what the program would be called with. A predictor's input that is not among them, such as
            another predictor's output, appears as `{name}`.

    Returns:
        Predictor name -> "[system]\\n...\\n\\n[user]\\n...".
    """
    choose = getattr(program, "with_demos", None)
    shown = choose(inputs) if choose is not None else program
    return {name: _rendered(predictor, adapter, inputs) for name, predictor in predictors_of(shown)}


def _rendered(predictor: Any, adapter: dspy.Adapter, inputs: Mapping[str, Any]) -> str:
    given = {name: inputs.get(name, f"{{{name}}}") for name in predictor.signature.input_fields}
    messages = adapter.format(predictor.signature, predictor.demos, given)
    return "\n\n".join(f"[{message['role']}]\n{_content(message['content'])}" for message in messages) + "\n"


def _content(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", f"[{part.get('type', 'part')}]")) for part in content)


def decoding_schema(signature: type[Signature], adapter: dspy.Adapter) -> dict[str, Any] | None:
    """The response format an adapter sends to a model that can decode under a schema; None when it sends none."""
    if isinstance(adapter, CompactAdapter):
        return _response_format(signature, with_schema=True)
    if not isinstance(adapter, dspy.JSONAdapter):
        return None
    able = SimpleNamespace(supported_params=frozenset(("response_format",)), supports_response_schema=True)
    settings: dict[str, Any] = {}
    adapter._prepare_response_format(able, settings, signature)
    chosen = settings["response_format"]
    return chosen if isinstance(chosen, dict) else {"type": "json_schema", "json_schema": chosen.model_json_schema()}
