"""From a judge's JSON to a Verdict, criterion by criterion, and the schema it is asked to answer in.

One criterion that cannot be read leaves the others standing. Nothing is guessed: null is "not applicable", a number or
the text of one is a score where it lies on the scale, everything else is unreadable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pydantic
from pydantic import BaseModel, Field

from metrics.evaluators.json_answer import number_of, text_of
from metrics.evaluators.text import shown
from metrics.judge.rubric import Rubric
from metrics.judge.verdict import CONFIDENCE, CriterionVerdict, Verdict

EVALUATION = "evaluation"
"""The output a judge answers with."""
UNWRAPPED, FLAT = "no outer evaluation key", "scores not in an object of their own"


def score_model(rubric: Rubric, name: str = "Scores") -> type[BaseModel]:
    """A class with `<criterion>_reasoning` and `<criterion>_score` for every criterion."""
    fields: dict[str, Any] = {}
    for criterion in rubric.criteria:
        fields[f"{criterion}_reasoning"] = (str, Field(""))
        fields[f"{criterion}_score"] = (float | None, Field(None, ge=rubric.scale.low, le=rubric.scale.high))
    return pydantic.create_model(name, **fields)


def evaluation_model(rubric: Rubric, name: str = "Evaluation") -> type[BaseModel]:
    """The class of a judge's answer: reasoning, scores, and what else the rubric asks for."""
    fields: dict[str, Any] = {"reasoning": (str, ...), "scores": (score_model(rubric), ...)}
    if rubric.flags:
        fields["failure_flags"] = (
            pydantic.create_model("Flags", **{flag: (bool, False) for flag in rubric.flags}),  # pyright: ignore[reportCallIssue, reportArgumentType]
            ...,
        )
    if rubric.confidence:
        fields["confidence_level"] = (Literal["low", "medium", "high"], "medium")
    fields |= {name: (list[str], Field(default_factory=list)) for name in rubric.lists}
    return pydantic.create_model(name, **fields)


def answer_schema(rubric: Rubric, *, reasons_first: bool) -> dict[str, Any]:
    """The strict schema of the whole answer: every key required, nothing beside them."""
    text = {"type": "string"}
    scores = {}
    for criterion in rubric.criteria:
        scores[f"{criterion}_reasoning"] = text
        scores[f"{criterion}_score"] = {"anyOf": [{"type": "number"}, {"type": "null"}]}
    parts: dict[str, Any] = {"reasoning": text, "scores": _closed(scores)}
    if rubric.flags:
        parts["failure_flags"] = _closed({flag: {"type": "boolean"} for flag in rubric.flags})
    if rubric.confidence:
        parts["confidence_level"] = {"type": "string", "enum": list(CONFIDENCE)}
    parts |= {name: {"type": "array", "items": text} for name in rubric.lists}
    outer = {"reasoning": text} if reasons_first else {}
    return _closed({**outer, EVALUATION: _closed(parts)})


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_verdict(found: Mapping[str, Any], rubric: Rubric) -> tuple[Verdict, list[str]]:
    """The verdict in a judge's JSON object, and what was passed over to read it.

    Raises:
        ValueError: not one criterion of it can be read; the sentence says why.

    >>> from metrics.judge.rubric import load_rubric
    >>> content = {"name": "r", "instructions": "i", "inputs": {"text": "t"}, "criteria": {"a": "", "b": ""}}
    >>> rubric = load_rubric(content)
    >>> verdict, repairs = read_verdict({"scores": {"a_score": "4.5", "b_score": 9}}, rubric)
    >>> verdict.criteria["a"].score, verdict.criteria["b"].reason, repairs
    (4.5, '9 is not on the scale from 1 to 5', ['no outer evaluation key', 'number as text'])
    """
    inner, repairs = _inner(found, rubric)
    scores = inner.get("scores")
    if not isinstance(scores, Mapping):
        if not any(f"{name}_score" in inner for name in rubric.criteria):
            raise ValueError(f"the answer has no scores: {shown(dict(inner))}")
        scores, repairs = inner, [*repairs, FLAT]
    criteria = {}
    for name in rubric.criteria:
        criteria[name], passed_over = _criterion(name, scores, rubric)
        repairs += [repair for repair in passed_over if repair not in repairs]
    if not any(one.status == "scored" for one in criteria.values()):
        unreadable = [one.reason for one in criteria.values() if one.status == "unreadable"]
        # A judge to whom nothing applies has not judged: null is the least that a form can be filled in with.
        raise ValueError(f"not one score can be read: {unreadable[0] if unreadable else 'every one is null'}")
    return (
        Verdict(
            rubric.label,
            (rubric.scale.low, rubric.scale.high),
            criteria,
            text_of(dict(inner), "reasoning"),
            _confidence(inner.get("confidence_level")),
            {name: _texts(inner.get(name)) for name in rubric.lists},
            _flags(inner.get("failure_flags"), rubric),
        ),
        repairs,
    )


def _inner(found: Mapping[str, Any], rubric: Rubric) -> tuple[Mapping[str, Any], list[str]]:
    if isinstance(found.get(EVALUATION), Mapping):
        return found[EVALUATION], []
    if "scores" in found or any(f"{name}_score" in found for name in rubric.criteria):
        return found, [UNWRAPPED]
    raise ValueError(f"the answer has no {EVALUATION!r}: {shown(dict(found))}")


def _criterion(name: str, scores: Mapping[str, Any], rubric: Rubric) -> tuple[CriterionVerdict, list[str]]:
    key = f"{name}_score"
    reason = text_of(dict(scores), f"{name}_reasoning")
    said = scores.get(key)
    if key in scores and said is None:
        return CriterionVerdict(None, reason, "not_applicable"), []
    try:
        score, repairs = number_of(dict(scores), key)
    except ValueError as error:
        return CriterionVerdict(None, str(error), "unreadable", said), []
    if not rubric.on_scale(score):
        low, high = rubric.scale.low, rubric.scale.high
        return CriterionVerdict(
            None, f"{shown(said)} is not on the scale from {low:g} to {high:g}", "unreadable", said
        ), []
    return CriterionVerdict(float(score), reason, "scored", said), repairs


def _confidence(said: Any) -> str | None:
    word = said.strip().lower() if isinstance(said, str) else None
    return word if word in CONFIDENCE else None


def _texts(said: Any) -> tuple[str, ...]:
    given: Sequence[Any] = [said] if isinstance(said, str) else said if isinstance(said, list) else ()
    return tuple(text.strip() for text in given if isinstance(text, str) and text.strip())


def _flags(said: Any, rubric: Rubric) -> dict[str, bool]:
    given = said if isinstance(said, Mapping) else {}
    return {flag: given.get(flag) is True for flag in rubric.flags}


def evaluation_of(verdict: Verdict, model: type[BaseModel]) -> Any:
    """The verdict as an object of `model`: criteria without a score are None, the overall score is ours."""
    scores: dict[str, Any] = {}
    for name, one in verdict.criteria.items():
        scores |= {f"{name}_score": one.score, f"{name}_reasoning": one.reason}
    scores |= {"overall_score": verdict.overall}
    parts: dict[str, Any] = {"reasoning": verdict.reasoning, "scores": scores, **verdict.lists}
    if verdict.flags:
        parts["failure_flags"] = dict(verdict.flags)
    if verdict.confidence is not None:
        parts["confidence_level"] = verdict.confidence
    known = model.model_fields
    return model.model_validate({name: part for name, part in parts.items() if name in known})
