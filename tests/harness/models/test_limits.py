import itertools
import threading

from hypothesis import given
from hypothesis import strategies as st

from harness.models.limits import EndpointLimits


def test_no_more_than_the_slots_at_once():
    limits = EndpointLimits(2)
    inside, most, lock = [0], [0], threading.Lock()
    both = threading.Barrier(2)

    def work():
        with limits.slot():
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            both.wait(10)
            with lock:
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most[0] == 2


def test_a_slot_is_given_back_after_an_error():
    limits = EndpointLimits(1)
    for _ in range(2):
        try:
            with limits.slot():
                raise ValueError
        except ValueError:
            pass

    with limits.slot():
        assert True


@given(st.floats(1, 6000), st.lists(st.floats(0, 5), min_size=2, max_size=12))
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


def test_without_a_pace_nothing_waits():
    waited = []
    limits = EndpointLimits(1, wait=waited.append)
    for _ in range(3):
        with limits.slot():
            pass

    assert waited == []
