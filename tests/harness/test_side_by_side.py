"""Who works beside whom, told by events and not by the clock; and what is left when something ends the loop."""

import contextvars
import threading
from contextlib import closing

import pytest

from harness.errors import RunStopped, StopReason
from harness.models.calls import note_sending
from harness.side_by_side import side_by_side

NEVER = 60.0


def _in_order(pairs):
    return [result for _, result in sorted(pairs)]


def _until(error, pairs):
    """What came before the error that ends the loop."""
    got = []

    def take():
        got.extend(result for _, result in pairs)

    with pytest.raises(type(error)) as caught:
        take()
    assert caught.value.args == error.args
    return got


def test_what_sends_nothing_is_done_by_one_thread():
    def work(number):
        return number, threading.get_ident()

    results = list(side_by_side(work, range(200), threads=8, patience=NEVER))

    assert [(index, number) for index, (number, _) in results] == [(number, number) for number in range(200)]
    assert len({thread for _, (_, thread) in results}) == 1


def test_from_the_first_request_on_the_rest_is_done_side_by_side():
    together = threading.Barrier(8)

    def work(number):
        if number >= 5:
            note_sending()
            together.wait(timeout=NEVER)
        return number

    assert _in_order(side_by_side(work, range(5 + 16), threads=8, patience=NEVER)) == list(range(21))


def test_a_request_sent_by_a_thread_of_the_works_own_counts():
    together = threading.Barrier(2)

    def work(number):
        thread = threading.Thread(target=contextvars.copy_context().run, args=(note_sending,))
        thread.start()
        together.wait(timeout=NEVER)
        thread.join()
        return number

    assert _in_order(side_by_side(work, range(4), threads=2, patience=NEVER)) == [0, 1, 2, 3]


def test_slow_work_that_sends_nothing_is_done_side_by_side_too():
    together = threading.Barrier(3)

    def work(number):
        together.wait(timeout=NEVER)
        return number

    assert _in_order(side_by_side(work, range(3), threads=3)) == [0, 1, 2]


def test_never_more_threads_than_were_asked_for():
    lock, inside, most = threading.Lock(), 0, 0

    def work(_):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        note_sending()
        with lock:
            inside -= 1

    list(side_by_side(work, range(500), threads=3))
    assert 1 <= most <= 3


def test_one_thread_is_the_callers():
    def work(_):
        note_sending()
        return threading.current_thread()

    assert {thread for _, thread in side_by_side(work, range(5), threads=1)} == {threading.current_thread()}


@pytest.mark.parametrize("threads", [1, 8])
def test_nothing_to_do(threads):
    assert list(side_by_side(str, [], threads=threads)) == []


@pytest.mark.parametrize("threads", [1, 4])
def test_every_item_gets_the_callers_context_and_not_another_items(threads):
    mark = contextvars.ContextVar("mark", default="callers")

    def work(number):
        seen = mark.get()
        mark.set(f"of {number}")
        note_sending()
        return seen

    assert _in_order(side_by_side(work, range(30), threads=threads)) == ["callers"] * 30
    assert mark.get() == "callers"


def test_the_threads_do_not_run_far_ahead_of_the_caller():
    begun = []

    def work(number):
        begun.append(number)
        note_sending()
        return number

    for taken, _ in enumerate(side_by_side(work, range(300), threads=3), start=1):
        # The one that is taken, three that wait to be, three in hand; the first thread may have begun another alone.
        assert len(begun) <= taken + 7


@pytest.mark.parametrize("failing", [0, 3])
def test_an_error_stops_what_is_in_flight_and_drops_what_is_queued(failing):
    begun, stops, stopped = [], [], threading.Event()

    def work(number):
        begun.append(number)
        note_sending()
        if number == failing:
            raise RunStopped(StopReason.METRIC, "broken")
        assert stopped.wait(NEVER)

    def stop(reason):
        stops.append(reason)
        stopped.set()

    _until(RunStopped(StopReason.METRIC, "broken"), side_by_side(work, range(1000), threads=4, stop=stop))

    assert [stop.reason for stop in stops] == [StopReason.METRIC]
    assert len(begun) <= 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("example")]


def test_an_error_in_the_callers_thread():
    stops = []

    def work(number):
        return 2 // (2 - number)

    assert _until(
        ZeroDivisionError("integer division or modulo by zero"),
        side_by_side(work, range(9), threads=1, stop=stops.append),
    ) == [1, 2]
    assert [stop.reason for stop in stops] == [StopReason.INTERRUPT]


@pytest.mark.parametrize("spender", [0, 3])
def test_a_spent_budget_gives_what_ended_well_and_stops_nothing(spender):
    stops, together = [], threading.Barrier(4)

    def work(number):
        note_sending()
        together.wait(timeout=NEVER)
        if number == spender:
            raise RunStopped(StopReason.BUDGET, "spent")
        return number

    got = _until(RunStopped(StopReason.BUDGET, "spent"), side_by_side(work, range(4), threads=4, stop=stops.append))
    assert sorted(got) == [number for number in range(4) if number != spender]
    assert stops == []


def test_without_a_stop_what_is_in_flight_is_waited_for_and_given():
    together = threading.Barrier(3)

    def work(number):
        note_sending()
        together.wait(timeout=NEVER)
        if number == 0:
            raise KeyboardInterrupt
        return number

    assert sorted(_until(KeyboardInterrupt(), side_by_side(work, range(3), threads=3))) == [1, 2]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_caller_who_looks_away_stops_what_is_in_flight(threads):
    begun, stops, stopped = [], [], threading.Event()

    def work(number):
        begun.append(number)
        if number and threads > 1:
            note_sending()
            assert stopped.wait(NEVER)
        return number

    def stop(reason):
        stops.append(reason)
        stopped.set()

    with closing(side_by_side(work, range(1000), threads=threads, stop=stop)) as results:
        assert next(results) == (0, 0)
    assert [stop.reason for stop in stops] == [StopReason.INTERRUPT]
    assert len(begun) <= threads + 1
