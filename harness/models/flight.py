"""Equal requests in flight are sent once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = threading.Event()
        self.result: T | None = None
        self.error: BaseException | None = None
        self.abandoned = False


class SingleFlight(Generic[T]):
    """Runs a function once per key at a time; callers that come meanwhile share its result or its error.

    >>> SingleFlight[int]().do("key", lambda: 7)
    (7, True)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[str, _Flight[T]] = {}

    def do(self, key: str, call: Callable[[], T]) -> tuple[T, bool]:
        """The result for `key`, and whether this caller's own `call` made it.

        A leader interrupted from outside (Ctrl-C in its thread) hands over: one of the waiting callers leads anew.
        """
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    mine = self._flights[key] = _Flight()
                    break
            flight.landed.wait()
            if flight.abandoned:
                continue
            if flight.error is not None:
                raise flight.error
            return flight.result, False  # type: ignore[return-value]  # landed without error: a result
        return self._lead(key, mine, call), True

    def _lead(self, key: str, flight: _Flight[T], call: Callable[[], T]) -> T:
        try:
            flight.result = call()
            return flight.result
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            flight.abandoned = True
            raise
        except BaseException as error:
            flight.error = error
            raise
        finally:
            with self._lock:
                del self._flights[key]
            flight.landed.set()
