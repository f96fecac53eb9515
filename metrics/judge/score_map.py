"""A linear map from a judge's overall score to what people would have said, with the data it was fitted to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError


class ScoreMap(BaseModel):
    """people = slope * judge + intercept, on the rubric's scale and kept on it.

    Attributes:
        slope, intercept: of the line.
        judge: version of the judge it was fitted for; another judge needs another map.
        n, groups: rows and groups (papers) it rests on.
        data: digest of the scores it was fitted to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    slope: float = Field(ge=0.0)
    intercept: float
    judge: str = ""
    n: int = Field(ge=3)
    groups: int = Field(ge=1)
    data: str

    def __call__(self, score: float, low: float, high: float) -> float:
        """The mapped score, not beyond the ends of the scale."""
        return min(high, max(low, self.slope * score + self.intercept))


def fit_score_map(
    judged: Sequence[float], people: Sequence[float], *, groups: Sequence[str] | None = None, judge: str = ""
) -> ScoreMap:
    """The least-squares line through (judge, people).

    A line that falls would turn the judge upside down, so its slope is at least 0. Whatever it is used on must not be
    among the rows it was fitted to.

    Raises:
        ValueError: fewer than three rows, sides of different length, or a judge that always says the same.

    >>> fit_score_map([1, 2, 3], [2, 3, 4]).intercept
    1.0
    """
    if len(judged) != len(people) or len(judged) < 3:
        raise ValueError(f"a map needs three rows or more, on both sides, got {len(judged)} and {len(people)}")
    if len(set(judged)) == 1:
        raise ValueError(f"the judge always says {judged[0]:g}: there is nothing to map")
    steep, start = np.polyfit(judged, people, 1)
    slope = max(0.0, float(steep))
    intercept = float(start) if slope else sum(people) / len(people)
    content = json.dumps([list(map(float, judged)), list(map(float, people))])
    return ScoreMap(
        slope=slope,
        intercept=round(intercept, 12),
        judge=judge,
        n=len(judged),
        groups=len(set(groups)) if groups is not None else len(judged),
        data=hashlib.sha256(content.encode()).hexdigest()[:16],
    )


def load_score_map(path: str | Path) -> ScoreMap:
    """The map in a JSON file.

    Raises:
        ValueError: it cannot be read; one sentence.
    """
    try:
        return ScoreMap.model_validate_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"score map {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, ValidationError) as error:
        sentence = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise ValueError(f"score map {path} is none: {sentence}") from error
