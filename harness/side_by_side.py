"""Examples side by side while models are waited for, one after another while they are not.

Threads that never wait only take Python's interpreter lock from each other: replayed from the store, a thousand
examples took more than twice as long in eight threads as in one. So one thread does the work until a request is about
to be sent, or something takes its time; from then on there are as many as may be.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from harness.errors import RunStopped, StopReason
from harness.models.calls import before_sending

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE = 0.05
"""Seconds for one example after which others are begun all the same: it waits for something that is no LM of ours."""
_EVERY = 0.02
"""Seconds between two looks at what one thread alone has finished: waking the caller for each result would cost as much
as a replay."""


def side_by_side(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    threads: int,
    stop: Callable[[RunStopped], object] | None = None,
    patience: float = PATIENCE,
) -> Generator[tuple[int, Result], None, None]:
    """`work` of every item, at most `threads` at once; nothing is in flight when the iterator has ended.

    The first exception, from `work` or in the caller's own thread, ends the iterator. What is queued is dropped at
    once; what is in flight is refused its next request by `stop`. A spent budget needs no stop: the ledger refuses by
    itself, and may hold calls back for a later measurement. Then, and where no `stop` is given, what is in flight is
    waited for, and what ended well is given before the exception leaves.

    Args:
        work: called in a copy of the caller's context.
        items: what to do it with.
        threads: 1 works in the caller's own.
        stop: refuses every later request.
        patience: see PATIENCE.

    Yields:
        (index of the item, result) in the order of completion.

    >>> sorted(side_by_side(str.upper, ["a", "b"], threads=8))
    [(0, 'A'), (1, 'B')]
    """
    crew = _Crew(work, items, threads, patience)
    try:
        yield from crew.alone() if threads == 1 else crew.results()
    except BaseException as error:
        crew.drop()
        stopped = error if isinstance(error, RunStopped) else RunStopped(StopReason.INTERRUPT, "interrupted")
        is_kept = stop is None or stopped.reason is StopReason.BUDGET
        if stop is not None and not is_kept:
            stop(stopped)
        crew.end()
        if is_kept and not isinstance(error, GeneratorExit):  # then nobody listens
            yield from crew.finished()
        raise
    finally:
        crew.end()


class _Crew(Generic[Item, Result]):
    """The threads of one loop, one at first, and the items nobody has begun. All its methods are safe under threads."""

    def __init__(self, work: Callable[[Item], Result], items: Sequence[Item], threads: int, patience: float) -> None:
        self._work = work
        self._items = items
        self._threads = threads
        self._patience = patience
        self._queued = deque(range(len(items)))
        self._finished: deque[tuple[int, Result]] = deque()
        self._error: BaseException | None = None
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._hired = self._working = 0
        self._began = 0.0
        # Not an Event for the main thread: Ctrl-C inside Event.wait may come out as a RuntimeError about its lock.
        self._news: SimpleQueue[None] = SimpleQueue()
        self._taken = threading.Event()

    def alone(self) -> Iterator[tuple[int, Result]]:
        """All the work in the caller's thread."""
        while self._queued:
            index = self._queued.popleft()
            yield index, self._context.copy().run(self._work, self._items[index])

    def results(self) -> Iterator[tuple[int, Result]]:
        """What the threads finish, as they do, until there is nothing left or one of them failed."""
        if not self._items:
            return
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="example")
        self._hire(1)
        while self._working and self._error is None:
            with suppress(Empty):
                self._news.get(timeout=_EVERY)
            yield from self.finished()
            if self._hired == 1 and time.monotonic() - self._began > self._patience:
                self._hire(self._threads)
        if self._error is not None:
            raise self._error
        yield from self.finished()

    def finished(self) -> Iterator[tuple[int, Result]]:
        """What ended well among the results that nobody took."""
        while self._finished:
            result = self._finished.popleft()
            self._taken.set()
            yield result

    def drop(self) -> None:
        """Begin nothing more."""
        self._queued.clear()

    def end(self) -> None:
        """Begin nothing more, and wait for what is in flight."""
        self.drop()
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def _hire(self, wanted: int) -> None:
        """Have as many threads as are wanted and of use."""
        with self._lock:
            while self._pool is not None and self._hired < wanted and (self._queued or not self._hired):
                self._hired += 1
                self._working += 1
                self._pool.submit(self._labour)

    def _labour(self) -> None:
        try:
            while self._error is None:
                try:
                    index = self._queued.popleft()
                except IndexError:
                    return
                self._began = time.monotonic()
                self._finished.append((index, self._context.copy().run(self._one, index)))
                if self._hired > 1:
                    self._news.put(None)
                    self._wait_for_the_caller()
        except BaseException as error:  # noqa: BLE001  # the caller raises it
            with self._lock:
                self._error = self._error or error
            self.drop()
        finally:
            with self._lock:
                self._working -= 1
            self._news.put(None)

    def _wait_for_the_caller(self) -> None:
        """Run ahead of the caller by no more results than there are threads: it may see that no more are wanted."""
        while self._queued and len(self._finished) >= self._threads:
            self._taken.wait(_EVERY)
            self._taken.clear()

    def _one(self, index: int) -> Result:
        if self._hired > 1:
            return self._work(self._items[index])
        with before_sending(lambda: self._hire(self._threads)):
            return self._work(self._items[index])
