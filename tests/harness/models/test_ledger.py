import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from dspy import lm15
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import RunStopped, StopReason
from harness.models.ledger import Ledger
from harness.results import RoleUsage

TEN_TOKENS = lm15.Usage(input_tokens=8, output_tokens=2)


@pytest.fixture
def ledger():
    return Ledger()


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def answered(ledger, role="task", usage=TEN_TOKENS, price=(1.0, 1.0), seconds=0.0):
    """One call sent and answered."""
    ledger.reserve(role)
    return ledger.settle(role, usage, price, seconds)


def refused(ledger, role="task"):
    with pytest.raises(RunStopped) as caught:
        ledger.reserve(role)
    assert caught.value.reason is StopReason.BUDGET
    return caught.value.message


def test_accounts_are_kept_by_role(ledger):
    ledger.reserve("task")
    cost = ledger.settle("task", lm15.Usage(input_tokens=100, output_tokens=10), (1.0, 10.0))
    ledger.reserve("judge")
    assert ledger.settle("judge", lm15.Usage(input_tokens=7, output_tokens=3), None) is None

    assert cost == pytest.approx(0.0002)
    assert ledger.usage() == {
        "judge": RoleUsage(1, 0, 7, 3, None, replayed_usd=0.0),
        "task": RoleUsage(1, 0, 100, 10, pytest.approx(0.0002), replayed_usd=0.0),
    }


def test_what_the_store_answered_stands_apart_with_what_it_once_cost(ledger):
    answered(ledger)
    ledger.replayed("task", lm15.Usage(input_tokens=70, output_tokens=7), 0.002)
    ledger.replayed("task", lm15.Usage(input_tokens=30, output_tokens=3), 0.001)
    ledger.replayed("judge", lm15.Usage(input_tokens=5), None)
    ledger.replayed("judge", lm15.Usage(input_tokens=5, output_tokens=1), 1.0)

    usage = ledger.usage()
    assert usage["task"] == RoleUsage(
        1, 2, 8, 2, pytest.approx(1e-5),
        replayed_input_tokens=100, replayed_output_tokens=10, replayed_usd=pytest.approx(0.003),
    )  # fmt: skip
    assert usage["judge"] == RoleUsage(0, 2, 0, 0, 0.0, {}, 10, 1, None)


def test_faults_are_counted_by_name_and_free_their_place(ledger):
    for name in ("rate_limit", "server_error", "rate_limit"):
        ledger.reserve("task")
        ledger.attempt_failed("task", name)
    answered(ledger)
    ledger.unusable("task", "cut")

    usage = ledger.usage()["task"]
    assert (usage.calls, usage.failures) == (4, {"cut": 1, "rate_limit": 2, "server_error": 1})
    assert ledger._accounts["task"].in_flight == 0


def test_a_local_call_costs_nothing_even_when_no_tokens_are_reported(ledger):
    assert answered(ledger, usage=lm15.Usage(), price=(0.0, 0.0)) == 0.0
    assert ledger.usage()["task"].usd == 0.0


def test_thinking_that_only_the_total_holds_is_billed_as_output(ledger):
    usage = lm15.Usage(input_tokens=10, output_tokens=5, total_tokens=115)
    assert answered(ledger, usage=usage, price=(0.0, 1_000_000.0)) == 105.0
    assert ledger.usage()["task"].output_tokens == 105
    less = lm15.Usage(input_tokens=10, output_tokens=5, total_tokens=12)
    assert answered(ledger, usage=less, price=(0.0, 1_000_000.0)) == 5.0


# --- usage that is not reported --------------------------------------------------------------------------------


@pytest.mark.parametrize("silent_first", [True, False])
def test_an_answer_that_says_nothing_counts_as_the_average(ledger, silent_first):
    silent = lm15.Usage(input_tokens=1)
    order = [silent, TEN_TOKENS, TEN_TOKENS] if silent_first else [TEN_TOKENS, TEN_TOKENS, silent]
    for usage in order:
        answered(ledger, usage=usage)

    usage = ledger.usage()["task"]
    assert usage.usd == pytest.approx(3e-5)
    assert usage.estimated == 1


