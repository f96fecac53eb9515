"""What a dialect's reply means, in one form: usage that adds up, refusals and faults under their own names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from dspy import lm15
from dspy._vendor.lm15.transports import ConnectTimeout, ReadTimeout, WriteTimeout
from dspy.lm15 import Response

_PLACES = {"openai-chat": "choices", "anthropic": "content", "gemini": "candidates"}
"""Where each dialect's answer stands."""
_FINISHES = {"error": "error", "abort": "error", "max_tokens": "length", "safety": "content_filter"}
"""Reasons for an end that some OpenAI-compatible servers give in words of their own."""
_BLOCKED = re.compile(
    r"^(promptFeedback|SAFETY|RECITATION|LANGUAGE|BLOCKLIST|PROHIBITED_CONTENT|SPII|IMAGE_\w+|content_filter.*"
    r"|content_policy.*|content_management_policy)$"
)
_MALFORMED = ("MALFORMED_RESPONSE", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")
_TOO_LONG = re.compile(
    r"context[ _-]?(length|window|size)|exceed_context_size|prompt is too long|too many (input |prompt )?tokens"
    r"|input (is|token count|length).*(too long|exceeds)|when context the overflows"
    r"|`?inputs`? (tokens \+|must have less than)|requested \d+ tokens\b.*\b(limit|maximum)"
    r"|max(imum)? (prompt|input|sequence) length|(payload|request entity|content) too large",
    re.IGNORECASE,
)
_PAYLOAD_TOO_LARGE = 413
_UNACCEPTED = (400, _PAYLOAD_TOO_LARGE, 422)
_UNNAMED = (lm15.ServerError, lm15.ProviderError)
"""What dspy's client makes of an error whose code it does not know, whatever its status."""
_LIMIT_TOO_LARGE = re.compile(
    r"max_(completion_|output_)?tokens\W.*(too large|too high|maximum|at most|exceed|> )", re.IGNORECASE
)


def read(response: Response, dialect: str | None, provider: str | None = None) -> Response:
    """A reply with the same meaning whatever dialect it came in.

    `input_tokens` are all tokens read, `output_tokens` all tokens written, those of thoughts included: what the
    price is per; `cache_read_tokens` is the part of the input that was cheaper. JSON is text.

    Raises:
        lm15.ProviderError: the reply is JSON and no completion.
    """
    _refuse_other_documents(response, dialect)
    parts = tuple(_as_text(part) for part in response.message.parts)
    return replace(
        response,
        message=replace(response.message, parts=parts),
        usage=_usage(response.usage, dialect, provider),
        finish_reason=_finish(response) if dialect == "openai-chat" else response.finish_reason,
    )


def refusal(error: lm15.LM15Error, model: str) -> Response | None:
    """The answer an error really is, when what was refused is the content; None for every other error.

    >>> blocked = lm15.InvalidRequestError("Candidate blocked: SAFETY", provider_code="SAFETY")
    >>> refusal(blocked, "gemini/x").finish_reason, refusal(lm15.ServerError("oops"), "m")
    ('content_filter', None)
    """
    if not isinstance(error, lm15.InvalidRequestError) or not _BLOCKED.match(error.provider_code or ""):
        return None
    return Response(
        id=None,
        model=model,
        message=lm15.Message.assistant([lm15.RefusalPart(_first_line(error))]),
        finish_reason="content_filter",
        usage=lm15.Usage(),
    )


def rightly_named(error: lm15.LM15Error) -> lm15.LM15Error:
    """The error under the class its status and words call for.

    "tokens" and "limit" in one sentence are no proof of too long an input: a rate limit per minute says so too.

    >>> wrong = lm15.ContextLengthError("rate limit of 30000 input tokens exceeded", status=429, retry_after=2)
    >>> type(rightly_named(wrong)).__name__, rightly_named(wrong).retry_after
    ('RateLimitError', 2.0)
    >>> type(rightly_named(lm15.InvalidRequestError("maximum context length is 4096 tokens", status=400))).__name__
    'ContextLengthError'
    """
    if not isinstance(error, lm15.ProviderError):
        return error
    too_long = _says_too_long(error)
    if too_long and type(error) in _UNNAMED and error.status in _UNACCEPTED:
        return _renamed(error, lm15.ContextLengthError)
    if not isinstance(error, lm15.InvalidRequestError):
        return error
    said = _first_line(error)
    if error.status == 429:
        return _renamed(error, lm15.RateLimitError)
    if error.status is not None and error.status >= 500:
        return _renamed(error, lm15.ServerError)
    if error.provider_code in _MALFORMED:
        return _renamed(error, lm15.ProviderError)  # the reply was bad, not the request; another attempt may be better
    if "API key not valid" in said:
        return _renamed(error, lm15.AuthError)
    if limit_is_too_large(error):
        return _renamed(error, lm15.InvalidRequestError)
    if too_long and not isinstance(error, lm15.ContextLengthError):
        return _renamed(error, lm15.ContextLengthError)
    return error


def is_late(error: lm15.TransportError) -> bool:
    """True when the server took the request and did not answer in time; a connection not made is something else."""
    return isinstance(error.__cause__, ReadTimeout | WriteTimeout)


def is_unconnected(error: lm15.TransportError) -> bool:
    """True when nobody accepted the connection in time."""
    return isinstance(error.__cause__, ConnectTimeout)


def limit_is_too_large(error: lm15.LM15Error) -> bool:
    """True when the output limit was refused for its size, not for its name.

    >>> limit_is_too_large(lm15.InvalidRequestError("max_tokens is too large: 9000. This model takes at most 4096"))
    True
    """
    return isinstance(error, lm15.InvalidRequestError) and bool(_LIMIT_TOO_LARGE.search(_first_line(error)))


def _as_text(part: Any) -> Any:
    """dspy's client parses answers whose schema has a choice or a yes/no; who asked for text gets text."""
    if not isinstance(part, lm15.DataPart) or part.probabilities is not None:
        return part
    return lm15.TextPart(json.dumps(part.value, ensure_ascii=False), continuation=part.continuation)


def _refuse_other_documents(response: Response, dialect: str | None) -> None:
    data: Any = response.provider_data or {}
    place = _PLACES.get(dialect or "")
    if (place and data.get(place) is None) or (place == "choices" and not data[place]):
        raise lm15.ProviderError(f"the reply is not a completion: it has no {place}")


def _usage(usage: lm15.Usage, dialect: str | None, provider: str | None) -> lm15.Usage:
    read, written = usage.input_tokens, usage.output_tokens
    if dialect == "anthropic" and read is not None:  # counts beside each other what others count inside
        read += (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if (dialect == "gemini" or provider == "xai") and written is not None:
        written += usage.reasoning_tokens or 0
    return replace(usage, input_tokens=read, output_tokens=written)


def _finish(response: Response) -> Any:
    unmapped: Any = (response.provider_data or {}).get("_lm15_unmapped") or ()
    said = next((entry["type"] for entry in unmapped if entry["path"].endswith("finish_reason")), None)
    return _FINISHES.get(str(said).lower(), response.finish_reason)


def _says_too_long(error: lm15.ProviderError) -> bool:
    words = f"{_first_line(error)} {error.provider_code or ''}"
    return error.status == _PAYLOAD_TOO_LARGE or bool(_TOO_LONG.search(words))


def _first_line(error: lm15.LM15Error) -> str:
    return error.message.partition("\n\n")[0]


def _renamed(error: lm15.ProviderError, kind: type[lm15.ProviderError]) -> lm15.ProviderError:
    return kind(
        _first_line(error),
        provider=error.provider,
        provider_code=error.provider_code,
        status=error.status,
        request_id=error.request_id,
        retry_after=error.retry_after,
        rate_limit_headers=error.rate_limit_headers,
    )
