"""Every example once; failures classed; stops escape; aggregates carry what they rest on."""

import json
import threading

import dspy
import pytest
from dspy import lm15

from harness.errors import HarnessError, RunStopped, StopReason
from harness.evaluation import Measure, Runtime, aggregate_fields, evaluate, failure_sentence
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, build_role_lm
from harness.models.scripted import ScriptedProvider, reply, request_text
from harness.models.store import AnswerStore
from harness.progress import SilentProgress
from harness.results import Row
from harness.scoring import Scoring
from metrics.score import Score
from programs.contract import output_contract


class Copy(dspy.Module):
    output_field = "label"

    def __init__(self, before=lambda text: None):
        super().__init__()
        self.extract = dspy.Predict("text -> label")
        self.before = before

    def forward(self, text):
        self.before(text)
        return self.extract(text=text)


class Exact:
    name, version = "exact", "1"

    def __init__(self, judge=None):
        self.judge = judge or (lambda expected, got: Score(float(expected == got), parts={"label": Score(1.0)}))

    def __call__(self, example, prediction):
        return self.judge(example.expected, prediction.label)

    def compare(self, expected, predicted):
        return Score(0.0, parts={"label": Score(0.0)})


def echo(request):
    return json.dumps({"label": request_text(request).rsplit("sample-", 1)[1].split()[0]})


def examples(count, groups=None):
    return [
        dspy.Example(id=f"e{n}", group=groups[n] if groups else None, expected=str(n), text=f"sample-{n}").with_inputs(
            "text"
        )
        for n in range(count)
    ]


@pytest.fixture
def setting(tmp_path):
    opened = []

    def make(script=echo, *, metric=None, audits=None, threads=1, program=None, budget=None):
        provider = ScriptedProvider(script, concurrency=threads)
        endpoints = Endpoints(providers={provider.model: provider})
        store, ledger = AnswerStore(tmp_path / "a.db"), Ledger(budget)
        opened.append((endpoints, store))
        lm = build_role_lm("task", ModelConfig(provider.model), endpoints=endpoints, store=store, ledger=ledger)
        contract = output_contract(Copy())
        measure = Measure(
            Scoring(metric or Exact(), contract, ledger.stop),
            {name: Scoring(audit, contract, ledger.stop) for name, audit in (audits or {}).items()},
            contract,
        )
        runtime = Runtime(lm, dspy.JSONAdapter(), threads, ledger.stop)

        def run(count=6, groups=None):
            return evaluate(
                program or Copy(), examples(count, groups), name="baseline", split="test", measure=measure,
                runtime=runtime, progress=SilentProgress(),
            )  # fmt: skip

        run.provider, run.ledger = provider, ledger
        return run

    yield make
    for endpoints, store in opened:
        endpoints.close()
        store.close()


@pytest.mark.parametrize("threads", [1, 4])
def test_every_example_is_asked_once_and_rows_keep_their_order(setting, threads):
    run = setting(threads=threads)
    result = run(12)
    assert [row.example_id for row in result.rows] == [f"e{n}" for n in range(12)]
    assert len(run.provider.requests) == 12
    assert (result.total.score, result.total.n_scored, result.total.n_total) == (1.0, 12, 12)
    assert not any(row.cached for row in result.rows)
    again = run(12)
    assert len(run.provider.requests) == 12
    assert all(row.cached for row in again.rows)


def test_a_cut_or_unreadable_answer_is_a_program_failure_that_scores_zero_and_is_named(setting):
    def script(request):
        if "sample-1" in request_text(request):
            return reply('{"label": "1', finish_reason="length")
        return "no json" if "sample-2" in request_text(request) else echo(request)

    result = setting(script)(4)
    assert [row.failure for row in result.rows] == [None, "program", "program", None]
    assert [row.score.value for row in result.rows] == [1.0, 0.0, 0.0, 1.0]
    assert "raise models.task.max_tokens" in result.rows[1].error
    assert "could not be read" in result.rows[2].error
    assert result.rows[1].predicted is None
    assert result.fields["label"].score == pytest.approx(0.5)
    assert result.fields["label"].n_total == 4


