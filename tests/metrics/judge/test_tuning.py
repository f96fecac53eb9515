"""A judge is a program: it can be tuned against people, and its card before and after compared."""

import json

import dspy
import pytest

from harness.agreement.card import make_card
from harness.agreement.rows import CardData, JudgedRow, Rated
from harness.models.scripted import ScriptedProvider, request_text
from metrics.judge.rubric_judge import RubricJudge

RUBRIC = {
    "name": "colour",
    "instructions": "Judge it.",
    "inputs": {"text": "the source", "record": "what was extracted"},
    "criteria": {"hue": "the colour is right"},
}


def says(score):
    scores = {"hue_reasoning": "so", "hue_score": score}
    return json.dumps({"evaluation": {"reasoning": "r", "scores": scores, "confidence_level": "high"}})


def script(request):
    """Always 4, until it is shown what people say: then it looks whether the record is in the text."""
    text = request_text(request)
    if text.count("[[ ## record ## ]]") < 3:  # the form, and the question: no demonstration
        return says(4 if "red" in text.rsplit("[[ ## text ## ]]", 1)[1] else 3)
    question = text.rsplit("[[ ## text ## ]]", 1)[1]
    source, record = question.split("[[ ## record ## ]]")
    return says(5 if json.loads(record.strip().splitlines()[0]) in source else 1)


def example(number):
    colour = ("red", "blue")[number % 2]
    record = colour if number % 3 else "green"
    return dspy.Example(text=f"It is {colour}.", record=record, people=5.0 if record == colour else 1.0).with_inputs(
        "text", "record"
    )


@pytest.fixture
def judge():
    provider = ScriptedProvider(script, "scripted/judge")
    return RubricJudge(RUBRIC, dspy.LM("scripted/judge", engine=provider, cache=False, num_retries=0))


def card(judge, examples):
    rows = []
    for number, one in enumerate(examples):
        verdict = judge.verdict({"text": one.text, "record": one.record})
        rated = {"judge": Rated({"hue": verdict.overall})}
        rows.append(JudgedRow(str(number), str(number), Rated({"hue": one.people}), rated))
    return make_card("c", CardData(rows, ["hue"], (1.0, 5.0)), ["judge"], resamples=50).judges["judge"]


def test_bootstrapped_demos_change_what_a_judge_says(judge):
    before = card(judge, [example(number) for number in range(20, 40)])

    def close(gold, evaluation, trace=None):
        return abs(evaluation.scores.hue_score - gold.people) <= 1

    tuner = dspy.BootstrapFewShot(metric=close, max_bootstrapped_demos=2, max_labeled_demos=0, max_errors=1)
    tuned = tuner.compile(judge, trainset=[example(number) for number in range(12)])

    assert judge.evaluate.demos == []
    assert len(tuned.evaluate.demos) == 2
    assert tuned.evaluate.demos[0]["evaluation"].scores.hue_score in (3.0, 4.0)
    assert tuned.version != judge.version
    after = card(tuned, [example(number) for number in range(20, 40)])
    assert after.overall.spearman == pytest.approx(1.0)
    assert after.overall.spearman > (before.overall.spearman or 0.0)
    assert after.overall.n == before.overall.n
