"""`harness init`: a project that loads as it is, and never writes over anything."""

import csv
import re
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.references import load_object
from harness.scaffold import FILES, next_commands, write_project
from harness.spec import load_spec


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A fresh project; loading its files leaves the import path as it was."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = tmp_path / "new" / "project"
    write_project(folder)
    return folder


def test_every_file_is_written_into_a_folder_that_is_made(project):
    assert sorted(path.name for path in project.iterdir()) == sorted(FILES)
    assert all(path.read_text(encoding="utf-8").endswith("\n") for path in project.iterdir())


def test_the_experiment_loads_and_names_files_that_are_there(project):
    spec = load_spec(project / "experiment.yaml")
    assert spec.models.task.model == "local/smollm2-135m"
    assert spec.resolve(spec.data.path).is_file()
    assert load_object(spec.program.arguments["model"], spec.folder).__name__ == "Invoice"
    assert (project / "experiment.yaml").read_text(encoding="utf-8").startswith("# harness run experiment.yaml\n")


def test_every_example_fits_the_schema_and_its_text_says_what_is_expected(project):
    invoice = load_object("schema.py:Invoice", project)
    with (project / "invoices.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len({row["id"] for row in rows}) == len({row["text"] for row in rows}) == 10
    for row in rows:
        expected = {key.removeprefix("expected."): value for key, value in row.items() if key.startswith("expected.")}
        record = invoice(**expected)
        assert record.vendor in row["text"]
        assert f"{record.total:.2f}" in [f"{float(number):.2f}" for number in numbers(row["text"])]
    assert {row["expected.currency"] for row in rows} == {"EUR", "USD", "GBP"}


def numbers(text):
    return re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))


def test_the_metric_scores_fields_that_the_schema_has(project):
    spec = load_spec(project / "experiment.yaml")
    assert spec.metric is not None
    assert set(spec.metric.arguments["fields"]) == set(load_object("schema.py:Invoice", project).model_fields)


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "schema.py").write_text("mine", encoding="utf-8")
    (tmp_path / "README.md").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError) as caught:
        write_project(tmp_path)
    assert (
        str(caught.value) == f"{tmp_path} already holds schema.py, README.md; nothing was written, name another folder"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "schema.py"]
    assert (tmp_path / "schema.py").read_text(encoding="utf-8") == "mine"


def test_the_working_folder_is_called_that(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert write_project(Path()) == [Path(name) for name in FILES]
    with pytest.raises(UsageError, match=r"^this folder already holds schema\.py, invoices\.csv, "):
        write_project(Path())


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot write into .*file: File exists"):
        write_project(tmp_path / "file")
    with pytest.raises(UsageError, match=r"cannot write into .*project: Not a directory"):
        write_project(tmp_path / "file" / "project")


def test_the_next_commands_start_where_the_user_is():
    assert next_commands(Path())[0] == "  harness check experiment.yaml"
    assert next_commands(Path("a b"))[0] == "  cd 'a b'"
