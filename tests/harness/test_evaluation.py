"""Every example once; failures classed; stops escape; aggregates carry what they rest on."""

import contextlib
import json
import threading

import dspy
import pytest
from dspy import lm15

from harness.errors import ENDPOINT_KINDS, HarnessError, ProgramFailure, RunStopped, StopReason
from harness.evaluation import Measure, Runtime, aggregate_fields, evaluate, failure_sentence
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.prompt import prompt_adapter
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
    return json.dumps({"label": asked(request)})


def asked(request):
    """The number in the question, also when it is asked again."""
    return request_text(request).split("sample-", 1)[1].split()[0]


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
        runtime = Runtime(lm, prompt_adapter("json"), threads, ledger.stop, ledger)

        def run(count=6, groups=None, **more):
            return evaluate(
                program or Copy(), examples(count, groups), name="baseline", split="test", measure=measure,
                runtime=runtime, progress=SilentProgress(), **more,
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


def test_what_cannot_be_read_is_unscored_counted_and_named(setting):
    def script(request):
        if asked(request) == "1":
            return reply('{"label": "1', finish_reason="length")
        return "no json" if asked(request) == "2" else echo(request)

    run = setting(script)
    result = run(4)
    assert [row.failure for row in result.rows] == [None, "unreadable", "unreadable", None]
    assert [row.failure_kind for row in result.rows] == [None, "cut", "invalid", None]
    assert [row.score.value for row in result.rows] == [1.0, None, None, 1.0]
    assert "raise models.task.max_tokens" in result.rows[1].error
    assert "could not be read" in result.rows[2].error
    assert result.rows[1].predicted is None
    assert (result.total.score, result.total.n_scored, result.total.n_total) == (1.0, 2, 4)
    assert result.total.lower_bound == 0.5
    assert (result.fields["label"].score, result.fields["label"].n_scored) == (1.0, 2)
    assert result.readable == 2
    counts = [(each.failure, each.kind, each.count, each.example_id) for each in result.failures]
    assert counts == [("unreadable", "cut", 1, "e1"), ("unreadable", "invalid", 1, "e2")]
    assert sum("no json" in request_text(request) for request in run.provider.requests) == 1, "asked once more"


def test_an_answer_read_at_the_second_time_is_scored(setting):
    result = setting(lambda request: echo(request) if "cannot be used" in request_text(request) else "12")(3)
    assert result.total.score == 1.0
    assert result.failures == []


def test_an_unreadable_audit_is_unscored_too(setting):
    result = setting(lambda request: "no json" if asked(request) == "0" else echo(request), audits={"a": Exact()})(3)
    assert (result.audit["a"].score, result.audit["a"].n_scored, result.audit["a"].n_total) == (1.0, 2, 3)


@pytest.mark.parametrize("kind", sorted(ENDPOINT_KINDS))
def test_trouble_of_the_endpoint_is_named_apart(setting, kind):
    def before(text):
        if text == "sample-1":
            raise ProgramFailure("the place is in trouble", kind)

    row = setting(program=Copy(before))(3).rows[1]
    assert (row.failure, row.failure_kind, row.score.value) == ("endpoint", kind, None)


def test_an_adapter_of_the_programs_own_is_told_from_a_bug(setting):
    class Own(Copy):
        def forward(self, text):
            with dspy.context(adapter=dspy.JSONAdapter()):
                return self.extract(text=text)

    row = setting(lambda request: "12" if asked(request) == "0" else echo(request), program=Own())(2).rows[0]
    assert (row.failure, row.failure_kind) == ("unreadable", "invalid")
    assert row.error.startswith("the answer could not be read: ")


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


@pytest.mark.parametrize("threads", [1, 4])
def test_a_spent_budget_may_leave_what_was_measured(setting, threads):
    run = setting(budget=4, threads=threads)
    result = run(10, keep_partial=True)
    measured = [row for row in result.rows if row.failure is None]
    assert len(run.provider.requests) == len(measured) == 4
    rest = [row for row in result.rows if row.failure is not None]
    assert {(row.failure, row.failure_kind, row.score.value) for row in rest} == {("budget", None, None)}
    assert all("the budget of 4 calls is spent" in row.error for row in rest)
    assert [row.example_id for row in result.rows] == [f"e{n}" for n in range(10)]
    assert (result.total.n_scored, result.total.n_total, result.total.lower_bound) == (4, 4, 1.0)
    assert run.ledger.stopped is None, "the ledger refuses by itself; a later evaluation may have calls left"


@pytest.mark.parametrize("threads", [1, 4])
def test_only_a_spent_budget_leaves_a_part(setting, threads):
    def judge(expected, got):
        raise TypeError("a typo")

    run = setting(metric=Exact(judge), threads=threads)
    with pytest.raises(RunStopped, match="a typo"):
        run(10, keep_partial=True)
    assert run.ledger.stopped is not None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("count", "calls"), [(30, 5), (3, 3)])
