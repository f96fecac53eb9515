"""Evaluators of a file that need what a file cannot hold: a judge's model, a function, the dataset's ids, a server."""

import dataclasses
import json

import pytest

from harness.assembly import load_experiment
from harness.errors import RunStopped, UsageError
from harness.experiment import run
from harness.measurement import evaluate_program
from harness.models.loopback import LoopbackServer, Reply
from harness.models.roles import Endpoints
from harness.models.scripted import ScriptedProvider, request_text
from harness.planning import calls_of_a_test_pass, plan
from metrics import RecordMetric

JUDGE = "models.judge=scripted/judge"
JUDGED = "metric={record: {fields: {vendor: score_judge, total: numeric}}}"
RULES = """\
from metrics import BaseEvaluator


def close(extracted, expected, input_data=None, field_path=None):
    assert input_data["id"].startswith("inv-") and "Bill no." in input_data["text"]
    return 1 - abs(extracted - expected) / 10


def short(extracted, expected):
    return 1


def broken(extracted, expected, input_data=None, field_path=None):
    return 1 - abs(extracted - unknown) / 10


class Asking(BaseEvaluator):
    needs_lm = True

    def __init__(self, config=None, lm=None):
        self.config, self.lm = config, lm

    def with_lm(self, lm):
        return Asking(self.config, lm)

    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        return float(len(self.lm("Say yes.")) == 1) if callable(self.lm) else 0.0
"""


@pytest.fixture
def judge():
    """A judge that says 0.75."""
    return ScriptedProvider(lambda request: '{"reason": "so", "score": 0.75}', "scripted/judge", concurrency=1)


@pytest.fixture
def endpoints(answers, judge):
    """The task's script, and the judge's."""
    task = ScriptedProvider(answers, concurrency=1)
    return Endpoints(environ={}, providers={task.model: task, judge.model: judge})


@pytest.fixture
def rules(project):
    (project / "rules.py").write_text(RULES)
    return project


def refused(*overrides):
    with pytest.raises(UsageError) as error:
        load_experiment("experiment.yaml", overrides)
    return str(error.value)


def file(project, metric, judge=True):
    """The experiment with this metric; without tuning."""
    text = (project / "experiment.yaml").read_text().replace("nearest_demos: {k: [1, 2]}", "none: {}")
    models = "models: {task: scripted/model, judge: scripted/judge}" if judge else "models: {task: scripted/model}"
    (project / "experiment.yaml").write_text(
        f"{text.replace('models: {task: scripted/model}', models)}metric: {metric}\n"
    )
    return load_experiment("experiment.yaml")


# --- the judge ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("score_judge", "score_judge asks a model; name it: models: {judge: ...}"),
        ("{score_judge: {criteria: The name is complete}}", "score_judge asks a model; name it: models: {judge: ...}"),
        ("{label_model_grader: {allowed_labels: [a]}}", "label_model_grader asks a model; name it"),
        ("{score_judge: null}", "score_judge asks a model; name it"),
    ],
)
def test_a_judging_evaluator_needs_a_declared_judge(project, field, words):
    message = refused(f"metric={{record: {{fields: {{vendor: {field}}}}}}}")
    assert words in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("{score_judge: {lm: openai/gpt-4.1}}", "score_judge takes its model from models.judge; leave lm out"),
        ("{score_judge: {criteria: Rate it from 1 to 5}}", "criteria names the scale '1 to 5', but scale is [0, 1]"),
        ("{score_judge: {criterion: x}}", "unknown option 'criterion', did you mean 'criteria'?"),
        ("{label_model_grader: {}}", "allowed_labels: field required"),
        ("{label_model_grader: {allowed_labels: []}}", "the set is empty"),
    ],
)
def test_what_is_wrong_with_a_judging_evaluator_is_told_with_its_place(project, field, words):
    message = refused(JUDGE, f"metric={{record: {{fields: {{vendor: {field}}}}}}}")
    assert words in message
    assert "metric record" in message


def test_the_judge_is_asked_while_the_run_goes_and_never_before(project, endpoints, judge):
    experiment = file(project, "{record: {fields: {vendor: score_judge, total: numeric}}}")
    assert isinstance(experiment.metric, RecordMetric)
    assert judge.requests == []
    result = run(experiment, endpoints=endpoints)
    # Every baseline answer is {"vendor": "unknown", "total": null}: one judged value, one missed one.
    assert {row.score.value for row in result.baseline.rows} == {0.375}
    assert "got 'unknown' (the judge gives 0.75 on the scale from 0 to 1: so)" in result.baseline.rows[0].score.feedback
    assert result.ledger["judge"].calls == len(judge.requests) == 12
    assert result.ledger["task"].calls == 12
    assert all('"unknown"' in request_text(request) for request in judge.requests)
    again = evaluate_program(experiment, endpoints=endpoints)
    assert again["score"] == pytest.approx(0.375)
    assert len(judge.requests) == 12


