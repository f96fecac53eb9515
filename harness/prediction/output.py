"""The output of a prediction: rows as they are finished, in the input's order in the end, failures beside.

    OUT.jsonl                 one row per answer, {"id": ..., "<output field>": ...}
    OUT.jsonl.failures.jsonl  one row per document without an answer, from the last time it was tried
    OUT.jsonl.origin.json     which bundle and model the rows come from, and digests of what was asked

A row is written in one piece when it is finished, so that a crash costs at most the row being written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from harness.errors import UsageError
from harness.prediction.documents import Document


class PredictionOutput:
    """The files of one output, open for more rows. A context manager; leaving it puts the rows in order.

    Args:
        path: the output file.
        field: the name of the answer in a row.
        origin: what the rows come from (bundle, model); an output from elsewhere is refused.
        documents: what is asked, in order.

    Raises:
        UsageError: the output exists and comes from elsewhere, belongs to other documents, or is damaged.
    """

    def __init__(self, path: Path, *, field: str, origin: Mapping[str, str], documents: Sequence[Document]) -> None:
        self._path = path
        self._field = field
        self._failures_path = path.with_name(f"{path.name}.failures.jsonl")
        self._origin_path = path.with_name(f"{path.name}.origin.json")
        self._documents = documents
        known = self._known_digests(origin)
        self._rows = self._read_rows()
        self._refuse_other_documents(known)
        digests = {key: known[key] for key in self._rows if key in known}
        digests |= {str(document.id): document.digest for document in documents}
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(self._origin_path, json.dumps({**origin, "documents": digests}, indent=1, ensure_ascii=False) + "\n")
        _write(self._path, self._text(self._rows))
        self._written: TextIO | None = None
        self._failures: dict[str, str] = {}

    @property
    def finished(self) -> frozenset[str]:
        """Ids, as text, of the documents that have an answer."""
        return frozenset(self._rows)

    def __enter__(self) -> PredictionOutput:
        self._failures_path.unlink(missing_ok=True)
        self._written = self._path.open("a", encoding="utf-8", newline="\n")
        return self

    def __exit__(self, *_: object) -> None:
        if self._written is not None:
            self._written.close()
        _write(self._path, self._text(self._rows))
        if self._failures:
            _write(self._failures_path, self._text(self._failures))

    def add(self, document: Document, answer: Any) -> None:
        """Keep an answer; it is on the disk when this returns."""
        line = json.dumps({"id": document.id, self._field: answer}, ensure_ascii=False, allow_nan=False)
        self._rows[str(document.id)] = line
        if self._written is not None:
            self._written.write(f"{line}\n")
            self._written.flush()

    def fail(self, document: Document, error: str, **details: Any) -> None:
        """Keep why there is no answer."""
        row = {"id": document.id, "error": error, **details}
        line = json.dumps(row, ensure_ascii=False, default=str)
        self._failures[str(document.id)] = line
        with self._failures_path.open("a", encoding="utf-8", newline="\n") as failures:
            failures.write(f"{line}\n")

    def _text(self, rows: Mapping[str, str]) -> str:
        """The rows in the input's order; those of documents that are no longer in it come last."""
        asked = [str(document.id) for document in self._documents]
        rest = [key for key in rows if key not in set(asked)]
        return "".join(f"{rows[key]}\n" for key in (*asked, *rest) if key in rows)

    def _known_digests(self, origin: Mapping[str, str]) -> Mapping[str, str]:
        if self._path.is_dir():
            raise UsageError(f"{self._path} is a folder; name the file to write")
        if not self._path.exists() or not self._path.stat().st_size:
            return {}
        try:
            found = json.loads(self._origin_path.read_text(encoding="utf-8"))
            documents = dict(found["documents"])
        except FileNotFoundError:
            raise UsageError(f"{self._path} exists and was not written by predict; choose another output") from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UsageError(f"{self._origin_path} cannot be read ({error}); choose another output") from error
        for name, value in origin.items():
            if found.get(name) != value:
                raise UsageError(
                    f"{self._path} comes from another {name} ({found.get(name)}, now {value}); choose another output"
                )
        return documents

    def _read_rows(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        lines = self._path.read_text(encoding="utf-8", errors="replace").split("\n")
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

    def _refuse_other_documents(self, known: Mapping[str, str]) -> None:
        for document in self._documents:
            key = str(document.id)
            if key in self._rows and document.error is None and known.get(key) != document.digest:
                raise UsageError(
                    f"{self._path} holds an answer for {key!r}, but {document.where} asks something else now; "
                    "choose another output"
                )


def _row_key(line: str, field: str) -> str | None:
    """The id of a row; None when the line is not one, such as a last line that was cut."""
    try:
        row = json.loads(line)
        return str(row["id"]) if field in row else None
    except (ValueError, TypeError, KeyError):
        return None


def _write(path: Path, text: str) -> None:
    """Replace a file as a whole, and only if that changes it."""
    content = text.encode()
    if path.exists() and path.read_bytes() == content:
        return
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(content)
    os.replace(beside, path)
