"""The data of an experiment: from the file it names to split, checked examples."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy

from harness.data import READERS, Reader, Record, Splits, check_leaks, labelled, read, split
from harness.data.unknown_fields import unknown_fields
from harness.errors import UsageError, nearest
from harness.references import is_reference, load_object
from harness.spec import DataSpec, ExperimentSpec
from metrics.statistics import FEWEST_GROUPS
from programs.contract import OutputContract, RecordError

_TAKEN = frozenset(("id", "group", "expected", "self", "augmented", "completions"))
"""Names an example or DSPy uses itself."""
_SHOWN, _LONGEST = 3, 160
"""Misfits named in one note, and characters of each."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """All records, the splits, and the same as dspy.Example per split.

    An example holds `id`, `group`, `expected` and the program's inputs; the output field only where the record fits
    the program's schema, so that what does not fit is never shown as a demo.
    """

    records: Sequence[Record]
    splits: Splits
    examples: Mapping[str, Sequence[dspy.Example]]


def load_examples(spec: ExperimentSpec, contract: OutputContract, notes: list[str]) -> Dataset:
    """Read, split and check the data a file names.

    Args:
        spec: the file.
        contract: the program's inputs and output.
        notes: what a reader of the results must know is added here.

    Raises:
        UsageError: a file, row, column or split that is wrong, or one example in two splits.
    """
    taken = sorted(_TAKEN & set(contract.inputs))
    if taken:
        raise UsageError(
            f"{spec.where('program')}: an input cannot be called {taken[0]!r}: that name is taken; rename it"
        )
    records = _read(spec.data, spec, contract, notes)
    sizes = spec.data.split
    splits = split(records, train=sizes.train, validation=sizes.validation, test=sizes.test, seed=sizes.seed)
    check_leaks(splits, contract.inputs)
    notes += _unknown_fields(records, contract) + _unfit_records(records, contract)
    units = {record.group or f"row {number}" for number, record in enumerate(splits.test)}
    if len(units) < FEWEST_GROUPS:
        notes.append(
            f"{len(units)} independent test examples are too few for a verdict: even if all of them agreed, chance "
            f"could explain it; at least {FEWEST_GROUPS} are needed"
        )
    examples = {
        name: [_example(record, contract) for record in getattr(splits, name)]
        for name in ("train", "validation", "test")
    }
    return Dataset(records, splits, examples)


def _reader(data: DataSpec, spec: ExperimentSpec) -> Reader:
    if data.reader in READERS:
        return READERS[data.reader]
    if not is_reference(data.reader):
        raise UsageError(
            f"{spec.where('data', 'reader')}: there is no reader {data.reader!r}; {nearest(data.reader, READERS)}"
        )
    return load_object(data.reader, spec.folder)


def _path(spec: ExperimentSpec) -> Path:
    try:
        return spec.resolve(spec.data.path)
    except UsageError as error:
        raise UsageError(f"{spec.where('data', 'path')}: data.path: {error}") from None


def _read(data: DataSpec, spec: ExperimentSpec, contract: OutputContract, notes: list[str]) -> list[Record]:
    """All records; in a user's own file each needs its expected record, a corpus may have some without."""
    is_corpus = data.reader in READERS and data.reader != "records"
    found = read(
        _path(spec),
        _reader(data, spec),
        data.columns,
        data.group_by,
        inputs=contract.inputs,
        schema=contract.schema,
        require_expected=not is_corpus,
    )
    records, unlabelled = labelled(found)
    if unlabelled:
        notes.append(f"{len(unlabelled)} of {len(found)} rows have no expected record and are left out")
    return records


def _example(record: Record, contract: OutputContract) -> dspy.Example:
    """The record as a dspy.Example; the output field is filled only where the record fits the schema."""
    values = {name: record.fields[name] for name in contract.inputs if name in record.fields}
    example = dspy.Example(id=record.id, group=record.group, expected=record.expected, **values)
    with contextlib.suppress(RecordError):  # counted and said by `_unfit_records`
        example[contract.field] = contract.validate(record.expected)
    return example.with_inputs(*values)


def _unknown_fields(records: Sequence[Record], contract: OutputContract) -> list[str]:
    """One sentence about expected fields the program's record does not have: a misspelt column costs every row."""
    unknown = unknown_fields((record.expected for record in records), contract.schema)
    if not unknown:
        return []
    shown = ", ".join(f"{path} ({hint})" for path, hint in list(unknown.items())[:_SHOWN])
    more = f", and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    return [f"expected records hold fields that the program's record does not have: {shown}{more}"]


def _unfit_records(records: Sequence[Record], contract: OutputContract) -> list[str]:
    """One sentence about records that do not fit the program's schema; they are scored, but are never demos."""
    unfit = []
    for record in records:
        try:
            contract.validate(record.expected)
        except RecordError as error:
            unfit.append(f"{record.where}: {_short(str(error))}")
    if not unfit:
        return []
    shown = "; ".join(unfit[:_SHOWN]) + ("; ..." if len(unfit) > _SHOWN else "")
    return [
        f"{len(unfit)} of {len(records)} records do not fit the program's schema; they are scored against, but "
        f"never shown as examples ({shown})"
    ]


def _short(sentence: str) -> str:
    """The sentence without the middle of a value that fills pages; its reason stands at the end."""
    return sentence if len(sentence) <= _LONGEST else f"{sentence[: _LONGEST - 60]} ... {sentence[-50:]}"


def first_misfit(records: Sequence[Record], contract: OutputContract) -> str:
    """Where and why the first record that does not fit the schema does not."""
    for record in records:
        try:
            contract.validate(record.expected)
        except RecordError as error:
            return f"{record.where}: {_short(str(error))}"
    return "there are none"


def inputs_digest(example: dspy.Example) -> str:
    """A short digest of what a program is given of an example; equal texts, equal digests.

    >>> one = dspy.Example(id="a", text="t").with_inputs("text")
    >>> inputs_digest(one) == inputs_digest(dspy.Example(id="b", text="t").with_inputs("text"))
    True
    """
    inputs = json.dumps(dict(example.inputs()), sort_keys=True, default=str)
    return hashlib.sha256(inputs.encode("utf-8", "surrogatepass")).hexdigest()[:16]
