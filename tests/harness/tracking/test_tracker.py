"""Starting, continuing and finding runs by what people call them."""

import getpass
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from harness.errors import HarnessError, UsageError
from harness.tracking.tracker import Tracker


@pytest.fixture
def client(tracker: Tracker) -> MlflowClient:
    return MlflowClient(tracking_uri=tracker.location.uri)


def test_a_store_opens_from_another_folder(workplace: Path, tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    elsewhere = workplace / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    again = Tracker.open(workplace)
    assert again.find_run(run.run_id).name == "seed 0"
    assert list(elsewhere.iterdir()) == []


def test_addresses(tracker: Tracker) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    address = f"http://127.0.0.1:5001/#/experiments/{run.experiment_id}/runs/{run.run_id}"
    assert tracker.run_address(run, port=5001) == address
    assert tracker.run_address(tracker.find_run(run.run_id), port=5001) == address


def test_a_run_is_found_by_its_id_its_beginning_and_its_experiment(tracker: Tracker) -> None:
    run = tracker.start_run("synthesis", "seed 0", {"seed": 0}, {"kind": "experiment"})
    run.child("tuned").metrics({"test/score": 0.5})
    run.finish()
    for reference in (run.run_id, run.run_id[:12], f" {run.run_id} ", "synthesis"):
        found = tracker.find_run(reference)
        assert (found.run_id, found.experiment, found.name) == (run.run_id, "synthesis", "seed 0")
        assert (found.status, found.parent) == ("FINISHED", None)
    assert found.params == {"seed": "0"}
    child = tracker.find_run(run.child("tuned").run_id)
    assert (child.parent, child.metrics) == (run.run_id, {"test/score": 0.5})


def test_an_experiment_means_its_latest_finished_run(tracker: Tracker) -> None:
    first = tracker.start_run("synthesis", "first", tags={"kind": "experiment"})
    first.finish()
    second = tracker.start_run("synthesis", "second", tags={"kind": "evaluation"})
    second.finish()
    tracker.start_run("synthesis", "third").finish("failed")
    running = tracker.start_run("synthesis", "fourth")
    assert tracker.find_run("synthesis").name == "second"
    assert tracker.find_run("synthesis", {"kind": "experiment"}).name == "first"
    latest = tracker.latest_run()
    assert latest is not None
    assert latest.run_id == running.run_id


def test_an_experiment_without_a_finished_run(tracker: Tracker) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    with pytest.raises(UsageError, match=f"has no finished run in .*; its latest run {run.run_id[:12]} is RUNNING"):
        tracker.find_run("synthesis")


def test_an_empty_experiment(tracker: Tracker, client: MlflowClient) -> None:
    client.create_experiment("empty")
    with pytest.raises(UsageError, match="experiment 'empty' has no finished run"):
        tracker.find_run("empty")


def test_the_nearest_name_is_shown(tracker: Tracker) -> None:
    with pytest.raises(UsageError, match="it holds no experiment yet"):
        tracker.find_run("synthesis")
    tracker.start_run("synthesis", "seed 0")
    for reference in ("sinthesis", "0" * 32):
        with pytest.raises(UsageError, match="no run or experiment") as caught:
            tracker.find_run(reference)
        assert "synthesis" in str(caught.value)


def test_the_beginning_of_several_runs(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [tracker.start_run("synthesis", f"seed {number}") for number in range(2)]
    found = [tracker._existing(run.run_id) for run in runs]
    monkeypatch.setattr(tracker, "_with_prefix", lambda prefix, experiments: found)
    with pytest.raises(UsageError, match=r"run 'abcd' is not unique in mlruns/mlflow.db: .*\(seed 0\)"):
        tracker.find_run("abcd")


def test_more_runs_than_one_page(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.tracking.tracker._PAGE", 2)
    runs = [tracker.start_run(f"experiment {number}", "run") for number in range(5)]
    assert all(tracker.find_run(run.run_id[:16]).run_id == run.run_id for run in runs)


def test_a_deleted_experiment_says_how_to_get_it_back(tracker: Tracker, client: MlflowClient) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    client.delete_experiment(run.experiment_id)
    with pytest.raises(UsageError, match=f"mlflow experiments restore --experiment-id {run.experiment_id}"):
        tracker.start_run("synthesis", "seed 1")


def test_an_experiment_made_by_another_process_meanwhile(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tracker.start_run("synthesis", "seed 0")
    look_up = tracker._client.get_experiment_by_name
    asked: list[str] = []

    def not_there_yet(name: str) -> object:
        asked.append(name)
        return None if len(asked) == 1 else look_up(name)

    monkeypatch.setattr(tracker._client, "get_experiment_by_name", not_there_yet)
    assert tracker.start_run("synthesis", "seed 1").experiment_id == first.experiment_id
    assert len(asked) == 2


def test_an_experiment_that_cannot_be_made(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> str:
        raise MlflowException("no permission")

    monkeypatch.setattr(tracker._client, "create_experiment", refuse)
    with pytest.raises(HarnessError, match=r"the MLflow store at mlruns/mlflow.db could not be written: no permission"):
        tracker.start_run("synthesis", "seed 0")


def test_a_store_that_breaks_while_it_is_asked(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run_id: str) -> object:
        raise MlflowException("the connection was closed")

    monkeypatch.setattr(tracker._client, "get_run", broken)
    with pytest.raises(HarnessError, match="could not be read: the connection was closed"):
        tracker.find_run("0" * 32)


def test_an_interrupted_run_goes_on(tracker: Tracker, client: MlflowClient) -> None:
    run = tracker.start_run("synthesis", "seed 0", {"seed": 0})
    child = run.child("baseline", {"stage": "baseline"})
    run.finish("killed")

    again = tracker.resume_run(run.run_id)
    assert client.get_run(run.run_id).info.status == "RUNNING"
    again.params({"seed": 0, "threads": 2})
    assert again.child("baseline").run_id == child.run_id
    assert again.child("tuned").run_id != child.run_id
    again.finish()
    runs = client.search_runs([run.experiment_id])
    assert sorted(each.info.run_name or "" for each in runs) == ["baseline", "seed 0", "tuned"]
    assert {each.info.status for each in runs} == {"FINISHED"}
    assert client.get_run(run.run_id).data.params == {"seed": "0", "threads": "2"}
    assert tracker.failures == 0


def test_a_run_that_is_gone_cannot_go_on(tracker: Tracker, client: MlflowClient) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    client.delete_run(run.run_id)
    for run_id in (run.run_id, "0" * 32, "never written"):
        with pytest.raises(UsageError, match=r"is not in mlruns/mlflow.db any more"):
            tracker.resume_run(run_id)


def test_artifacts_come_back(tracker: Tracker, tmp_path: Path) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    run.text("a", "bundle/program.json")
    target = tmp_path / "target"
    target.mkdir()
    assert (tracker.download(run.run_id, "bundle", target) / "program.json").read_text() == "a"
    with pytest.raises(UsageError, match=f"run {run.run_id[:12]} has no 'other' in"):
        tracker.download(run.run_id, "other", target)


def test_a_user_without_a_name(tracker: Tracker, client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise OSError("no user name")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert client.get_run(tracker.start_run("synthesis", "seed 0").run_id).data.tags["mlflow.user"] == "unknown"


def test_a_store_without_any_experiment(tracker: Tracker, client: MlflowClient) -> None:
    client.delete_experiment("0")
    assert tracker.latest_run() is None
