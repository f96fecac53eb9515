"""`harness ui`: the right store, the right addresses, and nothing left running."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.tracking import ui
from harness.tracking.tracker import Tracker
from harness.tracking.ui import free_port, serve_ui

STAND_IN = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
print(os.environ["MLFLOW_BACKEND_STORE_URI"], os.environ["MLFLOW_DISABLE_TELEMETRY"], os.getcwd(), flush=True)
HTTPServer((sys.argv[1], int(sys.argv[2])), Health).serve_forever()
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Serve with a script instead of MLflow, which takes ten seconds to come up."""

    def use(script: str) -> None:
        monkeypatch.setattr(ui, "_command", lambda host, port: [sys.executable, "-c", script, host, str(port)])

    return use


def test_the_addresses_are_said_and_ctrl_c_stops_it(
    workplace: Path, tracker: Tracker, port: int, stand_in: Callable[[str], None]
) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    stand_in(STAND_IN)
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        if line.startswith("Ctrl-C"):
            raise KeyboardInterrupt

    assert serve_ui(workplace, port=port, say=say) == 0
    assert lines == [
        f"MLflow: http://127.0.0.1:{port}",
        f"last run, synthesis (running): http://127.0.0.1:{port}/#/experiments/{run.experiment_id}/runs/{run.run_id}",
        "Ctrl-C stops it",
    ]
    assert ui._is_free("127.0.0.1", port)
    log = (workplace / "mlruns" / "ui.log").read_text()
    assert log.startswith(f"{tracker.location.uri} true {workplace / 'mlruns'}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_closed_terminal_stops_it_too(
    workplace: Path, port: int, stand_in: Callable[[str], None], number: signal.Signals
) -> None:
    stand_in(STAND_IN)
    before = signal.getsignal(number)
    assert serve_ui(workplace, port=port, say=lambda line: os.kill(os.getpid(), number)) == 0
    assert signal.getsignal(number) == before
    assert ui._is_free("127.0.0.1", port)


def test_a_thread_may_serve(workplace: Path, port: int, stand_in: Callable[[str], None]) -> None:
    stand_in(STAND_IN)

    def say(line: str) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(serve_ui, workplace, port=port, say=say).result(60) == 0
    assert ui._is_free("127.0.0.1", port)


def test_a_server_that_cannot_start(workplace: Path, port: int, stand_in: Callable[[str], None]) -> None:
    stand_in("import sys; print('cannot bind', file=sys.stderr); sys.exit(3)")
    with pytest.raises(
        HarnessError, match=r"MLflow's server ended by itself: cannot bind \(all of it in mlruns/ui.log\)"
    ):
        serve_ui(workplace, port=port, say=print)


def test_a_server_that_ends_without_a_word(workplace: Path, port: int, stand_in: Callable[[str], None]) -> None:
    stand_in("pass")
    with pytest.raises(HarnessError, match="ended by itself: it said nothing"):
        serve_ui(workplace, port=port, say=print)


def test_a_server_that_ends_later(workplace: Path, port: int, stand_in: Callable[[str], None]) -> None:
    stand_in(STAND_IN.replace("serve_forever()", "handle_request()"))
    with pytest.raises(HarnessError, match="GET /health"):
        serve_ui(workplace, port=port, say=print)


def test_a_server_that_does_not_stop_is_killed(
    workplace: Path, port: int, stand_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "_STOP_SECONDS", 0.2)
    stand_in("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STAND_IN)

    def say(line: str) -> None:
        raise KeyboardInterrupt

    assert serve_ui(workplace, port=port, say=say) == 0
    assert ui._is_free("127.0.0.1", port)


def test_a_taken_port_names_a_free_one(workplace: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} on 127.0.0.1 is taken; free: harness ui --port \d+"):
            serve_ui(workplace, port=port)
        other = free_port("127.0.0.1", port)
    assert other is not None
    assert other > port


def test_nothing_free(monkeypatch: pytest.MonkeyPatch, workplace: Path) -> None:
    monkeypatch.setattr(ui, "_is_free", lambda host, port: False)
    with pytest.raises(UsageError, match=r"port 5000 on 127.0.0.1 is taken$"):
        serve_ui(workplace)


def test_nothing_was_tracked_here(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no runs yet: mlruns/mlflow.db does not exist here"):
        serve_ui(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_server_elsewhere_is_only_named(workplace: Path, tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example")
    location = ui.tracking_location(workplace, os.environ)
    monkeypatch.setattr(tracker, "location", location)
    monkeypatch.setattr(ui.Tracker, "open", lambda folder: tracker)
    lines: list[str] = []
    assert serve_ui(workplace, say=lines.append) == 0
    assert lines == [
        "MLflow: http://mlflow.example",
        f"last run, synthesis (running): http://mlflow.example/#/experiments/{run.experiment_id}/runs/{run.run_id}",
    ]


SERVE = """
import sys
from pathlib import Path
from harness.tracking.ui import serve_ui
sys.exit(serve_ui(Path(sys.argv[1]), port=int(sys.argv[2]), say=lambda line: print(line, flush=True)))
"""


@pytest.mark.slow
def test_mlflow_itself_serves_the_store(workplace: Path, tracker: Tracker, port: int) -> None:
    run = tracker.start_run("synthesis", "seed 0")
    run.text("what was learned", "prompts.txt")
    (workplace / "metrics.py").write_text("raise RuntimeError('a file of the user was imported')")
    (workplace / "mlruns" / "metrics.py").write_text("raise RuntimeError('a file of the user was imported')")
    serving = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(workplace), str(port)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert serving.stdout is not None
    assert serving.stdout.readline() == f"MLflow: http://127.0.0.1:{port}\n"
    assert run.run_id in serving.stdout.readline()
    assert serving.stdout.readline() == "Ctrl-C stops it\n"
    base = f"http://127.0.0.1:{port}"
    with urllib.request.urlopen(f"{base}/get-artifact?run_uuid={run.run_id}&path=prompts.txt", timeout=30) as answer:
        assert answer.read() == b"what was learned"
    with urllib.request.urlopen(f"{base}/api/2.0/mlflow/runs/get?run_id={run.run_id}", timeout=30) as answer:
        assert b"seed 0" in answer.read()
    serving.send_signal(signal.SIGINT)
    assert serving.wait(30) == 0
    serving.stdout.close()
    assert ui._is_free("127.0.0.1", port)
