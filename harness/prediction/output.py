"""The output of a prediction: rows as they are finished, in the input's order in the end, failures beside.

    OUT.jsonl                 one row per answer, {"id": ..., "<output field>": ...}
    OUT.jsonl.failures.jsonl  one row per document without an answer, from the last time it was tried
    OUT.jsonl.origin.json     which bundle and model the rows come from, and digests of what was asked

A row is written in one piece when it is finished, so that a crash costs at most the row being written.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from harness.errors import HarnessError, UsageError
from harness.files import kind_of, read_file, refusal
from harness.foreign import whole
from harness.prediction.documents import TEXT_SUFFIXES, Document
from harness.prediction.lock import OutputLock


class PredictionOutput:
    """The files of one output, open for more rows. A context manager; leaving it puts the rows in order.

    Args:
        path: the output file.
        field: the name of the answer in a row.
        origin: what the rows come from (bundle, model); an output from elsewhere is refused.
        documents: what is asked, in order.

    Raises:
        UsageError: the output exists and comes from elsewhere, belongs to other documents, is damaged, cannot be
            written, or is being written by somebody else. Adding and leaving raise it as well, and a HarnessError when
            the disk is full; what was added before is kept.
    """

    def __init__(self, path: Path, *, field: str, origin: Mapping[str, str], documents: Sequence[Document]) -> None:
        self._path = path
        self._field = field
        self._failures_path = path.with_name(f"{path.name}.failures.jsonl")
        self._origin_path = path.with_name(f"{path.name}.origin.json")
        self._documents = documents
        self._written: TextIO | None = None
        self._failures: dict[str, str] = {}
        for each in (path, self._failures_path, _draft(self._failures_path), _draft(self._origin_path)):
            kind_of(each)  # a name that is too long with an ending is found before anything is asked
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refusal(f"the folder of {path} cannot be made", error) from error
        self._lock = OutputLock(path)
        try:
            self._rows = self._continued(origin)
        except BaseException:
            self._lock.release()
            raise

    def _continued(self, origin: Mapping[str, str]) -> dict[str, str]:
        """The rows that are there, after the files have been put in order."""
        known = self._known_digests(origin)
        rows = self._read_rows()
        self._refuse_other_documents(rows, known)
        digests = {key: known[key] for key in rows if key in known}
        digests |= {str(document.id): document.digest for document in self._documents}
        _write(self._origin_path, json.dumps({**origin, "documents": digests}, indent=1, ensure_ascii=False) + "\n")
        _write(self._path, self._text(rows))
        return rows

    @property
    def finished(self) -> frozenset[str]:
        """Ids, as text, of the documents that have an answer."""
        return frozenset(self._rows)

    def __enter__(self) -> PredictionOutput:
        try:
            self._failures_path.unlink(missing_ok=True)
            self._written = self._path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            self._lock.release()
            raise refusal(f"{self._path} cannot be written", error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._written is not None:
                with contextlib.suppress(OSError):  # the rest of a row that could not be written; the row is done again
                    self._written.close()
            _write(self._path, self._text(self._rows))
            if self._failures:
                _write(self._failures_path, self._text(self._failures))
        except HarnessError:
            if kind is None:  # else the disk that is full has been told of already
                raise
        finally:
            self._lock.release()

    def add(self, document: Document, answer: Any) -> None:
        """Keep an answer; it is on the disk when this returns."""
        line = json.dumps({"id": document.id, self._field: answer}, ensure_ascii=False, allow_nan=False)
        if self._written is not None:
            try:
                self._written.write(f"{line}\n")
                self._written.flush()
            except OSError as error:
                raise refusal(f"{self._path} cannot be written", error) from error
        self._rows[str(document.id)] = line

    def fail(self, document: Document, error: str, **details: Any) -> None:
        """Keep why there is no answer."""
        row = {"id": document.id, "error": error, **details}
        line = whole(json.dumps(row, ensure_ascii=False, default=str))
        self._failures[str(document.id)] = line
        try:
            with self._failures_path.open("a", encoding="utf-8", newline="\n") as failures:
                failures.write(f"{line}\n")
        except OSError as refused:
            raise refusal(f"{self._failures_path} cannot be written", refused) from refused

    def _text(self, rows: Mapping[str, str]) -> str:
        """The rows in the input's order; those of documents that are no longer in it come last."""
        asked = [str(document.id) for document in self._documents]
        rest = [key for key in rows if key not in set(asked)]
        return "".join(f"{rows[key]}\n" for key in (*asked, *rest) if key in rows)

    def _known_digests(self, origin: Mapping[str, str]) -> Mapping[str, str]:
        if kind_of(self._path) == "missing" or not self._path.stat().st_size:
            return {}
        if kind_of(self._origin_path) == "missing":
            raise UsageError(f"{self._path} exists and was not written by predict; choose another output")
        try:
            found = json.loads(read_file(self._origin_path))
            documents = dict(found["documents"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UsageError(f"{self._origin_path} cannot be read ({error}); choose another output") from error
        for name, value in origin.items():
            if found.get(name) != value:
                raise UsageError(
                    f"{self._path} comes from another {name} ({found.get(name)}, now {value}); choose another output"
                )
        return documents

    def _read_rows(self) -> dict[str, str]:
        if kind_of(self._path) == "missing":
            return {}
        lines = read_file(self._path).decode(errors="replace").split("\n")
        last = len(lines) if lines[-1] else len(lines) - 1
        rows: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            key = _row_key(line, self._field)
            if key is not None:
                rows[key] = line
            elif line.strip() and number < last:
                raise UsageError(
                    f"{self._path} line {number} is not a row with id and {self._field}; repair or remove it"
                )
        return rows

    def _refuse_other_documents(self, rows: Mapping[str, str], known: Mapping[str, str]) -> None:
        for document in self._documents:
            key = str(document.id)
            if key in rows and document.error is None and known.get(key) != document.digest:
                raise UsageError(
                    f"{self._path} holds an answer for {key!r}, but {document.where} asks something else now; "
                    "choose another output"
                )


def refuse_output(source: Path, target: Path) -> None:
    """Refuse an output that is no file to write and continue, before anything is opened or asked.

    Raises:
        UsageError: the output is a folder, not a regular file, the input itself, what is kept beside another output,
            or would be read as one of the texts the next time.
    """
    if str(target) == "-":
        raise UsageError("predict writes a file that it can continue, not to the terminal; name one: results.jsonl")
    kind = kind_of(target)
    if kind == "folder":
        raise UsageError(f"{target} is a folder; name the file to write, such as {target / 'results.jsonl'}")
    if target.is_symlink() or kind == "special":
        raise UsageError(f"{target} is not a regular file, and the output replaces it; choose another output")
    beside = [target.with_name(f"{target.name}.{name}") for name in ("failures.jsonl", "origin.json")]
    if any(kind_of(path) == "file" and kind_of(source) == "file" and path.samefile(source) for path in beside):
        raise UsageError(f"{source} is what {target} keeps beside it; choose another output")
    if kind == "file" and kind_of(source) == "file" and target.samefile(source):
        raise UsageError(f"{target} is the input; choose another output")
    if target.suffix.lower() in TEXT_SUFFIXES and target.absolute().is_relative_to(source.absolute()):
        raise UsageError(
            f"{target} would be read as one of the texts of {source} the next time; end its name in .jsonl"
        )


def _row_key(line: str, field: str) -> str | None:
    """The id of a row; None when the line is not one, such as a last line that was cut."""
    try:
        row = json.loads(line)
        return str(row["id"]) if field in row else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _write(path: Path, text: str) -> None:
    """Replace a file as a whole, and only if that changes it."""
    content = text.encode()
    beside = _draft(path)
    try:
        if path.exists() and path.read_bytes() == content:
            return
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise refusal(f"{path} cannot be written", error) from error


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