def test_with_nothing_to_take_an_average_of_money_is_unknown(ledger):
    assert answered(ledger, usage=lm15.Usage()) is None
    usage = ledger.usage()["task"]
    assert (usage.usd, usage.estimated) == (None, 0)


@pytest.mark.parametrize(("limit", "key"), [({"max_usd": 100.0}, "usd"), ({"max_tokens": 10**9}, "tokens")])
def test_a_limit_on_what_nobody_reports_stops_instead_of_being_free(limit, key):
    ledger = Ledger(**limit)
    answered(ledger, "judge", lm15.Usage())
    assert refused(ledger).startswith(f"budget.{key} cannot be kept: the server of the judge model does not report")


# --- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "name"),
    [
        ({"max_calls": 10}, "10 calls"),
        ({"max_usd": 10 * 1e-5}, "0.0001 USD"),
        ({"max_tokens": 100}, "100 tokens"),
        ({"max_minutes": 1.0}, "1 minutes"),
    ],
)
def test_ten_equal_calls_fit_and_the_eleventh_is_refused(limit, name):
    clock = Clock()
    ledger = Ledger(**limit, clock=clock)
    for _ in range(10):
        ledger.reserve("task")
        clock.seconds += 6.0
        ledger.settle("task", TEN_TOKENS, (1.0, 1.0), 6.0)
    assert refused(ledger) == f"the budget of {name} is spent"


@pytest.mark.parametrize("limit", [{"max_calls": 10}, {"max_usd": 10 * 1e-5}, {"max_tokens": 100}])
@pytest.mark.parametrize("round_", range(5))
def test_ten_calls_are_sent_whatever_eight_threads_do(limit, round_):
    ledger = Ledger(**limit)
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        with suppress(RunStopped):
            while True:
                answered(ledger)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: work(), range(8)))
    usage = ledger.usage()["task"]
    assert usage.calls == 10
    assert usage.usd == pytest.approx(1e-4)
    assert (usage.input_tokens, usage.output_tokens) == (80, 20)


def test_calls_are_limited_exactly_under_threads_and_roles():
    ledger = Ledger(max_calls=100)
    refusals = []

    def work(number):
        role = ("task", "judge", "teacher")[number % 3]
        for _ in range(30):
            try:
                ledger.reserve(role)
                ledger.attempt_failed(role, "timeout") if number % 2 else ledger.settle(role, TEN_TOKENS, None)
            except RunStopped as stop:
                refusals.append(stop)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert sum(usage.calls for usage in ledger.usage().values()) == 100
    assert len(refusals) == 140
    assert (refusals[0].message, refusals[0].exit_code) == ("the budget of 100 calls is spent", 3)
    assert sum(account.in_flight for account in ledger._accounts.values()) == 0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=8, max_size=60),
    st.integers(20, 400),
    st.integers(1, 30),
    st.sampled_from(["timeout", "rate_limit", None]),
)
def test_threads_exceed_no_limit_by_more_than_what_is_in_flight(costs, max_tokens, max_calls, fault):
    ledger = Ledger(max_calls, max_tokens=max_tokens)
    prices = iter(costs * 4)
    lock = threading.Lock()

    def work(number):
        role = ("task", "judge")[number % 2]
        with suppress(RunStopped, StopIteration):
            while True:
                ledger.reserve(role)
                with lock:
                    tokens = next(prices)
                if fault and tokens % 3 == 0:
                    ledger.attempt_failed(role, fault)
                else:
                    ledger.settle(role, lm15.Usage(input_tokens=tokens, output_tokens=0), (1.0, 1.0))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    used = ledger.usage().values()
    assert sum(usage.calls for usage in used) <= max_calls
    spent = sum(usage.input_tokens for usage in used)
    assert spent <= max_tokens + 4 * max(costs)
    assert sum(usage.usd for usage in used) == pytest.approx(spent / 1e6)


def test_calls_in_flight_count_at_the_average():
    ledger = Ledger(max_usd=4e-5)
    answered(ledger)
    for _ in range(3):
        ledger.reserve("task")
    assert "USD is spent" in refused(ledger)
    ledger.attempt_failed("task", "timeout")  # its money is free again
    ledger.reserve("task")


