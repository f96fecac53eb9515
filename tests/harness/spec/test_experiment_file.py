"""Experiment files: the least that runs, everything at once, and a sentence for every mistake."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.errors import UsageError
from harness.spec import ExperimentSpec, Named, json_schema, load_spec

LEAST = """program: {programs.schema:SchemaExtraction: {model: "schema.py:Invoice"}}
data: invoices.csv
models: {task: local/smollm2-135m}
"""

EVERYTHING = """# harness run experiments/everything.yaml
name: everything
program: programs.synthesis:SynthesisExtraction
adapter: json
data:
  path: ${PAPERS}/gold.jsonl
  reader: olivetti
  columns: {text: paragraph}
  group_by: doi
  split: {train: 40, validation: 0.25, test: 80, seed: 3}
models:
  task: local/smollm2-135m
  prompt: {model: anthropic/claude, api_key_env: ANTHROPIC_API_KEY}
  judge:
    model: openai/judge
    api_base: http://127.0.0.1:8000/v1
    temperature: 0.5
    max_tokens: 300
    timeout: 20
    requests_per_minute: 300
    response_schema: false
    price: {input: 0.25, output: 2}
metric:
  composite:
    record:
      weight: 0.6
      fields:
        target_compound: formula
        steps[*].conditions.temperature: {quantity: {relative_tolerance: 1e-2}}
    a_judge: {weight: 0.4, role: judge}
audit:
  grounded: {}
  second:
optimizer: {gepa: {auto: light}}
budget: {calls: 2000, tokens: 900000, usd: 5, minutes: 60}
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Writes an experiment file in the working folder and gives back its name."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="x.yaml"):
        Path(name).write_text(text, encoding="utf-8")
        return name

    return write


def complaint(path, *changes):
    with pytest.raises(UsageError) as caught:
        load_spec(path, changes)
    return str(caught.value)


# --- what a file says ------------------------------------------------------------------------------------------


def test_the_least_that_runs(file):
    spec = load_spec(file(LEAST))
    assert spec.name == "x"
    assert spec.program == Named(name="programs.schema:SchemaExtraction", arguments={"model": "schema.py:Invoice"})
    assert (spec.data.path, spec.data.reader, spec.data.columns, spec.data.group_by) == (
        "invoices.csv",
        "records",
        {},
        None,
    )
    assert spec.data.split.model_dump() == {"seed": 0}
    assert list(spec.models.given()) == ["task"]
    assert spec.models.task.is_local
    assert spec.metric is None
    assert spec.audit == {}
    assert spec.optimizer == Named(name="bootstrap_random_search")
    assert spec.budget.model_dump() == {}
    assert spec.adapter == "compact"


def test_everything(file, monkeypatch):
    monkeypatch.setenv("PAPERS", "/corpora")
    spec = load_spec(file(EVERYTHING))
    assert spec.name == "everything"
    assert spec.adapter == "json"
    assert spec.data.path == "/corpora/gold.jsonl"
    assert spec.data.split.validation == 0.25
    assert list(spec.models.given()) == ["task", "prompt", "judge"]
    judge = spec.models.judge
    assert judge is not None
    assert judge.response_schema is False
    assert judge.price is not None
    assert judge.price.output == 2.0
    assert spec.metric is not None
    assert spec.metric.arguments["record"]["fields"]["steps[*].conditions.temperature"] == {
        "quantity": {"relative_tolerance": 0.01}
    }
    assert spec.audit == {"grounded": {}, "second": {}}
    assert spec.optimizer == Named(name="gepa", arguments={"auto": "light"})
    budget = spec.budget
    assert (budget.calls, budget.tokens, budget.usd, budget.minutes) == (2000, 900_000, 5.0, 60.0)


def test_a_remote_task_model_is_asked_with_json(file):
    assert load_spec(file(LEAST), ["models.task=openai/gpt-5"]).adapter == "json"
    assert load_spec(file(LEAST), ["models.task=openai/gpt-5", "adapter=chat"]).adapter == "chat"


