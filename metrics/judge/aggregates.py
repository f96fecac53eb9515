"""Several answers to one question as one: the samples of a judge, the judges of a panel."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from scipy import stats

from metrics.judge.verdict import CriterionVerdict, Verdict

Aggregate = Literal["mean", "median", "trimmed", "minimum", "vote"]
"""How several scores become one. `trimmed` leaves out the lowest and the highest fifth; `vote` takes the score given
most often, and of several such scores their mean."""
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)
_TRIMMED = 0.2


def combined(scores: Sequence[float], how: Aggregate, weights: Sequence[float] | None = None) -> float:
    """One score of several.

    Args:
        scores: at least one.
        how: see `Aggregate`.
        weights: of the scores, for `mean` and `vote` only.

    Raises:
        ValueError: weights for another aggregate.

    >>> combined([1, 4, 4, 5], "mean"), combined([1, 4, 4, 5], "median"), combined([1, 4, 4, 5], "minimum")
    (3.5, 4.0, 1.0)
    >>> combined([1, 4, 4, 5, 5], "vote"), combined([1, 4, 4, 5, 5], "trimmed")
    (4.5, 4.333333333333333)
    >>> combined([1, 5], "mean", [3, 1])
    2.0
    """
    if weights is not None and how not in ("mean", "vote"):
        raise ValueError(f"weights are for mean and vote, not for {how}")
    if how == "mean":
        shares = [1.0] * len(scores) if weights is None else list(weights)
        return math.fsum(share * score for share, score in zip(shares, scores, strict=True)) / math.fsum(shares)
    if how == "median":
        return float(statistics.median(scores))
    if how == "minimum":
        return float(min(scores))
    if how == "trimmed":
        return float(stats.trim_mean(scores, _TRIMMED))
    votes: Counter[float] = Counter()
    for score, weight in zip(scores, weights or [1.0] * len(scores), strict=True):
        votes[score] += weight  # pyright: ignore[reportArgumentType]  # a Counter adds whatever numbers it is given
    most = max(votes.values())
    return statistics.fmean(score for score, weight in votes.items() if weight == most)


def combined_verdict(verdicts: Sequence[Verdict], how: Aggregate, weights: Sequence[float] | None = None) -> Verdict:
    """One verdict of several on the same rubric, criterion by criterion.

    A criterion has a score when at least half of the verdicts give it one, and is their aggregate; else it is what most
    of the others say. The texts are those of the verdict whose overall score is nearest to the whole.
    """
    if len(verdicts) == 1:
        return verdicts[0]
    criteria = {
        name: _criterion([verdict.criteria[name] for verdict in verdicts], how, weights)
        for name in verdicts[0].criteria
    }
    whole = replace(verdicts[0], criteria=criteria)
    nearest = min(verdicts, key=lambda one: _distance(one.overall, whole.overall))
    confidences = [value for one in verdicts if (value := one.confidence) is not None]
    return replace(
        nearest,
        criteria={
            name: replace(one, reason=nearest.criteria[name].reason or one.reason) for name, one in criteria.items()
        },
        confidence=min(confidences, key=("low", "medium", "high").index) if confidences else None,
        attempts=sum(one.attempts for one in verdicts),
        flags={name: sum(one.flags.get(name, False) for one in verdicts) * 2 > len(verdicts) for name in nearest.flags},
    )


def _criterion(given: Sequence[CriterionVerdict], how: Aggregate, weights: Sequence[float] | None) -> CriterionVerdict:
    scored = [index for index, one in enumerate(given) if one.score is not None]
    if 2 * len(scored) < len(given):
        others = [one for one in given if one.score is None]
        status = Counter(one.status for one in others).most_common(1)[0][0]
        return next(one for one in others if one.status == status)
    scores = [score for one in given if (score := one.score) is not None]
    shares = None if weights is None else [weights[index] for index in scored]
    if shares is not None and not any(shares):
        shares = None
    return replace(given[scored[0]], score=combined(scores, how, shares), said=scores)


def _distance(first: float | None, second: float | None) -> float:
    return math.inf if first is None or second is None else abs(first - second)


def mean_by_weight(scores: Mapping[str, float], weights: Mapping[str, float]) -> float | None:
    """The weighted mean of the scores that are there; None when none of them weighs anything.

    >>> mean_by_weight({"a": 5.0, "b": 1.0}, {"a": 3.0, "b": 1.0, "c": 9.0})
    4.0
    """
    total = math.fsum(weights[name] for name in scores)
    return math.fsum(weights[name] * score for name, score in scores.items()) / total if total else None
