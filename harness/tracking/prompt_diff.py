"""What changed between two texts, for reading: whole lines, changed words inside them, long unchanged runs folded."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["same", "removed", "added"]
_CONTEXT = 3
_WORD = re.compile(r"\w+|\s+|.")
_MAX_WORD_PRODUCT = 250_000
_MAX_EXACT_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line; `changed` marks the words that differ from the line's counterpart."""

    text: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of either text."""

    kind: Kind
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are read together; a folded block is unchanged text a reader may skip."""

    folded: bool
    lines: tuple[Line, ...]


def diff(before: str, after: str) -> list[Block]:
    """The blocks that turn `before` into `after`.

    All lines that are not "added" give `before` back, all that are not "removed" give `after`.

    >>> [(line.kind, [span.text for span in line.spans if span.changed])
    ...  for block in diff("Read the text.\\nBe brief.", "Read the whole text.\\nBe brief.") for line in block.lines]
    [('removed', []), ('added', ['whole ']), ('same', [])]
    """
    return _folded(list(_lines(before.splitlines(), after.splitlines())))


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    for kind, start, end, new_start, new_end in _matcher(before, after).get_opcodes():
        if kind == "equal":
            yield from (_whole("same", line) for line in before[start:end])
            continue
        removed, added = before[start:end], after[new_start:new_end]
        pairs = [_words(old, new) for old, new in zip(removed, added, strict=False)]
        yield from (old for old, _ in pairs)
        yield from (_whole("removed", line) for line in removed[len(pairs) :])
        yield from (new for _, new in pairs)
        yield from (_whole("added", line) for line in added[len(pairs) :])


def _words(before: str, after: str) -> tuple[Line, Line]:
    old, new = _WORD.findall(before), _WORD.findall(after)
    if len(old) * len(new) > _MAX_WORD_PRODUCT:
        return _whole("removed", before), _whole("added", after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < 0.4:  # marking every other word of an unrelated line helps nobody
        return _whole("removed", before), _whole("added", after)
    removed: list[Span] = []
    added: list[Span] = []
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if end > start:
            removed.append(Span("".join(old[start:end]), kind != "equal"))
        if new_end > new_start:
            added.append(Span("".join(new[new_start:new_end]), kind != "equal"))
    return Line("removed", tuple(removed)), Line("added", tuple(added))


def _folded(lines: Sequence[Line]) -> list[Block]:
    shown = [False] * len(lines)
    for position, line in enumerate(lines):
        if line.kind != "same":
            first, last = max(0, position - _CONTEXT), min(len(lines), position + _CONTEXT + 1)
            shown[first:last] = [True] * (last - first)
    blocks: list[Block] = []
    start = 0
    for position in range(1, len(lines) + 1):
        if position == len(lines) or shown[position] != shown[start]:
            blocks.append(Block(not shown[start], tuple(lines[start:position])))
            start = position
    return blocks


def _matcher(before: Sequence[str], after: Sequence[str]) -> difflib.SequenceMatcher[str]:
    return difflib.SequenceMatcher(None, before, after, autojunk=len(before) + len(after) > _MAX_EXACT_LINES)


def _whole(kind: Kind, text: str) -> Line:
    return Line(kind, (Span(text),))