def test_a_key_without_a_value_counts_as_not_given(file):
    spec = load_spec(file(LEAST + "metric:\naudit:\nbudget: {calls: , usd: ~}\noptimizer:\nname:\nadapter:\n"))
    assert spec.model_dump() == load_spec(file(LEAST)).model_dump()


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "x.yaml").write_text(LEAST, encoding="utf-8")
    spec = load_spec("experiments/x.yaml")
    assert spec.path == Path("experiments/x.yaml")
    assert spec.folder == Path("experiments")
    assert spec.label == "experiments/x.yaml"
    assert spec.resolve("data/a.csv") == Path("experiments/data/a.csv")
    assert spec.resolve("/data/a.csv") == Path("/data/a.csv")
    assert spec.resolve("~/a.csv") == Path.home() / "a.csv"


def test_every_key_knows_where_it_was_written(file):
    spec = load_spec(file(LEAST), ["data.split.seed=1"])
    assert spec.where("data") == "x.yaml line 2"
    assert spec.where("program", "programs.schema:SchemaExtraction", "model") == "x.yaml line 1"
    assert spec.where("data", "split", "seed") == "in --set data.split.seed"
    assert spec.where("budget", "calls") == "x.yaml"
    assert ExperimentSpec.model_validate(spec.to_document()).where("data") == "experiment.yaml"


def test_overrides_are_applied_before_anything_is_checked(file):
    spec = load_spec(
        file(LEAST.replace("local/smollm2-135m", "nonsense")),
        ["models.task=local/a", "models.task.temperature=0.5", "optimizer.nearest_demos.k=4", "data.split.seed=7"],
    )
    assert (spec.models.task.model, spec.models.task.temperature) == ("local/a", 0.5)
    assert spec.optimizer == Named(name="nearest_demos", arguments={"k": 4})
    assert (spec.data.path, spec.data.split.seed) == ("invoices.csv", 7)


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + LEAST.replace("\n", "\r\n").encode())
    assert load_spec(path).data.path == "invoices.csv"


def test_a_spec_cannot_be_changed(file):
    with pytest.raises(ValidationError):
        load_spec(file(LEAST)).name = "other"


def test_a_spec_written_out_loads_again(file, monkeypatch):
    monkeypatch.setenv("PAPERS", "/corpora")
    for text in (LEAST, EVERYTHING):
        document = load_spec(file(text)).to_document()
        assert load_spec(file(yaml.safe_dump(document), "again.yaml")).to_document() == document


