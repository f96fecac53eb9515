"""Names become objects; what is wrong with a file or its data is one sentence before anything is spent."""

import json
import os

import pytest

from harness.assembly import load_experiment
from harness.errors import UsageError
from harness.planning import check_ready, plan
from metrics import RecordMetric


def refused(*overrides):
    with pytest.raises(UsageError) as error:
        load_experiment("experiment.yaml", overrides)
    return str(error.value)


def write_rows(project, change):
    rows = [json.loads(line) for line in (project / "invoices.jsonl").read_text().splitlines()]
    change(rows)
    (project / "invoices.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")


def test_the_least_that_runs(project):
    (project / "experiment.yaml").write_text(
        'program: {programs.schema:SchemaExtraction: {model: "schema.py:Invoice"}}\n'
        "data: invoices.jsonl\nmodels: {task: local/smollm2-135m}\n"
    )
    experiment = load_experiment("experiment.yaml")
    assert experiment.adapter == "compact"
    assert isinstance(experiment.metric, RecordMetric)
    assert experiment.optimizer.name == "bootstrap_random_search"
    assert experiment.bounds is not None
    assert [len(experiment.examples[name]) for name in ("train", "validation", "test")] == [10, 5, 9]
    example = experiment.examples["train"][0]
    assert set(example.inputs().keys()) == {"text"}
    assert example["record"].vendor == example["expected"]["vendor"]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("program=programs.schema:SchemaExtractoin", "SchemaExtraction"),
        ("program=nowhere.py:Mine", "nowhere.py"),
        ("program=justaname", "names no object; write my_file.py:Name"),
        ("program=metrics.score:Score", "not a dspy.Module class"),
        ('program={"programs.schema:SchemaExtraction": {"model": "schema.py:Invoicee"}}', "Invoice"),
        ('program={"programs.schema:SchemaExtraction": {"modell": 1}}', "cannot be made from"),
        ("program=user.py:NoField", "does not say which output is its result"),
        ("data.path=invoice.jsonl", "invoices.jsonl"),
        ("data.reader=recrods", "did you mean 'records'"),
        ("data.group_by=vendor_id", "vendor_id"),
        ("data.split.test=400", "400"),
        ("data.split.validation=0", "validation"),
        ("metric=recrod", "did you mean 'record'"),
        ("metric={record: {fields: {totall: numeric}}}", "'totall' matches nothing in any of the 24 records; did"),
        ("metric={record: {fields: {total: numerci}}}", "did you mean 'numeric'"),
        ("metric={record: {fields: [total]}}", "fields is a mapping"),
        ("metric={record: {nonsense: 1}}", "nonsense"),
        ("optimizer=nearest_demo", "did you mean 'nearest_demos'"),
        ("optimizer={nearest_demos: {kk: 2}}", "no argument 'kk'"),
        ("audit={strict: {}}", "no metric of this name"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_sentence_with_its_place(project, override, words):
    (project / "user.py").write_text(
        "import dspy\n\n\nclass NoField(dspy.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.extract = dspy.Predict('text -> label')\n"
    )
    message = refused(override)
    assert words in message
    assert "Traceback" not in message
    assert len(message.splitlines()) == 1


def test_everything_that_is_wrong_is_told_at_once(project):
    message = refused(
        "optimizer=nearest_demo", "metric=recrod", "data.path=gone.jsonl", "models.task.api_key_env=NO_KEY"
    )
    assert len(message.splitlines()) == 4
    for words in ("nearest_demos", "'record'", "gone.jsonl", "NO_KEY, which is not set"):
        assert words in message


def test_an_example_without_its_record_is_named(project):
    write_rows(project, lambda rows: rows[4].pop("expected"))
    assert "invoices.jsonl line 5" in refused()


def test_the_same_example_in_two_splits_is_refused(project):
    def change(rows):
        for row in rows[1:]:
            row["text"] = rows[0]["text"].upper()

    write_rows(project, change)
    message = refused()
    assert "inv-" in message
    assert "line" in message


def test_a_record_that_does_not_fit_is_scored_but_never_shown(project):
    write_rows(project, lambda rows: rows[3]["expected"].update(total="twelve"))
    experiment = load_experiment("experiment.yaml")
    note = next(note for note in experiment.notes if "do not fit" in note)
    assert "1 of 24 records do not fit" in note
    assert "invoices.jsonl line 4" in note
    assert "total" in note
    unfit = [example for split in experiment.examples.values() for example in split if example["id"] == "inv-03"]
    assert "record" not in unfit[0]


def test_an_optimizer_that_only_shows_labelled_examples_needs_some(project):
    write_rows(project, lambda rows: [row["expected"].update(total="twelve") for row in rows])
    assert "no training record fits the schema" in refused()
    assert load_experiment("experiment.yaml", ["optimizer=bootstrap_few_shot"]).labelled == []


def test_objects_of_the_users_own(project):
    (project / "own.py").write_text(
        "import dspy\nfrom metrics import BaseEvaluator, Score\n\n\n"
        "class First(BaseEvaluator):\n    alias = 'first'\n\n"
        "    def evaluate(self, extracted, expected, input_data=None, field_path=None):\n"
        "        return float(str(extracted)[:1] == str(expected)[:1])\n\n\n"
        "class Mine(dspy.Module):\n    output_field = 'label'\n\n    def __init__(self, kind='text -> label'):\n"
        "        super().__init__()\n        self.extract = dspy.Predict(kind)\n\n"
        "    def forward(self, text):\n        return self.extract(text=text)\n\n\n"
        "def rows(path, columns):\n"
        "    return [{'id': n, 'text': f'{n * 999} unlike {n}', 'expected': f'L{n}'} for n in range(30)]\n\n\n"
        "class Always:\n    name, version = 'always', '1'\n\n"
        "    def __init__(self, value=1.0):\n        self.value = value\n\n"
        "    def __call__(self, example, prediction):\n        return Score(self.value)\n\n"
        "    def compare(self, expected, predicted):\n        return Score(self.value)\n"
    )
    experiment = load_experiment(
        "experiment.yaml",
        ["program=own.py:Mine", "data.reader=own.py:rows", "metric={own.py:Always: {value: 0.5}}", "optimizer=none"],
    )
    assert experiment.contract.field == "label"
    assert experiment.metric(None, None).value == 0.5
    assert experiment.program_reference["class"] == "own.py:Mine"
    fields = '{"vendor": "own.py:First", "total": {"own.py:First": {}, "weight": 2}}'
    own = load_experiment("experiment.yaml", [f"metric={{record: {{fields: {fields}}}}}"])
    assert own.metric.compare({"vendor": "Abc", "total": 12}, {"vendor": "Axx", "total": 2}).value == pytest.approx(
        1 / 3
    )


def test_a_schema_file_serves_as_a_model(project):
    (project / "invoice.json").write_text(
        json.dumps({"type": "object", "properties": {"vendor": {"type": "string"}, "total": {"type": "number"}}})
    )
    program = 'program={"programs.schema:SchemaExtraction": {"model": "invoice.json"}}'
    assert load_experiment("experiment.yaml", [program]).contract.schema["properties"]["vendor"] == {"type": "string"}


def test_the_plan_counts_every_call(project):
    planned = plan(load_experiment("experiment.yaml", ["optimizer={nearest_demos: {k: [1, 2, 3]}}"]))
    assert planned.calls == {"task": 12 + 3 * 4 + 12}
    assert planned.to_document()["splits"] == {"train": 8, "validation": 4, "test": 12}
    search = plan(
        load_experiment("experiment.yaml", ["optimizer=bootstrap_random_search", "models.teacher=scripted/t"])
    )
    assert search.calls == {"task": 24 + 9 * 4, "teacher": 7 * 8}
    assert search.roles == {"task": "scripted/model", "teacher": "scripted/t"}
    own = plan(load_experiment("experiment.yaml", ["optimizer=bootstrap_few_shot"]))
    assert own.calls == {"task": 24 + 8}
    assert "the task's own" in own.roles["teacher"]


def test_a_role_nothing_calls_is_said(project):
    experiment = load_experiment("experiment.yaml", ["models.judge=openai/gpt-5-mini"])
    assert any("models.judge is declared, but nothing" in note for note in experiment.notes)


def test_prices_reach_the_model(project):
    experiment = load_experiment("experiment.yaml", ["models.task.price={input: 1, output: 2}"])
    assert experiment.models["task"].price == (1.0, 2.0)


@pytest.mark.parametrize("name", ["quickstart", "olivetti"])
def test_the_experiments_of_this_project_assemble(name, monkeypatch):
    import os
    from pathlib import Path

    if name == "olivetti" and not os.environ.get("HARNESS_DATA"):
        pytest.skip("HARNESS_DATA is not set: the real corpora are not in the project")
    experiments = Path(__file__).resolve().parents[2] / "experiments"
    experiment = load_experiment(experiments / f"{name}.yaml")
    assert sum(plan(experiment).calls.values()) <= 150


def test_a_misspelt_expected_field_is_named(project):
    write_rows(project, lambda rows: [row["expected"].update(totl=row["expected"].pop("total")) for row in rows])
    notes = load_experiment("experiment.yaml").notes
    assert any("totl (did you mean 'total'?)" in note for note in notes)


def test_too_few_test_examples_are_told_before_a_run(project):
    notes = load_experiment("experiment.yaml", ["data.split.test=5"]).notes
    assert any("5 independent test examples are too few for a verdict" in note for note in notes)
    assert not any("too few" in note for note in load_experiment("experiment.yaml").notes)


def test_labelled_examples_need_a_predictor_that_can_show_them(project):
    (project / "two.py").write_text(
        "import dspy\n\n\nclass Two(dspy.Module):\n    output_field = 'record'\n\n    def __init__(self):\n"
        "        super().__init__()\n        self.first = dspy.Predict('text -> summary')\n"
        "        self.second = dspy.Predict('summary -> record: dict[str, str | float]')\n\n"
        "    def forward(self, text):\n        return self.second(summary=self.first(text=text).summary)\n"
    )
    assert "nearest_demos cannot show labelled examples to two.py:Two" in refused("program=two.py:Two")
    assert load_experiment("experiment.yaml", ["program=two.py:Two", "optimizer=bootstrap_few_shot"]).labelled


def test_a_broken_evaluator_is_found_before_a_run(project):
    (project / "own.py").write_text(
        "from metrics import BaseEvaluator\n\n\nclass Typo(BaseEvaluator):\n    alias = 'typo'\n\n"
        "    def evaluate(self, extracted, expected, input_data=None, field_path=None):\n"
        "        return flaot(extracted)\n"
    )
    message = refused('metric={record: {fields: {total: "own.py:Typo"}}}')
    assert "comparing the record of invoices.jsonl line 1 with itself failed" in message
    assert "flaot" in message


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("models.task=local/smollm", "did you mean 'smollm2-135m'? (local/PATH.gguf"),
        ("models.task=local/gone.gguf", "no file"),
        ("budget.calls=5", "do not pay for measuring"),
    ],
)
def test_check_finds_what_a_run_would_miss(project, override, words):
    experiment = load_experiment("experiment.yaml", ["models.task=local/smollm2-135m", override])
    with pytest.raises(UsageError) as error:
        check_ready(experiment)
    assert words in str(error.value)