def test_a_judge_that_cannot_be_read_gives_no_score_and_stops_the_run(project, endpoints, judge):
    judge._script = lambda request: "I cannot evaluate this."
    experiment = file(project, "{record: {fields: {vendor: score_judge}}}")
    with pytest.raises(RunStopped, match=r"could not score .* score_judge: the answer is not JSON") as caught:
        run(experiment, endpoints=endpoints)
    assert caught.value.exit_code == 1


def test_the_version_names_the_judges_model_and_so_does_the_plan(project):
    one, other = (load_experiment("experiment.yaml", [f"models.judge={name}", JUDGED]) for name in ("s/one", "s/two"))
    plain = load_experiment("experiment.yaml")
    assert len({one.metric.version, other.metric.version, plain.metric.version}) == 3
    assert plan(one).roles["judge"] == "s/one"


def test_judge_calls_are_planned_and_the_last_measurements_are_kept_back(project):
    experiment = load_experiment("experiment.yaml", [JUDGE, JUDGED])
    planned = plan(experiment)
    assert planned.calls == {"task": 12 + 2 * 4 + 12, "judge": 12 + 2 * 4 + 12}
    assert planned.reserve == calls_of_a_test_pass(experiment) == 24
    assert planned.usd == {"task": None, "judge": None}
    assert not any("nothing in this experiment calls it" in note for note in planned.notes)
    audited = load_experiment("experiment.yaml", [JUDGE, f"audit={JUDGED.removeprefix('metric=')}"])
    assert plan(audited).calls == {"task": 32, "judge": 24}


def test_a_budget_that_forgets_the_judge_is_refused(project):
    from harness.planning import check_budget

    with pytest.raises(UsageError, match=r"40 calls do not pay .* which takes 48"):
        check_budget(load_experiment("experiment.yaml", [JUDGE, JUDGED, "budget.calls=40"]))
    priced = "models={task: scripted/model, judge: {model: scripted/judge, price: {input: 1000, output: 1000}}}"
    with pytest.raises(UsageError, match=r"0.01 USD does not pay"):
        check_budget(load_experiment("experiment.yaml", [priced, JUDGED, "budget.usd=0.01"]))


def test_a_judge_that_nothing_asks_and_one_that_grades_itself_are_told(project):
    notes = load_experiment("experiment.yaml", [JUDGE]).notes
    assert "models.judge is declared, but nothing in this experiment calls it" in notes
    notes = load_experiment("experiment.yaml", ["models.judge=scripted/model", JUDGED]).notes
    assert any("models.judge is the task's own model (scripted/model): it grades its own answers" in n for n in notes)
    assert not any("models.judge" in note for note in load_experiment("experiment.yaml", [JUDGE, JUDGED]).notes)


def test_an_evaluator_of_ones_own_gets_the_judge_too(rules, endpoints, judge):
    metric = "{record: {fields: {vendor: rules.py:Asking}}}"
    assert "rules.py:Asking: " in refused(f"metric={metric}")
    experiment = file(rules, metric)
    assert run(experiment, endpoints=endpoints).baseline.total.score == 1.0
    assert len(judge.requests) == 1  # one question, answered from the store ever after


# --- functions, ids, embeddings ----------------------------------------------------------------------------------


def test_a_rule_is_named_by_its_import_path(rules, scripted):
    metric = "{record: {fields: {total: {python_code: {function: 'rules.py:close'}}}}}"
    experiment = load_experiment("experiment.yaml", [f"metric={metric}"])
    record = {"vendor": "x", "total": 10.0}
    example = {"id": "inv-1", "text": "Bill no. 1", "expected": record}
    assert experiment.metric(example, {"record": {"total": 8.0}}).value == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("'lambda a, b: 1'", "function is named by its import path, such as my_rules.py:rule; it is not written out"),
        ("|\n  def rule(a, b): return 1", "it is not written out"),
        ("5", "it is not written out, got 5"),
        ("'rules.py:cloze'", "did you mean 'close'"),
        ("'rules.py:short'", "rules.py:short is no rule; write def rule(extracted, expected, input_data=None"),
        ("'rules.py:Asking'", "rules.py:Asking is no rule"),
        ("'os:system'", "os:system is no rule"),
        ("'subprocess:call'", "subprocess:call is no rule"),
        (
            "'rules.py:broken'",
            "comparing the record of invoices.jsonl line 1 with itself failed: PythonCodeError: total: ",
        ),
    ],
)
def test_what_is_no_rule_is_refused_and_never_called(rules, function, words):
    rest = f"{{record: {{fields: {{total: {{python_code: {{function: {function}}}}}}}}}}}"
    if function.startswith("|"):
        rest = json.dumps({"record": {"fields": {"total": {"python_code": {"function": "def rule(a, b): return 1"}}}}})
    message = refused(f"metric={rest}")
    assert words in message
    assert "Traceback" not in message


def test_a_broken_rule_is_told_with_its_line(rules):
    message = refused("metric={record: {fields: {total: {python_code: {function: 'rules.py:broken'}}}}}")
    assert "the function 'broken' raised NameError: name 'unknown' is not defined (rules.py line 14)" in message


