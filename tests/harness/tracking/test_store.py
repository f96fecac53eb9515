"""Where runs go, and what a wrong address says before anything is spent."""

import contextlib
import os
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import urllib.error
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.tracking import store
from harness.tracking.store import default_location, prepare, reason, server_answers, tracking_location
from harness.tracking.tracker import Tracker


def test_without_a_setting_runs_go_below_the_working_folder(tmp_path: Path) -> None:
    location = tracking_location(tmp_path, {})
    assert location.uri == f"sqlite:///{tmp_path.as_posix()}/mlruns/mlflow.db"
    assert location.artifact_root == tmp_path / "mlruns" / "artifacts"
    assert location.label == "mlruns/mlflow.db"
    assert not location.is_server
    assert list(tmp_path.iterdir()) == []


def test_the_setting_wins(tmp_path: Path) -> None:
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": " https://me:secret@mlflow.example:8080/a "})
    assert location.is_server
    assert location.artifact_root is None
    assert location.label == "https://me:***@mlflow.example:8080/a"
    assert location.ui_command() == location.label
    assert location.run_address("1", "r") == "https://me:***@mlflow.example:8080/a/#/experiments/1/runs/r"
    assert "secret" not in repr(location)


def test_a_relative_database_is_made_absolute(tmp_path: Path) -> None:
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": "sqlite:///other/runs.db"})
    assert location.uri == f"sqlite:///{tmp_path.as_posix()}/other/runs.db"
    assert location.artifact_root == tmp_path / "other" / "artifacts"
    assert location.ui_command() == "mlflow ui --backend-store-uri sqlite:///other/runs.db"


def test_a_database_elsewhere_is_named_in_full(tmp_path: Path) -> None:
    location = tracking_location(tmp_path / "work", {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/runs.db"})
    assert location.label == f"{tmp_path.as_posix()}/runs.db"


def test_a_database_server_keeps_its_artifacts_here(tmp_path: Path) -> None:
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": "postgresql+psycopg://u:pw@host/db"})
    assert location.is_database
    assert location.database_file is None
    assert location.artifact_root == tmp_path / "mlruns" / "artifacts"
    assert location.ui_command() == "mlflow ui --backend-store-uri postgresql+psycopg://u:***@host/db"


@pytest.mark.parametrize(
    "uri", ["./mlruns", "mlruns", "/data/mlruns", "file:///data/mlruns", "file:mlruns", "C:\\runs"]
)
def test_a_file_store_is_refused_with_the_way_out(tmp_path: Path, uri: str) -> None:
    with pytest.raises(UsageError, match="mlflow migrate-filestore --source") as caught:
        Tracker.open(tmp_path, environment={"MLFLOW_TRACKING_URI": uri})
    assert "MLFLOW_TRACKING_URI" in str(caught.value)
    assert "unset it to use mlruns/mlflow.db" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///:memory:", "sqlite:///"])
def test_a_store_that_keeps_nothing_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(UsageError, match="names no file"):
        tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": uri})


def test_a_server_that_is_away_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(HarnessError, match="does not answer") as caught:
        Tracker.open(tmp_path, environment={"MLFLOW_TRACKING_URI": f"http://me:secret@127.0.0.1:{port}"})
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_any_status_counts_as_an_answer() -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(403)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    assert server_answers(f"http://user:pw@127.0.0.1:{server.server_port}/", 5)
    thread.join()
    server.server_close()


def test_a_certificate_that_python_does_not_know_counts_as_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise urllib.error.URLError(ssl.SSLCertVerificationError("self-signed certificate"))

    monkeypatch.setattr(store.urllib.request, "urlopen", refuse)
    assert server_answers("https://host")


def test_a_broken_address_is_no_answer() -> None:
    assert not server_answers("http://127.0.0.1:notaport")


def test_the_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "mlruns").write_text("a file in the way")
    with pytest.raises(HarnessError, match=r"the tracking database mlruns/mlflow.db cannot be created"):
        Tracker.open(tmp_path, environment={})


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "mlruns").mkdir()
    (tmp_path / "mlruns" / "mlflow.db").write_text("not a database, but long enough to be looked at" * 10)
    with pytest.raises(UsageError, match=r"^mlruns/mlflow.db is no MLflow database \(file is not a database\)"):
        Tracker.open(tmp_path, environment={})


def test_a_database_of_another_version(workplace: Path) -> None:
    import sqlite3

    with sqlite3.connect(workplace / "mlruns" / "mlflow.db") as database:
        database.execute("UPDATE alembic_version SET version_num = 'somethingelse'")
    database.close()
    with pytest.raises(UsageError, match=r"mlflow db upgrade sqlite:///mlruns/mlflow.db"):
        Tracker.open(workplace, environment={})


def test_creating_starts_over_quietly_after_a_killed_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    location = default_location(tmp_path)
    assert location.database_file is not None
    location.database_file.parent.mkdir()
    location.database_file.with_name(f"mlflow.db.{os.getpid()}.new").write_text("half a database")
    prepare(location)
    assert Tracker.open(tmp_path, environment={}).latest_run() is None
    assert [file.name for file in (tmp_path / "mlruns").iterdir()] == ["mlflow.db"]
    assert caplog.records == []


