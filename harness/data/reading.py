"""From a path and a reader to records that are fit to be split: every check on the data as a whole is here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.data.cells import fit
from harness.data.corpora import read_olivetti, read_pcmsp
from harness.data.record import Reader, Record, plain
from harness.data.rows import UNTYPED, read_records
from harness.errors import HarnessError, RunStopped, UsageError, nearest
from harness.foreign import told, whole

READERS: Mapping[str, Reader] = MappingProxyType(
    {"records": read_records, "olivetti": read_olivetti, "pcmsp": read_pcmsp}
)
"""Name in an experiment file to reader."""

_OWN_KEYS = ("id", "expected", "group", "where")
_SHOWN = 5
"""Rows named in one error."""


def read(
    path: Path,
    reader: Reader,
    columns: Mapping[str, str] | None = None,
    group_by: str | None = None,
    *,
    inputs: Sequence[str] = (),
    schema: Mapping[str, Any] | None = None,
    require_expected: bool = True,
) -> list[Record]:
    """All records of one data file, checked as a whole.

    Args:
        path: the file.
        reader: one of `READERS` or a user's own.
        columns: name used by the program to the name in the file.
        group_by: the field whose value is the record's group; a record without it stands alone.
        inputs: the program's inputs; each must be there in every record.
        schema: JSON Schema of the record to reach; the cells of a CSV or TSV, which have no types, are fitted to it.
        require_expected: refuse records without an expected record. The corpora have some: read them with False and
            part them with `labelled`.

    Raises:
        UsageError: nothing in the file, an id twice, no such group column, an input or an expected record missing.
    """
    records = [
        _record(row, f"{path.name} record {number}", number, reader)
        for number, row in enumerate(_rows(reader, path, columns or {}), 1)
    ]
    if not records:
        raise UsageError(f"{path} has no rows.")
    _check_ids(records)
    if schema is not None and reader is read_records and path.suffix.lower() in UNTYPED:
        fitted = [replace(record, expected=fit(record.expected, schema)) for record in records]
        records = [replace(record, expected=plain(record.expected, record.where, "expected")) for record in fitted]
    if group_by is not None:
        records = _grouped(records, group_by, path)
    for name in inputs:
        _check_input(records, name, path)
    missing = [record for record in records if record.expected is None]
    if missing and require_expected:
        raise UsageError(
            f"{len(missing)} of {len(records)} rows of {path.name} have no expected record: {_places(missing)}."
        )
    return records


def labelled(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """The records with an expected record and those without, both in their order."""
    having: list[Record] = []
    lacking: list[Record] = []
    for record in records:
        (lacking if record.expected is None else having).append(record)
    return having, lacking


def _rows(reader: Reader, path: Path, columns: Mapping[str, str]) -> list[Any]:
    """What the reader yields; an error of a user's own reader becomes one sentence, ours would be a bug."""
    found: list[Any] = []
    try:
        rows = reader(path, columns)
        if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
            raise UsageError(
                f"the reader {_name(reader)} returned {type(rows).__name__} for {path.name} where records or dicts "
                "are needed, one after the other."
            )
        found.extend(rows)
        return found
    except (HarnessError, RunStopped, KeyboardInterrupt):
        raise
    except BaseException as error:  # the user's own code may raise anything
        if reader in READERS.values():
            raise
        raise UsageError(
            f"the reader {_name(reader)} failed after {len(found)} records of {path.name}: {told(error)}"
        ) from error


def _name(reader: Reader) -> str:
    return getattr(reader, "__qualname__", type(reader).__name__)


def _record(row: Any, where: str, number: int, reader: Reader) -> Record:
    """A row as a Record of plain JSON data; the dict of a user's own reader becomes one."""
    if isinstance(row, Mapping):
        identity, group = row.get("id"), row.get("group")
        row = Record(
            id=str(number if identity is None else identity),
            fields={name: value for name, value in row.items() if name not in _OWN_KEYS and value is not None},
            expected=row.get("expected"),
            group=None if group is None else str(group),
            where=str(row.get("where") or where),
        )
    if not isinstance(row, Record):
        raise UsageError(
            f"{where}: the reader {_name(reader)} yielded {type(row).__name__} where a Record or a dict with id, the "
            "program's inputs and expected is needed."
        )
    where = whole(row.where)
    return Record(
        id=plain(row.id, where, "id"),
        fields=plain(row.fields, where),
        expected=plain(row.expected, where, "expected"),
        group=plain(row.group, where, "group"),
        where=where,
    )


def _check_ids(records: Sequence[Record]) -> None:
    seen: dict[str, Record] = {}
    for record in records:
        first = seen.setdefault(record.id, record)
        if first is not record:
            raise UsageError(f"the id {record.id!r} is there twice: {first.where} and {record.where}.")


def _grouped(records: Sequence[Record], group_by: str, path: Path) -> list[Record]:
    known = {name for record in records for name in record.fields}
    if group_by not in known:
        raise UsageError(f"data.group_by: {path.name} has no column {group_by!r}; {nearest(group_by, known)}")
    return [
        replace(record, group=None if (value := record.fields.get(group_by)) is None else str(value))
        for record in records
    ]


def _check_input(records: Sequence[Record], name: str, path: Path) -> None:
    lacking = [record for record in records if name not in record.fields]
    if len(lacking) == len(records):
        known = {field for record in records for field in record.fields}
        raise UsageError(
            f"the program needs {name!r} and {path.name} has no such column; {nearest(name, known)} "
            "(data.columns gives a column another name)"
        )
    if lacking:
        raise UsageError(
            f"the program needs {name!r}, which is missing in {len(lacking)} of {len(records)} rows of {path.name}: "
            f"{_places(lacking)}."
        )


def _places(records: Sequence[Record]) -> str:
    shown = "; ".join(f"{record.id!r} ({record.where})" for record in records[:_SHOWN])
    return shown + (f"; and {len(records) - _SHOWN} more" if len(records) > _SHOWN else "")
