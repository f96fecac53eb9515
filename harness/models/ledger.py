"""Who spent what, what may still be spent, and whether anything may go on at all.

Every request passes `reserve` before it is sent, so a declared limit on calls is exact, and a stop reaches every
thread at its next request whatever the code in between does with exceptions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from dspy import lm15

from harness.errors import RunStopped, StopReason
from harness.results import RoleUsage

Price = tuple[float, float]
"""USD per million input tokens and per million output tokens."""


@dataclass(slots=True)
class _Account:
    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0


class Ledger:
    """Calls, tokens and money by role, under declared limits. Safe under threads.

    A call is a request sent: a refused or failed attempt counts, an answer from the store does not.

    Args:
        max_calls: requests that may be sent by all roles together.
        max_usd: money that may be spent; checked before each call against what settled calls cost.
        max_minutes: wall time from construction.
        clock: seconds, monotonic.

    >>> ledger = Ledger(max_calls=1)
    >>> ledger.reserve("task")
    >>> ledger.settle("task", lm15.Usage(input_tokens=1000, output_tokens=0), (3.0, 15.0))
    >>> ledger.usage()["task"].usd
    0.003
    """

    def __init__(
        self,
        max_calls: int | None = None,
        max_usd: float | None = None,
        max_minutes: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_calls = max_calls
        self.max_usd = max_usd
        self.max_minutes = max_minutes
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}
        self._stop: RunStopped | None = None
        self._stopping = threading.Event()

    def reserve(self, role: str) -> None:
        """Take one call out of the budget, or refuse it.

        Raises:
            RunStopped: with the stored stop when the run was stopped, else BUDGET when a limit is reached.
        """
        with self._lock:
            self._refuse_if_stopped()
            limit = self._limit_reached()
            if limit:
                raise RunStopped(StopReason.BUDGET, f"the budget of {limit} is spent")
            self._account(role).calls += 1

    def settle(self, role: str, usage: lm15.Usage, price: Price | None) -> None:
        """Book what an answered call used, from that very answer.

        Unreported tokens make the role's money unknown, unless a call costs nothing whatever it used.
        """
        with self._lock:
            account = self._account(role)
            account.input_tokens += usage.input_tokens or 0
            account.output_tokens += usage.output_tokens or 0
            cost = _cost(usage, price)
            account.usd = None if cost is None or account.usd is None else account.usd + cost

    def cached(self, role: str) -> None:
        """Count an answer nothing was sent for."""
        with self._lock:
            self._account(role).cached += 1

    def usage(self) -> dict[str, RoleUsage]:
        """What each role spent so far; `usd` is None once a call's price is unknown."""
        with self._lock:
            return {
                role: RoleUsage(a.calls, a.cached, a.input_tokens, a.output_tokens, a.usd)
                for role, a in sorted(self._accounts.items())
            }

    def stop(self, stop: RunStopped) -> RunStopped:
        """Refuse every later call with `stop`; the first stop stays. Returns the one that holds."""
        with self._lock:
            if self._stop is None:
                self._stop = stop
            self._stopping.set()
            return self._stop

    @property
    def stopped(self) -> RunStopped | None:
        """The stop that holds, if any."""
        return self._stop

    def check(self) -> None:
        """Raise the stop that holds, if any."""
        with self._lock:
            self._refuse_if_stopped()

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until the run is stopped."""
        self._stopping.wait(seconds)

    def _account(self, role: str) -> _Account:
        return self._accounts.setdefault(role, _Account())

    def _refuse_if_stopped(self) -> None:
        if self._stop is not None:
            # A fresh one: the same exception raised in many threads would collect all their tracebacks.
            raise RunStopped(self._stop.reason, self._stop.message, self._stop.detail)

    def _limit_reached(self) -> str | None:
        if self.max_calls is not None and sum(a.calls for a in self._accounts.values()) >= self.max_calls:
            return f"{self.max_calls} calls"
        if self.max_usd is not None and sum(a.usd or 0.0 for a in self._accounts.values()) >= self.max_usd:
            return f"{self.max_usd:g} USD"
        if self.max_minutes is not None and self._clock() - self._started >= 60 * self.max_minutes:
            return f"{self.max_minutes:g} minutes"
        return None


def _cost(usage: lm15.Usage, price: Price | None) -> float | None:
    if price is None:
        return None
    if price == (0.0, 0.0):
        return 0.0
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return (usage.input_tokens * price[0] + usage.output_tokens * price[1]) / 1_000_000
