"""Who spent what, what may still be spent, and whether anything may go on at all.

Every request passes `reserve` before it is sent, so a declared limit on calls is exact, and a stop reaches every
thread at its next request whatever the code in between does with exceptions. Money and tokens are known only when
an answer is there; until then a call in flight counts what its role's calls cost on average so far.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dspy import lm15

from harness.errors import RunStopped, StopReason
from harness.results import RoleUsage

Price = tuple[float, float]
"""USD per million input tokens and per million output tokens."""

_STRETCH = 5
_ROUNDING = 1e-9
"""Ten times a tenth of the budget is the budget, whatever the sum of ten floats says."""


@dataclass(slots=True)
class _Meter:
    """A sum over answers, some of which did not say their share: those count the average of the ones that did."""

    sum: float = 0.0
    known: int = 0
    unknown: int = 0
    latest: deque[float] = field(default_factory=lambda: deque(maxlen=_STRETCH))
    dearest: float = 0.0
    """The highest mean of `_STRETCH` answers in a row: tuning makes prompts longer, and the last measurement is of a
    tuned one."""

    def add(self, amount: float | None) -> None:
        if amount is None:
            self.unknown += 1
            return
        self.sum += amount
        self.known += 1
        self.latest.append(amount)
        if len(self.latest) == _STRETCH:
            self.dearest = max(self.dearest, sum(self.latest) / _STRETCH)

    @property
    def mean(self) -> float | None:
        return self.sum / self.known if self.known else None

    @property
    def total(self) -> float | None:
        """None when there are answers and not one of them said anything: that is unknown, not zero."""
        if not self.unknown:
            return self.sum
        return None if self.mean is None else self.sum + self.unknown * self.mean


@dataclass(slots=True)
class _Account:
    calls: int = 0
    in_flight: int = 0
    answered: int = 0
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens: _Meter = field(default_factory=_Meter)
    usd: _Meter = field(default_factory=_Meter)
    failures: Counter[str] = field(default_factory=Counter)
    replayed: int = 0
    replayed_input_tokens: int = 0
    replayed_output_tokens: int = 0
    replayed_usd: float | None = 0.0

    def to_usage(self) -> RoleUsage:
        return RoleUsage(
            calls=self.calls,
            cached=self.replayed,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            usd=self.usd.total,
            failures=dict(sorted(self.failures.items())),
            replayed_input_tokens=self.replayed_input_tokens,
            replayed_output_tokens=self.replayed_output_tokens,
            replayed_usd=self.replayed_usd,
            estimated=self.usd.unknown if self.usd.known else 0,
        )


class Ledger:
    """Calls, tokens and money by role, under declared limits. Safe under threads.

    A call is a request sent: a refused or failed attempt counts, an answer from the store does not. Limits hold
    before a call is sent: calls exactly; money, tokens and minutes as far as the averages foresee them, so that
    what is in flight can exceed one only by as much as its answers are dearer than those before. Only while no
    answer has come yet is nothing foreseen.

    Args:
        max_calls: requests that may be sent by all roles together.
        max_usd: money that may be spent.
        max_minutes: wall time from construction.
        max_tokens: input and output tokens together.
        clock: seconds, monotonic.

    >>> ledger = Ledger(max_calls=1)
    >>> ledger.reserve("task")
    >>> ledger.settle("task", lm15.Usage(input_tokens=1000, output_tokens=0), (3.0, 15.0))
    0.003
    >>> ledger.usage()["task"].usd
    0.003
    """

    def __init__(
        self,
        max_calls: int | None = None,
        max_usd: float | None = None,
        max_minutes: float | None = None,
        *,
        max_tokens: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_calls = max_calls
        self.max_usd = max_usd
        self.max_minutes = max_minutes
        self.max_tokens = max_tokens
        self._clock = clock
        self._started = clock()
        self._first_call: float | None = None
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}
        self._refusals = 0
        self._held = 0
        self._held_role = ""
        self._stop: RunStopped | None = None
        self._stopping = threading.Event()

    def reserve(self, role: str) -> None:
        """Take one call out of the budget, or refuse it. Every reserved call is settled or reported as failed.

        Raises:
            RunStopped: with the stored stop when the run was stopped, else BUDGET when a limit is reached. The
                ledger stays open after a BUDGET: what is held back may be released.
        """
        with self._lock:
            self._refuse_if_stopped()
            refusal = self._refusal(role)
            if refusal:
                self._refusals += 1
                raise RunStopped(StopReason.BUDGET, refusal)
            if self._first_call is None:
                self._first_call = self._clock()
            account = self._account(role)
            account.calls += 1
            account.in_flight += 1

    def settle(self, role: str, usage: lm15.Usage, price: Price | None, seconds: float = 0.0) -> float | None:
        """Book what an answered call used, from that very answer, and how long it took.

        Returns:
            What it cost in USD; None when the price is unknown or a priced answer did not say what it used. Such
            an answer counts as much as the role's others cost on average; without any the role's money is unknown.
        """
        billed = _billed(usage)
        cost = _cost(billed, price)
        with self._lock:
            account = self._account(role)
            account.in_flight = max(0, account.in_flight - 1)
            account.answered += 1
            account.seconds += seconds
            account.input_tokens += usage.input_tokens or 0
            account.output_tokens += (usage.output_tokens or 0) if billed is None else billed[1]
            account.tokens.add(None if billed is None else sum(billed))
            account.usd.add(cost)
        return cost

    def attempt_failed(self, role: str, name: str) -> None:
        """The reserved call gave no answer: its place is free, the call stays counted, and so is its fault."""
        with self._lock:
            account = self._account(role)
            account.in_flight = max(0, account.in_flight - 1)
            account.failures[name] += 1

    def unusable(self, role: str, kind: str) -> None:
        """An answer that was settled cannot be used: its kind is counted."""
        with self._lock:
            self._account(role).failures[kind] += 1

    def replayed(self, role: str, usage: lm15.Usage, usd: float | None) -> None:
        """Count an answer nothing was sent for, and what it cost when it was paid (None unknown)."""
        billed = _billed(usage)
        with self._lock:
            account = self._account(role)
            account.replayed += 1
            account.replayed_input_tokens += usage.input_tokens or 0
            account.replayed_output_tokens += (usage.output_tokens or 0) if billed is None else billed[1]
            account.replayed_usd = None if usd is None or account.replayed_usd is None else account.replayed_usd + usd

    def hold_back(self, calls: int, role: str = "task") -> None:
        """Keep `calls` calls of a role for later: until `release` the budget is smaller by them.

        With them go the money, the tokens and the minutes they will take: minutes from the average so far, money and
        tokens from the dearest answers so far, since a tuned program's prompts may be as long as any tried.
        """
        with self._lock:
            self._held, self._held_role = calls, role

    def release(self) -> None:
        """Give free what was held back."""
        with self._lock:
            self._held = 0

    def usage(self) -> dict[str, RoleUsage]:
        """What each role spent so far; `usd` is None while what its calls cost is unknown."""
        with self._lock:
            return {role: account.to_usage() for role, account in sorted(self._accounts.items())}

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

    @property
    def refusals(self) -> int:
        """How many calls the budget refused so far."""
        return self._refusals

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

    def _refusal(self, role: str) -> str | None:
        """Why the role's next call may not be sent, in a sentence."""
        limit = None
        if self.max_calls is not None and self._held + sum(a.calls for a in self._accounts.values()) >= self.max_calls:
            limit = f"{self.max_calls} calls"
        for key, most, meter, words in (
            ("usd", self.max_usd, lambda account: account.usd, "{:g} USD"),
            ("tokens", self.max_tokens, lambda account: account.tokens, "{} tokens"),
        ):
            if most is None or limit:
                continue
            silent = next((name for name, a in self._accounts.items() if meter(a).total is None), None)
            if silent is not None:
                return (
                    f"budget.{key} cannot be kept: the server of the {silent} model does not report what its answers "
                    "use; limit the run by budget.calls instead"
                )
            if self._is_spent(role, most, meter):
                limit = words.format(most)
        if self.max_minutes is not None and not limit and self._is_late(role, 60 * self.max_minutes):
            limit = f"{self.max_minutes:g} minutes"
        if limit is None:
            return None
        kept = f", but for the {self._held} calls of the last measurement" if self._held else ""
        return f"the budget of {limit} is spent{kept}"

    def _is_spent(self, role: str, most: float, meter: Callable[[_Account], _Meter]) -> bool:
        """Whether the role's next call would exceed `most`, with calls in flight and held back at their average."""
        taken = 0.0
        for name, account in self._accounts.items():
            mean = meter(account).mean or 0.0
            taken += (meter(account).total or 0.0) + account.in_flight * mean
            if name == self._held_role:
                taken += self._held * max(mean, meter(account).dearest)
        account = self._accounts.get(role)
        next_one = meter(account).mean if account else None
        return taken >= most if next_one is None else taken + next_one > most * (1 + _ROUNDING)

    def _is_late(self, role: str, most: float) -> bool:
        """Whether the role's next answer would come after `most` seconds, with time for what is held back."""
        now = self._clock()
        answered = sum(account.answered for account in self._accounts.values())
        # Wall time per answer holds threads, pauses and the pace of the server; the time of one answer does not.
        pace = 0.0 if self._first_call is None or not answered else (now - self._first_call) / answered
        account = self._accounts.get(role)
        one = account.seconds / account.answered if account and account.answered else 0.0
        elapsed = now - self._started + self._held * pace
        return elapsed >= most or elapsed + one > most * (1 + _ROUNDING)


def _billed(usage: lm15.Usage) -> tuple[int, int] | None:
    """Input and output tokens, None when the answer did not say both.

    Some servers report thinking only in the total; whatever the total holds beyond the two is billed as output.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens, max(usage.output_tokens, (usage.total_tokens or 0) - usage.input_tokens)


def _cost(billed: tuple[int, int] | None, price: Price | None) -> float | None:
    if price is None:
        return None
    if price == (0.0, 0.0):
        return 0.0
    return None if billed is None else (billed[0] * price[0] + billed[1] * price[1]) / 1_000_000
