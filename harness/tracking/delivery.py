"""Writing to a store that may go away: a run is worth more than its log, so a failed write is told, not raised."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from harness.tracking.store import TrackingLocation, reason, server_answers

_T = TypeVar("_T")
_PAUSE_SECONDS = 30.0
_PROBE_SECONDS = 3.0


class Delivery:
    """Carries writes to one store from any thread.

    The first failure is told in one sentence; every failure is counted. Before a write to a server the server is
    asked whether it is there, because MLflow's client would repeat the call for minutes; one that is away is left
    alone for half a minute at a time.

    Args:
        location: the store.
        on_problem: receives the one sentence.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        location: TrackingLocation,
        on_problem: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._location = location
        self._on_problem = on_problem
        self._clock = clock
        self._lock = threading.Lock()
        self._away_until: float | None = None
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many writes did not arrive."""
        return self._failures

    def attempt(self, what: str, write: Callable[[], _T]) -> _T | None:
        """The write's result, or None when it failed or was not tried."""
        if not self._reachable():
            self.lose(what, "the server does not answer")
            return None
        try:
            return write()
        except Exception as error:  # noqa: BLE001  # requests, SQLAlchemy, MLflow, the disk: none may end a paid run
            self.lose(what, reason(error, self._location))
            return None

    def lose(self, what: str, why: str) -> None:
        """Count a write that did not arrive; say so if it is the first."""
        with self._lock:
            self._failures += 1
            first = self._failures == 1
        if first:
            self._on_problem(
                f"MLflow at {self._location.label} did not take {what}: {why}; "
                "the run goes on and its folder keeps every result"
            )

    def _reachable(self) -> bool:
        if not self._location.is_server:
            return True
        with self._lock:
            if self._away_until is not None and self._clock() < self._away_until:
                return False
        answers = server_answers(self._location.uri, _PROBE_SECONDS)
        with self._lock:
            self._away_until = None if answers else self._clock() + _PAUSE_SECONDS
        return answers
