"""A model's answer as JSON data, read strictly: what changes no value is passed over and named, nothing is guessed.

Passed over are the thoughts before an answer, a code fence around all of it, raw line ends and tabs inside strings and
a comma before a closing bracket. Prose around the JSON, half an answer, a key given twice, NaN: not an answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from metrics.evaluators.text import is_number, number_in, shown, trimmed

THOUGHTS, FENCE, CONTROL, COMMA = "thoughts", "code fence", "raw control characters", "trailing comma"
NUMBER_AS_TEXT = "number as text"

_THOUGHTS = re.compile(r"\A<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\A```[A-Za-z]*\s*(.*?)\s*```\Z", re.DOTALL)
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


def read_object(text: str) -> tuple[dict[str, Any], list[str]]:
    r"""The JSON object that `text` is, and what had to be passed over to read it.

    Raises:
        ValueError: it is none; the sentence says why.

    >>> read_object('```json\n{"score": 4,}\n```')
    ({'score': 4}, ['code fence', 'trailing comma'])
    >>> read_object("Score: 3/5")
    Traceback (most recent call last):
    ValueError: the answer is not JSON: expecting value at character 0
    """
    repairs: list[str] = []
    said = text.strip().removeprefix("\ufeff").strip()
    if _THOUGHTS.match(said):
        said = _THOUGHTS.sub("", said, count=1).strip()
        repairs.append(THOUGHTS)
    fenced = _FENCE.match(said)
    if fenced:
        said = fenced.group(1).strip()
        repairs.append(FENCE)
    if not said:
        raise ValueError("the answer is empty")
    try:
        found, passed_over = _decoded(said)
    except RecursionError:
        raise ValueError("the answer is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"the answer is not a JSON object: {shown(found)}")
    return found, repairs + passed_over


def _decoded(said: str) -> tuple[Any, list[str]]:
    first: json.JSONDecodeError | None = None
    whole = _STRING_OR_COMMA.sub(lambda match: match.group(1) or "", said)
    for text, strict, passed_over in (
        (said, True, []),
        (said, False, [CONTROL]),
        (whole, True, [COMMA]),
        (whole, False, [CONTROL, COMMA]),
    ):
        try:
            found = json.loads(
                text, strict=strict, parse_constant=_refuse_constant, object_pairs_hook=_without_duplicates
            )
        except json.JSONDecodeError as error:
            first = first or error
            continue
        return found, passed_over
    assert first is not None
    raise ValueError(f"the answer is not JSON: {first.msg[0].lower()}{first.msg[1:]} at character {first.pos}")


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"the answer holds {word}, which is not JSON")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for index, (name, _) in enumerate(pairs) if name in dict(pairs[:index]))
        raise ValueError(f"the answer gives {shown(twice)} twice")
    return found


def value_of(answer: dict[str, Any], key: str) -> Any:
    """The value under a key.

    Raises:
        ValueError: there is no such key, or null stands there.
    """
    if key not in answer:
        raise ValueError(f"the answer has no {key!r}")
    if answer[key] is None:
        raise ValueError(f"{key} is null")
    return answer[key]


def number_of(answer: dict[str, Any], key: str) -> tuple[int | float, list[str]]:
    """The number under a key, which may stand there as text that is nothing else, and what was passed over.

    Raises:
        ValueError: there is none.

    >>> number_of({"score": "4"}, "score")
    (4, ['number as text'])
    >>> number_of({"score": "4 of 5"}, "score")
    Traceback (most recent call last):
    ValueError: score is not a number: '4 of 5'
    """
    value = value_of(answer, key)
    read = number_in(value) if isinstance(value, str) else value
    if read is None or not is_number(read):
        raise ValueError(f"{key} is not a number: {shown(value)}")
    if isinstance(read, float) and not math.isfinite(read):
        raise ValueError(f"{key} is not a finite number")
    return read, [NUMBER_AS_TEXT] if isinstance(value, str) else []


def choice_of(answer: dict[str, Any], key: str, choices: Sequence[str]) -> str:
    """The one of `choices` under a key, upper and lower case aside.

    Raises:
        ValueError: it is none of them.

    >>> choice_of({"label": " Sol-Gel"}, "label", ["sol-gel", "other"])
    'sol-gel'
    """
    value = value_of(answer, key)
    said = folded(value) if isinstance(value, str) else None
    found = next((choice for choice in choices if folded(choice) == said), None)
    if found is None:
        raise ValueError(f"{key} is none of the {len(choices)} choices: {shown(value)}")
    return found


def folded(text: str) -> str:
    """A label in the form in which labels are compared: normalised, one space for any white space, no case.

    >>> folded(" Solid–State  synthesis") == folded("solid-state synthesis")
    True
    """
    return " ".join(trimmed(text).casefold().split())


def text_of(answer: dict[str, Any], key: str) -> str:
    """The text under a key, empty where there is none: it explains and decides nothing."""
    value = answer.get(key)
    return value.strip() if isinstance(value, str) else ""
