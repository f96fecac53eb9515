"""What a judge says of one extraction: a score or the reason why there is none, criterion by criterion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Status = Literal["scored", "not_applicable", "unreadable"]

CONFIDENCE: Mapping[str, float] = MappingProxyType({"low": 0.3, "medium": 0.6, "high": 0.9})
"""What a judge's word for its confidence counts as."""


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """One criterion.

    Attributes:
        score: on the rubric's scale in full precision; None where there is none.
        reason: the judge's own; where the score cannot be read, why not.
        status: "not_applicable" when the judge says so by null, "unreadable" when what it says is no score.
        said: the score as the judge gave it.
    """

    score: float | None
    reason: str
    status: Status
    said: Any = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's answer on one extraction.

    Attributes:
        rubric: name, version and digest of the rubric it went by.
        scale: its lowest and its highest score.
        criteria: every criterion of the rubric, in its order.
        reasoning: of the whole.
        confidence: "low", "medium" or "high"; None where none was given.
        lists: texts by name, such as missing_information.
        flags: kinds of failure by name.
        raw: the reply as it came.
        level: "json_schema", "json_object" or "prompt", how the reply was asked for; "recorded" for one from a file.
        temperature: it was asked at; None where the model's own was left.
        attempts: requests it took.
        repairs: what was passed over to read the reply.

    >>> verdict = Verdict("r", (1, 5), {"a": CriterionVerdict(4.5, "", "scored"),
    ...                                 "b": CriterionVerdict(None, "none there", "not_applicable")})
    >>> verdict.overall, verdict.confidence_value
    (4.5, None)
    """

    rubric: str
    scale: tuple[float, float]
    criteria: Mapping[str, CriterionVerdict]
    reasoning: str = ""
    confidence: str | None = None
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    raw: str = ""
    level: str = "recorded"
    temperature: float | None = None
    attempts: int = 0
    repairs: Sequence[str] = ()

    @property
    def scores(self) -> dict[str, float]:
        """The criteria that have a score."""
        return {name: one.score for name, one in self.criteria.items() if one.score is not None}

    @property
    def overall(self) -> float | None:
        """The mean of the criteria that have a score, in full precision; None when none has."""
        scores = self.scores
        return math.fsum(scores.values()) / len(scores) if scores else None

    @property
    def confidence_value(self) -> float | None:
        """The confidence as a number; None where none was given."""
        return None if self.confidence is None else CONFIDENCE[self.confidence]
