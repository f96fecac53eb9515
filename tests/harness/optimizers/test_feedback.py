"""What an optimizer that reads is told about answers: right ones, wrong ones, unscored ones, failed ones."""

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from harness.errors import ProgramFailure, RunStopped
from harness.optimizers.feedback import (
    LONGEST_ANSWER,
    MOST_CHARACTERS,
    MOST_LINES,
    AsFeedback,
    clipped,
    failure_text,
    feedback_text,
)
from harness.scoring import Scoring
from metrics import RecordMetric
from metrics.score import Score, UnscoredError
from programs.contract import OutputContract

CONTRACT = OutputContract("record", ("text",), {"type": "object"})
EXAMPLE = dspy.Example(id="e1", group=None, expected={"total": 900, "name": "A"}, text="t").with_inputs("text")


class Judge:
    name, version = "judge", "1"

    def __init__(self, score):
        self.score = score
        self.applied = 0

    def __call__(self, example, prediction):
        self.applied += 1
        if isinstance(self.score, Exception):
            raise self.score
        return self.score

    def compare(self, expected, predicted):
        raise UnscoredError("it needs the source")


def metric_of(judge):
    stops = []
    return AsFeedback(Scoring(judge, CONTRACT, stops.append))


def record(**values):
    return dspy.Prediction(record=values)


def test_the_place_and_both_values_are_told():
    told = metric_of(RecordMetric({"total": "exact", "name": "exact"}))(EXAMPLE, record(total=90, name="A"))
    assert told.score == 0.5
    assert told.feedback == "Score 0.50 of 1.\ntotal: expected 900, got 90"


def test_one_answer_is_scored_once_whatever_call_asks_and_every_prediction_is_fresh():
    judge = Judge(Score(0.25, "half"))
    metric = metric_of(judge)
    prediction = record(total=1)
    told = [
        metric(EXAMPLE, prediction),
        metric(EXAMPLE, prediction, None),
        metric(EXAMPLE, prediction, [], "extract", [("p", {}, prediction)]),
    ]
    assert [one.score for one in told] == [0.25] * 3
    assert all(type(one.score) is float and isinstance(one.feedback, str) for one in told)
    assert len({id(one) for one in told}) == 3
    told[0]["score"] = 0.9
    assert metric(EXAMPLE, prediction).score == 0.25
    assert judge.applied == 1
    assert metric.calls == 3, "the call for a predictor's feedback is no metric call"


def test_an_unscored_answer_counts_zero_and_says_so():
    metric = metric_of(Judge(Score.unscored("the judge's answer could not be read")))
    told = metric(EXAMPLE, record())
    assert told.score == 0.0
    assert "No score: the judge's answer could not be read. It counts as 0 here" in told.feedback
    assert metric.notes() == ["1 of 1 metric calls while tuning gave no score and counted as 0"]


@pytest.mark.parametrize("prediction", [None, "text", dspy.Prediction(other=1), dspy.Prediction(record=float("nan"))])
def test_what_holds_no_record_is_told_and_never_raised(prediction):
    metric = metric_of(Judge(Score(1.0)))
    told = metric(EXAMPLE, prediction)
    assert told.score == 0.0
    assert told.feedback.startswith("The answer could not be used (invalid)")
    assert metric.notes() == ["1 of 1 answers while tuning could not be used and counted as 0 (1 invalid)"]


def test_a_metric_that_raises_stops_the_run():
    with pytest.raises(RunStopped, match="KeyError"):
        metric_of(Judge(KeyError("x")))(EXAMPLE, record())


def test_progress_is_told_of_counted_calls_only():
    told = []
    metric = AsFeedback(Scoring(Judge(Score(1.0)), CONTRACT, lambda stop: None), lambda: told.append(1))
    metric(EXAMPLE, record())
    metric(EXAMPLE, record(), [], "extract", [])
    metric.failed(ProgramFailure("cut", "cut"))
    assert len(told) == metric.calls == 2


