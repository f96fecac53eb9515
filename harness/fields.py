"""The parts of Scores by name, and which of them went worst over an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metrics.score import Score
from metrics.statistics import Aggregate

if TYPE_CHECKING:
    from harness.results import Evaluation, Row

RATES = ("precision", "recall", "f1")
"""Parts of a list that say the same as the list itself, from other sides."""


@dataclass(frozen=True, slots=True)
class WorstField:
    """A field that many got wrong.

    Attributes:
        path: its name among an evaluation's fields.
        total: over the examples that have it.
        rows: those that got it wrong, the worst first; at most three.
    """

    path: str
    total: Aggregate
    rows: Sequence[Row]


def parts_of(score: Score) -> dict[str, Score]:
    """Every part of a Score at any depth; the parts of a part follow all its siblings, under its name and a slash.

    >>> list(parts_of(Score(1.0, parts={"record": Score(1.0, parts={"total": Score(1.0)}), "judge": Score(1.0)})))
    ['record', 'judge', 'record/total']
    """
    inner = {f"{name}/{path}": one for name, part in score.parts.items() for path, one in parts_of(part).items()}
    return {**score.parts, **inner}


def worst_fields(evaluation: Evaluation, count: int = 5, rows: int = 3) -> list[WorstField]:
    """The fields with the lowest means, the lowest first, each with the examples that got it most wrong.

    Fields that are right everywhere are left out, and so are those that only sum up others.
    """
    names = [name for name in evaluation.fields if name.rpartition("/")[2] not in RATES]
    leaves = [name for name in names if not any(other.startswith(f"{name}/") for other in names)]
    wrong = sorted((total.score, name) for name in leaves if (total := evaluation.fields[name]).score is not None)
    parts = [(row, parts_of(row.score)) for row in evaluation.rows]
    found: list[WorstField] = []
    for score, name in wrong[:count]:
        if score < 1.0:
            values = [(held[name].value, row) for row, held in parts if name in held]
            low = sorted((one for one in values if one[0] is not None and one[0] < 1.0), key=lambda one: one[0] or 0.0)
            found.append(WorstField(name, evaluation.fields[name], [row for _, row in low[:rows]]))
    return found
