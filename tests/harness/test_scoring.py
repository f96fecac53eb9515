"""A metric is asked once; its bug stops the run; a failed program misses every expected field."""

import dspy
import pytest

from harness.errors import RunStopped, StopReason
from harness.failures import Failure
from harness.models.ledger import Ledger
from harness.scoring import Scoring
from metrics import RecordMetric
from metrics.score import Score, UnscoredError
from programs.contract import OutputContract

CONTRACT = OutputContract("record", ("text",), {"type": "object"})


class Counting:
    name, version = "counting", "1"

    def __init__(self, answer):
        self.answer, self.calls = answer, 0

    def __call__(self, example, prediction):
        self.calls += 1
        return self.answer(self.calls) if callable(self.answer) else self.answer

    def compare(self, expected, predicted):
        raise UnscoredError("needs its source")


def example(number="a", expected=None):
    return dspy.Example(id=number, expected=expected)


def prediction(record):
    return dspy.Prediction(record=record)


def test_one_example_and_one_prediction_are_measured_once():
    metric = Counting(lambda call: Score(call / 10))
    scoring = Scoring(metric, CONTRACT, Ledger().stop)
    first = scoring.score(example(), prediction({"a": 1, "b": 2}))
    again = scoring.score(example(), prediction({"b": 2, "a": 1}))
    assert first is again
    assert metric.calls == 1


@pytest.mark.parametrize(
    ("other_example", "other_record", "replicate"),
    [(example("b"), {"a": 1}, 0), (example(), {"a": 2}, 0), (example(), {"a": 1}, 1)],
)
def test_another_example_prediction_or_replicate_is_measured_anew(other_example, other_record, replicate):
    metric = Counting(Score(0.5))
    scoring = Scoring(metric, CONTRACT, Ledger().stop)
    scoring.score(example(), prediction({"a": 1}))
    scoring.score(other_example, prediction(other_record), replicate)
    assert metric.calls == 2


def _typo(_):
    raise AttributeError("no attribute 'anser'")


@pytest.mark.parametrize(
    ("answer", "words"), [(_typo, "AttributeError: no attribute 'anser'"), (0.7, "it returned float")]
)
def test_a_broken_metric_stops_the_run_and_every_later_call(answer, words):
    ledger = Ledger()
    with pytest.raises(RunStopped, match=words) as stopped:
        Scoring(Counting(answer), CONTRACT, ledger.stop).score(example("qs-7"), prediction({}))
    assert stopped.value.reason is StopReason.METRIC
    assert "'qs-7'" in stopped.value.message
    with pytest.raises(RunStopped):
        ledger.reserve("task")


BUG = Failure("program", None, "KeyError: 'total'")
CUT = Failure("unreadable", "cut", "answer cut at max_tokens=512")


def test_a_program_that_raised_scores_zero_and_misses_each_expected_field():
    metric = RecordMetric(fields={"vendor": "exact", "total": "numeric"}, output_field="record")
    score = Scoring(metric, CONTRACT, Ledger().stop).failed(example(expected={"vendor": "Acme", "total": 3}), BUG)
    assert score.value == 0.0
    assert {name: part.value for name, part in score.parts.items()} == {"vendor": 0.0, "total": 0.0}
    assert "KeyError: 'total'" in score.feedback


@pytest.mark.parametrize(
    "failure",
    [CUT, Failure("endpoint", "empty", "empty answer"), Failure("budget", None, "not measured: the budget is spent")],
)
def test_what_has_no_readable_answer_is_unscored_in_every_part(failure):
    metric = RecordMetric(fields={"vendor": "exact", "total": "numeric"}, output_field="record")
    score = Scoring(metric, CONTRACT, Ledger().stop).failed(example(expected={"vendor": "Acme", "total": 3}), failure)
    assert (score.value, score.error, score.feedback) == (None, failure.sentence, failure.sentence)
    assert {name: (part.value, part.error) for name, part in score.parts.items()} == {
        "vendor": (None, failure.sentence),
        "total": (None, failure.sentence),
    }
    assert dict(score.details) == {"failure": failure.side, "kind": failure.kind}


@pytest.mark.parametrize("failure", [BUG, CUT])
def test_a_metric_that_cannot_compare_without_an_answer_gives_no_parts(failure):
    class Strict(Counting):
        def compare(self, expected, predicted):
            return predicted.keys()

    for metric in (Counting(Score(1.0)), Strict(Score(1.0))):
        assert Scoring(metric, CONTRACT, Ledger().stop).failed(example(), failure).parts == {}


def test_a_metric_cannot_change_the_example():
    class Changing(Counting):
        def __call__(self, example, prediction):
            example["expected"].clear()
            return super().__call__(example, prediction)

    kept = example(expected={"vendor": "Acme"})
    Scoring(Changing(Score(1.0)), CONTRACT, Ledger().stop).score(kept, prediction({"a": 1}))
    assert kept["expected"] == {"vendor": "Acme"}


def test_a_metric_that_changes_its_prediction_changes_nothing_for_others():
    class Changing(Counting):
        def __call__(self, example, prediction):
            prediction.record["a"] = "changed"
            return super().__call__(example, prediction)

    given = prediction({"a": 1})
    Scoring(Changing(Score(0.5)), CONTRACT, Ledger().stop).score(example(), given)
    assert given.record == {"a": 1}


def test_whatever_a_metric_raises_stops_the_run_in_a_sentence():
    class Odd(BaseException):
        pass

    def raises(_):
        raise Odd("not an Exception")

    with pytest.raises(RunStopped, match="Odd: not an Exception"):
        Scoring(Counting(raises), CONTRACT, Ledger().stop).score(example(), prediction({}))