def test_what_the_judge_could_not_read_is_unscored_and_shown_in_every_aggregate(setting):
    judge = Exact(lambda expected, got: Score.unscored("no verdict in the reply") if got in "13" else Score(1.0))
    result = setting(metric=judge, audits={"strict": Exact()})(4)
    assert [row.failure for row in result.rows] == [None, "judge", None, "judge"]
    assert (result.total.score, result.total.n_scored, result.total.n_total) == (1.0, 2, 4)
    assert result.total.lower_bound == 0.5
    assert result.audit["strict"].score == 1.0
    assert result.rows[1].error == "no verdict in the reply"


def test_a_program_that_raises_on_one_example_goes_on(setting):
    def before(text):
        if text == "sample-3":
            raise KeyError("missing")

    result = setting(program=Copy(before))(6)
    assert result.total.score == pytest.approx(5 / 6)
    assert result.rows[3].error == "KeyError: 'missing'"


@pytest.mark.parametrize("threads", [1, 3])
def test_a_program_that_raises_on_every_example_is_told_at_once(setting, threads):
    def before(text):
        raise AttributeError("no attribute 'summarise'")

    run = setting(program=Copy(before), threads=threads)
    with pytest.raises(HarnessError, match=r"raises on every example.*'e\d'.*in before, test_evaluation.py line"):
        run(40)
    assert run.provider.requests == []


def test_a_prediction_without_the_declared_field_is_a_broken_program(setting):
    class Other(Copy):
        def forward(self, text):
            return dspy.Prediction(other=1)

    with pytest.raises(HarnessError, match="no 'label', its declared output field"):
        setting(program=Other())()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_broken_metric_stops_after_the_first_example(setting, threads):
    def judge(expected, got):
        raise TypeError("a typo")

    run = setting(metric=Exact(judge), threads=threads)
    with pytest.raises(RunStopped, match="TypeError: a typo"):
        run(30)
    assert len(run.provider.requests) <= threads + 1


def test_a_model_that_is_not_there_stops_in_the_providers_words(setting):
    run = setting([lm15.UnsupportedModelError("The model `gpt-9` does not exist")])
    with pytest.raises(RunStopped, match="The model `gpt-9` does not exist") as stopped:
        run(30)
    assert stopped.value.reason is StopReason.MODEL
    assert len(run.provider.requests) == 1


def test_a_spent_budget_stops_and_what_was_paid_is_replayed(setting):
    with pytest.raises(RunStopped) as stopped:
        setting(budget=4)(10)
    assert stopped.value.exit_code == 3
    rest = setting()
    assert rest(10).total.n_scored == 10
    assert len(rest.provider.requests) == 6


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_escapes_and_refuses_later_calls(setting, threads):
    asked = threading.Event()

    def before(text):
        if text == "sample-2":
            asked.set()
            raise KeyboardInterrupt

    run = setting(program=Copy(before), threads=threads)
    with pytest.raises(KeyboardInterrupt):
        run(50)
    assert asked.is_set()
    assert len(run.provider.requests) < 50


def test_groups_reach_the_interval(setting):
    result = setting()(4, groups=["p", "p", "p", "p"])
    assert result.rows[0].group == "p"
    assert result.total.interval is None


def test_a_part_that_is_absent_is_not_counted_and_an_unscored_one_is():
    def row(parts):
        return Row("a", None, {}, None, None, Score(1.0, parts=parts))

    fields = aggregate_fields([row({"x": Score(1.0)}), row({"x": Score.unscored("?"), "y": Score(0.0)}), row({})])
    assert (fields["x"].score, fields["x"].n_scored, fields["x"].n_total) == (1.0, 1, 2)
    assert (fields["y"].score, fields["y"].n_total) == (0.0, 1)


def test_an_error_without_words_still_has_a_sentence():
    assert failure_sentence(ValueError()) == ("ValueError: no message", False)


def test_a_forgotten_return_is_a_broken_program(setting):
    class Silent(Copy):
        def forward(self, text):
            self.extract(text=text)

    with pytest.raises(HarnessError, match="the program returned NoneType, not a dspy"):
        setting(program=Silent())()


def test_a_number_no_record_can_hold_is_an_unreadable_answer(setting):
    class Infinite(Copy):
        def forward(self, text):
            return dspy.Prediction(label=float("inf"))

    result = setting(program=Infinite())()
    assert {row.failure for row in result.rows} == {"program"}
    assert result.total.score == 0.0


def test_half_a_character_is_an_unreadable_answer(setting):
    result = setting(lambda request: '{"label": "a\\ud800b"}')(4)
    assert {row.failure for row in result.rows} == {"program"}
    assert "JSON cannot hold this value" in result.rows[0].error
