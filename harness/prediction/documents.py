"""What a program is asked about, from a JSONL, JSON, CSV or text file or a folder of text files.

Unlike an experiment's data, one document that cannot be read does not stop the others: it is carried along with
its error and ends among the failures.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.data.formats import cells_of_any_length, delimiter_of
from harness.errors import HarnessError, UsageError, nearest
from harness.files import kind_of, names_beside, read_file, refusal
from harness.foreign import whole

TEXT_SUFFIXES = (".txt", ".md")


@dataclass(frozen=True, slots=True)
class Document:
    """One question.

    Attributes:
        id: as the file gives it; a row without one has its line number, a text file its path, a row that cannot be
            read its place.
        inputs: the program's inputs, by name.
        error: why it cannot be asked; None when it can.
        where: the place for people.
    """

    id: str | int
    inputs: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    where: str = ""

    @property
    def digest(self) -> str:
        """Digest of the inputs: the same question again has the same one."""
        text = json.dumps(dict(self.inputs), sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def read_documents(source: Path, inputs: Sequence[str]) -> list[Document]:
    """All documents, in order.

    Args:
        source: a .jsonl, .json, .csv or .tsv file whose rows hold the inputs and optionally `id`; a .txt or .md file;
            or a folder of those, read in the order of their paths.
        inputs: the names of the program's inputs.

    Raises:
        UsageError: no such file, a format that is not known, nothing in it, an id given twice, or no row with one of
            the inputs, which is another file's columns rather than a bad row.
    """
    kind = kind_of(source)
    if kind == "missing":
        beside = names_beside(source)
        raise UsageError(f"there is no input {source}{'; ' + nearest(source.name, beside) if beside else ''}")
    if kind == "folder" or source.suffix.lower() in TEXT_SUFFIXES:
        documents = list(_text_documents(source, inputs))
    else:
        documents = _row_documents(source, inputs)
    if not documents:
        what = "holds no .txt or .md file" if kind == "folder" else "is empty"
        raise UsageError(f"{source} {what}")
    _refuse_repeated_ids(documents)
    return documents


def _text_documents(source: Path, inputs: Sequence[str]) -> Iterator[Document]:
    if len(inputs) != 1:
        raise UsageError(f"the program needs {', '.join(inputs)}, a text file holds one of them; use JSONL or CSV")
    is_folder = kind_of(source) == "folder"
    for path in _files_below(source) if is_folder else [source]:
        name = whole(path.relative_to(source).as_posix() if is_folder else path.name)
        try:
            text = read_file(path, name).decode("utf-8-sig")
        except (HarnessError, UnicodeDecodeError) as error:
            yield Document(name, error=f"{name} cannot be read as UTF-8 text: {error}", where=name)
            continue
        yield _checked(Document(name, {inputs[0]: text}, where=name))


def _files_below(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        raise refusal(f"the folder {error.filename} cannot be read", error) from None

    found = [Path(place, name) for place, _, names in os.walk(folder, onerror=refuse) for name in names]
    return sorted(path for path in found if path.suffix.lower() in TEXT_SUFFIXES and path.is_file())


def _row_documents(source: Path, inputs: Sequence[str]) -> list[Document]:
    suffix = source.suffix.lower()
    if suffix not in _ROWS:
        known = (*_ROWS, *TEXT_SUFFIXES)
        raise UsageError(f"{source}: cannot read files ending in {suffix or 'nothing'!r}; {nearest(suffix, known)}")
    try:
        text = read_file(source).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8 text: {error}") from error
    rows = list(_ROWS[suffix](text, source.name))
    columns = {name: None for _, row, _ in rows if isinstance(row, dict) for name in row}
    for name in inputs:
        if rows and columns and name not in columns:
            raise UsageError(f"no row of {source} has the input {name!r}; {nearest(name, columns)}")
    return [_row_document(number, row, where, inputs) for number, row, where in rows]


def _row_document(number: int, row: Any, where: str, inputs: Sequence[str]) -> Document:
    if isinstance(row, Exception):
        return Document(where, error=f"{where}: {row}", where=where)
    if not isinstance(row, dict):
        return Document(where, error=f"{where}: a row is an object, got {type(row).__name__}", where=where)
    given = row.get("id")
    name = given if isinstance(given, str | int) and not isinstance(given, bool) and given != "" else number
    if isinstance(name, str) and whole(name) != name:
        return Document(whole(name), error=f"{where}: the id holds half a Unicode character", where=where)
    missing = [key for key in inputs if row.get(key) is None]
    if missing:
        return Document(name, error=f"{where}: {', '.join(missing)} is missing", where=where)
    return _checked(Document(name, {key: row[key] for key in inputs}, where=where))


def _checked(document: Document) -> Document:
    for name, value in document.inputs.items():
        wrong = ""
        if isinstance(value, str) and not value.strip():
            wrong = "is empty"
        elif isinstance(value, str) and whole(value) != value:
            wrong = "holds half a Unicode character"
        if wrong:
            return Document(document.id, error=f"{document.where}: {name} {wrong}", where=document.where)
    return document


def _refuse_repeated_ids(documents: Sequence[Document]) -> None:
    seen: dict[str, str] = {}
    for document in documents:
        key = str(document.id)
        if key in seen:
            raise UsageError(f"the id {key!r} is given twice: {seen[key]} and {document.where}")
        seen[key] = document.where


_Row = tuple[int, Any, str]
"""Number, content (an exception where it cannot be read), place."""


def _jsonl(text: str, name: str) -> Iterator[_Row]:
    # Not splitlines(): JSON strings may hold U+2028 and other characters that Python takes for line ends.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                row = ValueError(f"not valid JSON ({error})")
            yield number, row, f"{name} line {number}"


def _json(text: str, name: str) -> Iterator[_Row]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not valid JSON: {error}") from error
    if not isinstance(rows, list):
        raise UsageError(f"{name} holds {type(rows).__name__}, a list of rows is expected")
    for number, row in enumerate(rows, 1):
        yield number, row, f"{name} row {number}"


def _csv(text: str, name: str) -> Iterator[_Row]:
    return _delimited(text, name, delimiter_of(text))


def _tsv(text: str, name: str) -> Iterator[_Row]:
    return _delimited(text, name, "\t")


def _delimited(text: str, name: str, delimiter: str) -> Iterator[_Row]:
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restkey="", strict=True)
    while True:
        try:
            with cells_of_any_length(text):
                row: Any = next(lines)
        except StopIteration:
            return
        except csv.Error as error:
            row = error
        number = lines.reader.line_num
        if isinstance(row, dict) and "" in row:
            row = ValueError("more cells than columns; quote a cell that holds the separator")
        yield number, row, f"{name} line {number}"


_ROWS: Mapping[str, Callable[[str, str], Iterator[_Row]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _tsv,
}
