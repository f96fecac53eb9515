"""What a person sees while a run works: a bar on a terminal, a few lines in a log, nothing at all.

A run announces its phases and advances them; what is made of that is the sink's business. Whatever a sink does,
it cannot stop a run: `guarded` logs the first exception of a sink and goes on.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TextIO

from harness.costs import dollars, fault_words

if TYPE_CHECKING:
    from rich.progress import TaskID

    from harness.results import RoleUsage

_LOG = logging.getLogger(__name__)

Usage = Callable[[], "Mapping[str, RoleUsage]"]
"""What every role has spent so far; asked whenever something is shown."""


class Phase(Protocol):
    """One stretch of work that is being counted."""

    def advance(self, n: int = 1, note: str = "") -> None:
        """`n` more units are done; `note` says in a few words what the last one was. Safe from any thread."""
        ...


class Progress(Protocol):
    """A sink for progress. `phase` is called in the order of the work; phases may be nested."""

    def phase(self, name: str, total: int | None) -> AbstractContextManager[Phase]:
        """Start a phase of `total` units (None: not known beforehand); leaving the context ends it."""
        ...

    def watch(self, usage: Usage) -> None:
        """Show calls and cost from `usage` from now on."""
        ...


def choose_progress(usage: Usage | None = None, stream: TextIO | None = None) -> Progress:
    """A guarded sink for this terminal: a bar when `stream` (stderr by default) is one, else plain lines."""
    target = sys.stderr if stream is None else stream
    return guarded(RichProgress(usage, target) if target.isatty() else PlainProgress(usage, target))


def usage_text(usage: Usage | None) -> str:
    """Calls, cost and faults of all roles together; empty before the first call and when nothing is watched.

    A price that is not known is said, never counted as zero; before the first answer, and where models cost nothing,
    no amount is shown.
    """
    spent = list(usage().values()) if usage is not None else []
    calls, cached = sum(role.calls for role in spent), sum(role.cached for role in spent)
    if not calls and not cached:
        return ""
    parts = [f"{calls} call" + ("" if calls == 1 else "s")]
    if cached:
        parts.append(f"{cached} from the store")
    prices = [role.usd for role in spent if role.calls]
    known = sum(price for price in prices if price is not None)
    if None in prices:
        parts.append(f"{dollars(known)} and calls of unknown price" if known else "price unknown")
    elif known:
        parts.append(dollars(known))
    faults = sum((Counter(role.failures) for role in spent), Counter[str]())
    if faults:
        parts.append(fault_words(faults))
    return ", ".join(parts)


class SilentProgress:
    """Shows nothing."""

    def phase(self, name: str, total: int | None) -> AbstractContextManager[Phase]:
        """Count nothing."""
        return _Silence()

    def watch(self, usage: Usage) -> None:
        """Watch nothing."""


class _Silence:
    def __enter__(self) -> Phase:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        return None

    def advance(self, n: int = 1, note: str = "") -> None:
        return None


class PlainProgress:
    """Lines for a log: a phase's start, a quarter more done or ten seconds gone, its end.

    However long the run and however many phases, fewer than 200 lines: after the first 40, every line must be a gap
    away from the one before, and the gap doubles every 12 lines.
    """

    FREE_LINES = 40
    MOST_LINES = 199
    FIRST_GAP = 10.0
    QUARTER_GAP = 2.0

    def __init__(
        self,
        usage: Usage | None = None,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._usage = usage
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._lock = threading.Lock()
        self._lines = 0
        self._last = clock()

    def phase(self, name: str, total: int | None) -> AbstractContextManager[Phase]:
        """A phase written as lines."""
        return _PlainPhase(self, name, total)

    def watch(self, usage: Usage) -> None:
        """Add calls and cost to every line."""
        self._usage = usage

    def write(self, text: str, *, gap: float = 0.0) -> bool:
        """Write one line when it is due, `gap` seconds after the last one; says whether it was written."""
        with self._lock:
            now = self._clock()
            if now - self._last < max(gap, self._crowded_gap()) or self._lines >= self.MOST_LINES:
                return False
            self._lines += 1
            self._last = now
            spent = usage_text(self._usage)
            print(f"{text} | {spent}" if spent else text, file=self._stream, flush=True)
            return True

    def now(self) -> float:
        """Seconds on this sink's clock."""
        return self._clock()

    def _crowded_gap(self) -> float:
        beyond = self._lines - self.FREE_LINES
        return 0.0 if beyond < 0 else self.FIRST_GAP * 2 ** (beyond // 12)


class _PlainPhase:
    def __init__(self, sink: PlainProgress, name: str, total: int | None) -> None:
        self._sink, self._name, self._total = sink, name, total
        self._done, self._shown = 0, 0
        self._lock = threading.Lock()
        self._started = 0.0

    def __enter__(self) -> Phase:
        self._started = self._sink.now()
        self._sink.write(f"{self._name}: start" + (f", {self._total} to do" if self._total else ""))
        return self

    def advance(self, n: int = 1, note: str = "") -> None:
        with self._lock:
            self._done += n
            quarter = self._total is not None and (self._done - self._shown) * 4 >= self._total
            if self._done == self._total:
                return  # the end of the phase says it
            gap = self._sink.QUARTER_GAP if quarter else self._sink.FIRST_GAP
            if self._sink.write(f"{self._name}: {self._count()}" + (f" {note}" if note else ""), gap=gap):
                self._shown = self._done

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        seconds = self._sink.now() - self._started
        ending = "done" if kind is None else "stopped"
        self._sink.write(f"{self._name}: {ending}, {self._count()} in {seconds:.0f} s")

    def _count(self) -> str:
        return f"{self._done}/{self._total}" if self._total is not None else f"{self._done}"


class RichProgress:
    """A bar per phase on a terminal: done / total, elapsed, left, calls and cost; inner phases vanish when done."""

    def __init__(self, usage: Usage | None = None, stream: TextIO | None = None) -> None:
        from rich import progress as bars
        from rich.console import Console
        from rich.text import Text

        sink = self

        class SpentColumn(bars.ProgressColumn):
            max_refresh = 0.5

            def render(self, task: bars.Task) -> Text:
                return Text(sink._spent(), style="dim")

        self._usage = usage
        self._depth = 0
        self._bars = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(bar_width=24),
            bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(),
            bars.TimeRemainingColumn(),
            SpentColumn(),
            bars.TextColumn("{task.fields[note]}", style="dim", markup=False),
            console=Console(file=sys.stderr if stream is None else stream),
        )

    def phase(self, name: str, total: int | None) -> AbstractContextManager[Phase]:
        """A phase drawn as a bar."""
        return _RichPhase(self, name, total)

    def watch(self, usage: Usage) -> None:
        """Show calls and cost beside the bars."""
        self._usage = usage

    def open(self, name: str, total: int | None) -> TaskID:
        """Draw a bar; the first one starts the display."""
        if self._depth == 0:
            self._bars.start()
        self._depth += 1
        return self._bars.add_task(name, total=total, note="")

    def advance(self, task: TaskID, n: int, note: str) -> None:
        """Move a bar on."""
        self._bars.update(task, advance=n, note=note)

    def close(self, task: TaskID) -> None:
        """End a bar; the outermost one ends the display and stays on the screen."""
        self._depth -= 1
        if self._depth:
            self._bars.remove_task(task)
            return
        self._bars.update(task, note="")
        self._bars.stop()
        self._bars.remove_task(task)

    def _spent(self) -> str:
        try:
            return usage_text(self._usage)
        except Exception:  # noqa: BLE001  # drawn from rich's own thread, where nobody else could catch it
            _LOG.warning("calls and cost cannot be shown", exc_info=True)
            self._usage = None
            return ""


