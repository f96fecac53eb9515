"""What a card rests on: extractions, each with people's scores and those of one or several judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OVERALL = "overall"
EXTRACTIONS = ("extraction", "extracted_ontology", "record", "prediction")
"""The columns that may hold what is judged, the first one that is there."""


@dataclass(frozen=True, slots=True)
class Rated:
    """One rater's evaluation of one extraction.

    Attributes:
        scores: by criterion; None where there is none (not applicable, or not readable).
        overall: as the rater gave it; None where it did not.
        reasons: by criterion.
        unreadable: criteria whose score could not be read.
    """

    scores: Mapping[str, float | None]
    overall: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    unreadable: Sequence[str] = ()

    @property
    def mean(self) -> float | None:
        """The mean of the criteria that have a score, in full precision."""
        scores = [score for score in self.scores.values() if score is not None]
        return math.fsum(scores) / len(scores) if scores else None

    @property
    def whole(self) -> float | None:
        """The overall score: as the rater gave it, else the mean of the criteria."""
        return self.mean if self.overall is None else self.overall


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One extraction.

    Attributes:
        group: what it clusters in, such as its paper.
        people: the person's evaluation; `second` another person's.
        judges: recorded evaluations by judge.
        fields: everything else of the row, for a live judge: the source, the extraction.
    """

    id: str
    group: str
    people: Rated
    judges: Mapping[str, Rated] = field(default_factory=dict)
    second: Rated | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CardData:
    """All rows of a card.

    Attributes:
        criteria: in the order of the file.
        scale: lowest and highest score.
        dropped: reason to number of rows left out.
        repaired: what was mended, to how often.
    """

    rows: Sequence[JudgedRow]
    criteria: Sequence[str]
    scale: tuple[float, float]
    dropped: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)

    @property
    def judges(self) -> list[str]:
        """The judges with recorded evaluations, in the order they first appear."""
        return list(dict.fromkeys(name for row in self.rows for name in row.judges))
