"""The text of an experiment file: the environment, secrets that must stay out of it, what is no such file."""

import os
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.spec import ModelSpec, load_spec
from harness.spec.document import SpecDocument

LEAST = """program: {programs.schema:SchemaExtraction: {model: "schema.py:Invoice"}}
data: invoices.csv
models: {task: local/smollm2-135m}
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


# --- the environment -------------------------------------------------------------------------------------------


def test_the_environment_fills_values(file, monkeypatch):
    for name, value in {"MODEL": "openai/m", "CALLS": "25", "SHARE": "0.5", "SWITCH": "true"}.items():
        monkeypatch.setenv(name, value)
    text = LEAST.replace("local/smollm2-135m", "{model: '${MODEL}', response_schema: '${SWITCH}'}")
    spec = load_spec(
        file(text + "budget: {calls: '${CALLS}'}\n"),
        ["data.split.train=${SHARE}", "data.split.test=${CALLS}", 'program.x:Y.note="$${MODEL} in ${MODEL}"'],
    )
    assert spec.models.task.model == "openai/m"
    assert spec.models.task.response_schema is True
    assert spec.budget.calls == 25
    assert (spec.data.split.train, spec.data.split.test) == (0.5, 25)
    assert spec.program.arguments == {"note": "${MODEL} in openai/m"}


def test_a_misspelt_variable_shows_the_nearest_one(file, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA", "/d")
    monkeypatch.delenv("HARNES_DATA", raising=False)
    said = complaint(file(LEAST.replace("invoices.csv", "${HARNES_DATA}/x.csv")))
    assert said == "x.yaml line 2: the environment variable HARNES_DATA of data is not set; did you mean HARNESS_DATA?"


# --- secrets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "models: {task: {model: openai/m, api_key: sk-123456}}",
        "models: {task: openai/m}\nmetric: {judged: {model: {API_KEY: sk-123456}}}",
        "models: {task: openai/m}\nmetric: {judged: {list: [{password: sk-123456}]}}",
    ],
)
def test_a_key_in_a_file_is_refused_and_never_shown(file, text):
    said = complaint(file(f"program: a:b\ndata: c\n{text}\n"))
    assert "does not belong in a file; put the key into an environment variable and name it: api_key_env" in said
    assert "123456" not in said
    assert "\n" not in said


@pytest.mark.parametrize("value", ["sk-123456", "AIza123456abc", "key 123456", "x" * 101])
def test_a_key_where_its_variable_is_named_is_refused_and_never_shown(file, value):
    said = complaint(file(LEAST), "models.task=openai/m", f"models.task.api_key_env={value}")
    assert "must be the name of an environment variable that holds the key, such as OPENAI_API_KEY" in said
    assert value not in said


def test_a_variable_of_small_letters_is_a_name_when_it_is_set(monkeypatch):
    monkeypatch.setenv("my_variable", "k")
    assert ModelSpec(model="openai/m", api_key_env="my_variable").api_key_env == "my_variable"


def test_a_secret_is_not_read_into_the_records_of_a_run(file, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123456")
    said = complaint(file(LEAST), "program.x:Y.key=${OPENAI_API_KEY}")
    assert "OPENAI_API_KEY would put a secret into the run's records" in said
    assert "123456" not in said


def test_what_a_variable_holds_is_not_shown_when_it_is_wrong(file, monkeypatch):
    monkeypatch.setenv("LIMIT", "hush")
    assert complaint(file(LEAST), "budget.calls=${LIMIT}").endswith("must be a whole number, not '${LIMIT}'")


# --- not an experiment file ------------------------------------------------------------------------------------


def test_a_missing_file_shows_the_nearest_one(file):
    file(LEAST, "quickstart.yaml")
    assert complaint("quikstart.yaml") == "there is no file quikstart.yaml; did you mean 'quickstart.yaml'?"
    assert complaint("nowhere/x.yaml") == "there is no file nowhere/x.yaml; there is no folder nowhere either"
    Path("quickstart.yaml").unlink()
    assert complaint("x.yaml") == "there is no file x.yaml; the folder holds no .yaml file"


def test_a_folder_shows_the_files_in_it(file):
    Path("some").mkdir()
    assert complaint("some") == "some is a folder; name an experiment file in it (it holds none)"
    file(LEAST, "some/a.yml")
    assert complaint("some") == "some is a folder; name an experiment file in it (one of: a.yml)"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "x.yaml is empty; an experiment needs at least program, data and models"),
        (b"# only a comment\n", "x.yaml is empty"),
        (b"- a\n- b\n", "x.yaml is not a mapping of keys such as program, data and models"),
        (b"just text", "x.yaml is not a mapping of keys"),
        (b"\x80\x81PNG", "x.yaml is not a text file in UTF-8"),
        ("ä: 1".encode("utf-16"), "x.yaml is not a text file in UTF-8"),
        (b"a\0b", "x.yaml is a binary file"),
        (b"program:\n\tx: 1", "x.yaml line 2: a tab; YAML is indented with spaces"),
        (b"program: a: b", "x.yaml line 1: not readable as YAML"),
    ],
)
def test_what_is_not_an_experiment_file_is_one_sentence(file, content, sentence):
    Path(file("")).write_bytes(content)
    said = complaint("x.yaml")
    assert said.startswith(sentence)
    assert "\n" not in said


def test_a_file_that_cannot_be_opened_is_one_sentence(file):
    name = "n" * 300 + ".yaml"
    assert complaint(name).endswith("cannot be used: File name too long")
    assert complaint("a\0b.yaml").endswith("cannot be used: embedded null byte")


# --- places ----------------------------------------------------------------------------------------------------


def test_a_value_that_is_not_there_is_none():
    document = SpecDocument("x.yaml", {"a": [1, {"b": 2}]}, {})
    assert document.value(("a", 1, "b")) == 2
    assert document.value(("a", 5)) is None
    assert document.value(("a", 0, "b")) is None
    assert document.value(("c",)) is None


def test_problems_come_once_each_in_the_order_of_the_file():
    document = SpecDocument("x.yaml", {}, {("a",): "x.yaml line 1", ("b",): "x.yaml line 2"})
    document.report(("b", "c"), "second")
    document.report(("a",), "first")
    document.report(("b", "c"), "second")
    document.report((), "of the whole file")
    assert document.sentences() == ["x.yaml: of the whole file", "x.yaml line 1: first", "x.yaml line 2: second"]


# --- characters and depth --------------------------------------------------------------------------------------


def test_the_variable_of_a_key_is_put_into_no_text(file, monkeypatch):
    monkeypatch.setenv("MYPASS", "sk-1234567890")
    monkeypatch.setenv("WHICH", "MYPASS")
    model = "{task: {model: openai/m, api_base: 'http://h/v1', api_key_env: '%s'}}"
    text = LEAST.replace("{task: local/smollm2-135m}", model % "MYPASS")
    for line, key in (
        ("name: 'x ${MYPASS}'", "name"),
        ("optimizer: {x: {why: ['${MYPASS}']}}", "optimizer.x.why[0]"),
        ("budget: {calls: '${MYPASS}'}", "budget.calls"),
    ):
        said = complaint(file(f"{text}{line}\n"))
        assert said.startswith(f"x.yaml line 4: {key}: MYPASS holds the key of models.task")
        assert "sk-1234567890" not in said
    assert "MYPASS holds the key" in complaint(file(text.replace("MYPASS", "${WHICH}") + "name: '${MYPASS}'\n"))
    assert load_spec(file(text + "name: '$${MYPASS}'\n")).name == "${MYPASS}"


def test_characters_no_text_holds(file, monkeypatch):
    assert complaint(file(LEAST + 'name: "a\\0b"\n')).startswith("x.yaml line 4: name holds the character NUL")
    assert "in --set data.path: data.path holds the character NUL" in complaint(file(LEAST), 'data.path="a\\0.csv"')
    monkeypatch.setenv("RAW", "a\udcff")
    assert "variable RAW of name is not text in UTF-8" in complaint(file(LEAST + "name: '${RAW}'\n"))
    assert load_spec(file(LEAST, "a\udcff.yaml")).name == "a\ufffd"


def test_nesting_without_end(file):
    deep = LEAST + "audit: " + "{a: " * 500 + "1" + "}" * 500 + "\n"
    assert complaint(file(deep)).endswith(("nested more than 100 levels deep", "nested too deeply to be read"))
    assert complaint(file(LEAST), ".".join("a" * 500) + "=1").endswith("a key of 500 steps; 100 are the most")


def test_what_is_no_file(file, tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    assert complaint("pipe.yaml") == "pipe.yaml is a pipe or a device where a file is needed"
    assert "there is no folder ~nosuchuser either" in complaint("~nosuchuser/x.yaml")
    with pytest.raises(UsageError, match="no home folder of '~nosuchuser'"):
        load_spec(file(LEAST)).resolve("~nosuchuser/x.csv")
