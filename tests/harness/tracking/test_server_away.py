"""A tracking server that dies in the middle: the run goes on, and says so once."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.tracking.tracker import Tracker


class Tracking(BaseHTTPRequestHandler):
    """As much of MLflow's REST interface as starting, writing and ending one run takes."""

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer({})
        elif "get-by-name" in self.path or "experiments/get" in self.path:
            self._answer({"experiment": {"experiment_id": "1", "name": "synthesis", "lifecycle_stage": "active"}})
        else:
            self._answer({"run": self._run()})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer({"run": self._run(), "run_info": self._run()["info"], "experiments": []})

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _run(self) -> dict[str, dict[str, object]]:
        tags = [{"key": "mlflow.runType", "value": "genai_evaluate"}]
        info = {"run_id": "r1", "run_uuid": "r1", "experiment_id": "1", "status": "RUNNING", "start_time": 1}
        return {
            "info": {**info, "lifecycle_stage": "active", "artifact_uri": "mlflow-artifacts:/1"},
            "data": {"tags": tags},
        }

    def _answer(self, body: dict[str, object]) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tracking)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_run_goes_on(server: ThreadingHTTPServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problems: list[str] = []
    address = f"http://127.0.0.1:{server.server_port}"
    tracker = Tracker.open(tmp_path, environment={"MLFLOW_TRACKING_URI": address}, on_problem=problems.append)
    run = tracker.start_run("synthesis", "seed 0", {"seed": 0})
    run.metrics({"test/score": 0.5})
    assert (tracker.failures, problems) == (0, [])
    assert tracker.run_address(run) == f"{address}/#/experiments/1/runs/r1"

    server.shutdown()
    server.server_close()
    started = time.monotonic()
    for step in range(20):
        run.metrics({"validation/score": 0.5}, step=step)
    child = run.child("tuned")
    child.table([{"id": "a"}], "examples.json")
    run.finish()
    assert time.monotonic() - started < 30
    assert tracker.failures == 20 + 1 + 2 + 2
    assert problems == [
        f"MLflow at {address} did not take metrics: the server does not answer; "
        "the run goes on and its folder keeps every result"
    ]
    assert capsys.readouterr().out == ""


def test_the_end_of_a_run_prints_nothing(
    server: ThreadingHTTPServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"http://127.0.0.1:{server.server_port}"
    tracker = Tracker.open(tmp_path, environment={"MLFLOW_TRACKING_URI": address})
    tracker.start_run("synthesis", "seed 0").finish()
    assert tracker.failures == 0
    assert capsys.readouterr().out == ""
