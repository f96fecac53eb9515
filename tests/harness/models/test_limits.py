import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models.limits import EndpointLimits


def _limits(concurrency, time, *, answered=True, **more):
    limits = EndpointLimits(concurrency, clock=time.clock, wait=time.wait, **more)
    if answered:
        _send(limits)
    return limits


def _send(limits):
    with limits.slot() as slot:
        slot.answered()


def _refuse(limits, retry_after=None):
    with limits.slot() as slot:
        slot.refused(retry_after)


def _in_threads(number, work):
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _most_at_once(limits, at_once, threads=8):
    """How many of the threads were in a slot together, when each waits for `at_once` of them."""
    inside, most, lock = [0], [0], threading.Lock()
    together = threading.Barrier(at_once)

    def work():
        with limits.slot() as slot:
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            together.wait(10)
            with lock:
                inside[0] -= 1
            slot.answered()

    _in_threads(threads, work)
    return most[0]


def test_no_more_than_the_slots_at_once(time):
    assert _most_at_once(_limits(2, time), 2) == 2


def test_until_the_first_answer_one_goes_alone(time):
    limits = _limits(8, time, answered=False)
    assert (limits.at_once, limits.has_answered) == (1, False)
    with pytest.raises(ValueError, match="nothing there"), limits.slot():
        raise ValueError("nothing there")
    assert limits.at_once == 1

    _send(limits)
    assert (limits.at_once, limits.has_answered) == (8, True)


def test_the_first_request_keeps_its_place_over_all_its_attempts(time):
    limits = _limits(8, time, answered=False)
    order, lock = [], threading.Lock()
    first_is_in = threading.Event()

    def work(name):
        if name == "other":
            first_is_in.wait(10)
        with limits.whole_request():
            for attempt in range(3):
                with limits.slot() as slot:
                    first_is_in.set()
                    with lock:
                        order.append(name)
                    if name == "first" and attempt < 2:
                        continue
                    slot.answered()
                break

    others = [threading.Thread(target=work, args=("other",)) for _ in range(4)]
    for thread in others:
        thread.start()
    work("first")
    for thread in others:
        thread.join()

    assert order == ["first"] * 3 + ["other"] * 4


def test_waiting_for_the_first_request_or_for_a_slot_ends_with_the_run(time):
    class Stopped(Exception):
        pass

    def stop():
        raise Stopped

    limits = _limits(8, time, answered=False)
    with limits.whole_request(), limits.slot():
        caught = []

        def work():
            for wait in (limits.whole_request, lambda waiting: limits.slot(waiting=waiting)):
                with pytest.raises(Stopped), wait(waiting=stop):
                    pass
                caught.append(wait)

        _in_threads(1, work)
    assert len(caught) == 2


def test_a_refusal_pauses_everybody_as_long_as_the_server_says(time):
    limits = _limits(8, time)
    _refuse(limits, 7.0)
    _send(limits)
    _send(limits)

    assert time.waits == [7.0]
    assert time.now == 7.0


def test_refusals_without_a_hint_wait_longer_and_longer_and_an_answer_ends_that(time):
    limits = _limits(8, time)
    for _ in range(8):
        _refuse(limits)
    _send(limits)
    _refuse(limits)
    _send(limits)

    assert time.waits == [1, 2, 4, 8, 16, 32, 60, 60, 1]


def test_a_pause_without_end_is_cut(time):
    limits = _limits(8, time)
    _refuse(limits, 86_400.0)
    _send(limits)

    assert time.waits == [60.0]


def test_a_wait_that_comes_back_early_is_not_repeated(time):
    limits = _limits(8, time)
    _refuse(limits, 5.0)
    waited = []
    with limits.slot(wait=waited.append):
        pass

    assert waited == [5.0]


def test_a_refusal_halves_and_answers_grow_back_one_by_one(time):
    limits = _limits(8, time)
    seen = []
    for _ in range(4):
        _refuse(limits, 0.0)
        seen.append(limits.at_once)
    assert seen == [4, 2, 1, 1]

    for _ in range(40):
        _send(limits)
        seen.append(limits.at_once)
    grown = [at_once for at_once, _ in itertools.groupby(seen[4:])]
    assert grown == [2, 3, 4, 5, 6, 7, 8]
    assert seen[4:].count(3) == 3, "as many answers as at once make it one more"


def test_of_requests_sent_together_the_first_refusal_halves(time):
    limits = _limits(8, time)
    with limits.slot() as one, limits.slot() as two, limits.slot() as three:
        one.refused(1.0)
        two.refused(3.0)
        three.refused(2.0)
    assert limits.at_once == 4

    _send(limits)
    assert time.now == 3.0
    assert _most_at_once(limits, 4) == 4


def test_a_slot_is_given_back_after_an_error(time):
    limits = _limits(1, time)
    for _ in range(2):
        with pytest.raises(ValueError, match="x"), limits.slot():
            raise ValueError("x")

    assert _most_at_once(limits, 1) == 1


@given(st.floats(0.01, 20_000), st.lists(st.floats(0, 5), min_size=2, max_size=12))
def test_starts_are_at_least_the_pace_apart(per_minute, pauses):
    now = [0.0]

    def wait(seconds):
        now[0] += seconds

    limits = EndpointLimits(1, per_minute, clock=lambda: now[0], wait=wait)
    starts = []
    for pause in pauses:
        now[0] += pause
        with limits.slot():
            starts.append(now[0])

    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert min(gaps) >= 60 / per_minute - 1e-6
    assert now[0] - sum(pauses) <= len(pauses) * (60 / per_minute + 0.003)


def test_threads_share_a_pace_and_leave_nothing_behind(time):
    limits = _limits(8, time, requests_per_minute=60)
    waited = []
    before = threading.active_count()

    def work():
        with limits.slot(wait=waited.append):
            pass

    _in_threads(8, work)

    assert sorted(waited) == [pytest.approx(n) for n in range(1, 9)]
    assert threading.active_count() == before


def test_without_a_pace_nothing_waits(time):
    limits = _limits(1, time)
    for _ in range(3):
        _send(limits)

    assert time.waits == []
