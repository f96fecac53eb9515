import signal
import threading

import pytest

from harness.signals import Terminated, sigterm_as_interrupt


def test_sigterm_is_an_interrupt_inside_and_what_it_was_outside():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt, match="terminated by SIGTERM") as caught, sigterm_as_interrupt():
        signal.raise_signal(signal.SIGTERM)
    assert isinstance(caught.value, Terminated)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_second_one_leaves_the_cleaning_up_alone():
    cleaned = []

    def work():
        with sigterm_as_interrupt():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGTERM)
                cleaned.append(True)

    with pytest.raises(Terminated):
        work()
    assert cleaned


def test_another_thread_changes_nothing():
    seen = []

    def work():
        with sigterm_as_interrupt():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
