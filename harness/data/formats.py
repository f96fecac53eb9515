"""Rows with their places, from each file format: JSONL, JSON, CSV, TSV and Parquet.

What a row means (ids, renames, the expected record) is the business of `harness.data.rows`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.errors import UsageError, nearest
from harness.files import kind_of, names_beside, read_file

_NOT_JSON = re.compile(r'"(?:\\.|[^"\\])*"|(-?Infinity|NaN)')
"""A whole string (skipped), or one of the three words Python's parser accepts and JSON does not have."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row as the file has it."""

    cells: Mapping[str, Any]
    """Column name to value; in CSV and TSV every value is text and an empty cell has no key."""
    number: int
    """Its line in a text format, else its position from 1."""
    where: str
    """The place for people."""


def read_rows(path: Path) -> list[Row]:
    """All rows of the file, by its extension.

    Raises:
        UsageError: no such file, a folder, an unknown extension, nothing in it, not UTF-8, broken content.
    """
    require_file(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"{path}: cannot read files ending in {suffix or 'nothing'!r}; {nearest(suffix, FORMATS)}")
    rows = list(FORMATS[suffix](path))
    if not rows:
        raise UsageError(f"{path} has no rows.")
    return rows


def require_file(path: Path) -> None:
    """Refuse what is not a file, naming the most similar file beside it.

    Raises:
        UsageError: the path does not exist, is a folder or a pipe, or may not be looked at.
    """
    kind = kind_of(path)
    if kind == "folder":
        raise UsageError(f"{path} is a folder; name the data file in it.")
    if kind == "special":
        raise UsageError(f"{path} is a pipe or a device; data is read from a file.")
    if kind == "missing":
        beside = names_beside(path)
        hint = nearest(path.name, beside) if beside else f"the folder {path.parent} is empty or not there."
        raise UsageError(f"there is no data file {path}; {hint}")


def read_text(path: Path) -> str:
    """The file's text, UTF-8 with or without a byte order mark, line ends untouched.

    Raises:
        UsageError: the bytes are not UTF-8, or there is nothing but white space.
    """
    content = read_file(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{path.name} line {line}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8."
        ) from None
    if not text.strip():
        raise UsageError(f"{path} is empty.")
    return text


def parse_json(text: str, where: str, *, lines: bool = False) -> Any:
    """`text` as JSON, strictly: no NaN or Infinity, no key twice in one object.

    Args:
        text: the document.
        where: the place of the document, for errors; the column within it is added.
        lines: the document has lines of its own, so name the line too.

    Raises:
        UsageError: with the place and what is wrong.

    >>> parse_json('{"total": NaN}', "a.jsonl line 3")
    Traceback (most recent call last):
    harness.errors.UsageError: a.jsonl line 3 column 11: NaN is not JSON; leave the value out, or write null.
    """

    def place(offset: int) -> str:
        column = offset - text.rfind("\n", 0, offset)
        line = f" line {text.count(chr(10), 0, offset) + 1}" if lines else ""
        return f"{where}{line} column {column}"

    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise UsageError(f"{place(error.pos)}: not valid JSON ({error.msg}).") from None
    except _NotInJsonError as error:
        match = next(match for match in _NOT_JSON.finditer(text) if match.group(1))
        raise UsageError(
            f"{place(match.start())}: {error.args[0]} is not JSON; leave the value out, or write null."
        ) from None
    except _TwiceError as error:
        raise UsageError(f"{where}: the key {error.args[0]!r} is there twice in one object.") from None
    except RecursionError:
        raise UsageError(f"{where}: nested too deeply to read.") from None
    except ValueError as error:  # a whole number of more than 4,300 digits
        raise UsageError(f"{where}: a number cannot be read ({error}).") from None


class _NotInJsonError(Exception):
    pass


class _TwiceError(Exception):
    pass


def _refuse_constant(word: str) -> None:
    raise _NotInJsonError(word)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _TwiceError(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return found


def _jsonl(path: Path) -> Iterator[Row]:
    # Not splitlines(): JSON strings may hold U+2028 and other characters that Python takes for line ends.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            where = f"{path.name} line {number}"
            yield Row(_row_object(parse_json(line, where), where), number, where)


def _json(path: Path) -> Iterator[Row]:
    content = parse_json(read_text(path), path.name, lines=True)
    if isinstance(content, dict):
        if "records" not in content:
            raise UsageError(
                f"{path.name} holds one object; give a list of objects, or an object whose `records` is that list."
            )
        content = content["records"]
    if not isinstance(content, list):
        raise UsageError(f"{path.name}: the records are {_kind(content)} where a list of objects is needed.")
    for number, item in enumerate(content, 1):
        where = f"{path.name} record {number}"
        yield Row(_row_object(item, where), number, where)


def _row_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: the row is {_kind(value)} where an object is needed.")
    return value


def _kind(value: Any) -> str:
    names = {list: "a list", dict: "an object", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _csv(path: Path) -> Iterator[Row]:
    text = read_text(path)
    return _delimited(path, text, delimiter_of(text))


def _tsv(path: Path) -> Iterator[Row]:
    return _delimited(path, read_text(path), "\t")


def _delimited(path: Path, text: str, delimiter: str) -> Iterator[Row]:
    lines = _split_cells(path, text, delimiter)
    header_line, header = lines[0]
    names = [name.strip() for name in header]
    for name in names:
        if name and names.count(name) > 1:
            raise UsageError(f"{path.name} line {header_line}: two columns are called {name!r}.")
    for number, cells in lines[1:]:
        where = f"{path.name} line {number}"
        if len(cells) != len(names):
            raise UsageError(f"{where} has {len(cells)} cells where the header has {len(names)}.")
        # A column without a name is what pandas writes for its index: it carries nothing.
        yield Row({name: cell for name, cell in zip(names, cells, strict=True) if name and cell.strip()}, number, where)


def _split_cells(path: Path, text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """(line the row starts on, cells) of every row that is not blank."""
    found: list[tuple[int, list[str]]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start = 1
    try:
        with cells_of_any_length(text):
            for cells in reader:
                if cells:
                    found.append((start, cells))
                start = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(f"{path.name}: the row that starts on line {start} cannot be read ({error}).") from None
    return found


def delimiter_of(text: str) -> str:
    r"""What parts the cells of a CSV: the comma, or a semicolon or tab where the header has more of those.

    Spreadsheets write semicolons wherever the comma is the decimal mark, and tabs when asked for text.

    >>> delimiter_of("id,text\n1,a;b;c"), delimiter_of("id;text\n"), delimiter_of('id\t"a, b, c"\n')
    (',', ';', '\t')
    """
    header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").split("\n", 1)[0])
    return max(",;\t", key=header.count)


@contextmanager
def cells_of_any_length(text: str) -> Iterator[None]:
    """The csv module's limit of 131,072 characters per cell, one number for the whole process, out of the way.

    Papers are longer.
    """
    limit = csv.field_size_limit(len(text) + 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(
            f"{path.name} is not a Parquet file that can be read ({str(error).splitlines()[0]})."
        ) from None
    for number, cells in enumerate(table.to_pylist(), 1):
        yield Row(cells, number, f"{path.name} row {number}")


FORMATS: Mapping[str, Callable[[Path], Iterator[Row]]] = MappingProxyType(
    {".jsonl": _jsonl, ".ndjson": _jsonl, ".json": _json, ".csv": _csv, ".tsv": _tsv, ".parquet": _parquet}
)
"""Extension to the function that reads it."""
