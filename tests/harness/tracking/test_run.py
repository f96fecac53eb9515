"""One run in a real store: what is written arrives, from any thread, and a second time replaces the first."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mlflow
import pytest
from matplotlib.figure import Figure
from mlflow import MlflowClient
from mlflow.entities import Run

from harness.tracking.run import TrackedRun
from harness.tracking.tracker import Tracker


@pytest.fixture
def client(tracker: Tracker) -> MlflowClient:
    return MlflowClient(tracking_uri=tracker.location.uri)


@pytest.fixture
def run(tracker: Tracker) -> TrackedRun:
    return tracker.start_run("synthesis", "seed 0", {"optimizer": "gepa"}, {"kind": "experiment"})


def every_run(client: MlflowClient) -> list[Run]:
    experiments = [found.experiment_id for found in client.search_experiments()]
    return list(client.search_runs(experiments))


def read(client: MlflowClient, run: TrackedRun, path: str, folder: Path) -> str:
    return Path(client.download_artifacts(run.run_id, path, str(folder))).read_text(encoding="utf-8")


def test_a_run_and_its_children(tracker: Tracker, run: TrackedRun, client: MlflowClient, workplace: Path) -> None:
    child = run.child("tuned", {"stage": "tuned"})
    assert run.child("tuned") is child
    child.metrics({"test/score": 0.5})
    run.finish()
    found = {each.info.run_name: each for each in every_run(client)}
    assert found["tuned"].data.tags["mlflow.parentRunId"] == run.run_id
    assert found["tuned"].data.metrics == {"test/score": 0.5}
    assert found["seed 0"].data.params == {"optimizer": "gepa"}
    assert found["seed 0"].data.tags["kind"] == "experiment"
    assert found["seed 0"].data.tags["mlflow.source.name"] == "harness"
    assert {each.info.status for each in found.values()} == {"FINISHED"}
    assert all(each.info.end_time for each in found.values())
    assert Path(found["tuned"].info.artifact_uri or "").is_relative_to(workplace / "mlruns" / "artifacts" / "synthesis")
    run.finish("failed")
    assert run.child("tuned") is child
    assert client.get_run(run.run_id).info.status == "FINISHED"
    assert tracker.failures == 0


@pytest.mark.parametrize("status", ["failed", "killed"])
def test_an_end_that_is_not_a_success(run: TrackedRun, client: MlflowClient, status: str) -> None:
    run.child("baseline")
    run.finish(status)  # pyright: ignore[reportArgumentType]
    assert {each.info.status for each in every_run(client)} == {status.upper()}


def test_nothing_is_printed(run: TrackedRun, capsys: pytest.CaptureFixture[str]) -> None:
    run.finish()
    assert capsys.readouterr() == ("", "")


def test_metrics_that_mlflow_refuses_or_misreads(run: TrackedRun, client: MlflowClient, tracker: Tracker) -> None:
    run.metrics({"none": None, "nan": math.nan, "inf": math.inf, "steps[0].temp (°C)": 1, "test/score": 1 / 3})
    assert client.get_run(run.run_id).data.metrics == {"steps.0.temp _C_": 1.0, "test/score": 0.333333}
    assert list(run.skipped) == ["none", "nan", "inf"]
    assert tracker.failures == 0


def test_steps_of_a_metric(run: TrackedRun, client: MlflowClient) -> None:
    for step, value in enumerate([0.2, None, 0.5]):
        run.metrics({"validation/score": value}, step=step)
    history = client.get_metric_history(run.run_id, "validation/score")
    assert [(each.step, each.value) for each in history] == [(0, 0.2), (2, 0.5)]


def test_more_at_once_than_mlflow_takes(run: TrackedRun, client: MlflowClient, tracker: Tracker) -> None:
    run.params({f"p{number:03d}": number for number in range(250)})
    run.metrics({f"m{number:04d}": number for number in range(1100)})
    run.tags({f"t{number:03d}": number for number in range(150)})
    data = client.get_run(run.run_id).data
    assert (len(data.params), len(data.metrics)) == (251, 1100)
    assert data.tags["t149"] == "149"
    assert tracker.failures == 0


def test_a_param_too_long_for_mlflow_is_kept_whole_beside_it(
    run: TrackedRun, client: MlflowClient, tracker: Tracker, tmp_path: Path
) -> None:
    text = "schema " * 2000
    run.params({"program/schema": text})
    run.tags({"note": text})
    data = client.get_run(run.run_id).data
    assert data.params["program/schema"].endswith("... (14,000 characters, all in params/program_schema.txt)")
    assert len(data.params["program/schema"]) <= 6000
    assert len(data.tags["note"]) <= 8000
    assert read(client, run, "params/program_schema.txt", tmp_path) == text
    assert tracker.failures == 0


def test_a_param_set_again_is_left_alone(run: TrackedRun, client: MlflowClient, tracker: Tracker) -> None:
    run.params({"optimizer": "mipro", "seed": 1})
    assert client.get_run(run.run_id).data.params == {"optimizer": "gepa", "seed": "1"}
    assert tracker.failures == 0


def test_a_table_written_twice_holds_its_rows_once(
    run: TrackedRun, client: MlflowClient, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracker.location.uri)  # load_table searches there, whatever its client
    rows = [
        {"id": "a", "predicted": {"x": [1]}, "score": 0.5, "failure": None},
        {"id": "b", "predicted": "text \x00 \ud800", "score": None, "failure": "program: <script>"},
    ]
    for _ in range(2):
        run.table(rows, "examples.json")
        run.table(rows, "more.json")
    experiment = client.get_run(run.run_id).info.experiment_id
    table = client.load_table(experiment, "examples.json", run_ids=[run.run_id])
    assert list(table.columns) == ["id", "predicted", "score", "failure"]
    assert table["id"].tolist() == ["a", "b"]
    assert table["predicted"].tolist() == ['{"x": [1]}', "text � �"]
    tables = json.loads(client.get_run(run.run_id).data.tags["mlflow.loggedArtifacts"])
    assert tables == [{"path": "examples.json", "type": "table"}, {"path": "more.json", "type": "table"}]
    assert tracker.failures == 0


def test_an_empty_table(run: TrackedRun, client: MlflowClient, tmp_path: Path) -> None:
    run.table([], "empty.json")
    assert json.loads(read(client, run, "empty.json", tmp_path)) == {"columns": [], "data": []}


def test_texts_pages_pictures_and_folders(
    run: TrackedRun, client: MlflowClient, tracker: Tracker, tmp_path: Path
) -> None:
    source = tmp_path / "bundle"
    source.mkdir()
    (source / "program.json").write_text("{}")
    run.text("naïve \ud800", "notes/prompts.txt")
    run.html("<p>hello</p>", "report.html")
    run.figure(b"\x89PNG", "plots/paired.png")
    run.figure(Figure(figsize=(1, 1)), "drawn.png")
    run.folder(source, "bundle")
    run.file(source / "program.json")
    names = {file.path for file in client.list_artifacts(run.run_id)}
    assert names == {"notes", "report.html", "plots", "drawn.png", "bundle", "program.json"}
    assert read(client, run, "notes/prompts.txt", tmp_path) == "naïve �"
    assert Path(client.download_artifacts(run.run_id, "plots/paired.png", str(tmp_path))).read_bytes() == b"\x89PNG"
    assert tracker.failures == 0


def test_the_data_a_run_used(run: TrackedRun, client: MlflowClient, tracker: Tracker) -> None:
    run.dataset("quickstart", "f" * 64, "test", source="quickstart.jsonl")
    inputs = client.get_run(run.run_id).inputs
    assert inputs is not None
    (used,) = inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("quickstart", "f" * 36)
    assert [(tag.key, tag.value) for tag in used.tags] == [("mlflow.data.context", "test")]
    assert tracker.failures == 0


def test_worker_threads_leave_no_stray_runs(run: TrackedRun, client: MlflowClient, tracker: Tracker) -> None:
    def work(number: int) -> None:
        run.metrics({f"worker/{number}": number}, step=number)
        run.child("compile").metrics({"validation/score": 0.5}, step=number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(24)))
    run.finish()
    runs = every_run(client)
    assert sorted(each.info.run_name or "" for each in runs) == ["compile", "seed 0"]
    assert {each.info.status for each in runs} == {"FINISHED"}
    assert client.get_run(run.run_id).data.metrics == {f"worker/{number}": float(number) for number in range(24)}
    assert mlflow.active_run() is None
    assert tracker.failures == 0


def test_a_store_that_fails_does_not_stop_the_run(
    run: TrackedRun, workplace: Path, tracker: Tracker, problems: list[str]
) -> None:
    database = workplace / "mlruns" / "mlflow.db"
    database.unlink()
    database.mkdir()
    run.metrics({"a": 1})
    child = run.child("tuned")
    child.metrics({"a": 1})
    child.text("kept nowhere", "a.txt")
    run.finish()
    assert child.run_id == ""
    assert tracker.failures >= 5
    assert len(problems) == 1
    assert problems[0].startswith("MLflow at mlruns/mlflow.db did not take metrics: ")
    assert problems[0].endswith("the run goes on and its folder keeps every result")