# --- one mistake, one sentence ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "",
            "optimiser: gepa\n",
            "x.yaml line 4: unknown key 'optimiser' in the experiment; did you mean 'optimizer'?",
        ),
        (
            "data: i",
            "data: {path: a, spilt: {}}\n#",
            "x.yaml line 2: unknown key 'spilt' in data; did you mean 'split'?",
        ),
        ("", "seed: 1\n", "x.yaml line 4: unknown key 'seed' in the experiment; did you mean 'data.split.seed'?"),
        ("", "zzzz:\n", "x.yaml line 4: unknown key 'zzzz' in the experiment; known: adapter, audit,"),
        ("program", "progam", "x.yaml line 1: unknown key 'progam' in the experiment; did you mean 'program'?"),
        ("data: invoices.csv\n", "", "x.yaml: 'data' is missing from the experiment"),
        ("{task: local/smollm2-135m}", "{judge: a/b}", "x.yaml line 3: 'task' is missing from models"),
        ("{task: local/smollm2-135m}", "a/b", "x.yaml line 3: models must be a mapping of keys, not 'a/b'"),
        ("local/smollm2-135m", "{timeout: 5}", "x.yaml line 3: 'model' is missing from models.task"),
        ("local/smollm2-135m", "gpt-5", "x.yaml line 3: models.task.model must be local/NAME or provider/NAME"),
        ("local/smollm2-135m", "'local/'", "x.yaml line 3: models.task.model must be local/NAME or provider/NAME"),
        ("local/smollm2-135m", "{model: 5}", "x.yaml line 3: models.task.model must be text (in quotes), not 5"),
        ("", "adapter: jsn\n", "x.yaml line 4: adapter must be json, chat or compact, not 'jsn'; did you mean 'json'?"),
        ("", "adapter: xml\n", "x.yaml line 4: adapter must be json, chat or compact, not 'xml'"),
        ("", "name: 2024\n", "x.yaml line 4: name must be text (in quotes), not 2024"),
        ("", "name: a/b\n", "x.yaml line 4: name must be 1 to 100 characters without slashes or line breaks"),
        ("", "metric: {a: {}, b: {}}\n", "x.yaml line 4: metric must hold one name with its arguments below it; it"),
        ("", "metric: {}\n", "x.yaml line 4: metric must hold one name with its arguments below it; it holds nothing"),
        ("", "metric: [a]\n", "x.yaml line 4: metric must be NAME or {NAME: {arguments}}"),
        ("", "optimizer: {gepa: light}\n", "x.yaml line 4: optimizer: gepa must be followed by its arguments as keys"),
        ("", "optimizer: ''\n", "x.yaml line 4: optimizer.name must not be empty text"),
        ("", "audit: [a]\n", "x.yaml line 4: audit must be a mapping of keys, not a list"),
        ("", "audit: {a: b}\n", "x.yaml line 4: audit.a must be a mapping of keys, not 'b'"),
        ("", "budget: {calls: 0}\n", "x.yaml line 4: budget.calls must be greater than or equal to 1, not 0"),
        ("", "budget: {tokens: 0}\n", "x.yaml line 4: budget.tokens must be greater than or equal to 1, not 0"),
        ("", "budget: {calls: 1.5}\n", "x.yaml line 4: budget.calls must be a whole number, not 1.5"),
        ("", "budget: {calls: {a: 1}}\n", "x.yaml line 4: budget.calls must be a whole number, not a mapping"),
        ("", "budget: {calls: true}\n", "x.yaml line 4: budget.calls must be a number, not true"),
        ("", "budget: {usd: cheap}\n", "x.yaml line 4: budget.usd must be a number, not 'cheap'"),
        ("", f"budget: {{usd: {'x' * 99}}}\n", "x.yaml line 4: budget.usd must be a number, not a text of 99 char"),
        ("", "budget: {minutes: 0}\n", "x.yaml line 4: budget.minutes must be greater than 0, not 0"),
        (
            "local/smollm2-135m",
            "{model: a/b, response_schema: yes}",
            "x.yaml line 3: models.task.response_schema must be auto,",
        ),
        ("", "budget: {usd: .inf}\n", "x.yaml line 4: '.inf' is not a finite number"),
        ("", "name: a\nname: b\n", "x.yaml line 5: the key 'name' is given twice (first on line 4)"),
        ("invoices.csv", "''", "x.yaml line 2: data.path must not be empty text"),
        ("", "budget: {calls: '${NOPE}'}\n", "x.yaml line 4: the environment variable NOPE of budget.calls is not set"),
        ("", "name: '${}'\n", "x.yaml line 4: '${}' in name does not name an environment variable"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(file, monkeypatch, old, new, sentence):
    monkeypatch.delenv("NOPE", raising=False)
    said = complaint(file(LEAST.replace(old, new, 1) if old else LEAST + new))
    assert said.startswith(sentence)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x", "must be a number of examples (40) or a fraction of them (0.4)"),
        ("true", "must be a number of examples"),
        ("[1]", "must be a number of examples"),
        ("-1", "must be a count from 0 upwards (40) or a fraction between 0 and 1 (0.4)"),
        ("1.5", "must be a count from 0 upwards"),
    ],
)
def test_a_split_is_counts_or_fractions(file, value, words):
    said = complaint(file(LEAST), f"data.split.train={value}")
    assert said.startswith(f"in --set data.split.train: data.split.train {words}")