def test_a_call_that_would_exceed_the_limit_is_not_sent():
    ledger = Ledger(max_usd=2.5e-5)
    answered(ledger)
    answered(ledger)
    assert refused(ledger) == "the budget of 2.5e-05 USD is spent"
    assert ledger.usage()["task"].usd <= 2.5e-5


def test_nothing_is_sent_on_no_money_but_free_calls_go_on():
    assert refused(Ledger(max_usd=0.0)) == "the budget of 0 USD is spent"
    ledger = Ledger(max_usd=2e-5)
    answered(ledger)
    answered(ledger, "local", price=(0.0, 0.0))
    answered(ledger)
    assert refused(ledger)
    answered(ledger, "local", price=(0.0, 0.0))


def test_a_call_that_would_end_too_late_is_not_sent():
    clock = Clock()
    ledger = Ledger(max_minutes=2, clock=clock)
    ledger.reserve("task")
    clock.seconds = 30.0
    ledger.settle("task", TEN_TOKENS, None, 30.0)
    clock.seconds = 90.0
    ledger.reserve("task")
    clock.seconds = 91.0
    assert refused(ledger) == "the budget of 2 minutes is spent"


def test_minutes_end_also_when_nothing_was_answered():
    clock = Clock()
    ledger = Ledger(max_minutes=2, clock=clock)
    clock.seconds = 119.0
    ledger.reserve("task")
    clock.seconds = 120.0
    assert refused(ledger) == "the budget of 2 minutes is spent"


def test_a_refusal_is_no_stop(ledger):
    ledger = Ledger(max_calls=1)
    ledger.reserve("task")
    refused(ledger)
    assert ledger.stopped is None
    ledger.check()


# --- what is held back -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "name"),
    [
        ({"max_calls": 10}, "10 calls"),
        ({"max_usd": 1e-4}, "0.0001 USD"),
        ({"max_tokens": 100}, "100 tokens"),
        ({"max_minutes": 1.0}, "1 minutes"),
    ],
)
def test_what_is_held_back_is_there_when_it_is_released(limit, name):
    clock = Clock()
    ledger = Ledger(**limit, clock=clock)

    def one():
        ledger.reserve("task")
        clock.seconds += 6.0
        ledger.settle("task", TEN_TOKENS, (1.0, 1.0), 6.0)

    for _ in range(2):
        one()
    ledger.hold_back(4)
    for _ in range(4):
        one()
    assert refused(ledger) == f"the budget of {name} is spent, but for the 4 calls of the last measurement"
    ledger.release()
    for _ in range(4):
        one()
    assert refused(ledger) == f"the budget of {name} is spent"


def test_the_last_measurement_is_held_back_at_the_price_of_the_longest_prompts_so_far():
    ledger = Ledger(max_tokens=400)
    for _ in range(10):
        answered(ledger, "task")  # 10 tokens each, as short as the untuned prompt
    ledger.hold_back(4)
    for _ in range(5):
        answered(ledger, "task", lm15.Usage(input_tokens=15, output_tokens=15))  # a candidate with demonstrations
    # 250 spent and 4 times 30 held back leave room for one more
    answered(ledger, "task", lm15.Usage(input_tokens=15, output_tokens=15))
    assert refused(ledger, "task"), "280 spent and 120 held back are the 400"
    ledger.release()
    for _ in range(4):
        answered(ledger, "task", lm15.Usage(input_tokens=15, output_tokens=15))


def test_what_is_held_back_is_of_one_role():
    ledger = Ledger(max_usd=10 * 1e-5)
    answered(ledger, "task")
    ledger.hold_back(4)
    dear = lm15.Usage(input_tokens=20, output_tokens=10)
    answered(ledger, "teacher", dear)
    ledger.reserve("task")  # 1 + 3 spent, 4 held back
    ledger.reserve("task")
    assert refused(ledger, "task")
    assert refused(ledger, "teacher")


# --- the stop --------------------------------------------------------------------------------------------------


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
