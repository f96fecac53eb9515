"""Files of judged extractions: the two published rounds of LeMat-Synth, and any table of one's own.

A table has a column per rater and criterion: `human.completeness`, `human.overall`, `strict.completeness` for a judge
called `strict`; `human2.` is a second person. `id`, the group's column and everything else is kept for a live judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.agreement.rows import EXTRACTIONS, OVERALL, CardData, JudgedRow, Rated
from harness.data.formats import read_rows
from harness.errors import UsageError, nearest

LEMAT_SCALE = (1.0, 5.0)
CERTAIN = ("exact", "normalised", "reviewed")
"""How a person's evaluation was paired with its extraction beyond doubt."""
DEGENERATE = "human_scores_identical_for_all_extractors"
"""The person did not look at the single extractions."""

_PEOPLE, _SECOND = "human", "human2"
NO_RATERS = ("expected", *EXTRACTIONS)
"""Columns with keys of their own that hold records, not scores."""


def read_lemat(path: Path, group_by: str | None) -> CardData:
    """The recorded evaluations of LeMat-Synth, either round; what is mended or left out is counted.

    Raises:
        UsageError: the file cannot be read, or is of another kind.
    """
    dropped, repaired = Counter[str](), Counter[str]()
    rows: list[JudgedRow] = []
    criteria: dict[str, None] = {}
    group = group_by or "paper_id"
    for number, row in enumerate(read_rows(path), 1):
        cells = row.cells
        if not isinstance(cells.get("human"), Mapping) and "human" not in cells:
            raise UsageError(
                f"{row.where}: a row of the reader lemat has human and judge or judges; this one has "
                f"{', '.join(list(cells)[:6])}"
            )
        reason = _left_out(cells)
        if reason is not None:
            dropped[reason] += 1
            continue
        people = _lemat_rated(cells["human"], LEMAT_SCALE, repaired, "human")
        judges = cells.get("judges") or {"judge": cells.get("judge")}
        rated = {
            str(name): _lemat_rated(given, LEMAT_SCALE, repaired, "judge", own_overall=True)
            for name, given in judges.items()
            if isinstance(given, Mapping)
        }
        criteria |= dict.fromkeys(people.scores)
        if not isinstance(cells.get(group), str):
            raise UsageError(f"{row.where}: it has no {group!r} to group by; {nearest(group, list(cells))}")
        rows.append(JudgedRow(str(number), cells[group], people, rated, fields=cells))
    return CardData(rows, list(criteria), LEMAT_SCALE, dict(dropped), dict(repaired))


def _left_out(cells: Mapping[str, Any]) -> str | None:
    if not cells.get("human"):
        return "no person's evaluation"
    if not (cells.get("judges") or cells.get("judge")):
        return "no judge's evaluation"
    if cells.get("match") not in CERTAIN:
        return f"paired by guess ({cells.get('match')})"
    if DEGENERATE in (cells.get("flags") or ()):
        return "the person gave every extractor the same scores"
    return None


def _lemat_rated(
    given: Mapping[str, Any],
    scale: tuple[float, float],
    repaired: Counter[str],
    who: str,
    *,
    own_overall: bool = False,
) -> Rated:
    scores: dict[str, float | None] = {}
    for name, said in (given.get("scores") or {}).items():
        number = _number(said)
        if said is None:
            repaired[f"{who}: null taken for not applicable"] += 1
        elif number is None:
            repaired[f"{who}: no number"] += 1
        elif not scale[0] <= number <= scale[1]:
            repaired[f"{who}: {number:g} is off the scale"] += 1
            number = None
        elif isinstance(said, str):
            repaired[f"{who}: number as text"] += 1
        elif number * 2 % 1:
            repaired[f"{who}: kept between the half points"] += 1
        scores[str(name)] = number
    reasons = {str(name): str(text) for name, text in (given.get("reasonings") or {}).items() if text}
    overall = _number(given.get(OVERALL)) if own_overall else None
    if overall is not None and not scale[0] <= overall <= scale[1]:  # the default of what was never worked out is 0
        repaired[f"{who}: overall score {overall:g} is off the scale"] += 1
        overall = None
    return Rated(scores, overall, reasons, [name for name, score in scores.items() if score is None and own_overall])


def read_table(path: Path, group_by: str | None) -> CardData:
    """A table of one's own: see the module.

    Raises:
        UsageError: the file cannot be read, or has no people's scores, or no column to group by.
    """
    rows: list[JudgedRow] = []
    repaired = Counter[str]()
    criteria: dict[str, None] = {}
    for number, row in enumerate(read_rows(path), 1):
        cells = _flat(row.cells)
        raters = _raters(cells, repaired)
        if _PEOPLE not in raters:
            raise UsageError(
                f"{row.where}: people's scores stand in columns human.CRITERION; the columns are "
                f"{', '.join(list(cells)[:8])}"
            )
        people = raters.pop(_PEOPLE)
        second = raters.pop(_SECOND, None)
        criteria |= dict.fromkeys(people.scores)
        group = str(number) if group_by is None else cells.get(group_by)
        if group is None:
            raise UsageError(f"{row.where}: it has no {group_by!r} to group by; {nearest(str(group_by), cells)}")
        judges = {
            name: rated for name, rated in raters.items() if rated.scores.keys() & people.scores.keys() or rated.overall
        }
        rows.append(JudgedRow(str(cells.get("id") or number), str(group), people, judges, second, row.cells))
    scores = [score for row in rows for score in row.people.scores.values() if score is not None]
    if not scores:
        raise UsageError(f"{path}: no person scored anything")
    every = [*scores, *(one for row in rows for rated in row.judges.values() for one in rated.scores.values() if one)]
    return CardData(rows, list(criteria), (min(every), max(every)), {}, dict(repaired))


def _raters(cells: Mapping[str, Any], repaired: Counter[str]) -> dict[str, Rated]:
    found: dict[str, dict[str, Any]] = {}
    for column, value in cells.items():
        rater, dot, criterion = column.partition(".")
        if dot and criterion and rater not in NO_RATERS:
            found.setdefault(rater, {})[criterion] = value
    raters: dict[str, Rated] = {}
    for rater, given in found.items():
        scores = {name: _number(value) for name, value in given.items()}
        filled = {name for name, value in given.items() if value not in (None, "")}
        unreadable = [name for name in filled if scores[name] is None]
        if unreadable and len(unreadable) == len(filled):
            continue  # not a rater: other nested data
        for _ in unreadable:
            repaired[f"{rater}: no number"] += 1
        overall = scores.pop(OVERALL, None)
        raters[rater] = Rated(scores or {OVERALL: overall}, overall, {}, unreadable)
    return raters


def _flat(cells: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in cells.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _number(said: Any) -> float | None:
    if isinstance(said, bool) or said is None:
        return None
    try:
        number = float(said)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < 1e9 else None


READERS: Mapping[str, Callable[[Path, str | None], CardData]] = {"lemat": read_lemat, "records": read_table}
"""Name in a card file to reader."""