def test_a_metric_without_a_version_is_refused(project):
    (project / "own.py").write_text(
        "class Nameless:\n    def __call__(self, example, prediction): ...\n\n"
        "    def compare(self, expected, predicted): ...\n"
    )
    assert "own.py:Nameless is not a metric: it has no name or no version" in refused("metric=own.py:Nameless")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("metric.record.fields.vendor=os:system", "os:system is not an evaluator"),
        ("metric.record.fields.vendor={os:system: touch made_by_a_file}", "os:system is not an evaluator"),
        ("metric.record.fields.vendor=schema.py:Invoice", "schema.py:Invoice is not an evaluator"),
        ("metric={os:system: {command: touch made_by_a_file}}", "os:system is not a metric class"),
        ("metric={subprocess:Popen: {args: [touch, made_by_a_file]}}", "subprocess:Popen is not a metric class"),
    ],
)
def test_what_is_no_evaluator_or_metric_is_refused(project, override, words):
    assert words in refused(override)
    assert not (project / "made_by_a_file").exists()


@pytest.mark.parametrize("name", ["id", "group", "expected", "completions", "augmented"])
def test_an_input_of_a_taken_name_is_refused(project, name):
    program = '{"programs.schema:SchemaExtraction": {"model": "schema.py:Invoice", "inputs": ["' + name + '"]}}'
    assert name in refused(f"program={program}")