class _RichPhase:
    def __init__(self, sink: RichProgress, name: str, total: int | None) -> None:
        self._sink, self._name, self._total = sink, name, total
        self._task: TaskID | None = None

    def __enter__(self) -> Phase:
        self._task = self._sink.open(self._name, self._total)
        return self

    def advance(self, n: int = 1, note: str = "") -> None:
        if self._task is not None:
            self._sink.advance(self._task, n, note)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._task is not None:
            self._sink.close(self._task)


def guarded(sink: Progress) -> Progress:
    """`sink`, unable to stop or distort a run: its first exception is logged, it is not asked again after that."""
    return sink if isinstance(sink, _Guarded) else _Guarded(sink)


class _Guarded:
    def __init__(self, sink: Progress) -> None:
        self._sink = sink
        self._broken = False
        self._lock = threading.Lock()

    def phase(self, name: str, total: int | None) -> AbstractContextManager[Phase]:
        return _GuardedPhase(self, name, total)

    def watch(self, usage: Usage) -> None:
        self.attempt(lambda: self._sink.watch(usage))

    def open(self, name: str, total: int | None) -> AbstractContextManager[Phase]:
        return self._sink.phase(name, total)

    def attempt(self, action: Callable[[], object], *, closing: bool = False) -> None:
        """Do it unless the sink is broken; a closing is tried even then, so that no terminal stays half drawn."""
        if self._broken and not closing:
            return
        try:
            action()
        except Exception:  # noqa: BLE001  # a sink is anyone's code, and a broken display is no reason to lose a run
            with self._lock:
                first, self._broken = not self._broken, True
            if first:
                _LOG.warning("progress cannot be shown any longer; the run goes on", exc_info=True)


class _GuardedPhase:
    def __init__(self, guard: _Guarded, name: str, total: int | None) -> None:
        self._guard, self._name, self._total = guard, name, total
        self._context: AbstractContextManager[Phase] | None = None
        self._phase: Phase | None = None

    def __enter__(self) -> Phase:
        self._guard.attempt(self._open)
        return self

    def _open(self) -> None:
        context = self._guard.open(self._name, self._total)
        self._phase = context.__enter__()
        self._context = context

    def advance(self, n: int = 1, note: str = "") -> None:
        phase = self._phase
        if phase is not None:
            self._guard.attempt(lambda: phase.advance(n, note))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        context = self._context
        if context is not None:
            self._guard.attempt(lambda: context.__exit__(kind, error, trace), closing=True)
