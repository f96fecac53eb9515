"""Train, validation and test: seeded, shuffled, no group on two sides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harness.data.digest import dataset_digest
from harness.data.record import Record
from harness.errors import UsageError

NAMES = ("train", "validation", "test")
_SHARES = {"train": Fraction(2, 5), "validation": Fraction(1, 5), "test": Fraction(2, 5)}
_FEWEST = 8
"""Fewest groups the shares above are taken of: they leave two for validation, where one cannot rank candidates, and
three for test, where one has no interval."""

_EMPTY = 1_000_000_000

_Unit = tuple[Record, ...]
"""Records that stay together: one group, or one record without a group."""


@dataclass(frozen=True, slots=True)
class Splits:
    """Three disjoint parts of a data set; each in the shuffled order."""

    train: tuple[Record, ...]
    validation: tuple[Record, ...]
    test: tuple[Record, ...]
    seed: int

    @property
    def sizes(self) -> dict[str, int]:
        """Records per split."""
        return {name: len(part) for name, part in self.parts().items()}

    def parts(self) -> dict[str, tuple[Record, ...]]:
        """The three splits by name, in this order: train, validation, test."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def to_document(self) -> dict[str, Any]:
        """Ids and content digest of each split, as JSON to be saved with a run."""
        parts = self.parts()
        return {
            "seed": self.seed,
            **{name: [record.id for record in part] for name, part in parts.items()},
            "digests": {name: dataset_digest(part) for name, part in parts.items()},
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any], records: Iterable[Record]) -> Splits:
        """The splits a run was made with, from what `to_document` gave and the records of the same data file.

        Raises:
            UsageError: a record is no longer there, or one that was used has changed.
        """
        known = {record.id: record for record in records}
        parts: dict[str, tuple[Record, ...]] = {}
        for name in NAMES:
            lost = [identity for identity in document[name] if identity not in known]
            if lost:
                raise UsageError(
                    f"the saved {name} split has {len(lost)} records that the data no longer has: "
                    f"{', '.join(repr(identity) for identity in lost[:5])}."
                )
            parts[name] = tuple(known[identity] for identity in document[name])
            if dataset_digest(parts[name]) != document["digests"][name]:
                raise UsageError(f"a record of the saved {name} split has changed in the data since.")
        return cls(parts["train"], parts["validation"], parts["test"], document["seed"])


def split(
    records: Iterable[Record],
    *,
    train: float | None = None,
    validation: float | None = None,
    test: float | None = None,
    seed: int = 0,
) -> Splits:
    """Cut a data set in three.

    Groups are ordered by a hash of the seed and their name, so the cut is the same on every platform, in every order of
    the file, and a new record moves few of the others across. In that order each group goes to the first split in which
    it still fits; then single groups move, also those that fitted nowhere, as long as that brings the sizes nearer to
    what was asked. Without groups the sizes are exact.

    Args:
        records: with unique ids.
        train, validation, test: a whole number is a count, a fraction a share of all records, None the rest (shared
            2:1:2 between those that are None). Records that no split asks for are left out.
        seed: any whole number; another one gives another cut.

    Raises:
        UsageError: a size that is none, more asked than there is, a split that would be empty, or fewer than
            8 groups to take the default shares of.

    >>> rows = [Record(str(n), {"text": str(n)}, {}, None, f"line {n}") for n in range(50)]
    >>> split(rows, test=20).sizes
    {'train': 20, 'validation': 10, 'test': 20}
    """
    units = _units(records, seed)
    total = sum(map(len, units))
    asked = {"train": train, "validation": validation, "test": test}
    if all(size is None for size in asked.values()) and len(units) < _FEWEST:
        raise UsageError(
            f"{_count(units, total)} are too few to cut in train, validation and test; give at least {_FEWEST}, or set "
            "data.split yourself, for example {train: 2, validation: 1, test: 2}."
        )
    targets = _targets(asked, total)
    if len(units) < len(NAMES):
        raise UsageError(f"{_count(units, total)} cannot be cut in three; the split 'test' would be empty.")
    parts = _improved(*_assigned(units, targets), targets, total)
    ordered = {name: tuple(record for unit in parts[name] for record in unit) for name in NAMES}
    return Splits(ordered["train"], ordered["validation"], ordered["test"], seed)


def _count(units: Sequence[_Unit], total: int) -> str:
    return f"{total} records" if len(units) == total else f"{total} records in {len(units)} groups"


