"""One more question when an answer cannot be read: the model is told what was wrong and asked for the whole again.

The second question is the first one, its answer as an assistant turn, and a user turn that names the fault. It goes
through the same LM, so the store, the ledger and the budget see it like any other. A second answer that cannot be read
either is a ProgramFailure of the kind "invalid"; nothing is repaired, and nothing unreadable becomes a record.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import dspy
import pydantic
from dspy.signatures.signature import Signature
from dspy.utils.exceptions import AdapterParseError

from harness.errors import ProgramFailure
from harness.models.faults import program_failure
from programs.json_record import from_validation_error, plain_data
from programs.json_schema import RecordError, short

QUOTED = 2_000
"""Characters of an unreadable answer that are shown to the model again: endless ones must not fill its context."""

_FIELD = re.compile(r"Failed to parse field (\w+)")
_LONGEST_VALUE = 80
_SEVERAL = ("n", "num_generations")

Fields = dict[str, Any]


class _Unread(Exception):  # not an error yet: it carries what was read to where the rest is asked again
    """Some completions of a call could not be read; in `read` their errors stand in their places."""

    def __init__(self, read: list[Fields | AdapterParseError]) -> None:
        super().__init__("an answer could not be read")
        self.read = read


if TYPE_CHECKING:
    _Adapter = dspy.ChatAdapter
else:  # DSPy gives every subclass of its adapters a `parse` of its own, which would hide that of the adapter after it
    _Adapter = object


class ReAsking(_Adapter):
    """Stands before one of DSPy's adapters in a class's bases: asks once more for each completion it cannot read."""

    _follow_up: tuple[dict[str, str], ...] = ()

    def format(self, signature: type[Signature], demos: list[Fields], inputs: Fields) -> list[Fields]:
        """The messages of the question; in a second one also the answer before and what was wrong with it."""
        return [*super().format(signature, demos, inputs), *self._follow_up]

    def __call__(
        self, lm: Any, lm_kwargs: Fields, signature: type[Signature], demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """The output fields of each completion.

        Raises:
            ProgramFailure: a completion could not be read, nor could the answer to the second question.
        """
        settings = _for_one(lm_kwargs)  # before the first question adds to them
        try:
            return super().__call__(lm, lm_kwargs, signature, demos, inputs)
        except _Unread as unread:
            read = unread.read
        answers: list[Fields] = []
        for answer in read:
            if isinstance(answer, AdapterParseError):
                with _second_question(lm, answer):
                    again = self._again(answer)
                    answers.append(again(lm, dict(settings), signature, demos, inputs)[0])
            else:
                answers.append(answer)
        return answers

    async def acall(
        self, lm: Any, lm_kwargs: Fields, signature: type[Signature], demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """The same, awaited."""
        settings = _for_one(lm_kwargs)
        try:
            return await super().acall(lm, lm_kwargs, signature, demos, inputs)
        except _Unread as unread:
            read = unread.read
        answers: list[Fields] = []
        for answer in read:
            if isinstance(answer, AdapterParseError):
                with _second_question(lm, answer):
                    again = self._again(answer)
                    answers.append((await again.acall(lm, dict(settings), signature, demos, inputs))[0])
            else:
                answers.append(answer)
        return answers

    def _again(self, error: AdapterParseError) -> ReAsking:
        """This adapter with what to say after the question."""
        again = copy.copy(self)
        again._follow_up = follow_up(str(error.lm_response), fault_of(error))
        return again

    def _call_postprocess(
        self, processed_signature: Any, original_signature: Any, outputs: list[Any], lm: Any, lm_kwargs: Fields
    ) -> list[Fields]:
        read: list[Fields | AdapterParseError] = []
        for output in outputs:
            try:
                read += super()._call_postprocess(processed_signature, original_signature, [output], lm, lm_kwargs)
            except AdapterParseError as error:
                if self._follow_up:
                    raise
                read.append(error)
        answers = [answer for answer in read if not isinstance(answer, AdapterParseError)]
        if len(answers) < len(read):
            raise _Unread(read)
        return answers


def follow_up(answer: str, fault: str) -> tuple[dict[str, str], dict[str, str]]:
    """The two turns of a second question.

    >>> for turn in follow_up('{"total": "about 12"}', "total: 'about 12' is not of type 'number'"):
    ...     print(turn["role"], turn["content"], sep=": ")
    assistant: {"total": "about 12"}
    user: That answer cannot be used. total: 'about 12' is not of type 'number'
    Give the whole answer again, in the form asked for.
    """
    quoted = answer if len(answer) <= QUOTED else f"{answer[:QUOTED]}…"
    return (
        {"role": "assistant", "content": quoted.strip() or "(nothing)"},
        {
            "role": "user",
            "content": f"That answer cannot be used. {fault}\nGive the whole answer again, in the form asked for.",
        },
    )


def fault_of(error: AdapterParseError) -> str:
    """What was wrong with an answer in one sentence: the field's path, what was expected, what came."""
    field = _FIELD.match(str(error))
    cause = error.__cause__ or error.__context__
    if field is not None and isinstance(cause, pydantic.ValidationError):
        problem = validation_fault(cause)
        return f"{joined(field.group(1), problem.path)}: {problem.message}"
    if field is not None and isinstance(cause, ValueError):
        return short(f"{field.group(1)}: {cause}")
    said = str(error).partition("\n")[0].strip()
    if not said.startswith("Adapter "):
        return short(said)
    signature: Any = error.signature
    missing = [name for name in signature.output_fields if name not in (error.parsed_result or {})]
    return f"the answer lacks {', '.join(missing)}"


def validation_fault(error: pydantic.ValidationError) -> RecordError:
    """The first error pydantic found, with the value that came."""
    problem = from_validation_error(error)
    first = error.errors(include_url=False)[0]
    told = isinstance(first.get("ctx", {}).get("error"), RecordError) or first["type"] == "missing"
    if told:
        return problem
    came = repr(plain_data(first["input"], fallback=str))
    came = came if len(came) <= _LONGEST_VALUE else f"{came[:_LONGEST_VALUE]}…"
    return RecordError(problem.path, f"{problem.message}, got {came}")


def joined(name: str, path: str) -> str:
    """A path below a field.

    >>> joined("record", "total"), joined("lines", "[0].name"), joined("total", "")
    ('record.total', 'lines[0].name', 'total')
    """
    return f"{name}{'' if not path or path.startswith('[') else '.'}{path}"


def _for_one(lm_kwargs: Fields) -> Fields:
    """The settings of a question with one completion: only what could not be read is asked for again."""
    return {name: value for name, value in lm_kwargs.items() if name not in _SEVERAL}


@contextmanager
def _second_question(lm: Any, first: AdapterParseError) -> Iterator[None]:
    """Count the first answer as unusable, and say what was wrong both times when the second one is too."""
    before = fault_of(first)
    _note(lm, before)
    try:
        yield
    except AdapterParseError as error:
        after = fault_of(error)
        _note(lm, after)
        told = "the same once more" if after == before else after
        raise ProgramFailure(f"the answer could not be read: {before}; asked again: {told}", "invalid") from error
    except Exception as error:
        failure = program_failure(error)
        if failure is None:
            raise
        # Of the first answer we know that it cannot be read, whatever kept the second one away.
        raise ProgramFailure(f"the answer could not be read: {before}; asked again: {failure}", "invalid") from first


def _note(lm: Any, sentence: str) -> None:
    """Count an unusable answer under its role's name; an LM that is not a role's keeps no accounts."""
    note = getattr(getattr(lm, "engine", None), "note_unusable", None)
    if note is not None:
        note("invalid", sentence)
