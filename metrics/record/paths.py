"""Paths of a record: `a.b`, `list[*].field`, `list[*]`.

A path names a kind of place, not one place: `steps[*].action` is the action of every step. `$` is the record
itself, for records that are a single value; a record that is a list starts with `[*]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final


class _Every:
    __slots__ = ()

    def __repr__(self) -> str:
        return "EVERY"


EVERY: Final = _Every()
"""Stands in a pattern for every item of a list."""

Pattern = tuple[str | _Every, ...]
"""A path taken apart: ("steps", EVERY, "action")."""

_SEGMENT = re.compile(r"(?P<name>[^\[\]]*)(?P<items>(?:\[\*\])*)")


def parse(path: str) -> Pattern:
    """The pattern a path stands for.

    Raises:
        ValueError: not a path; the sentence says what to write instead.

    >>> written(parse("steps[*].conditions.temperature"))
    'steps[*].conditions.temperature'
    >>> parse("steps[0].action")
    Traceback (most recent call last):
    ValueError: path 'steps[0].action': items are not named by position; for every item write 'steps[*].action'
    """
    if not isinstance(path, str) or not path.strip():
        raise ValueError(f"a path is text such as 'vendor' or 'steps[*].action', got {path!r}")
    if path == "$":
        return ()
    pattern: list[str | _Every] = []
    for index, segment in enumerate(path.split(".")):
        found = _SEGMENT.fullmatch(segment)
        if found is None:
            raise ValueError(f"path {path!r}: {_repair(path)}")
        if not found["name"] and (index or not found["items"]):
            raise ValueError(f"path {path!r}: a name is empty between two dots")
        pattern += [found["name"]] if found["name"] else []
        pattern += [EVERY] * found["items"].count("*")
    return tuple(pattern)


def _repair(path: str) -> str:
    repaired = re.sub(r"\[\*\](?=[^.\[])", "[*].", re.sub(r"\[(?:\d+|)\]", "[*]", path))
    if re.search(r"\[\d+\]", path):
        return f"items are not named by position; for every item write {repaired!r}"
    if repaired != path and repaired.count("[") == repaired.count("[*]") == repaired.count("]"):
        return f"write {repaired!r}"
    return "brackets stand only in [*], which is every item of a list"


def written(pattern: Iterable[str | _Every]) -> str:
    """The path of a pattern, as `parse` reads it.

    >>> written(("tags", EVERY)), written(()), written((EVERY, "name"))
    ('tags[*]', '$', '[*].name')
    """
    text = "".join("[*]" if isinstance(part, _Every) else f".{part}" for part in pattern)
    return text.removeprefix(".") or "$"
