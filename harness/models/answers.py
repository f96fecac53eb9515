"""What a reply amounts to: an answer in one shape, or the reason why it cannot be used.

Servers put the same answer in many shapes: as one text or several, with the model's reasoning beside it or inside it,
with a refusal as a part or as a finish reason. Everything behind the engine sees one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from dspy import lm15
from dspy.lm15 import Response

__all__ = ["Unusable", "cut_answer", "normalised", "unusable"]

# Where the server does not take the reasoning out, the text begins with it; many chat templates hold the opening tag
# already, so that only the closing one is left. No record and no section of dspy's begins that way.
_THOUGHT = re.compile(r"\A\s*(?:<think>|(?![\[{]))(?P<thought>.*?)</think>\s*", re.DOTALL)
_ENDLESS_THOUGHT = re.compile(r"\A\s*<think>(?P<thought>.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why an answer cannot be used.

    Attributes:
        kind: cut, refusal, empty or error; see `harness.errors.FAILURE_KINDS`.
        sentence: what happened and what to do about it, without the model's name.
    """

    kind: str
    sentence: str


def normalised(response: Response) -> Response:
    """The same answer with at most one text, and the reasoning in parts of its own.

    >>> answer = lm15.Message.assistant([lm15.TextPart('<think>easy</think> {"a": '), lm15.TextPart("1}")])
    >>> one = normalised(Response(None, "m", answer, "stop", lm15.Usage()))
    >>> one.text, one.message.parts[0].text
    ('{"a": 1}', 'easy')
    """
    texts = response.message.parts_of(lm15.TextPart)
    thought, text = _apart("".join(part.text for part in texts))
    if len(texts) < 2 and thought is None:
        return response
    joined = lm15.TextPart(text, continuation=tuple(state for part in texts for state in part.continuation))
    parts = tuple(_with_one_text(response.message.parts, joined))
    if thought:
        parts = (lm15.ThinkingPart(thought), *parts)
    return replace(response, message=replace(response.message, parts=parts))


def unusable(response: Response, *, role: str, max_tokens: int | None) -> Unusable | None:
    """Why a normalised answer cannot be used; None when it can.

    Args:
        response: the answer.
        role: whose setting to name.
        max_tokens: the output limit it was asked under, None when the request had none.

    >>> empty = Response(None, "m", lm15.Message.assistant(""), "stop", lm15.Usage())
    >>> unusable(empty, role="task", max_tokens=512).kind
    'empty'
    """
    message = response.message
    refusal = " ".join(part.text.strip() for part in message.parts_of(lm15.RefusalPart))
    if refusal or response.finish_reason == "content_filter":
        said = f": {refusal}" if refusal else ""
        return Unusable("refusal", f"refused to answer{said}; reword the instructions or use another model")
    if response.finish_reason == "length":
        return cut_answer(role, max_tokens)
    if response.finish_reason == "error":
        return Unusable("error", "the server ended the answer with an error; its own log says why")
    if message.first(lm15.ToolCallPart) or message.first(lm15.DataPart):
        return None
    if any(part.text.strip() for part in message.parts_of(lm15.TextPart)):
        return None
    if any(part.text.strip() for part in message.parts_of(lm15.ThinkingPart)):
        return Unusable("empty", f"empty answer after its reasoning; raise models.{role}.max_tokens")
    return Unusable(
        "empty", "empty answer; see whether the server is overloaded, or uses another model's chat template"
    )


def cut_answer(role: str, max_tokens: int | None) -> Unusable:
    """The answer ended at its length limit.

    >>> cut_answer("judge", 512).sentence
    'answer cut at max_tokens=512; raise models.judge.max_tokens'
    >>> cut_answer("judge", None).sentence
    "answer cut at the server's own limit, as the request has none; set models.judge.max_tokens or raise the server's"
    """
    if max_tokens is None:
        advice = f"set models.{role}.max_tokens or raise the server's"
        return Unusable("cut", f"answer cut at the server's own limit, as the request has none; {advice}")
    return Unusable("cut", f"answer cut at max_tokens={max_tokens}; raise models.{role}.max_tokens")


def _apart(text: str) -> tuple[str | None, str]:
    """(reasoning, answer) of a text that may begin with its reasoning."""
    found = _THOUGHT.match(text) or _ENDLESS_THOUGHT.match(text)
    if found is None:
        return None, text
    return found["thought"].strip(), text[found.end() :]


def _with_one_text(parts: Iterable[Any], joined: lm15.TextPart) -> Iterator[Any]:
    placed = False
    for part in parts:
        if not isinstance(part, lm15.TextPart):
            yield part
        elif not placed:
            placed = True
            yield joined