def test_a_list_of_scores_belongs_to_the_examples_in_their_order(project):
    scores = [number / 100 for number in range(24)]
    experiment = load_experiment(
        "experiment.yaml", [f"metric={{record: {{fields: {{vendor: {{predefined_score: {{scores: {scores}}}}}}}}}}}"]
    )
    found = {
        example["id"]: experiment.metric(example, {"record": example["expected"]}).value
        for examples in experiment.examples.values()
        for example in examples
    }
    assert found == {f"inv-{number:02}": number / 100 for number in range(24)}
    few = refused("metric={record: {fields: {vendor: {predefined_score: {scores: [0.5]}}}}}")
    assert "there are 1 scores for 24 ids" in few


def test_scores_by_id_are_taken_as_they_are(project):
    field = "{predefined_score: {scores: {inv-00: 4, inv-01: 2}, max_value: 5}}"
    metric = load_experiment("experiment.yaml", [f"metric={{record: {{fields: {{vendor: {field}}}}}}}"]).metric
    values = [
        metric({"id": name, "expected": {"vendor": "x"}}, {"record": {"vendor": "y"}}).value
        for name in ("inv-01", "inv-00", "inv-02")
    ]
    assert values == [0.4, 0.8, None]


def embeddings(received):
    texts = received.body["input"]
    return Reply(body={"data": [{"index": n, "embedding": [len(text), 10.0]} for n, text in enumerate(texts)]})


def similar(api_base, **options):
    options = {"provider": "openai", "model": "small", "api_base": api_base, **options}
    return json.dumps({"record": {"fields": {"vendor": {"text_similarity": options}}}})


def test_embeddings_are_asked_for_in_the_run_only_and_kept_beside_its_answers(project, endpoints):
    with LoopbackServer(embeddings) as server:
        experiment = file(project, similar(server.api_base), judge=False)
        assert server.requests == []
        result = run(experiment, endpoints=endpoints)
        assert all(0.9 < row.score.value <= 1.0 for row in result.baseline.rows)
        texts = [text for received in server.requests for text in received.body["input"]]
        assert len(texts) == len(set(texts)) == 12 + 1 + 1  # the vendors of the test split, "unknown", and the probe
        asked = len(server.requests)
        evaluate_program(experiment, endpoints=endpoints)
        assert len(server.requests) == asked + 1  # the probe alone
    assert (project / "mlruns" / "embeddings.db").is_file()


def test_a_server_that_refuses_is_told_before_any_model_is_called(project, scripted):
    endpoints, provider = scripted()
    with LoopbackServer([Reply(401, {"error": {"message": "who are you?"}})]) as server:
        experiment = file(project, similar(server.api_base), judge=False)
        with pytest.raises(UsageError, match=r"metric record cannot be made ready: .*who are you\?"):
            run(experiment, endpoints=endpoints)
    assert provider.requests == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"api_key": "sk-4f9aB27c"}, "api_key"),
        ({"api_key_env": "NOT_SET"}, "environment variable NOT_SET, which is not set"),
    ],
)
def test_a_key_is_named_and_never_written(project, options, words):
    message = refused(f"metric={similar('http://127.0.0.1:1/v1', **options)}")
    assert words in message
    assert "sk-4f9aB27c" not in message


def test_a_missing_library_is_told_before_any_model_is_called(project, monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else found(name, *rest)
    )
    message = refused("metric={record: {fields: {vendor: text_similarity}}}")
    assert "pip install 'dspy-judge-harness[embeddings]'" in message
    assert len(message.splitlines()) == 1


def test_the_parts_of_a_composite_are_completed_and_counted_alike(project, endpoints, judge):
    parts = "{record: {fields: {vendor: score_judge}}, mine: {metric: {record: {fields: {total: numeric}}}}}"
    metric = f"{{composite: {parts}}}"
    experiment = file(project, metric)
    assert plan(experiment).calls == {"task": 24, "judge": 24}
    result = run(experiment, endpoints=endpoints)
    assert len(judge.requests) == 12
    assert {row.score.value for row in result.baseline.rows} == {0.375}


def test_an_undeclared_role_is_refused(rules):
    (rules / "mine.py").write_text(
        "from metrics import Score\n\n\nclass Mine:\n    name, version = 'mine', '1'\n\n"
        "    def __call__(self, example, prediction):\n        return Score(1.0)\n\n"
        "    def compare(self, expected, predicted):\n        return Score(1.0)\n\n"
        "    def model_calls(self, expected):\n        return {'judge': 1}\n\n"
        "    def bind(self, lms):\n        return self\n"
    )
    assert "the metrics ask models.judge, which is not declared" in refused("metric=mine.py:Mine")
    assert plan(load_experiment("experiment.yaml", ["metric=mine.py:Mine", JUDGE])).calls["judge"] == 32


def test_experiments_stay_frozen(project):
    experiment = load_experiment("experiment.yaml", [JUDGE, JUDGED])
    with pytest.raises(dataclasses.FrozenInstanceError):
        experiment.metric = None
