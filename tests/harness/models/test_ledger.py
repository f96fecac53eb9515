import threading
import time

import pytest
from dspy import lm15

from harness.errors import RunStopped, StopReason
from harness.models.ledger import Ledger
from harness.results import RoleUsage


def test_accounts_are_kept_by_role(ledger):
    ledger.reserve("task")
    ledger.settle("task", lm15.Usage(input_tokens=100, output_tokens=10), (1.0, 10.0))
    ledger.reserve("judge")
    ledger.settle("judge", lm15.Usage(input_tokens=7, output_tokens=3), None)
    ledger.cached("task")

    assert ledger.usage() == {
        "judge": RoleUsage(calls=1, cached=0, input_tokens=7, output_tokens=3, usd=None),
        "task": RoleUsage(calls=1, cached=1, input_tokens=100, output_tokens=10, usd=pytest.approx(0.0002)),
    }


def test_a_local_call_costs_nothing_even_when_no_tokens_are_reported(ledger):
    ledger.settle("task", lm15.Usage(), (0.0, 0.0))

    assert ledger.usage()["task"].usd == 0.0


def test_money_is_unknown_once_a_priced_call_reports_no_tokens(ledger):
    ledger.settle("task", lm15.Usage(input_tokens=1, output_tokens=1), (1.0, 1.0))
    ledger.settle("task", lm15.Usage(input_tokens=1), (1.0, 1.0))
    ledger.settle("task", lm15.Usage(input_tokens=1, output_tokens=1), (1.0, 1.0))

    assert ledger.usage()["task"].usd is None


def test_calls_are_limited_exactly_under_threads():
    ledger = Ledger(max_calls=100)
    refused = []

    def work():
        for _ in range(30):
            try:
                ledger.reserve("task")
            except RunStopped as stop:
                refused.append(stop)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ledger.usage()["task"].calls == 100
    assert len(refused) == 140
    assert refused[0].reason is StopReason.BUDGET
    assert refused[0].message == "the budget of 100 calls is spent"
    assert refused[0].exit_code == 3


def test_money_is_limited():
    ledger = Ledger(max_usd=0.001)
    ledger.reserve("judge")
    ledger.settle("judge", lm15.Usage(input_tokens=1000, output_tokens=0), (1.0, 1.0))

    with pytest.raises(RunStopped, match=r"the budget of 0\.001 USD is spent"):
        ledger.reserve("judge")


def test_minutes_are_limited():
    now = [0.0]
    ledger = Ledger(max_minutes=2, clock=lambda: now[0])
    ledger.reserve("task")
    now[0] = 119.0
    ledger.reserve("task")
    now[0] = 120.0

    with pytest.raises(RunStopped, match="the budget of 2 minutes is spent"):
        ledger.reserve("task")


def test_the_first_stop_stays_and_reaches_every_later_call(ledger):
    first = RunStopped(StopReason.MODEL, "the judge is gone", "detail")
    assert ledger.stopped is None
    ledger.check()

    assert ledger.stop(first) is first
    assert ledger.stop(RunStopped(StopReason.BUDGET, "spent")) is first
    assert ledger.stopped is first
    for refuse in (ledger.check, lambda: ledger.reserve("task")):
        with pytest.raises(RunStopped) as caught:
            refuse()
        assert (caught.value.reason, caught.value.message, caught.value.detail) == (
            StopReason.MODEL,
            "the judge is gone",
            "detail",
        )
    assert ledger.usage() == {}, "a refused call is no call"


def test_a_pause_ends_with_the_run(ledger):
    ledger.stop(RunStopped(StopReason.INTERRUPT, "interrupted"))
    began = time.monotonic()
    ledger.pause(60)

    assert time.monotonic() - began < 30
