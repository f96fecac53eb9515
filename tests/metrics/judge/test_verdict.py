"""verdict: a score is there exactly when it was given; an overall is what the given ones say, in full precision."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.judge.verdict import CriterionVerdict, NoVerdictError, Verdict

SCORES = st.none() | st.floats(1, 5)


def criterion(score):
    return CriterionVerdict(score, "why", "not_applicable" if score is None else "scored", score)


@pytest.mark.parametrize(
    ("score", "status"),
    [(None, "scored"), (3.0, "not_applicable"), (3.0, "unreadable"), (3.0, "guessed"), (None, "")],
)
def test_a_score_without_a_reading_of_it_is_refused(score, status):
    with pytest.raises(ValueError, match="scored|status"):
        CriterionVerdict(score, "why", status)


@given(st.lists(SCORES, min_size=1, max_size=8))
def test_the_overall_is_the_mean_of_what_was_scored(scores):
    verdict = Verdict("r@1", (1.0, 5.0), {f"c{index}": criterion(score) for index, score in enumerate(scores)})
    there = [score for score in scores if score is not None]
    if there:
        assert math.isclose(verdict.overall, sum(there) / len(there))
    else:
        assert verdict.overall is None


def test_the_overall_is_not_rounded():
    verdict = Verdict("r@1", (1.0, 5.0), {str(n): criterion(score) for n, score in enumerate([3, 3, 3.12])})
    assert verdict.overall == pytest.approx(3.04, abs=1e-12)


@pytest.mark.parametrize(
    ("said", "value"), [("low", 0.3), ("medium", 0.6), ("high", 0.9), (None, None), ("quite", None)]
)
def test_confidence_has_a_number_where_there_is_one(said, value):
    assert Verdict("r@1", (1.0, 5.0), {}, confidence=said).confidence_value == value


@given(st.lists(SCORES, max_size=4), st.text(max_size=20), st.sampled_from(["low", None]))
def test_a_verdict_survives_json(scores, text, confidence):
    verdict = Verdict(
        "r@1-0", (1.0, 5.0), {f"c{index}": criterion(score) for index, score in enumerate(scores)},
        reasoning=text, confidence=confidence, lists={"gaps": [text]}, flags={"odd": True}, raw=text,
        level="json_object", temperature=0.3, attempts=2, repairs=("code fence",),
    )  # fmt: skip
    plain = json.loads(json.dumps(verdict.to_dict()))
    again = Verdict.from_dict(plain)
    assert (again.overall, again.criteria, again.lists) == (verdict.overall, verdict.criteria, verdict.lists)
    assert again.to_dict() == verdict.to_dict()


def test_the_reasons_for_no_verdict_are_a_closed_set():
    assert NoVerdictError("r", "input").raw == ""
    assert len(NoVerdictError("r", "unreadable", "x" * 50_000).raw) == 4_000
    with pytest.raises(ValueError, match="kind is unreadable, unreached"):
        NoVerdictError("r", "tired")
