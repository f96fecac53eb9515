"""The reader `records`: a row of the user's own table becomes a Record.

A row holds `id` (else its line number), the program's inputs by name, and `expected`, the record to reach. `expected`
is an object, or text that holds one, or is built from columns named by path: `expected.vendor`,
`expected.items[0].name`. `columns` gives other names: {name used here: name in the file}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.data.cells import read_columns
from harness.data.formats import Row, parse_json, read_rows
from harness.data.record import DEEPEST, Record
from harness.errors import UsageError, nearest

UNTYPED = (".csv", ".tsv")
"""Formats whose cells are text and nothing else."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_PATH = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[\d+\])*")
_BUILT = ("expected.", "expected[")


def read_records(path: Path, columns: Mapping[str, str]) -> list[Record]:
    """All rows of a JSONL, JSON, CSV, TSV or Parquet file as records.

    Args:
        path: the file; its extension names the format.
        columns: name used by the program to the name in the file. A column that stands in for another takes its
            place. Renaming `expected` to `gold` also makes `gold.vendor` build the record.

    Raises:
        UsageError: whatever is wrong with the file, in one sentence with its place.
    """
    rows = read_rows(path)
    names = list(dict.fromkeys(name for row in rows for name in row.cells))
    renamed = _renames(names, columns, path)
    built = _paths([new for old in names if (new := renamed.get(old)) is not None], path)
    cells = [{new: value for old, value in row.cells.items() if (new := renamed.get(old)) is not None} for row in rows]
    if path.suffix.lower() in UNTYPED:
        cells = read_columns(cells, list(built))
    return [_record(row, content, built) for row, content in zip(rows, cells, strict=True)]


def _renames(names: Sequence[str], columns: Mapping[str, str], path: Path) -> dict[str, str]:
    """Name in the file to the name used here; a name that another column stands in for is left out."""
    renamed = {name: name for name in names if name not in columns}
    for new, old in columns.items():
        parts = {name: new + name[len(old) :] for name in names if name.startswith((f"{old}.", f"{old}["))}
        if old not in names and not (new == "expected" and parts):
            raise UsageError(f"data.columns: {path.name} has no column {old!r} for {new!r}; {nearest(old, names)}")
        if new == "expected":
            renamed.update(parts)
        if old in names:
            renamed[old] = new
    return renamed


def _paths(names: Sequence[str], path: Path) -> dict[str, tuple[str | int, ...]]:
    """Every column that builds the record, with the way to its place in it."""
    built: dict[str, tuple[str | int, ...]] = {}
    for name in names:
        if not name.startswith(_BUILT):
            continue
        if not _PATH.fullmatch(name):
            raise UsageError(f"{path.name}: the column {name!r} is no path like 'expected.items[0].name'.")
        built[name] = tuple(int(index) if index else key for key, index in _STEP.findall(name))[1:]
        if len(built[name]) > DEEPEST:
            raise UsageError(
                f"{path.name}: the column {name:.60}... has {len(built[name])} steps; {DEEPEST} are the most."
            )
    if built and "expected" in names:
        raise UsageError(f"{path.name} has both a column 'expected' and {next(iter(built))!r}; keep one of the two.")
    for name, steps in built.items():
        for other, longer in built.items():
            if name == other:
                continue
            clash = longer[: len(steps)] == steps or _kinds_differ(steps, longer)
            if clash:
                raise UsageError(f"{path.name}: the columns {name!r} and {other!r} want the same place in the record.")
    return built


def _kinds_differ(one: tuple[str | int, ...], two: tuple[str | int, ...]) -> bool:
    """Whether one path takes for a list what the other takes for an object."""
    for mine, other in zip(one, two, strict=False):
        if mine != other:
            return isinstance(mine, int) != isinstance(other, int)
    return False


def _record(row: Row, content: Mapping[str, Any], built: Mapping[str, tuple[str | int, ...]]) -> Record:
    cells = {name: value for name, value in content.items() if value is not None}
    if built:
        expected = _build({steps: cells[name] for name, steps in built.items() if name in cells})
    else:
        expected = _read_expected(cells.get("expected"), row.where)
    fields = {name: value for name, value in cells.items() if name not in built and name not in ("id", "expected")}
    return Record(_identify(cells.get("id"), row), fields, expected, None, row.where)


def _identify(value: Any, row: Row) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        return str(row.number)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a whole-number column with a gap in it comes out of pandas as 7.0
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise UsageError(f"{row.where}: the id is {value!r:.60} where text or a whole number is needed.")
    return str(value).strip()


def _read_expected(value: Any, where: str) -> Any:
    """Text that opens like an object must be one; text that opens like a list may be a name such as [Cu(pz)2]."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("{"):
        return parse_json(text, f"{where}, expected")
    if text.startswith("["):
        try:
            return parse_json(text, where)
        except UsageError:
            return value
    return value


def _build(parts: Mapping[tuple[str | int, ...], Any]) -> Any:
    """The record that the filled cells add up to; None when none is filled.

    List items take the order of their index, and an index without a filled cell is no item.
    """
    if not parts:
        return None
    if () in parts:
        return parts[()]
    children: dict[str | int, dict[tuple[str | int, ...], Any]] = {}
    for (first, *rest), value in parts.items():
        children.setdefault(first, {})[tuple(rest)] = value
    if isinstance(next(iter(children)), int):
        return [_build(child) for _, child in sorted(children.items(), key=lambda item: item[0])]
    return {str(key): _build(child) for key, child in children.items()}