def test_a_judge_that_scores_nothing_stops_the_run_in_its_words(setting, threads, count, calls):
    run = setting(metric=Exact(lambda *_: Score.unscored("judge at host: 401 Unauthorized")), threads=threads)
    words = rf"'exact' could not score {calls} of {calls} answers; on 'e\d': judge at host: 401 Unauthorized"
    with pytest.raises(RunStopped, match=words) as stopped:
        run(count)
    assert (stopped.value.reason, stopped.value.exit_code) == (StopReason.JUDGE, 1)
    assert len(run.provider.requests) <= calls + 2 * threads, "those in hand, and as many that wait to be looked at"
    assert run.ledger.stopped.reason is StopReason.JUDGE


def test_a_judge_that_scores_less_than_half_stops_the_run(setting):
    def judge(expected, got):
        return Score(1.0) if int(got) % 3 == 0 else Score.unscored("no verdict")

    with pytest.raises(RunStopped, match="could not score 8 of 12 answers; on 'e1': no verdict") as stopped:
        setting(metric=Exact(judge))(12)
    assert stopped.value.reason is StopReason.JUDGE


def test_unreadable_answers_are_none_of_the_judges(setting):
    result = setting(lambda request: "no json")(6)
    assert {row.failure for row in result.rows} == {"unreadable"}
    assert result.total.score is None


def test_a_replicate_reaches_metric_and_audits(setting):
    judges = [Exact(), Exact()]
    asked_for = {0: [], 1: []}
    for number, judge in enumerate(judges):
        judge.judge = lambda *_, number=number: asked_for[number].append(1) or Score(1.0)
    run = setting(metric=judges[0], audits={"a": judges[1]})
    for replicate in (0, 0, 1):
        run(3, replicate=replicate)
    assert [len(calls) for calls in asked_for.values()] == [6, 6]


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
    assert {(row.failure, row.failure_kind) for row in result.rows} == {("unreadable", "invalid")}
    assert result.total.score is None


def test_half_a_character_is_an_unreadable_answer(setting):
    result = setting(lambda request: '{"label": "a\\ud800b"}')(4)
    assert {row.failure for row in result.rows} == {"unreadable"}
    assert "JSON cannot hold this value" in result.rows[0].error


class SwallowsAll(Copy):
    def forward(self, text):
        try:
            return self.extract(text=text)
        except BaseException:  # noqa: BLE001  # that is what it does
            return dspy.Prediction(label="made up")


class AsksInAThread(Copy):
    def forward(self, text):
        found, around = [], {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}

        def ask():
            with dspy.context(**around), contextlib.suppress(BaseException):
                found.append(self.extract(text=text))

        (thread := threading.Thread(target=ask)).start()
        thread.join()
        return found[0] if found else dspy.Prediction(label="made up")


@pytest.mark.parametrize("program", [SwallowsAll, AsksInAThread])
def test_a_stop_that_a_program_swallows_is_no_answer(setting, program):
    result = setting(program=program(), budget=5)(12, keep_partial=True)
    assert [row.failure for row in result.rows].count("budget") == 7
    assert (result.total.score, result.total.n_total) == (1.0, 5)


@pytest.mark.parametrize("program", [SwallowsAll, AsksInAThread])
def test_a_dead_model_that_a_program_swallows_stops_the_evaluation(setting, program):
    def dies(request):
        if "sample-3" in request_text(request):
            raise lm15.AuthError("the key was withdrawn")
        return echo(request)

    run = setting(dies, program=program())
    run.ledger.pause = lambda seconds: None
    with pytest.raises(RunStopped, match="withdrawn"):
        run(12)