def test_fractions_of_a_split_add_up_to_one_at_most(file):
    said = complaint(file(LEAST), "data.split={train: 0.5, validation: 0.3, test: 0.3}")
    assert said == "in --set data.split: data.split: the fractions add up to 1.1; they can be 1 at most"
    assert load_spec(file(LEAST), ["data.split={train: 0.7, validation: 0.2, test: 0.1}"]).data.split.test == 0.1


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:8000", "must start with http:// or https:// and name a host"),
        ("ftp://host/v1", "must start with http:// or https://"),
        ("http://", "must start with http:// or https://"),
        ("http://[x/v1", "is not an address"),
        ("http://me:secret@host/v1", "must not carry a user, a password or a key"),
        ("https://host/v1?key=secret", "must not carry a user, a password or a key"),
    ],
)
def test_an_endpoint_is_an_address_without_a_secret(file, address, words):
    said = complaint(file(LEAST), "models.judge.model=openai/m", f"models.judge.api_base={address}")
    assert said.startswith(f"in --set models.judge.api_base: models.judge.api_base {words}")
    assert "secret" not in said


def test_a_local_model_has_no_endpoint(file):
    said = complaint(file(LEAST), "models.task.api_base=http://127.0.0.1/v1")
    assert said.endswith("local/smollm2-135m runs in this process; api_base and api_key_env do not apply to it")


def test_several_mistakes_are_all_told_in_the_order_of_the_file(file):
    text = """progam: {x: {}}
data: {path: invoices.csv, spilt: {}}
models:
  task: gpt
  judge: {model: a/b, temprature: 1}
adapter: jsn
"""
    said = complaint(file(text), "budget.cals=1", "seed=1").splitlines()
    assert [line.partition(": ")[0] for line in said] == [
        "x.yaml line 1",
        "x.yaml line 2",
        "x.yaml line 4",
        "x.yaml line 5",
        "x.yaml line 6",
        "in --set budget.cals",
        "in --set seed",
    ]
    assert "unknown key 'cals' in budget; did you mean 'calls'?" in said[5]


keys = st.sampled_from(
    ["program", "data", "models", "task", "metric", "audit", "budget", "calls", "split", "x", "optimizer"]
)
leaves = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.sampled_from(["a/b", "${A}", "x", ""])
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(keys, values, max_size=6))
def test_any_mapping_is_a_spec_or_sentences_with_places(tmp_path, data):
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    try:
        spec = load_spec(path)
    except UsageError as error:
        for line in str(error).splitlines():
            assert line.startswith(str(path))
            assert "Input should" not in line
    else:
        assert ExperimentSpec.model_validate(spec.to_document()).to_document() == spec.to_document()


# --- schema and start ------------------------------------------------------------------------------------------


def test_the_json_schema_takes_what_the_loader_takes():
    schema = json_schema("experiment")
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid(yaml.safe_load(LEAST))
    assert valid(yaml.safe_load(EVERYTHING.replace("1e-2", "0.01")))
    for wrong in (
        "optimiser: x",
        "metric: {a: {}, b: {}}",
        "budget: {calls: 0}",
        "adapter: xml",
        "data: {reader: records}",
    ):
        assert not valid({**yaml.safe_load(LEAST), **yaml.safe_load(wrong)})


def test_an_unknown_schema_is_one_sentence():
    with pytest.raises(UsageError, match=r"there is no schema 'experimnt'; did you mean 'experiment'\?"):
        json_schema("experimnt")


def test_a_named_thing_takes_both_forms_from_python_too():
    assert Named.model_validate("x") == Named(name="x") == Named.model_validate({"x": None})
    assert Named.model_validate({"name": {}}) == Named(name="name")
    assert Named(name="x", arguments={"k": None}).model_dump() == {"x": {"k": None}}


def test_a_mistake_is_told_without_the_heavy_libraries(file):
    program = (
        "import sys, harness.spec\n"
        "try:\n    harness.spec.load_spec('x.yaml')\nexcept Exception as error:\n    print(error)\n"
        "print(sorted({'dspy', 'mlflow', 'optuna', 'numpy', 'rich'} & set(sys.modules)))"
    )
    file(LEAST + "optimiser: x\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines()[0].startswith("x.yaml line 4: unknown key 'optimiser'")
    assert json.loads(done.stdout.splitlines()[1]) == []
