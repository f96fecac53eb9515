import threading
from contextlib import contextmanager

import pytest

from harness.models.store.flight import SingleFlight


def _in_threads(count: int, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


class Waiting:
    """A call that starts only when the other callers are waiting for it."""

    def __init__(self, flights: SingleFlight, error: BaseException | None = None):
        self.flights, self.error = flights, error
        self.started, self.go, self.times = threading.Event(), threading.Event(), 0

    def __call__(self):
        self.times += 1
        self.started.set()
        assert self.go.wait(10)
        if self.error and self.times == 1:
            raise self.error
        return self.times


def test_callers_of_one_key_share_one_result():
    flights: SingleFlight[int] = SingleFlight()
    call = Waiting(flights)
    results = []
    threads = _in_threads(8, lambda: results.append(flights.do("k", call)))
    assert call.started.wait(10)
    call.go.set()
    for thread in threads:
        thread.join()

    # Threads that came after landing lead a call of their own: the store answers those.
    assert sum(led for _, led in results) == call.times
    assert len(results) == 8


def test_keys_do_not_wait_for_each_other():
    flights: SingleFlight[str] = SingleFlight()

    assert flights.do("a", lambda: flights.do("b", lambda: "inner")[0]) == ("inner", True)


def test_an_error_reaches_the_callers_that_wait():
    flights: SingleFlight[int] = SingleFlight()
    call = Waiting(flights, ValueError("no"))
    caught = []

    def work():
        try:
            flights.do("k", call)
        except ValueError as error:
            caught.append(str(error))

    leader = _in_threads(1, work)
    assert call.started.wait(10)
    followers = _in_threads(3, work)
    while sum(thread.is_alive() for thread in followers) < 3:
        pass
    call.go.set()
    for thread in leader + followers:
        thread.join()

    assert caught[0] == "no"
    assert set(caught) == {"no"}
    assert flights.do("k", lambda: 5) == (5, True), "the next caller starts anew"


def test_an_interrupted_leader_hands_over():
    flights: SingleFlight[int] = SingleFlight()
    call = Waiting(flights, KeyboardInterrupt())
    results, interrupted = [], []

    def lead():
        try:
            flights.do("k", call)
        except KeyboardInterrupt:
            interrupted.append(True)

    leader = _in_threads(1, lead)
    assert call.started.wait(10)
    follower = _in_threads(1, lambda: results.append(flights.do("k", call)))
    call.go.set()
    for thread in leader + follower:
        thread.join()

    assert interrupted == [True]
    assert results == [(2, True)]


def test_nothing_is_left_behind_after_an_error():
    flights: SingleFlight[int] = SingleFlight()
    with pytest.raises(ZeroDivisionError):
        flights.do("k", lambda: 1 // 0)

    assert flights.do("k", lambda: 1) == (1, True)


class Stopped(BaseException):
    """As a stopped run raises it: no Exception."""


def test_a_waiting_caller_may_give_up_and_the_others_go_on():
    flights: SingleFlight[int] = SingleFlight(every=0.001)
    call = Waiting(flights)
    results = []
    leader = _in_threads(1, lambda: results.append(flights.do("k", call)))
    assert call.started.wait(10)

    def give_up():
        raise Stopped

    with pytest.raises(Stopped):
        flights.do("k", call, waiting=give_up)
    call.go.set()
    for thread in leader:
        thread.join()

    assert results == [(1, True)]


def test_a_leader_that_is_stopped_does_not_stop_the_callers_that_wait():
    flights: SingleFlight[int] = SingleFlight(every=0.001)
    call = Waiting(flights, Stopped())
    waited, results = threading.Event(), []

    def lead():
        with pytest.raises(Stopped):
            flights.do("k", call)

    threads = _in_threads(1, lead)
    assert call.started.wait(10)
    threads += _in_threads(1, lambda: results.append(flights.do("k", call, waiting=waited.set)))
    assert waited.wait(10)
    call.go.set()
    for thread in threads:
        thread.join()

    assert results == [(2, True)]


def test_a_leader_whose_guard_cannot_be_entered_hands_over():
    flights: SingleFlight[int] = SingleFlight(every=0.001)
    entered, go, waited, results = threading.Event(), threading.Event(), threading.Event(), []

    @contextmanager
    def broken():
        entered.set()
        assert go.wait(10)
        raise OSError("no lock")
        yield

    def lead():
        with pytest.raises(OSError, match="no lock"):
            flights.do("k", lambda: 1, guard=broken)

    threads = _in_threads(1, lead)
    assert entered.wait(10)
    threads += _in_threads(1, lambda: results.append(flights.do("k", lambda: 2, waiting=waited.set)))
    assert waited.wait(10)
    go.set()
    for thread in threads:
        thread.join()

    assert results == [(2, True)]


def test_only_the_leader_enters_its_guard():
    flights: SingleFlight[int] = SingleFlight()
    steps = []

    @contextmanager
    def guard():
        steps.append("in")
        yield
        steps.append("out")

    assert flights.do("k", lambda: len(steps), guard=guard) == (1, True)
    assert steps == ["in", "out"]
