"""Progress: few lines whatever the run, nothing hidden, and no sink can stop a run."""

import io
import logging
import threading
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.progress import (
    PlainProgress,
    RichProgress,
    SilentProgress,
    choose_progress,
    guarded,
    usage_text,
)


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


class Terminal(io.StringIO):
    def isatty(self):
        return True


def spent(calls, cached=0, usd=None, **failures):
    return SimpleNamespace(calls=calls, cached=cached, usd=usd, failures=failures)


def plain(usage=None):
    clock, stream = Clock(), io.StringIO()
    return PlainProgress(usage, stream, clock), clock, stream


def lines_of(stream):
    return stream.getvalue().splitlines()


# --- plain lines -----------------------------------------------------------------------------------------------


def test_a_phase_says_when_it_starts_and_how_it_ended():
    progress, clock, stream = plain()
    with progress.phase("baseline on test", 8) as phase:
        phase.advance(8)
        clock.seconds = 7.2
    assert lines_of(stream) == ["baseline on test: start, 8 to do", "baseline on test: done, 8/8 in 7 s"]


def test_a_phase_of_unknown_length_counts_up():
    progress, clock, stream = plain()
    with progress.phase("compile", None) as phase:
        clock.seconds = 11
        phase.advance(3, "candidate 2")
    assert lines_of(stream) == ["compile: start", "compile: 3 candidate 2", "compile: done, 3 in 11 s"]


def test_a_quarter_is_said_and_so_are_ten_seconds_and_nothing_between():
    progress, clock, stream = plain()
    with progress.phase("x", 100) as phase:
        clock.seconds = 3
        phase.advance(10)  # too little of either
        phase.advance(20)  # a quarter
        clock.seconds = 12
        phase.advance(1)  # nine seconds later
        clock.seconds = 13
        phase.advance(1)  # ten seconds later
    assert lines_of(stream)[1:-1] == ["x: 30/100", "x: 32/100"]


def test_a_replay_that_takes_no_time_prints_no_quarters():
    progress, _, stream = plain()
    with progress.phase("x", 100) as phase:
        for _ in range(100):
            phase.advance()
    assert len(lines_of(stream)) == 2


def test_a_stopped_phase_says_so_and_lets_the_exception_through():
    progress, _, stream = plain()

    def work():
        with progress.phase("x", 4) as phase:
            phase.advance()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert lines_of(stream)[-1] == "x: stopped, 1/4 in 0 s"


def test_lines_carry_calls_and_cost():
    progress, _, stream = plain()
    with progress.phase("x", 4):
        progress.watch(lambda: {"task": spent(12, 3, 0.5)})
    assert lines_of(stream) == ["x: start, 4 to do", "x: done, 0/4 in 0 s | 12 calls, 3 from the store, $0.50"]


def test_one_hundred_candidates_stay_under_two_hundred_lines():
    progress, clock, stream = plain()
    for candidate in range(100):
        with progress.phase(f"candidate {candidate}", 24) as phase:
            for _ in range(24):
                clock.seconds += 1
                phase.advance()
    assert 40 < len(lines_of(stream)) < 200


@settings(max_examples=40, deadline=None)
@given(
    phases=st.integers(1, 120),
    units=st.integers(0, 60),
    seconds=st.floats(0, 5000),
)
def test_any_run_prints_fewer_than_two_hundred_lines(phases, units, seconds):
    progress, clock, stream = plain()
    for number in range(phases):
        with progress.phase(str(number), units) as phase:
            for _ in range(units):
                clock.seconds += seconds
                phase.advance()
    assert 1 <= len(lines_of(stream)) < 200


