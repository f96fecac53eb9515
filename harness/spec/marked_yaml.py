"""YAML text as plain data, with the line every key stands on.

The YAML 1.2 core schema, so that what people mean is what is read: `no`, `on` and `2024-01-01` are text, `1e-3` is
a number, `010` is ten. Keys are always text, as written. Refused, each with its line: a key given twice, tags, merge
keys, and numbers that are not finite.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from harness.errors import UsageError

KeyPath = tuple[str | int, ...]
"""The keys and list positions from the top down to a value."""

DEEPEST = 100
"""Levels of keys and list items a value may stand below."""

_MOST_NODES = 20_000
"""No file written by people is larger; a few lines of nested aliases are."""

_TAG = "tag:yaml.org,2002:"

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Stand for the braces of `${NAME}` while YAML is read: between the braces of a short mapping they would end it."""


class _CoreLoader(yaml.SafeLoader):
    """Resolves plain scalars as the YAML 1.2 core schema does."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  # PyYAML's own spelling; filled once, below


for _name, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+0123456789."),
    ),
    ("merge", r"<<", ["<"]),
):
    _CoreLoader.add_implicit_resolver(_TAG + _name, re.compile(rf"^(?:{_pattern})$"), _first)


@dataclass(frozen=True, slots=True)
class MarkedYaml:
    """What a YAML text says.

    Attributes:
        data: mappings, lists, text, numbers, booleans, None.
        lines: the line (from 1) of every key and list item.
        problems: (line, sentence) of everything refused; `data` holds None in its place.
    """

    data: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)


def parse_yaml(text: str, source: str) -> MarkedYaml:
    """Read one YAML document.

    Args:
        text: the document; an empty one reads as None.
        source: what errors call it: a file's name.

    Raises:
        UsageError: the text is not YAML; one sentence with the line.

    >>> marked = parse_yaml("a: {b: no}\\nc: [1e-3]", "x.yaml")
    >>> marked.data, marked.lines[("c", 0)]
    ({'a': {'b': 'no'}, 'c': [0.001]}, 2)
    >>> parse_yaml("data: {path: ${DATA}/x.csv}", "x.yaml").data
    {'data': {'path': '${DATA}/x.csv'}}
    """
    try:
        node = _CoreLoader(_REFERENCE.sub(rf"${_OPEN}\1{_CLOSE}", text)).get_single_node()
        builder = _Builder(source)
        data = None if node is None else builder.build(node, ())
    except yaml.MarkedYAMLError as error:
        raise UsageError(_unreadable(error, source)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UsageError(f"{source} line {line}: a character that YAML text cannot hold ({error.reason})") from None
    except RecursionError:
        raise UsageError(f"{source}: nested too deeply to be read") from None
    return MarkedYaml(data, builder.lines, builder.problems)


def _unreadable(error: yaml.MarkedYAMLError, source: str) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"{source} line {mark.line + 1}" if mark is not None else source
    problem = ", ".join(part for part in (error.context, error.problem) if part) or "no reason given"
    if "'\\t'" in problem:
        return f"{where}: a tab; YAML is indented with spaces"
    if "mapping values are not allowed" in problem:
        problem += " (put a text that holds ': ' in quotes)"
    return f"{where}: not readable as YAML: {problem}"


class _Builder:
    """Turns nodes into plain data, keeping lines and problems."""

    def __init__(self, source: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[tuple[int, str]] = []
        self._source = source
        self._nodes = 0
        self._above: set[int] = set()

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES or id(node) in self._above:
            line = node.start_mark.line + 1
            raise UsageError(
                f"{self._source} line {line}: an alias that leads back to itself or multiplies without end"
            )
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if len(path) > DEEPEST:
            line = node.start_mark.line + 1
            raise UsageError(f"{self._source} line {line}: nested more than {DEEPEST} levels deep")
        self._above.add(id(node))
        try:
            return self._sequence(node, path) if isinstance(node, yaml.SequenceNode) else self._mapping(node, path)
        finally:
            self._above.discard(id(node))

    def _sequence(self, node: yaml.SequenceNode, path: KeyPath) -> list[Any]:
        if node.tag != f"{_TAG}seq":
            self._refuse(node, f"the tag {node.tag!r} is not supported")
        items: list[Any] = []
        for index, item in enumerate(node.value):
            self.lines[*path, index] = item.start_mark.line + 1
            items.append(self.build(item, (*path, index)))
        return items

    def _mapping(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        if node.tag != f"{_TAG}map":
            self._refuse(node, f"the tag {node.tag!r} is not supported")
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, "a key must be text")
                continue
            if key_node.tag == f"{_TAG}merge":
                self._refuse(key_node, "merge keys ('<<') are not supported; write the keys out")
                continue
            key = self._key(key_node)
            if key is None:
                continue
            if key in data:
                first = self.lines[*path, key]
                self._refuse(key_node, f"the key {key!r} is given twice (first on line {first})")
                continue
            self.lines[*path, key] = key_node.start_mark.line + 1
            data[key] = self.build(value_node, (*path, key))
        return data

    def _key(self, node: yaml.ScalarNode) -> str | None:
        try:
            return _joined(node.value)
        except ValueError:
            self._refuse(node, "a key must be text")
            return None

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        kind = node.tag.removeprefix(_TAG)
        try:
            value = _read_scalar(kind, node.value)
        except (ValueError, KeyError):
            half = "the text holds half a Unicode character, such as \\\\ud800 without its other half"
            self._refuse(node, half if kind == "str" else f"the value cannot be read under the tag {kind!r}")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._refuse(node, f"{node.value!r} is not a finite number")
            return None
        return value

    def _refuse(self, node: yaml.Node, sentence: str) -> None:
        self.problems.append((node.start_mark.line + 1, sentence))


def _read_scalar(kind: str, text: str) -> Any:
    if kind in ("str", "merge"):
        return _joined(text)
    if kind == "null":
        return None
    if kind == "bool":
        return {"true": True, "false": False}[text.lower()]
    if kind == "int":
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if kind == "float":
        return float(re.sub(r"\.(?=[in])", "", text.lower()))  # `.inf` and `.nan` are Python's inf and nan
    raise KeyError(kind)


def _joined(text: str) -> str:
    """`text` with the halves joined that JSON writes as two escapes; half a character alone is a ValueError."""
    text = text.replace(f"${_OPEN}", "${").replace(_CLOSE, "}")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16")