def test_a_key_that_cannot_be_told_from_text_is_said_at_the_start(project, monkeypatch):
    model = "models.task={model: openai/m, api_base: 'http://127.0.0.1:1/v1', api_key_env: MINE}"
    for key, said in (("test", True), ("sk-4f9aB27c", False)):
        monkeypatch.setenv("MINE", key)
        notes = load_experiment("experiment.yaml", [model]).notes
        assert any("the key of models.task (MINE) is short or an ordinary word" in note for note in notes) == said
        assert not any(key in note.replace("text", "").split() for note in notes)


def test_a_schema_that_no_file_can_hold_is_refused_before_a_run(project):
    text = (project / "schema.py").read_text()
    (project / "schema.py").write_text(text.replace("= None", "= float('nan')"))
    assert "Out of range float values" in refused("data.split.seed=1")


def test_odd_places_of_files(project):
    assert "no home folder of '~nosuchuser'" in refused("data.path=~nosuchuser/x.csv")
    schema = "program={programs.schema:SchemaExtraction: {model: '%s'}}"
    for name in ("~nosuchuser/s.json", "~nosuchuser/s.py:X"):
        assert "no home folder of '~nosuchuser'" in refused(schema % name)
    os.mkfifo(project / "pipe.json")
    assert "pipe.json is a pipe or a device" in refused(schema % "pipe.json")
    (project / "deep.json").write_text('{"items": ' * 500 + "{}" + "}" * 500)
    assert "more than 120 levels deep" in refused(schema % "deep.json")
