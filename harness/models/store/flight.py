"""Equal requests in flight are sent once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

T = TypeVar("T")


def _nothing() -> None:
    pass


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = threading.Event()
        self.result: T | None = None
        self.error: Exception | None = None
        self.abandoned = True


class SingleFlight(Generic[T]):
    """Runs a function once per key at a time; callers that come meanwhile share its result or its error.

    Args:
        every: seconds between two calls of a waiting caller's `waiting`.

    >>> SingleFlight[int]().do("key", lambda: 7)
    (7, True)
    """

    def __init__(self, *, every: float = 0.02) -> None:
        self._every = every
        self._lock = threading.Lock()
        self._flights: dict[str, _Flight[T]] = {}

    def do(
        self,
        key: str,
        call: Callable[[], T],
        *,
        waiting: Callable[[], None] = _nothing,
        guard: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> tuple[T, bool]:
        """The result for `key`, and whether this caller's own `call` made it.

        What is shared is what `call` returned, or an Exception it raised. A leader that ends in any other way (Ctrl-C
        in its thread, a stop of its run, a guard it could not enter) hands over: one of the waiting callers leads anew.

        Args:
            key: equal for calls that can stand for each other.
            call: made by one caller at a time.
            waiting: called now and then while another caller's call is awaited; may raise to give up.
            guard: entered by the leader around its call.
        """
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    mine = self._flights[key] = _Flight()
                    break
            while not flight.landed.wait(self._every):
                waiting()
            if flight.abandoned:
                continue
            if flight.error is not None:
                raise flight.error
            return flight.result, False  # type: ignore[return-value]  # landed without error: a result
        return self._lead(key, mine, call, guard), True

    def _lead(
        self,
        key: str,
        flight: _Flight[T],
        call: Callable[[], T],
        guard: Callable[[], AbstractContextManager[object]],
    ) -> T:
        try:
            with guard():
                try:
                    flight.result = result = call()
                except Exception as error:
                    flight.error = error
                    flight.abandoned = False
                    raise
                flight.abandoned = False
            return result
        finally:
            with self._lock:
                del self._flights[key]
            flight.landed.set()
