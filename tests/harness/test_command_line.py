"""`harness` as people use it: real processes against a server on this machine that answers, dies, lies or waits."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from harness.models.loopback import LoopbackServer, answer, fault
from harness.tracking.tracker import Tracker

COMMAND = (sys.executable, "-m", "harness")
CALLS = 12 + 2 * 4 + 12
PROBES = 1
"""Before its first question a server nobody knows is asked what it can do; later runs know."""


class InvoiceServer(LoopbackServer):
    """Reads the invoice when a demo shows how; can be told to hold every answer from the n-th on."""

    def __init__(self, hold_from=None):
        self.hold_from = hold_from
        self.held = threading.Event()
        self.released = threading.Event()
        super().__init__(self.read_invoice)

    def read_invoice(self, received):
        if self.hold_from is not None and len(self.requests) > self.hold_from:
            self.held.set()
            self.released.wait(30)
        messages = received.body["messages"]
        question = messages[-1]["content"]
        if len(messages) < 4:
            return answer('{"vendor": "unknown", "total": null}')
        vendor, rest = question.split(" of ", 1)[1].split(", ", 1)
        return answer(json.dumps({"vendor": vendor, "total": float(rest.split()[0])}))

    def close(self):
        self.released.set()
        super().close()


def arguments(server, *more):
    model = "{model: openai/own, api_base: '" + server.api_base + "', api_key_env: MY_KEY, timeout: 20}"
    return (*COMMAND, "run", "experiment.yaml", "--json", "--set", f"models.task={model}", *more)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-a-secret-of-mine")


def harness(project, server, *more, check=True):
    done = subprocess.run(arguments(server, *more), cwd=project, capture_output=True, text=True, timeout=240)
    assert not check or done.returncode == 0, done.stderr
    return done


def started(project, server, *more):
    # A runner in the background of a shell ignores Ctrl-C, and its children inherit that; a person's shell does not.
    return subprocess.Popen(
        arguments(server, *more),
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_one_document_on_stdout_and_nothing_else(project):
    with InvoiceServer() as server:
        done = harness(project, server)
        document = json.loads(done.stdout)
        assert document["verdict"] == "improved"
        assert document["ledger"]["task"]["calls"] == len(server.requests) == PROBES + CALLS
        assert document["tuned"]["score"] == 1.0
        assert "sk-a-secret" not in done.stdout + done.stderr
        again = harness(project, server)
        assert json.loads(again.stdout) == {**document, "replayed": True}
        assert len(server.requests) == PROBES + CALLS


@pytest.mark.parametrize(
    ("hold_from", "sent"),
    [(5, signal.SIGINT), (15, signal.SIGINT), (15, signal.SIGTERM), (25, signal.SIGINT), (25, signal.SIGTERM)],
    ids=["baseline", "compile", "compile terminated", "tuned", "tuned terminated"],
)
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(project, hold_from, sent):
    with InvoiceServer(hold_from) as server:
        run = started(project, server)
        assert server.held.wait(120)
        run.send_signal(sent)
        server.released.set()
        out, err = run.communicate(timeout=60)
        assert (run.returncode, out) == (130, ""), err
        assert "the same command continues" in err
        assert "Traceback" not in err
        [state] = [json.loads(path.read_text()) for path in project.glob("mlruns/runs/*/run.json")]
        assert state["status"] == "stopped"
        assert Tracker.open(project).find_run(state["run_id"]).status == "KILLED"
        server.hold_from = None
        kept = _answers(project)
        before = len(server.requests)
        assert json.loads(harness(project, server).stdout)["verdict"] == "improved"
        assert kept >= hold_from - PROBES
        assert len(server.requests) - before == CALLS - kept


@pytest.mark.parametrize("hold_from", [5, 25])
def test_a_killed_run_goes_on_and_pays_nothing_twice(project, hold_from):
    with InvoiceServer(hold_from) as server:
        run = started(project, server)
        assert server.held.wait(120)
        run.kill()
        run.communicate(timeout=60)
        server.released.set()
        server.hold_from = None
        kept = _answers(project)
        before = len(server.requests)
        document = json.loads(harness(project, server).stdout)
        assert document["verdict"] == "improved"
        assert kept >= hold_from - PROBES - 8  # those in flight are lost, and no others
        assert len(server.requests) - before == CALLS - kept


def _answers(project):
    with closing(sqlite3.connect(project / "mlruns" / "answers.db")) as db:
        return db.execute("SELECT COUNT(*) FROM answers").fetchone()[0]


def test_two_runs_at_once_on_one_store(project):
    with InvoiceServer() as server:
        runs = [started(project, server, "--set", f"optimizer.nearest_demos.k={k}") for k in (1, 2)]
        outputs = [run.communicate(timeout=240) for run in runs]
        assert [run.returncode for run in runs] == [0, 0], outputs
        documents = [json.loads(out) for out, _ in outputs]
        assert documents[0]["run_id"] != documents[1]["run_id"]
        assert {document["verdict"] for document in documents} == {"improved"}


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "Incorrect API key provided"), (404, "The model `own` does not exist")],
)
def test_a_model_that_is_not_there_stops_at_the_first_call_in_the_providers_words(project, status, words):
    with LoopbackServer([fault(status, words)]) as server:
        done = harness(project, server, check=False)
        assert done.returncode == 1
        assert done.stdout == ""
        assert words in done.stderr
        assert "Traceback" not in done.stderr
        assert "sk-a-secret" not in done.stderr
        assert len(server.requests) <= 8  # one per thread at most
    [state] = [json.loads(path.read_text()) for path in project.glob("mlruns/runs/*/run.json")]
    assert state["status"] == "stopped"


def test_a_key_that_is_missing_is_told_before_anything_starts(project, monkeypatch):
    monkeypatch.delenv("MY_KEY")
    with InvoiceServer() as server:
        done = harness(project, server, check=False)
        assert done.returncode == 2
        assert "MY_KEY, which is not set" in done.stderr
        assert server.requests == []


def test_a_metric_that_raises_stops_at_once_with_its_traceback(project):
    (project / "mine.py").write_text(
        "class Typo:\n    name, version = 'typo', '1'\n\n    def __call__(self, example, prediction):\n"
        "        return prediction.anser\n\n    def compare(self, expected, predicted):\n        return None\n"
    )
    with InvoiceServer() as server:
        done = harness(project, server, "--set", "metric=mine.py:Typo", check=False)
        assert done.returncode == 1
        assert "the metric 'typo' failed on example" in done.stderr
        assert 'mine.py", line 5' in done.stderr
        assert len(server.requests) <= 9


def test_a_spent_budget_is_exit_code_3(project):
    with InvoiceServer() as server:
        done = harness(project, server, "--set", "budget.calls=25", check=False)
        assert done.returncode == 3
        assert "the budget of 25 calls is spent, but for the 12 calls of the last measurement" in done.stderr
        document = json.loads(done.stdout)
        assert (document["verdict"], document["tuned"]["n_scored"]) == ("no detectable change", 12)
        assert "tuning was stopped there" in document["stopped"]
        assert len(server.requests) <= 25


def test_a_users_file_of_an_unlucky_name_beside_the_experiment(project):
    for name in ("metrics.py", "programs.py", "harness.py"):
        (project / name).write_text("raise SystemExit('the wrong file was imported')\n")
    done = subprocess.run(
        [os.path.join(os.path.dirname(sys.executable), "harness"), "check", "experiment.yaml"],
        cwd=project, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "the wrong file" not in done.stdout + done.stderr