def _units(records: Iterable[Record], seed: int) -> list[_Unit]:
    """The groups in the order of the seed. A record is ordered within its group by its id."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        # A group and a lone record may bear the same name.
        key = f"record {record.id}" if record.group is None else f"group {record.group}"
        groups.setdefault(key, []).append(record)
    order = sorted(groups, key=lambda key: (hashlib.sha256(f"{seed} {key}".encode()).digest(), key))
    return [tuple(sorted(groups[key], key=lambda record: record.id)) for key in order]


def _targets(asked: Mapping[str, float | None], total: int) -> dict[str, int]:
    """Records per split: counts as they are, shares and the rest by largest remainder."""
    exact: dict[str, Fraction] = {}
    for name, size in asked.items():
        if size is not None:
            exact[name] = _wanted(name, size, total)
    if sum(exact.values()) > total:
        wanted = " + ".join(f"{name} {asked[name]}" for name in exact)
        raise UsageError(f"data.split asks for more than there is: {wanted}, of {total} records.")
    rest = total - sum(exact.values())
    open_names = [name for name in NAMES if name not in exact]
    for name in open_names:
        exact[name] = rest * _SHARES[name] / sum(_SHARES[other] for other in open_names)
    targets = {name: int(exact[name]) for name in NAMES}
    spare = round(sum(exact.values())) - sum(targets.values())
    for name in sorted(NAMES, key=lambda name: targets[name] - exact[name])[: max(spare, 0)]:
        targets[name] += 1
    for name, size in targets.items():
        if size == 0:
            raise UsageError(f"the split {name!r} would be empty: {asked[name] or 'the rest'} of {total} records.")
    return targets


def _wanted(name: str, size: float, total: int) -> Fraction:
    if isinstance(size, bool) or not isinstance(size, (int, float)):
        raise UsageError(f"data.split.{name}: {size!r} is no size; give a count such as 40 or a share such as 0.4.")
    if isinstance(size, int):
        if size < 1:
            raise UsageError(f"data.split.{name}: {size} leaves the split empty; give at least 1.")
        return Fraction(size)
    if not 0 < size < 1:
        hint = f"write {size:.0f} for a count" if size.is_integer() and size > 1 else "a share lies between 0 and 1"
        raise UsageError(f"data.split.{name}: {size} is no share; {hint}.")
    return Fraction(str(size)) * total  # the decimal as it was written, not its binary neighbour


def _assigned(units: Sequence[_Unit], targets: Mapping[str, int]) -> tuple[dict[str, list[_Unit]], list[_Unit]]:
    """(units of each split, units that fitted nowhere), no split past its target."""
    parts: dict[str, list[_Unit]] = {name: [] for name in NAMES}
    left = dict(targets)
    over: list[_Unit] = []
    for unit in units:
        name = next((name for name in NAMES if left[name] >= len(unit)), None)
        if name is None:
            over.append(unit)
            continue
        parts[name].append(unit)
        left[name] -= len(unit)
    return parts, over


def _improved(
    parts: Mapping[str, list[_Unit]], over: list[_Unit], targets: Mapping[str, int], total: int
) -> dict[str, list[_Unit]]:
    """Move one unit at a time, also out of what is left over, as long as the sizes come nearer to the targets."""
    places = {**parts, "": over}
    goals = {**targets, "": total - sum(targets.values())}
    while True:
        sizes = {name: sum(map(len, units)) for name, units in places.items()}

        def distance(name: str, change: int, sizes: Mapping[str, int] = sizes) -> int:
            size = sizes[name] + change
            # An empty split is worse than any size.
            return abs(size - goals[name]) + (_EMPTY if name and size == 0 else 0)

        if not any(distance(name, 0) for name in places):
            break
        moves = {
            (source, target, size): distance(source, -size)
            + distance(target, size)
            - distance(source, 0)
            - distance(target, 0)
            for source, units in places.items()
            for size in {len(unit) for unit in units}
            for target in places
            if target != source
        }
        best = min(moves, key=lambda move: (moves[move], move), default=None)
        if best is None or moves[best] >= 0:
            break
        source, target, size = best
        moved = next(unit for unit in places[source] if len(unit) == size)
        places[source] = [unit for unit in places[source] if unit is not moved]
        places[target] = [*places[target], moved]
    return {name: places[name] for name in NAMES}
