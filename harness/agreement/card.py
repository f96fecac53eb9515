"""The card itself: every number from the rows, with its interval. Nothing is read or written here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.agreement.rows import CardData, JudgedRow
from metrics.agreement import RESAMPLES, Agreement, agreement, recall_of_failed, spread_ratio

MEAN_OF_JUDGES = "mean of the judges"
CONSTANT = 0.9
"""Share of the rows with one and the same score from which a criterion carries no information."""
FEW_GROUPS = 20
"""Groups below which the intervals are called wide."""
COPIED = 0.2
"""Share of rows on which people's scores are all the judge's own from which labels look pre-filled."""
_FAILED_SHARE = 0.25
"""People failed an extraction whose score lies in the lowest quarter of the scale: 2 on 1 to 5."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where people's labels may come from.

    Attributes:
        same_scores: share of single scores equal to the judge's.
        same_texts: share of people's reasons that are the judge's, letter by letter; None without reasons.
        copied_rows: share of rows on which all scores are equal to the judge's.
        independent: agreement on the rows with neither a copied reason nor all scores equal.
    """

    same_scores: float
    same_texts: float | None
    copied_rows: float
    independent: Agreement

    @property
    def is_suspect(self) -> bool:
        """Whether the labels look like the judge's own, edited."""
        return self.copied_rows >= COPIED or (self.same_texts or 0.0) >= COPIED


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """What is known of one judge.

    Attributes:
        overall: by the overall scores, as the judge gave them where it did, else the mean of its criteria.
        of_criteria: by the mean of the judge's criteria in full precision, where it gave overall scores itself.
        criteria: by criterion.
        spread_ratio: see `metrics.agreement.spread_ratio`; far below 1 the judge hides differences that people see.
        recall_of_failed: share of what people failed that the judge fails too, and how many that were.
        unreadable: share of single scores that could not be read.
        no_information: criteria on which the judge nearly always says the same.
        live: what repeats, attacks and cost of a live judge showed; None for recorded evaluations.
    """

    name: str
    overall: Agreement
    of_criteria: Agreement | None
    criteria: Mapping[str, Agreement]
    spread_ratio: float | None
    recall_of_failed: tuple[float | None, int]
    unreadable: float
    no_information: Sequence[str]
    provenance: Provenance
    live: Mapping[str, Any] | None = None

    def to_document(self) -> dict[str, Any]:
        """As JSON data."""
        share, failed = self.recall_of_failed
        return {
            "overall": self.overall.to_document(),
            **({} if self.of_criteria is None else {"overall_of_criteria": self.of_criteria.to_document()}),
            "criteria": {name: cell.to_document() for name, cell in self.criteria.items()},
            "spread_ratio": self.spread_ratio,
            "recall_of_failed": {"value": share, "n": failed},
            "unreadable": self.unreadable,
            "no_information": list(self.no_information),
            "provenance": {
                "same_scores": self.provenance.same_scores,
                "same_texts": self.provenance.same_texts,
                "copied_rows": self.provenance.copied_rows,
                "independent": self.provenance.independent.to_document(),
            },
            **({} if self.live is None else {"live": dict(self.live)}),
        }


@dataclass(frozen=True, slots=True)
class Card:
    """All judges on the same rows.

    Attributes:
        mean_of_judges: of the overall scores of all judges; None with a single one.
        ceiling: agreement of two people; None where only one scored.
        notes: what has to be said about the numbers.
    """

    name: str
    data: CardData
    judges: Mapping[str, JudgeCard]
    mean_of_judges: Agreement | None
    ceiling: Agreement | None
    notes: Sequence[str] = field(default_factory=list)

    def to_document(self) -> dict[str, Any]:
        """The `--json` document."""
        return {
            "name": self.name,
            "rows": len(self.data.rows),
            "groups": len({row.group for row in self.data.rows}),
            "judges": {name: card.to_document() for name, card in self.judges.items()},
            "mean_of_judges": None if self.mean_of_judges is None else self.mean_of_judges.to_document(),
            "human_ceiling": None if self.ceiling is None else self.ceiling.to_document(),
            "dropped": dict(self.data.dropped),
            "repaired": dict(self.data.repaired),
            "notes": list(self.notes),
        }