def test_criteria_follow_the_worst_first_and_places_are_not_told_twice():
    parts = {
        "clarity": Score(0.75, "one  typo"),
        "correct": Score(0.0, "wrong\nsubstance"),
        "complete": Score(1.0, "all there"),
        "safe": Score.unscored("no verdict"),
        "steps[*].action": Score(0.5, "1 of 2 right"),
    }
    score = Score(0.4, "steps[0].action: expected 'mix', got 'heat'", parts)
    assert feedback_text(score).splitlines() == [
        "Score 0.40 of 1.",
        "steps[0].action: expected 'mix', got 'heat'",
        "safe: no score (no verdict)",
        "correct: 0.00 (wrong substance)",
        "clarity: 0.75 (one typo)",
    ]


def test_many_or_long_lines_are_cut_and_counted():
    many = feedback_text(Score(0.1, "\n".join(f"field{n}: wrong" for n in range(100)))).splitlines()
    assert len(many) == MOST_LINES + 2
    assert many[-1] == f"... and {100 - MOST_LINES} more lines left out"
    long = feedback_text(Score(0.1, "\n".join("x" * 5000 for _ in range(10))))
    assert len(long) < MOST_CHARACTERS + 200
    assert "characters left out" in long
    assert "more lines left out" in long


def test_an_unreadable_answer_is_quoted_with_its_beginning_and_its_end():
    answer = '{"total": ' + "9" * 5000 + "END"
    parse = AdapterParseError("JSON", dspy.Signature("text -> record"), answer, "the answer is not complete JSON")
    failure = ProgramFailure("the answer could not be read: record is missing", "invalid")
    failure.__cause__ = parse
    told = failure_text(failure)
    assert told.startswith("The answer could not be used (invalid): the answer could not be read: record is missing.")
    assert '{"total": 999' in told
    assert told.endswith("END")
    assert len(told) < LONGEST_ANSWER + 250


@pytest.mark.parametrize(
    "kind", ["cut", "refusal", "empty", "context_length", "bad_request", "unreadable_reply", "error"]
)
def test_the_kind_is_told_and_not_where_the_model_is(kind):
    told = failure_text(ProgramFailure("task model 'm' at host.example: something", kind))
    assert f"({kind})" in told
    assert "host.example" not in told


def test_a_bug_of_the_program_is_told_as_its_own():
    assert (
        failure_text(KeyError("steps")) == "The answer could not be used (program): KeyError: 'steps'. It counts as 0."
    )


def test_failures_are_counted_by_kind():
    metric = metric_of(Judge(Score(1.0)))
    for kind in ("cut", "cut", "refusal"):
        assert metric.failed(ProgramFailure("x", kind)).score == 0.0
    assert metric.notes() == ["3 of 3 answers while tuning could not be used and counted as 0 (2 cut, 1 refusal)"]


def test_short_texts_are_not_clipped():
    assert clipped("abc", 3) == "abc"


def test_dspys_own_gepa_takes_it(tmp_path):
    """The form is DSPy's: its optimizer runs with it, and asks the metric once per answer."""
    task = dspy.utils.DummyLM([{"record": "{}"}] * 200)
    writer = dspy.utils.DummyLM([{"new_instruction": f"Version {n}."} for n in range(50)])
    judge = Judge(Score(0.5, "not quite"))
    metric = AsFeedback(Scoring(judge, OutputContract("record", ("text",), {}), lambda stop: None))
    examples = [dspy.Example(id=f"e{n}", expected="", text=f"t{n}").with_inputs("text") for n in range(4)]
    optimizer = dspy.GEPA(metric=metric, max_metric_calls=20, reflection_lm=writer, num_threads=1, seed=0)
    with dspy.context(lm=task, disable_history=True, trace=[]):
        optimizer.compile(dspy.Predict("text -> record"), trainset=examples, valset=examples)
    assert metric.calls >= 20
    assert judge.applied == len(examples)
