"""One question to a language model and its answer: the one place where an evaluator calls a model.

A call binds its own LM, adapter and an empty trace around itself, so nothing of the program being measured is used or
touched: not its LM, not the trace its optimizer reads, not its usage. An answer that cannot be read is asked for once
more, with the fault named; a second one is no answer. Nothing is ever taken for a number that was not given as one.

Imports dspy; import this module only inside the functions that call it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import dspy
import pydantic
from dspy.utils.exceptions import AdapterParseError

from metrics.evaluators.json_answer import read_object
from metrics.evaluators.lm_evaluator import NoAnswerError

T = TypeVar("T")

_QUOTED = 2_000
"""Characters of an unreadable answer that are shown to the model again."""
_REFUSES_TEMPERATURE = re.compile(r"^(o[1345](-.*)?|gpt-5(\.\d+)*(?!-chat)(-.*)?)$")
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What a model said.

    Attributes:
        value: what `read` made of the answer.
        raw: the reply as it came.
        repaired: what was passed over to read it, and "asked again" where the first answer could not be read.
    """

    value: T
    raw: str
    repaired: Sequence[str]


class Question(Generic[T]):
    """A question with its form of answer; made once, asked often, from any thread.

    Args:
        instructions: what the model is told.
        inputs: name -> description of what it is given with each question, as JSON text.
        outputs: name -> (type, description) of what it answers with, as one JSON object.
        read: makes the answer of the object and what it passed over doing so; ValueError says why it cannot.
    """

    def __init__(
        self,
        instructions: str,
        inputs: Mapping[str, str],
        outputs: Mapping[str, tuple[Any, str]],
        read: Callable[[dict[str, Any]], tuple[T, Sequence[str]]],
    ) -> None:
        fields: dict[str, tuple[Any, Any]] = {
            name: (str, dspy.InputField(desc=description)) for name, description in inputs.items()
        }
        fields |= {name: (kind, dspy.OutputField(desc=description)) for name, (kind, description) in outputs.items()}
        self._signature: Any = dspy.Signature(fields, instructions)  # pyright: ignore[reportCallIssue]
        self._format = _response_format(outputs)
        self._read = read

    def ask(self, lm: Any, temperature: float | None, inputs: Mapping[str, str]) -> Answer[T]:
        """The model's answer.

        Args:
            lm: a dspy LM.
            temperature: of this question; None leaves it to the LM. Models that refuse one are sent none.
            inputs: the values by name.

        Raises:
            NoAnswerError: the model could not be reached, or did not answer readably even when asked again.
        """
        adapter = AnswerAdapter(self._format, self._read)
        config = {} if temperature is None or has_fixed_sampling(lm) else {"temperature": temperature}
        first = self._said(lm, adapter, config, inputs)
        if first is not None:
            return first
        fault = adapter.fault
        adapter.ask_again()
        try:
            second = self._said(lm, adapter, config, inputs)
        except NoAnswerError as error:
            raise NoAnswerError(f"{fault}; asked again, {error}", adapter.raw, "unreadable") from error
        if second is None:
            told = "the same once more" if adapter.fault == fault else adapter.fault
            raise NoAnswerError(f"{fault}; asked again: {told}", adapter.raw, "unreadable")
        return second

    def _said(
        self, lm: Any, adapter: AnswerAdapter[T], config: Mapping[str, Any], inputs: Mapping[str, str]
    ) -> Answer[T] | None:
        try:
            with dspy.context(lm=lm, adapter=adapter, trace=[], usage_tracker=None, track_usage=False):
                dspy.Predict(self._signature)(config=dict(config), **inputs)
        except AdapterParseError as error:
            if not adapter.fault:  # an empty reply never reaches `parse`
                adapter.raw, adapter.fault = str(error.lm_response), "the answer is empty"
            return None
        except Exception as error:
            if not adapter.is_waiting:
                raise
            reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
            raise NoAnswerError(f"the model gave no answer: {reason}", "", "unreached") from error
        return adapter.answer


class AnswerAdapter(dspy.JSONAdapter, Generic[T]):
    """DSPy's prompt for JSON, read by `read_object` and nothing else. One per question asked, since it keeps the reply.

    Args:
        response_format: the form to ask for where the model decodes under a schema.
        read: makes the answer of the object.

    Attributes:
        raw, fault, answer: the last reply, why it cannot be read (empty when it can), what it says.
        is_waiting: the question is out and no reply has come.
    """

    def __init__(
        self, response_format: dict[str, Any], read: Callable[[dict[str, Any]], tuple[T, Sequence[str]]]
    ) -> None:
        super().__init__(use_native_function_calling=False)
        self.raw, self.fault, self.is_waiting = "", "", False
        self.answer: Answer[T] | None = None
        self._response_format, self._read = response_format, read
        self._turns: list[dict[str, Any]] = []

    def ask_again(self) -> None:
        """The next question shows the last reply and what was wrong with it."""
        quoted = self.raw if len(self.raw) <= _QUOTED else f"{self.raw[:_QUOTED]}…"
        said = f"That answer cannot be used: {self.fault}.\nGive the whole answer again, in the form asked for."
        self._turns = [
            {"role": "assistant", "content": quoted.strip() or "(nothing)"},
            {"role": "user", "content": said},
        ]
        self.fault = ""

    def format(self, signature: Any, demos: list[dict[str, Any]], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages of the question."""
        messages = [*super().format(signature, demos, inputs), *self._turns]
        self.is_waiting = True
        return messages

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """The output fields; the answer itself is kept in `answer`."""
        self.raw, self.is_waiting = completion, False
        try:
            found, passed_over = read_object(completion)
            value, more = self._read(found)
        except ValueError as error:
            self.fault = str(error)
            raise AdapterParseError(type(self).__name__, signature, completion, self.fault) from error
        again = ["asked again"] if self._turns else []
        self.answer = Answer(value, completion, [*passed_over, *more, *again])
        return self.fields_of(signature, found, value)

    def fields_of(self, signature: Any, found: dict[str, Any], value: T) -> dict[str, Any]:
        """What the predictor gives as its outputs."""
        return {name: found.get(name) for name in signature.output_fields}

    def _prepare_response_format(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any) -> None:
        if "response_format" in lm.supported_params:
            plain = {"type": "json_object"}
            lm_kwargs["response_format"] = self._response_format if lm.supports_response_schema else plain


def _response_format(outputs: Mapping[str, tuple[Any, str]]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {name: pydantic.TypeAdapter(kind).json_schema() for name, (kind, _) in outputs.items()},
        "required": list(outputs),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}


def has_fixed_sampling(lm: Any) -> bool:
    """Whether it is one of OpenAI's reasoning families, whose sampling is fixed."""
    name = str(getattr(lm, "model", "")).rsplit("/", 1)[-1].partition("@")[0]
    return bool(_REFUSES_TEMPERATURE.match(name.lower()))
