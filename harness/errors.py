"""Everything this package raises on purpose, and what the command line makes of it.

    HarnessError                    exit 1   one sentence for people; the message is all they see
    ├── UsageError                  exit 2   a wrong file, key, path, column, name: what, where, nearest valid thing
    └── ProgramFailure                       the program gave no usable output for one example; `kind` says why
    RunStopped (BaseException)      exit 1, 3 or 130   nothing may go on: see below

`RunStopped` derives from BaseException because DSPy's evaluators and optimizers turn every Exception into a
score of zero. A metric with a bug, a budget that is spent, a model that is not there or Ctrl-C must not become
a score, so they must not be an Exception while DSPy is on the stack.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import Enum


class HarnessError(Exception):
    """A sentence for people. The command line prints it without a traceback."""

    exit_code = 1


class UsageError(HarnessError):
    """The user's file, argument or data is wrong; the sentence says what, where and the nearest valid thing."""

    exit_code = 2


FAILURE_KINDS = (
    "cut",
    "refusal",
    "empty",
    "context_length",
    "invalid",
    "bad_request",
    "unreadable_reply",
    "error",
    "server_error",
    "connection",
    "timeout",
)
"""Why an answer cannot be used: ended at its length limit; refused; without content; too long an input; does not parse
or validate; the request was refused; a reply that is no completion; ended by the server; and, at a server that answers
other requests, an error of its own, a connection that is closed, no answer in time."""

ENDPOINT_KINDS = frozenset(
    {"bad_request", "unreadable_reply", "empty", "error", "server_error", "connection", "timeout"}
)
"""Kinds that are trouble of the place. With all others program and model cannot answer this example."""


class ProgramFailure(HarnessError):
    """The program produced nothing that can be read for one example.

    Args:
        message: one sentence that says what to do about it.
        kind: one of `FAILURE_KINDS`.

    >>> ProgramFailure("answer cut at max_tokens=512; raise models.task.max_tokens", "cut").kind
    'cut'
    """

    def __init__(self, message: str, kind: str = "invalid") -> None:
        super().__init__(message)
        self.kind = kind


class StopReason(Enum):
    """Why a run may not go on."""

    METRIC = "metric"
    """The metric raised: a bug in it, never a low score."""
    JUDGE = "judge"
    """The metric gives no score: its judge cannot be reached or read, so nothing would be measured."""
    MODEL = "model"
    """A model is not there, refuses the key, or stayed unreachable through all retries."""
    BUDGET = "budget"
    """A declared limit is reached."""
    INTERRUPT = "interrupt"
    """Ctrl-C."""


_EXIT_CODES = {
    StopReason.METRIC: 1,
    StopReason.JUDGE: 1,
    StopReason.MODEL: 1,
    StopReason.BUDGET: 3,
    StopReason.INTERRUPT: 130,
}


class RunStopped(BaseException):
    """The run may not go on. What is finished is kept; the same command continues.

    Args:
        reason: the kind of stop; decides the exit code.
        message: one sentence for people, in the provider's or the metric's own words where there are any.
        detail: a traceback or raw answer to show below the sentence, empty when the sentence says it all.
    """

    def __init__(self, reason: StopReason, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.detail = detail

    @property
    def exit_code(self) -> int:
        """The process exit code of this stop."""
        return _EXIT_CODES[self.reason]


def nearest(name: str, known: Iterable[str]) -> str:
    """A half sentence naming the valid name closest to `name`, or listing the valid ones.

    The same as `metrics.nearest`, which cannot be used here: this module is needed to say that a user's own
    metrics.py stands in the way of the package.

    >>> nearest("optimiser", ["optimizer", "metric"])
    "did you mean 'optimizer'?"
    >>> nearest("zzz", ["b", "a"])
    'known: a, b'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(names) if names else "there are none"
