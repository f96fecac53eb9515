"""How many requests one endpoint gets at once and per minute, as far as it can take them. Shared by all its roles.

nothing answered yet            one request at a time, with all its attempts: a dead or misnamed model costs one
the first answer                `concurrency` at once
"too many requests" (429)       nobody sends until the server's Retry-After is over; half as many at once
as many answers as at once      one more at once, up to `concurrency`
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyrate_limiter import InMemoryBucket, Rate, RateItem

from harness.models.faults import LONGEST_WAIT

_LOOK_AGAIN = 0.02
"""Seconds after which a waiting thread looks whether it may still wait."""


def _nothing() -> None:
    pass


class EndpointLimits:
    """Slots, pauses and pace of one endpoint. Safe under threads.

    Args:
        concurrency: requests at once, at least 1.
        requests_per_minute: starts are spaced evenly, 60 / this seconds apart (to the millisecond); None sets no pace.
        clock, wait: seconds, and how to let them pass.

    >>> limits = EndpointLimits(8)
    >>> with limits.slot() as slot:
    ...     slot.answered()
    >>> limits.has_answered, limits.at_once
    (True, 8)
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._concurrency = concurrency
        self._pace = _Pace(requests_per_minute) if requests_per_minute else None
        self._clock = clock
        self._wait = wait
        self._changed = threading.Condition()
        self._has_answered = False
        self._opening = False
        self._at_once = 1
        self._in_flight = 0
        self._answers = 0
        self._round = 0
        self._strikes = 0
        self._paused_until = -math.inf

    @property
    def has_answered(self) -> bool:
        """Whether the endpoint has given any answer yet."""
        return self._has_answered

    @property
    def at_once(self) -> int:
        """Requests it gets at once now."""
        return self._at_once

    @contextmanager
    def whole_request(self, waiting: Callable[[], None] = _nothing) -> Iterator[None]:
        """Around a request with all its attempts: as long as nothing was ever answered, one at a time.

        Args:
            waiting: called now and then while waiting; may raise to give up.
        """
        with self._changed:
            while self._opening and not self._has_answered:
                waiting()
                self._changed.wait(_LOOK_AGAIN)
            first = self._opening = not self._has_answered
        try:
            yield
        finally:
            if first:
                with self._changed:
                    self._opening = False
                    self._changed.notify_all()

    @contextmanager
    def slot(
        self, *, wait: Callable[[float], None] | None = None, waiting: Callable[[], None] = _nothing
    ) -> Iterator[Slot]:
        """Hold one slot, entered no earlier than pause and pace allow.

        Args:
            wait: lets seconds pass, here instead of the constructor's; may come back early.
            waiting: called now and then while all slots are taken; may raise to give up.
        """
        wait = wait or self._wait
        entered = self._enter(wait, waiting)
        try:
            if self._pace is not None:
                self._wait_for_pace(self._pace, wait)
            yield Slot(self, entered)
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def _enter(self, wait: Callable[[float], None], waiting: Callable[[], None]) -> int:
        """Take a slot; returns the round in which it was taken."""
        waited_until = -math.inf
        while True:
            with self._changed:
                while self._in_flight >= self._at_once:
                    waiting()
                    self._changed.wait(_LOOK_AGAIN)
                until, now = self._paused_until, self._clock()
                # One wait for one pause: a run that is being stopped does not wait it out.
                if until <= max(now, waited_until):
                    self._in_flight += 1
                    return self._round
            wait(until - now)
            waited_until = until

    def _wait_for_pace(self, pace: _Pace, wait: Callable[[float], None]) -> None:
        with self._changed:
            now = self._clock()
            start = pace.next_start(now)
        if start > now:
            wait(start - now)

    def note_answer(self) -> None:
        """The endpoint answered: it lives, and may be asked a little more at once."""
        with self._changed:
            self._strikes = 0
            self._answers += 1
            if not self._has_answered:
                self._has_answered = True
                self._at_once, self._answers = self._concurrency, 0
            elif self._at_once < self._concurrency and self._answers >= self._at_once:
                self._at_once, self._answers = self._at_once + 1, 0
            self._changed.notify_all()

    def note_refusal(self, entered: int, retry_after: float | None) -> None:
        """The endpoint had too many requests: all pause, and fewer go at once.

        Of requests that were sent together the first refusal counts, the others only lengthen the pause.

        Args:
            entered: the round the refused request was sent in.
            retry_after: what the server said, in seconds; None is 1, 2, 4 ... seconds from refusal to refusal.
        """
        with self._changed:
            if entered == self._round:
                self._round += 1
                self._strikes += 1
                self._at_once, self._answers = max(1, self._at_once // 2), 0
            seconds = 2.0 ** max(0, self._strikes - 1) if retry_after is None else retry_after
            self._paused_until = max(self._paused_until, self._clock() + min(seconds, LONGEST_WAIT))


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that is held; whoever holds it says how the request ended."""

    limits: EndpointLimits
    entered: int

    def answered(self) -> None:
        """The endpoint answered, whatever the answer is worth."""
        self.limits.note_answer()

    def refused(self, retry_after: float | None) -> None:
        """The endpoint had too many requests; `retry_after` in seconds when it said so."""
        self.limits.note_refusal(self.entered, retry_after)


class _Pace:
    """Starts that are evenly spaced, each given away before its time has come."""

    def __init__(self, per_minute: float) -> None:
        # The window of the bucket includes both of its ends, hence one less.
        self._bucket = InMemoryBucket([Rate(1, max(1, math.ceil(60_000 / per_minute) - 1))])

    def next_start(self, now: float) -> float:
        item = RateItem("start", math.ceil(now * 1000))
        self._bucket.leak(item.timestamp)
        while not self._bucket.put(item):
            delay = self._bucket.waiting(item)
            assert isinstance(delay, int)  # this kind of bucket does not answer later
            item.timestamp += delay
        return item.timestamp / 1000
