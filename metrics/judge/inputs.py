"""What a judge is given: checked before it is asked, since nothing can be said about nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from metrics.evaluators.lm_evaluator import as_data
from metrics.evaluators.states import has_value
from metrics.evaluators.text import shown
from metrics.inputs import columns
from metrics.judge.rubric import Rubric
from metrics.nearest import nearest
from metrics.record.items import plain

TARGET = "target_compound"
"""The field of a synthesis that names its material."""
SOURCES = ("source_text", "text")
"""The fields of an example that may hold what was extracted from, the first one that is there."""


def refuse_short(name: str, text: Any, least: int) -> None:
    """Raise ValueError where `text` is no text of at least `least` characters."""
    if not isinstance(text, str):
        raise ValueError(f"{name} is text, got {type(text).__name__}")
    if len(text.strip()) < least:
        raise ValueError(f"{name} has {len(text.strip())} characters; below {least} there is nothing to judge")


def extraction_in(name: str, text: Any, least: int = 0) -> Any:
    """The data in a JSON text.

    Raises:
        ValueError: it is too short, or no JSON.

    >>> extraction_in("record", '{"a": 1}')
    {'a': 1}
    """
    refuse_short(name, text, least)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON: {shown(text)}") from error


def target_in(record: Any) -> str:
    """The material a record is about, empty where it does not say.

    >>> target_in({"target_compound": "LiCoO2"}), target_in([])
    ('LiCoO2', '')
    """
    named = record.get(TARGET) if isinstance(record, dict) else None
    return named if isinstance(named, str) else ""


def judge_inputs(
    rubric: Rubric, example: Any, extraction: Any, named: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """The rubric's inputs as texts.

    Args:
        rubric: says where each comes from.
        example: with its fields; `source_text`, else `text`, is the source.
        extraction: what is judged, a model or plain data.
        named: fields of the example by the rubric's inputs, in place of where the rubric takes them from.

    Raises:
        ValueError: the example has no such field (the nearest one is named).
    """
    held = columns(example)
    texts: dict[str, str] = {}
    for name, one in rubric.inputs.items():
        origin = named.get(name) or one.origin or name
        if origin == "extraction":
            texts[name] = as_data(extraction)
        elif origin == "target":
            texts[name] = target_in(plain(extraction)) or target_in(plain(held.get("expected")))
        else:
            field = next((key for key in SOURCES if key in held), SOURCES[0]) if origin == "source" else origin
            if field not in held:
                raise ValueError(f"the judge is to be shown {field!r}; {nearest(field, held)}")
            texts[name] = held[field] if isinstance(held[field], str) else as_data(held[field])
    return texts


def holds_nothing(record: Any) -> bool:
    """Whether there is no value anywhere in an extraction.

    >>> holds_nothing({"target": None, "steps": [{"action": ""}]}), holds_nothing({"count": 0})
    (True, False)
    """
    data = plain(record)
    if isinstance(data, dict):
        return all(holds_nothing(value) for value in data.values())
    if isinstance(data, list):
        return all(holds_nothing(value) for value in data)
    return not has_value(data)
