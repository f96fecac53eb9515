"""What a provider's error means for the run: try again, this example has no answer, or nothing may go on."""

from __future__ import annotations

import math
from collections.abc import Iterable

from dspy import lm15

from harness.errors import ProgramFailure

RETRYABLE = (
    lm15.RateLimitError,
    lm15.TimeoutError,
    lm15.ServerError,
    lm15.TransportError,
    lm15.LockTimeoutError,
)
"""Failures that may be gone a moment later; every other one is final."""

LONGEST_WAIT = 60.0
"""Seconds; a longer Retry-After is cut to this, and the attempts run out instead of the day."""

_REFUSED_CONTENT = ("content_filter", "content_policy")
_LONGEST_QUOTE = 500


def is_retryable(error: BaseException) -> bool:
    """True when the same request may succeed a moment later.

    >>> is_retryable(lm15.ServerError("overloaded")), is_retryable(lm15.AuthError("bad key"))
    (True, False)
    """
    return isinstance(error, RETRYABLE) or is_unreadable(error)


def is_unreadable(error: BaseException) -> bool:
    """True for a reply that is no completion at all: half a JSON document, a proxy's HTML page."""
    return type(error) is lm15.ProviderError and (error.status or 200) < 300


def seconds_to_wait(error: BaseException, attempt: int) -> float:
    """The server's own Retry-After, else 1, 2, 4 ... seconds; `attempt` counts from 1.

    >>> seconds_to_wait(lm15.RateLimitError("slow down", retry_after=7), 1)
    7.0
    """
    hint = getattr(error, "retry_after", None)
    if isinstance(hint, (int, float)) and math.isfinite(hint) and hint >= 0:
        return min(float(hint), LONGEST_WAIT)
    return min(2.0 ** (attempt - 1), LONGEST_WAIT)


def concerns_one_request(error: BaseException, *, has_answered: bool) -> bool:
    """True when the fault is in this request and the model may well answer the next.

    Too long an input and refused content are. Any other bad request or unreadable reply is one too once the
    endpoint has answered this role: the first one rather means that the model, its name or its settings are wrong.
    """
    if isinstance(error, lm15.ContextLengthError):
        return True
    if is_unreadable(error):
        return has_answered
    if not isinstance(error, lm15.InvalidRequestError) or isinstance(error, lm15.UnsupportedModelError):
        return False
    code = str(getattr(error, "provider_code", "") or "")
    return has_answered or any(name in code for name in _REFUSED_CONTENT)


def words(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """The provider's own sentence on one line, with every known secret blotted out.

    >>> words(lm15.AuthError("Incorrect API key: sk-123"), ["sk-123"])
    'Incorrect API key: ***'
    """
    text = " ".join(str(error).partition("\n\n")[0].split()) or type(error).__name__
    return scrub(text, secrets)[:_LONGEST_QUOTE]


def scrub(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret replaced by three stars, longest first; also without the white space around it.

    >>> scrub("forbidden byte in 'Bearer sk-1\\\\n'", ["sk-1\\n"])
    "forbidden byte in 'Bearer ***\\\\n'"
    """
    forms = {form for secret in secrets for form in (secret, secret.strip()) if form}
    for secret in sorted(forms, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def program_failure(error: BaseException | None) -> ProgramFailure | None:
    """The ProgramFailure behind an exception, if there is one.

    dspy wraps what its engine raises in LMUnexpectedError and keeps the original as the cause; RoleLM undoes
    that, but adapters may wrap again. So ask here instead of catching by class.

    >>> wrapped = RuntimeError("wrapped"); wrapped.__cause__ = ProgramFailure("answer cut")
    >>> str(program_failure(wrapped))
    'answer cut'
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, ProgramFailure):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
