"""`--set key=value`: one change to an experiment file, written on the command line.

Keys are dotted; where keys of the file hold dots themselves (`steps[*].action`), the longest key that is there is
meant, and a new one is put in double quotes. Short forms are opened on the way: with `data: rows.csv` in the file,
`--set data.split.seed=1` is `data: {path: rows.csv, split: {seed: 1}}`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError
from harness.spec.document import SpecDocument, dotted
from harness.spec.marked_yaml import DEEPEST, KeyPath, parse_yaml

_PART = re.compile(r'"([^"]*)"|([^."]+)')
_KEY = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")


@dataclass(frozen=True, slots=True)
class ShortForms:
    """Which plain values of a file stand for a mapping.

    Attributes:
        main_keys: path of a section -> the key its plain value stands for ("*" matches any one key).
        named: top-level sections of the form `NAME` or `{NAME: {arguments}}`, which hold one name at a time.
    """

    main_keys: Mapping[KeyPath, str]
    named: Collection[str]

    def main_key(self, path: KeyPath) -> str | None:
        """The key that a plain value at `path` stands for."""
        for pattern, key in self.main_keys.items():
            if len(pattern) == len(path) and all(part in ("*", here) for part, here in zip(pattern, path, strict=True)):
                return key
        return None


def apply_override(document: SpecDocument, text: str, forms: ShortForms) -> None:
    """Change `document` as `KEY=VALUE` says; VALUE is read as YAML.

    Raises:
        UsageError: not of the form KEY=VALUE, VALUE is not YAML, or KEY leads through a value that holds no keys.
    """
    key_text, equals, value_text = text.partition("=")
    key_text = key_text.strip()
    if not equals or not _KEY.fullmatch(key_text):
        raise UsageError(f"--set takes KEY=VALUE, such as data.split.seed=1, not {key_text!r}")
    place = f"in --set {key_text}"
    marked = parse_yaml(value_text, place)
    parts = [quoted or plain for quoted, plain in _PART.findall(key_text)]
    if len(parts) > DEEPEST:
        raise UsageError(f"in --set {key_text[:40]}...: a key of {len(parts)} steps; {DEEPEST} are the most")
    path = _descend(document, parts, forms, place)
    holder = document.value(path[:-1])
    holder[path[-1]] = marked.data
    for inner in [known for known in document.places if known[: len(path)] == path]:
        del document.places[inner]
    document.places[path] = place
    document.problems.extend((path, f"{place}: {sentence}") for _, sentence in marked.problems)


def _descend(document: SpecDocument, parts: list[str], forms: ShortForms, place: str) -> tuple[str, ...]:
    """Open every mapping on the way to the key; the path to set, whose parent is a mapping."""
    path: tuple[str, ...] = ()
    here: dict[str, Any] = document.data
    while True:
        key, parts = _next_key(here, parts, in_named=len(path) == 1 and path[0] in forms.named)
        if len(path) == 1 and path[0] in forms.named and key not in here:
            here.clear()  # another name takes the place of the one in the file
        path = (*path, key)
        if not parts:
            return path
        if key not in here:
            document.places[path] = place
        here[key] = _opened(here.get(key), path, parts, forms, place)
        here = here[key]


def _next_key(here: Mapping[str, Any], parts: list[str], *, in_named: bool) -> tuple[str, list[str]]:
    for length in range(len(parts), 0, -1):
        joined = ".".join(parts[:length])
        if joined in here:
            return joined, parts[length:]
    if in_named:  # a reference such as programs.schema:SchemaExtraction holds dots before its colon
        for length, part in enumerate(parts, start=1):
            if ":" in part:
                return ".".join(parts[:length]), parts[length:]
    return parts[0], parts[1:]


def _opened(value: Any, path: KeyPath, parts: list[str], forms: ShortForms, place: str) -> dict[str, Any]:
    """`value` as a mapping, a short form opened."""
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    if isinstance(value, str):
        main_key = forms.main_key(path)
        if main_key is not None:
            return {main_key: value}
        if len(path) == 1 and path[0] in forms.named:
            return {value: {}}
        if any(".".join(parts[:length]) == value for length in range(1, len(parts) + 1)):
            return {value: {}}
    kind = "a list: set it whole" if isinstance(value, list) else f"{value!r}, which holds no keys"
    raise UsageError(f"{place}: {dotted(path)} is {kind}")
