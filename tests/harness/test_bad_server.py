"""A whole run against a server that does everything wrong in turn: the numbers are those of the good answers."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable

import pytest

from harness.assembly import load_experiment
from harness.errors import RunStopped, StopReason
from harness.experiment import run
from harness.models.dialects import Answer, Fault
from harness.models.ledger import Ledger
from harness.models.loopback import LoopbackServer, Received, Reply, answer

PROSE = "no record here, " * 65_536
CURED: dict[str, Callable[[str], object]] = {
    "auth": lambda _: Fault(401, "expired token"),
    "not_found": lambda _: Fault(404, "no such model today"),
    "rate_limit": lambda _: Fault(429, "slow down", retry_after=0),
    "server_error": lambda _: Fault(500, "worker died"),
    "timeout": lambda _: Reply(delay=5.0),
    "connection": lambda _: Reply(hang_up=True),
    "unreadable_reply": lambda good: Reply(body=json.dumps(answer(good).body).encode()[:90]),
    "cut": lambda good: answer(good[: len(good) // 2], finish_reason="length"),
    "empty": lambda _: "",
    "invalid": lambda _: PROSE,
    "invalid ": lambda _: '{"vendor": ["a", "list"], "total": {"not": "a number"}}',
    "invalid  ": lambda good: good[:-6],
}
LOST: dict[str, Callable[[str], object]] = {"refusal": lambda _: Answer("", refusal="I would rather not")}


class FaultyModel:
    """Right about every invoice, except that the first request for an invoice meets that invoice's fault.

    `cured`: the fault goes away with the next request for the same invoice.
    """

    def __init__(self, faults: dict[str, Callable[[str], object]], *, cured: bool = True) -> None:
        self.faults = list(faults.values())
        self.cured = cured
        self.seen: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> object:
        text = "\n".join(str(message["content"]) for message in received.body["messages"])
        number, vendor, total = re.findall(r"Bill no\. (\d+) of (\w+ Ltd), (\d+) EUR", text)[-1]
        good = json.dumps({"vendor": vendor, "total": float(total)})
        with self._lock:
            first = number not in self.seen
            self.seen.add(number)
        index = int(number) // 7919
        if index < len(self.faults) and (first or not self.cured):
            return self.faults[index](good)
        return good


@pytest.fixture
def faulty_run(project, monkeypatch):
    """Runs the 24 invoices, all of them as the test split but for a few, against a model at a loopback server."""
    waited: list[float] = []
    monkeypatch.setattr(Ledger, "pause", lambda _self, seconds: waited.append(seconds))
    text = (project / "experiment.yaml").read_text()
    text = text.replace("{train: 8, validation: 4, test: 12, seed: 0}", "{train: 2, validation: 2, test: 20}")
    (project / "experiment.yaml").write_text(text.replace("optimizer: {nearest_demos: {k: [1, 2]}}", "optimizer: none"))

    def go(model):
        with LoopbackServer(model) as server:
            task = {"model": "openai/scripted", "api_base": server.api_base, "timeout": 0.5, "response_schema": True}
            result = run(load_experiment("experiment.yaml", [f"models.task={json.dumps(task)}"]), force=True)
            return result, len(server.requests)

    go.waited = waited
    return go


def test_faults_that_pass_leave_no_mark_on_the_numbers(faulty_run):
    result, _ = faulty_run(FaultyModel(CURED))

    assert result.tuned.total.n_scored == result.tuned.total.n_total == 20
    assert result.tuned.total.score == 1.0
    named = dict(result.ledger["task"].failures)
    tested = {int(row.inputs["text"].split()[2]) // 7919 for row in result.tuned.rows}
    for index, name in enumerate(CURED):
        if index in tested:
            assert named[name.strip()] >= 1, name


@pytest.mark.parametrize("kind", ["cut", "empty", "invalid", "unreadable_reply", "refusal"])
def test_what_stays_unreadable_is_counted_under_its_name_and_never_scored(faulty_run, kind):
    fault = {**CURED, **LOST}[kind]
    by_invoice = {str(n): fault if n % 6 == 0 else (lambda good: good) for n in range(24)}
    result, _ = faulty_run(FaultyModel(by_invoice, cured=False))

    lost = [row for row in result.tuned.rows if row.failure]
    assert {row.failure_kind for row in lost} == {kind}
    assert all(row.score.value is None for row in lost)
    assert result.tuned.total.score == 1.0
    assert result.tuned.total.n_scored == 20 - len(lost)
    assert result.tuned.total.lower_bound == pytest.approx(1 - len(lost) / 20)
    assert result.verdict == "no detectable change"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(401, "expired token"), "expired token"),
        (Fault(404, "no such model"), "no such model"),
        (Fault(500, "worker died"), "worker died"),
        (Reply(hang_up=True), "scripted"),
        (Reply(delay=60.0), "timeout"),
    ],
)
def test_a_dead_model_stops_the_run_at_once(faulty_run, fault, words):
    with LoopbackServer([fault]) as server:
        task = {"model": "openai/scripted", "api_base": server.api_base, "timeout": 0.2, "response_schema": True}
        experiment = load_experiment("experiment.yaml", [f"models.task={json.dumps(task)}"])
        with pytest.raises(RunStopped) as stopped:
            run(experiment)

    assert stopped.value.reason is StopReason.MODEL
    assert words in stopped.value.message
    assert len(server.requests) <= 8
    assert sum(faulty_run.waited) <= 10
