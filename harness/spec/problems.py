"""What is wrong with an experiment file: pydantic's errors as sentences, each with its place and nearest valid key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import nearest
from harness.spec.document import SpecDocument, dotted
from harness.spec.marked_yaml import KeyPath

_SHOWN = 60
"""Values longer than this are not repeated in a sentence."""


def problems_of(invalid: ValidationError, model: type[BaseModel], document: SpecDocument) -> None:
    """Add a sentence to `document` for everything `model` refused in it.

    What is below a place that is already known to be wrong is left out, and so is a missing key when a misspelt one
    beside it is the cause.
    """
    known_bad = {path for path, _ in document.problems if path}
    meant: set[KeyPath] = set()
    unknown = [error for error in invalid.errors() if error["type"] == "extra_forbidden"]
    for error in unknown:
        path = error["loc"]
        if not _within(path, known_bad):
            hint, meant_path = _hint(path, model)
            meant.add(meant_path)
            document.report(path, f"unknown key {path[-1]!r} in {_section_name(path[:-1])}; {hint}")
    for error in invalid.errors():
        path = error["loc"]
        if (
            error["type"] not in ("extra_forbidden", "default_factory_not_called")
            and path not in meant
            and not _within(path, known_bad)
        ):
            document.report(path, _sentence(error, document))


def _within(path: KeyPath, bad: set[KeyPath]) -> bool:
    return any(path[:length] in bad for length in range(1, len(path) + 1))


def _section_name(path: KeyPath) -> str:
    return dotted(path) if path else "the experiment"


def _hint(path: KeyPath, model: type[BaseModel]) -> tuple[str, KeyPath]:
    """The nearest key of that section, else the same key in another section; and the path that was meant."""
    key, parent = str(path[-1]), path[:-1]
    section = model
    for step in parent:
        section = _section_of(section, step) or section
    if close := difflib.get_close_matches(key, section.model_fields, n=1, cutoff=0.6):
        return nearest(key, section.model_fields), (*parent, close[0])
    for elsewhere in _all_keys(model, ()):
        if elsewhere[-1] == key:
            return f"did you mean {dotted(elsewhere)!r}?", elsewhere
    return nearest(key, section.model_fields), path


def _section_of(model: type[BaseModel], key: str | int) -> type[BaseModel] | None:
    """The model of the section under `key`; None when a plain value stands there."""
    field = model.model_fields[str(key)]
    candidates = (field.annotation, *get_args(field.annotation))
    return next((kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _all_keys(model: type[BaseModel], path: KeyPath) -> Iterator[KeyPath]:
    """Every key of every section, the outer ones first."""
    for key in model.model_fields:
        yield (*path, key)
    for key in model.model_fields:
        section = _section_of(model, key)
        if section is not None:
            yield from _all_keys(section, (*path, key))


def _sentence(error: ErrorDetails, document: SpecDocument) -> str:
    path, kind = error["loc"], error["type"]
    if kind == "missing":
        return f"{str(path[-1])!r} is missing from {_section_name(path[:-1])}"
    subject = _section_name(path)
    context = error.get("ctx", {})
    if kind == "value_error":
        reason = str(context["error"])
        return f"{subject}: {reason}" if not reason.startswith(("must", "is ")) else f"{subject} {reason}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", str(context["expected"]))
        written = str(document.value(path))
        close = difflib.get_close_matches(written, choices, n=1, cutoff=0.6)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        return f"{subject} must be {_either(choices)}, not {_shown(document, path)}{meant}"
    return f"{subject} {_requirement(kind, error['msg'])}, not {_shown(document, path)}"


def _requirement(kind: str, message: str) -> str:
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        return "must be a mapping of keys"
    if kind == "string_type":
        return "must be text (in quotes)"
    if kind in ("int_type", "int_parsing", "int_from_float", "int_parsing_size"):
        return "must be a whole number"
    if kind in ("float_type", "float_parsing"):
        return "must be a number"
    if kind == "string_too_short":
        return "must not be empty text"
    if kind == "string_pattern_mismatch":
        return "must be 1 to 100 characters without slashes or line breaks"
    return message.replace("Input should", "must").replace("Value should", "must")


def _either(choices: list[str]) -> str:
    return ", ".join(choices[:-1]) + f" or {choices[-1]}"


def _shown(document: SpecDocument, path: KeyPath) -> str:
    """The value as the file has it: before `${NAME}` is replaced, since what a variable holds may be a secret."""
    value: Any = document.value(path)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= _SHOWN else "a text of " + f"{len(str(value))} characters"
