"""Why an example has no score: failures told apart and named.

unreadable   program and model gave no answer that can be used: cut, invalid, refused, too long an input
endpoint     the place gave none: a refused request, a reply that is no completion, an empty answer
program      the program raised an error of its own: scores 0, because that is what a user of it would get
judge        there is an answer, and the metric could not score it
budget       not measured: the budget was spent before
"""

from __future__ import annotations

from dataclasses import dataclass

from dspy.utils.exceptions import AdapterParseError

from harness.errors import ENDPOINT_KINDS
from harness.foreign import first_line
from harness.models.faults import program_failure
from harness.models.prompt.reask import fault_of
from harness.results import FailureSide

INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one example has no score.

    Attributes:
        side: whose failure it is.
        kind: its name among `errors.FAILURE_KINDS`, where it has one.
        sentence: what happened.
    """

    side: FailureSide
    kind: str | None
    sentence: str


def failure_of(error: BaseException) -> Failure:
    """What an exception out of a program means for its example.

    >>> from harness.errors import ProgramFailure
    >>> failure_of(ProgramFailure("answer cut at max_tokens=512", "cut"))
    Failure(side='unreadable', kind='cut', sentence='answer cut at max_tokens=512')
    >>> failure_of(KeyError("total"))
    Failure(side='program', kind=None, sentence="KeyError: 'total'")
    """
    failure = program_failure(error)
    if failure is not None:
        return Failure("endpoint" if failure.kind in ENDPOINT_KINDS else "unreadable", failure.kind, str(failure))
    if isinstance(error, AdapterParseError):  # from an adapter of the program's own, which asks only once
        return Failure("unreadable", INVALID, f"the answer could not be read: {fault_of(error)}")
    return Failure("program", None, f"{type(error).__name__}: {first_line(error) or 'no message'}")