def make_card(
    name: str,
    data: CardData,
    judges: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    live: Mapping[str, Mapping[str, Any]] | None = None,
) -> Card:
    """The card of some judges on all rows.

    Args:
        data: the rows.
        judges: names of raters in the rows.
        resamples, seed: of the bootstrap over groups.
        live: what is known of live judges beyond their scores, by name.
    """

    def agree(rows: Sequence[JudgedRow], judged: Sequence[float | None], people: Sequence[float | None]) -> Agreement:
        return agreement(judged, people, [row.group for row in rows], resamples=resamples, seed=seed)

    cards = {one: _judge_card(one, data, agree, (live or {}).get(one)) for one in judges}
    people = [row.people.mean for row in data.rows]
    means = [_mean([row.judges[one].whole if one in row.judges else None for one in judges]) for row in data.rows]
    second = [None if row.second is None else row.second.mean for row in data.rows]
    return Card(
        name,
        data,
        cards,
        agree(data.rows, means, people) if len(judges) > 1 else None,
        agree(data.rows, second, people) if any(score is not None for score in second) else None,
        _notes(data, cards, any(score is not None for score in second)),
    )


def _judge_card(name: str, data: CardData, agree: Any, live: Mapping[str, Any] | None) -> JudgeCard:
    rows = [row for row in data.rows if name in row.judges]
    rated = [row.judges[name] for row in rows]
    people = [row.people.mean for row in rows]
    given = [one.whole for one in rated]
    both = [(a, b) for a, b in zip(given, people, strict=True) if a is not None and b is not None]
    judged_overall, people_overall = [pair[0] for pair in both], [pair[1] for pair in both]
    criteria = {
        criterion: agree(
            rows,
            [one.scores.get(criterion) for one in rated],
            [row.people.scores.get(criterion) for row in rows],
        )
        for criterion in data.criteria
    }
    low, high = data.scale
    return JudgeCard(
        name,
        agree(rows, given, people),
        agree(rows, [one.mean for one in rated], people) if any(one.overall is not None for one in rated) else None,
        criteria,
        spread_ratio(judged_overall, people_overall),
        recall_of_failed(judged_overall, people_overall, low + _FAILED_SHARE * (high - low)),
        _share(len(one.unreadable) for one in rated) / max(1, len(data.criteria)),
        [criterion for criterion in data.criteria if _is_constant([one.scores.get(criterion) for one in rated])],
        _provenance(name, rows, agree),
        live,
    )


def _provenance(name: str, rows: Sequence[JudgedRow], agree: Any) -> Provenance:
    same: list[bool] = []
    texts: list[bool] = []
    copied: list[bool] = []
    for row in rows:
        judge, people = row.judges[name], row.people
        equal = [
            judge.scores.get(criterion) == score for criterion, score in people.scores.items() if score is not None
        ]
        same += equal
        written = [judge.reasons.get(criterion) == text for criterion, text in people.reasons.items()]
        texts += written
        copied.append((bool(equal) and all(equal)) or any(written))
    kept = [row for row, is_copy in zip(rows, copied, strict=True) if not is_copy]
    alone = agree(kept, [row.judges[name].whole for row in kept], [row.people.mean for row in kept])
    return Provenance(_share(same), _share(texts) if texts else None, _share(copied), alone)


def _mean(scores: Sequence[float | None]) -> float | None:
    there = [score for score in scores if score is not None]
    return math.fsum(there) / len(there) if len(there) == len(scores) else None


def _share(values: Any) -> float:
    counted = list(values)
    return sum(counted) / len(counted) if counted else 0.0


def _is_constant(scores: Sequence[float | None]) -> bool:
    there = [score for score in scores if score is not None]
    if not there:
        return False
    return Counter(there).most_common(1)[0][1] >= CONSTANT * len(there)


def _notes(data: CardData, cards: Mapping[str, JudgeCard], has_second: bool) -> list[str]:
    notes: list[str] = []
    groups = len({row.group for row in data.rows})
    if groups < FEW_GROUPS:
        notes.append(
            f"{len(data.rows)} rows of {groups} groups: every interval is wide, and no small difference is one"
        )
    if not has_second:
        notes.append("only one person scored each row: how far two people would agree is not known")
    for name, card in cards.items():
        notes += [
            f"{name}: {criterion} is nearly always the same score and carries no information"
            for criterion in card.no_information
        ]
        if card.spread_ratio is not None and card.spread_ratio < 0.6:
            notes.append(f"{name}: its scores spread {card.spread_ratio:.2f} times as far as people's")
        if card.provenance.is_suspect:
            told = card.provenance
            texts = "" if told.same_texts is None else f", {told.same_texts:.0%} of their reasons"
            notes.append(
                f"{name}: people's labels look like the judge's own: {told.copied_rows:.0%} of the rows and "
                f"{told.same_scores:.0%} of the scores are the same{texts}; see the agreement on independent rows"
            )
    return notes
