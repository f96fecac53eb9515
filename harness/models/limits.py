"""How many requests one endpoint gets at once and per minute. Shared by all roles that use it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class EndpointLimits:
    """Slots and pacing of one endpoint. Safe under threads.

    Args:
        concurrency: requests at once, at least 1.
        requests_per_minute: starts are spaced evenly, 60 / this seconds apart; None sets no pace.
        clock, wait: seconds, and how to let them pass.

    >>> with EndpointLimits(1).slot():
    ...     pass
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._slots = threading.BoundedSemaphore(concurrency)
        self._gap = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._clock = clock
        self._wait = wait
        self._lock = threading.Lock()
        self._next_start = clock()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold one slot, entered no earlier than the pace allows."""
        with self._slots:
            delay = self._delay()
            if delay > 0:
                self._wait(delay)
            yield

    def _delay(self) -> float:
        with self._lock:
            now = self._clock()
            start = max(now, self._next_start)
            self._next_start = start + self._gap
            return start - now
