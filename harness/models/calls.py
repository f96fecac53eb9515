"""What the code around a call tells the engine, and what the engine tells back, without a shared object.

A Request carries no rollout number and a Response does not say whether it was paid for. Both travel in context
variables, which dspy's own threads, `contextvars.copy_context` and asyncio carry along.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from harness.errors import RunStopped

_rollout: ContextVar[_Rollout | None] = ContextVar("harness_rollout", default=None)
_observed: ContextVar[Calls | None] = ContextVar("harness_observed_calls", default=None)
_sending: ContextVar[Callable[[], None] | None] = ContextVar("harness_before_sending", default=None)


@dataclass(frozen=True, slots=True)
class Call:
    """One answered request; the answer may be one that cannot be used.

    Attributes:
        role: who asked.
        key: the canonical request key, the answer's name in the store.
        cached: True when nothing was sent: answered from the store or by an equal request in flight.
        seconds: wall time until the answer, waiting included.
        input_tokens, output_tokens: what the answer cost when it was first given; None when not reported.
    """

    role: str
    key: str
    cached: bool
    seconds: float
    input_tokens: int | None
    output_tokens: int | None


@dataclass(slots=True)
class _Rollout:
    number: int | None
    drawn: Iterator[int] = field(default_factory=itertools.count)  # its `next` is one step, also among threads


@contextmanager
def rollout(number: int | None) -> Iterator[None]:
    """Publish the rollout number of one LM call, whose several samples are numbered inside."""
    token = _rollout.set(_Rollout(number))
    try:
        yield
    finally:
        _rollout.reset(token)


def next_sample() -> tuple[int | None, int]:
    """The rollout number of the LM call in progress, and which of its samples is drawn now, from 0.

    >>> with rollout(3):
    ...     next_sample(), next_sample()
    ((3, 0), (3, 1))
    """
    call = _rollout.get()
    if call is None:
        return None, 0
    return call.number, next(call.drawn)


class Calls(list[Call]):
    """The calls of one context, in the order they were answered.

    Attributes:
        stopped: the stop that refused one of them, which the code in between may have swallowed.
    """

    stopped: RunStopped | None = None

    @property
    def fresh(self) -> int:
        """How many were sent and paid for."""
        return sum(not call.cached for call in self)


@contextmanager
def calls_of_this_context() -> Iterator[Calls]:
    """Collect the calls made inside, by this context and those copied from it; blocks nest.

    >>> with calls_of_this_context() as calls:
    ...     note_call(Call("task", "k", True, 0.0, 3, 4))
    >>> len(calls), calls.fresh
    (1, 0)
    """
    outer = _observed.get()
    calls = Calls()
    token = _observed.set(calls)
    try:
        yield calls
    finally:
        _observed.reset(token)
        if outer is not None:
            outer.extend(calls)
            outer.stopped = outer.stopped or calls.stopped


def last_key(role: str) -> str:
    """The key of the latest call of a role that is observed here, empty when there is none."""
    return next((call.key for call in reversed(_observed.get() or ()) if call.role == role), "")


def note_call(call: Call) -> None:
    """Report an answered request to whoever observes."""
    calls = _observed.get()
    if calls is not None:
        calls.append(call)


def note_stop(stop: RunStopped) -> None:
    """Report to whoever observes that a call was refused, whatever becomes of the exception."""
    calls = _observed.get()
    if calls is not None and calls.stopped is None:
        calls.stopped = stop


@contextmanager
def before_sending(tell: Callable[[], None]) -> Iterator[None]:
    """Have `tell` called, inside and in contexts copied from it, whenever a request is about to be sent.

    >>> with before_sending(lambda: print("waiting for an answer")):
    ...     note_sending()
    waiting for an answer
    """
    token = _sending.set(tell)
    try:
        yield
    finally:
        _sending.reset(token)


def note_sending() -> None:
    """Report that from now on an endpoint is waited for."""
    tell = _sending.get()
    if tell is not None:
        tell()
