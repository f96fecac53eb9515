"""predefined_score: scores that exist already, by the example's id."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from pydantic import BaseModel, Field, field_validator, model_validator

from metrics.evaluators.base import BaseEvaluator, EvaluatorConfig, placed
from metrics.evaluators.text import is_number, shown
from metrics.score import Score

_MOST = 100.0
Scores = Mapping[str, float | bool | None]


class PredefinedScoreConfig(EvaluatorConfig):
    """Options of `predefined_score`.

    Attributes:
        scores: score by example id; or a list, with `ids`. A score is a number of 0 or more, true, false, or null for
            none.
        max_value: the highest score there can be, where scores above 1 occur.
        ids: the ids of a list of scores, in its order.
    """

    scores: Any = Field(default=())
    max_value: float = Field(_MOST, gt=0.0)
    ids: tuple[str, ...] | None = None

    @field_validator("scores")
    @classmethod
    def _are_scores(cls, scores: Any) -> Any:
        if scores is None:
            return ()
        if isinstance(scores, str | bytes) or not isinstance(scores, Mapping | Sequence):
            raise ValueError(f"a list of numbers or a mapping of ids to numbers is needed, got {shown(scores)}")
        return dict(scores) if isinstance(scores, Mapping) else tuple(scores)

    @field_validator("ids", mode="before")
    @classmethod
    def _are_texts(cls, ids: Any) -> Any:
        is_list = isinstance(ids, Sequence) and not isinstance(ids, str)
        return tuple(_id(one) for one in ids) if is_list else ids

    @model_validator(mode="after")
    def _by_id(self) -> PredefinedScoreConfig:
        scores = _with_ids(self.scores, self.ids)
        for name, score in scores.items():
            is_score = isinstance(score, bool) or (is_number(score) and math.isfinite(score) and score >= 0)
            if score is not None and not is_score:
                raise ValueError(f"scores: the score of {name!r} is {shown(score)}, not a number of 0 or more")
        _refuse_mixed(scores, self.max_value, is_declared="max_value" in self.model_fields_set)
        object.__setattr__(self, "scores", scores)  # frozen for everybody but its own validator
        object.__setattr__(self, "ids", None)
        return self


class PredefinedScoreEvaluator(BaseEvaluator):
    """The score that was given beforehand to the example at hand, found by `input_data["id"]`; values are not compared.

        value = score                  when no score is above 1; true is 1 and false is 0
                score / max_value      for all of them when one is

    Without a declared `max_value`, scores from 0 to 100 are taken for percent, and the feedback says so; scores that
    look like both scales at once (0.5 beside 80, true beside 80) are refused. An example without a score, or without
    an id, is unscored. Nothing is counted or remembered between calls.

    >>> rated = PredefinedScoreEvaluator({"scores": {"paper-1": 4, "paper-2": 2}, "max_value": 5})
    >>> rated.evaluate("any", "thing", input_data={"id": "paper-1"})
    0.8
    >>> rated.score("any", "thing", input_data={"id": "paper-3"}).error
    "there is no score for the example 'paper-3'"
    >>> PredefinedScoreEvaluator({"scores": {"a": 0.5, "b": 80}})
    Traceback (most recent call last):
    ValueError: predefined_score: options: scores: 0.5 is a share of 1 and 80 is not: give all on one scale, and its
    highest score as max_value
    """

    alias: ClassVar[str] = "predefined_score"
    config_model: ClassVar[type[BaseModel]] = PredefinedScoreConfig

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(config)
        self._is_scaled = _is_above_one(self._scores)

    def score(
        self,
        extracted: Any,
        expected: Any,
        input_data: Mapping[str, Any] | None = None,
        field_path: str | None = None,
    ) -> Score:
        """The example's score."""
        scores = self._scores
        name = (input_data or {}).get("id")
        if name is None:
            return Score.unscored(placed("the example has no id, by which its score is found", field_path))
        given = scores.get(_id(name))
        if given is None:
            return Score.unscored(placed(f"there is no score for the example {_id(name)!r}", field_path))
        config = cast(PredefinedScoreConfig, self.config)
        if not self._is_scaled:
            note = f"; no score is above 1, so max_value {config.max_value:g} is not used" if self._is_declared else ""
            return Score(float(given), placed(f"the score given is {shown(given)}{note}", field_path))
        taken = "" if self._is_declared else ", taken for the highest score because no max_value is given"
        told = f"the score given is {shown(given)} of {config.max_value:g}{taken}"
        return Score(min(1.0, float(given) / config.max_value), placed(told, field_path))

    @property
    def _scores(self) -> Scores:
        return cast(PredefinedScoreConfig, self.config).scores

    @property
    def _is_declared(self) -> bool:
        return "max_value" in self.config.model_fields_set


def _with_ids(scores: Mapping[Any, Any] | Sequence[Any], ids: Sequence[str] | None) -> dict[str, Any]:
    """Scores by id, whichever way they were given."""
    if isinstance(scores, Mapping):
        if ids is not None:
            raise ValueError("ids belong to a list of scores; these are given by id already")
        pairs = [(_id(name), score) for name, score in scores.items()]
    elif ids is None:
        if scores:
            raise ValueError(
                f"scores: a list of {len(scores)} scores belongs to no examples; give them by id, "
                "{id: score}, or beside them ids"
            )
        pairs = []
    elif len(ids) != len(scores):
        raise ValueError(f"there are {len(scores)} scores for {len(ids)} ids")
    else:
        pairs = list(zip(ids, scores, strict=True))
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"scores: the id {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _refuse_mixed(scores: Scores, max_value: float, *, is_declared: bool) -> None:
    """Refuse scores of which some are on another scale than others."""
    if not _is_above_one(scores):
        return
    numbers = [score for score in scores.values() if score is not None and not isinstance(score, bool)]
    highest = max(numbers)
    share = next((score for score in numbers if 0 < score < 1), None)
    truth = next((score for score in scores.values() if isinstance(score, bool)), None)
    one = truth if truth is not None else (None if is_declared else share)
    if one is not None:
        raise ValueError(
            f"scores: {shown(one)} is a share of 1 and {shown(highest)} is not: give all on one scale, and its highest "
            "score as max_value"
        )
    if highest > max_value:
        hint = "" if is_declared else "; declare the highest score as max_value"
        raise ValueError(f"scores: {shown(highest)} is above max_value {max_value:g}{hint}")


def _is_above_one(scores: Scores) -> bool:
    return any(score is not None and score > 1 for score in scores.values())


def _id(name: Any) -> str:
    return name if isinstance(name, str) else str(name)