def test_advance_is_counted_from_many_threads():
    progress, _, stream = plain()
    with progress.phase("x", 4000) as phase:
        threads = [threading.Thread(target=lambda: [phase.advance() for _ in range(500)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert lines_of(stream)[-1].startswith("x: done, 4000/4000")


# --- calls and cost --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        ({}, ""),
        ({"task": spent(0)}, ""),
        ({"task": spent(1, 0, 0.0)}, "1 call"),
        ({"task": spent(1, 0, 0.00002)}, "1 call, $0.000020"),
        (
            {"task": spent(3, 0, 0.5, rate_limit=2), "judge": spent(4, 0, 0.25, rate_limit=1, cut=1)},
            "7 calls, $0.75, 3 rate_limit, 1 cut",
        ),
        ({"task": spent(2, 5, 0.25), "judge": spent(1, 0, 0.5)}, "3 calls, 5 from the store, $0.75"),
        ({"task": spent(2)}, "2 calls, price unknown"),
        ({"task": spent(2), "judge": spent(1, 0, 0.5)}, "3 calls, $0.50 and calls of unknown price"),
        ({"task": spent(0, 7)}, "0 calls, 7 from the store"),
        ({"task": spent(4, 0, 0.1), "teacher": spent(0, 0, None)}, "4 calls, $0.10"),
    ],
)
def test_usage_is_summed_and_an_unknown_price_is_not_zero(usage, text):
    assert usage_text(lambda: usage) == text


def test_nothing_is_said_when_nothing_is_watched():
    assert usage_text(None) == ""


# --- the bar ---------------------------------------------------------------------------------------------------


def test_a_bar_shows_name_count_note_and_cost():
    stream = Terminal()
    progress = RichProgress(lambda: {"task": spent(12, 0, 0.5)}, stream)
    with progress.phase("baseline [on] test", 8) as phase:
        phase.advance(3, "example 7")
        progress._bars.refresh()
    drawn = stream.getvalue()
    assert "baseline [on] test" in drawn
    assert "3/8" in drawn
    assert "12 calls, $0.50" in drawn
    assert "example 7" in drawn


def test_an_inner_phase_leaves_only_the_outer_bar():
    stream = Terminal()
    progress = RichProgress(None, stream)
    with progress.phase("compile", None) as outer:
        with progress.phase("candidate 1", 2) as inner:
            inner.advance(2)
        outer.advance()
        assert [task.description for task in progress._bars.tasks] == ["compile"]
    assert progress._bars.tasks == []
    with progress.phase("tuned", 1) as phase:  # and it can start again
        phase.advance()
    assert "tuned" in stream.getvalue()


def test_a_failing_usage_is_logged_once_and_the_bar_goes_on(caplog):
    stream = Terminal()
    progress = RichProgress(None, stream)
    progress.watch(lambda: {"task": 1 / 0})
    with caplog.at_level(logging.WARNING), progress.phase("x", 3) as phase:
        for _ in range(3):
            phase.advance()
            progress._bars.refresh()
    assert "3/3" in stream.getvalue()
    assert [record.message for record in caplog.records] == ["calls and cost cannot be shown"]


def test_an_advance_before_the_start_draws_nothing():
    progress = RichProgress(None, Terminal())
    phase = progress.phase("x", 3)
    phase.advance()
    phase.__exit__(None, None, None)
    assert progress._bars.tasks == []


# --- which sink ------------------------------------------------------------------------------------------------


def test_a_terminal_gets_a_bar_and_a_pipe_gets_lines():
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        with choose_progress(None, stream).phase("x", 1) as phase:
            phase.advance()
    assert "━" in terminal.getvalue()
    assert lines_of(pipe)[0] == "x: start, 1 to do"


def test_progress_goes_to_stderr_by_default(capsys):
    with choose_progress().phase("x", 1):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("x: start")


def test_silence_is_silent(capsys):
    progress = SilentProgress()
    progress.watch(lambda: {"task": 1 / 0})
    with progress.phase("x", 3) as phase:
        phase.advance(2, "note")
    assert capsys.readouterr() == ("", "")


# --- a sink cannot stop a run ----------------------------------------------------------------------------------


class Sink:
    """Raises where it is told to, and remembers what it was asked."""

    def __init__(self, *broken):
        self.broken, self.asked = broken, []

    def act(self, name):
        self.asked.append(name)
        if name in self.broken:
            raise OSError(f"{name} is broken")

    def watch(self, usage):
        self.act("watch")

    def phase(self, name, total) -> AbstractContextManager:
        self.act("phase")
        return self

    def __enter__(self):
        self.act("enter")
        return self

    def advance(self, n=1, note=""):
        self.act("advance")

    def __exit__(self, *_):
        self.act("exit")
        return True  # a sink that would swallow exceptions


@pytest.mark.parametrize("where", ["watch", "phase", "enter", "advance", "exit"])
def test_a_raising_sink_is_logged_once_and_the_work_goes_on(where, caplog):
    done = 0
    progress = guarded(Sink(where))
    with caplog.at_level(logging.WARNING):
        progress.watch(dict)
        for _ in range(3):
            with progress.phase("x", 5) as phase:
                for _ in range(5):
                    phase.advance()
                    done += 1
    assert done == 15
    assert len(caplog.records) == 1
    assert f"{where} is broken" in str(caplog.records[0].exc_info)


def test_a_broken_sink_is_asked_only_to_close_what_it_opened():
    sink = Sink("advance")
    with guarded(sink).phase("x", 5) as phase:
        phase.advance()
        phase.advance()
    assert sink.asked == ["phase", "enter", "advance", "exit"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_what_stops_the_work_always_gets_through(error):
    with pytest.raises(error), guarded(Sink()).phase("x", 5):
        raise error


def test_an_interrupt_inside_the_sink_gets_through():
    class Interrupted(Sink):
        def advance(self, n=1, note=""):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), guarded(Interrupted()).phase("x", 5) as phase:
        phase.advance()


def test_guarding_twice_is_guarding_once():
    progress = guarded(SilentProgress())
    assert guarded(progress) is progress


def test_a_generator_based_sink_works_too():
    seen = []

    class Generated:
        def watch(self, usage): ...

        @contextmanager
        def phase(self, name, total):
            seen.append(name)
            yield SimpleNamespace(advance=lambda n, note: seen.append(n))

    with guarded(Generated()).phase("x", 2) as phase:
        phase.advance()
    assert seen == ["x", 1]