def test_the_second_creator_keeps_the_database_of_the_first(tmp_path: Path) -> None:
    draft, file = tmp_path / "draft", tmp_path / "file"
    draft.write_text("second")
    file.write_text("first")
    store._link(draft, file)
    assert file.read_text() == "first"


@pytest.mark.parametrize("existing", [True, False])
def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool) -> None:
    def no_links(*args: object) -> None:
        raise PermissionError("links are not permitted here")

    monkeypatch.setattr(store.os, "link", no_links)
    draft, file = tmp_path / "draft", tmp_path / "file"
    draft.write_text("second")
    if existing:
        file.write_text("first")
    store._link(draft, file)
    assert file.read_text() == ("first" if existing else "second")


def test_reasons_are_short_and_keep_the_password(tmp_path: Path) -> None:
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": "postgresql://u:hunter2@host/db"})
    error = RuntimeError(f"cannot reach {location.uri} as u with hunter2\nsecond line")
    assert reason(error, location) == "cannot reach postgresql://u:***@host/db as u with ***"
    assert reason(RuntimeError(), location) == "RuntimeError"
    assert len(reason(RuntimeError("x" * 1000), location)) == 300


START = """
import sys
from pathlib import Path
from harness.tracking.tracker import Tracker
tracker = Tracker.open(Path(sys.argv[1]), environment={})
print("ready", flush=True)
sys.stdin.readline()
run = tracker.start_run("together", sys.argv[2])
for step in range(40):
    run.metrics({"x": step, "y": 1}, step=step)
    run.params({f"p{step}": step})
run.finish()
print(tracker.failures, run.run_id, flush=True)
"""


@pytest.mark.slow
def test_two_processes_make_one_store_and_write_to_it_at_once(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", START, str(tmp_path), name],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
    outputs = []
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        outputs.append(child.communicate(timeout=120)[0].split())
        assert child.returncode == 0
    assert [failures for failures, _ in outputs] == ["0", "0"]
    tracker = Tracker.open(tmp_path, environment={})
    for _, run_id in outputs:
        found = tracker.find_run(run_id)
        assert found.experiment == "together"
        assert found.metrics["x"] == 39
        assert len(found.params) == 40
    assert sorted(file.name for file in (tmp_path / "mlruns").iterdir()) == ["mlflow.db"]


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("http://[::1", "'http://[::1' is no address (Invalid IPv6 URL); write http://HOST:5000 or sqlite:///FOLDER/mlflow.db"),
        ("http://me:pa[ss@host/", "'http://***@host/' is no address"),
        ("http://", "it names no host"),
        ("https://h:99999/", "Port out of range"),
        ("http://h/a b\tc", "it holds a character no address has"),
        ("sqlite:///a\udcff.db", "it holds a character no address has"),
        ("postgres://u:p@h/db", "addresses that begin with postgres:; did you mean 'postgresql'?"),
        ("foo://x", "addresses that begin with foo:; known: databricks, http, https, mssql, mysql, postgresql, sqlite"),
        ("uc:x", "addresses that begin with uc:"),
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_one_sentence(tmp_path: Path, uri: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": uri})
    assert str(error.value).startswith("MLFLOW_TRACKING_URI: ")
    assert sentence in str(error.value)
    assert "pa[ss" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": "sqlite:///other.db"})
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE books (title TEXT)")
    before = file.read_bytes()
    with pytest.raises(UsageError, match=r"^other.db is the database of something else \(it holds the table 'books'\)"):
        prepare(location)
    assert file.read_bytes() == before
    file.write_bytes(b"no database at all" * 100)
    with pytest.raises(UsageError, match=r"^other.db is no MLflow database \(file is not a database\)"):
        prepare(location)
    file.unlink()
    file.mkdir()
    with pytest.raises(UsageError, match=r"^the tracking database other.db is a folder"):
        prepare(location)
    file.rmdir()
    os.mkfifo(file)
    with pytest.raises(UsageError, match=r"^the tracking database other.db is a pipe or a device"):
        prepare(location)


def test_a_database_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    (tmp_path / "a.db").write_bytes(b"x")
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": "sqlite:///a.db"})
    monkeypatch.setattr(sqlite3, "connect", refused)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match=r"^the tracking database a.db may not be read"):
        prepare(location)


def test_a_place_where_no_database_can_be_made_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", refused)
    with pytest.raises(
        HarnessError, match=r"^the tracking database mlruns/mlflow.db cannot be created: unable to open"
    ):
        prepare(default_location(tmp_path))


def test_a_password_of_one_letter_is_hidden_and_nothing_else(tmp_path: Path) -> None:
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": "postgresql://u:p@h/db"})
    told = reason(ValueError("unsupported: http and postgresql://u:p@h/other"), location)
    assert told == "unsupported: http and postgresql://u:***@h/other"
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": "postgresql://u:hunter2hunter2@h/db"})
    assert reason(ValueError("password hunter2hunter2 is wrong"), location) == "password *** is wrong"
