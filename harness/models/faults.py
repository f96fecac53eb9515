"""What a provider's error means for the run: its name, whether to try again, and what may be shown of it."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal
from urllib.parse import quote, quote_plus

from dspy import lm15
from dspy.lm15 import Request

from harness.errors import ProgramFailure
from harness.secrecy import is_recognisable

Setting = Literal["temperature", "max_tokens", "seed", "response_format"]

ATTEMPTS = 4
"""How often a request is tried while its faults may pass."""
_ATTEMPTS = {
    "rate_limit": 8,
    "timeout": 2,
    "server_error": ATTEMPTS,
    "connection": 3,  # with 2 seconds for each, a dead address stops the run within 10 seconds
    "unreadable_reply": ATTEMPTS,
    "empty": 3,
    "error": 3,
}
_OF_THE_ACCOUNT = ("auth", "not_found")
_OF_ONE_REQUEST = ("cut", "refusal", "empty", "context_length", "error")

LONGEST_WAIT = 60.0
"""Seconds; a longer Retry-After is cut to this, and the attempts run out instead of the day."""

_NAMES: tuple[tuple[type[lm15.LM15Error] | tuple[type[lm15.LM15Error], ...], str], ...] = (
    (lm15.RateLimitError, "rate_limit"),
    (lm15.TimeoutError, "timeout"),
    (lm15.ServerError, "server_error"),
    ((lm15.TransportError, lm15.LockTimeoutError), "connection"),
    ((lm15.AuthError, lm15.BillingError, lm15.NotConfiguredError), "auth"),
    ((lm15.UnsupportedModelError, lm15.UnknownModelError, lm15.AmbiguousModelError), "not_found"),
    (lm15.ContextLengthError, "context_length"),
    ((lm15.InvalidRequestError, lm15.UnsupportedFeatureError, lm15.ConfigurationError), "bad_request"),
)
_REFUSED_CONTENT = ("content_filter", "content_policy")
_SETTINGS: tuple[tuple[Setting, re.Pattern[str]], ...] = (
    ("response_format", re.compile(r"response[_ ]format|json[_ ]schema|structured[_ ]output", re.IGNORECASE)),
    ("max_tokens", re.compile(r"max_(completion_)?tokens")),
    ("temperature", re.compile(r"\btemperature\b", re.IGNORECASE)),
    ("seed", re.compile(r"\bseed\b", re.IGNORECASE)),
)
_OUT_OF_RANGE = re.compile(
    r"too (large|high|big|small|low)|at (most|least)|maximum|exceed|greater|less than", re.IGNORECASE
)
_LONGEST_QUOTE = 500
_SHORTEST_IN_BASE64 = 6


def fault_name(error: lm15.LM15Error) -> str:
    """The one name of a fault, by which it is counted and judged.

    >>> fault_name(lm15.RateLimitError("slow down")), fault_name(lm15.InvalidRequestError("no such path", status=404))
    ('rate_limit', 'not_found')
    """
    name = next((name for kinds, name in _NAMES if isinstance(error, kinds)), None)
    if name == "bad_request" and any(code in str(error.provider_code or "") for code in _REFUSED_CONTENT):
        return "refusal"
    if name == "bad_request" and error.status == 404:
        return "not_found"
    if name is None and isinstance(error, lm15.ProviderError) and (error.status or 200) >= 300:
        return "bad_request"
    return name or "unreadable_reply"


def attempts(name: str, *, has_answered: bool) -> int:
    """How often a request is tried before a fault of this name is taken as final.

    Args:
        name: the fault's name.
        has_answered: whether the endpoint answered anything in this run. One that never did and refuses the key or
            does not know the model is wrongly set up; one that did is having a bad moment.

    >>> [attempts(name, has_answered=True) for name in ("auth", "rate_limit", "bad_request")]
    [4, 8, 1]
    """
    if name in _OF_THE_ACCOUNT:
        return ATTEMPTS if has_answered else 1
    return _ATTEMPTS.get(name, 1)


def concerns_one_request(name: str, *, has_answered: bool) -> bool:
    """True when a final fault is this request's and the model may well answer the next.

    A bad request or an unreadable reply is once the endpoint has answered this role: the first one rather means that
    the model, its name or its settings are wrong.
    """
    return name in _OF_ONE_REQUEST or (has_answered and name in ("bad_request", "unreadable_reply"))


def server_hint(error: BaseException | None) -> float | None:
    """The server's own Retry-After in seconds, at most `LONGEST_WAIT`; None without a usable one.

    >>> server_hint(lm15.RateLimitError("slow down", retry_after=7))
    7.0
    """
    hint = getattr(error, "retry_after", None)
    if isinstance(hint, (int, float)) and math.isfinite(hint) and hint >= 0:
        return min(float(hint), LONGEST_WAIT)
    return None


def seconds_to_wait(error: BaseException | None, attempt: int, key: str) -> float:
    """The server's own Retry-After, else about 1, 2, 4 ... seconds.

    Args:
        error: what the attempt ended with, None for an answer that cannot be used.
        attempt: counts from 1.
        key: the request's; spreads the waits of requests that failed together over a quarter more or less, the
            same on every run.

    >>> seconds_to_wait(lm15.ServerError("oops"), 2, "00000000"), seconds_to_wait(None, 2, "ffffffff")
    (1.5, 2.5)
    """
    hint = server_hint(error)
    if hint is not None:
        return hint
    spread = 0.75 + 0.5 * int(key[:8], 16) / 0xFFFF_FFFF
    return min(spread * 2.0 ** (attempt - 1), LONGEST_WAIT)


def refused_setting(error: BaseException | None, request: Request) -> Setting | None:
    """The setting of the request that the provider's words name as the reason of a bad request.

    An output limit beyond what the model can write is none: under any name it would be refused again.

    >>> plain = Request(model="m", messages=(lm15.Message.user("q"),), config=lm15.Config(temperature=0.0))
    >>> refused_setting(lm15.InvalidRequestError("'temperature' does not support 0.0 with this model"), plain)
    'temperature'
    """
    if not isinstance(error, (lm15.InvalidRequestError, lm15.UnsupportedFeatureError)):
        return None
    if fault_name(error) != "bad_request":
        return None
    said = f"{error} {getattr(error, 'feature', None) or ''}"
    for setting, pattern in _SETTINGS:
        if getattr(request.config, setting) is not None and pattern.search(said):
            return None if setting == "max_tokens" and _OUT_OF_RANGE.search(said) else setting
    return None


def words(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """The provider's own sentence on one line, with every known secret blotted out.

    >>> words(lm15.AuthError("Incorrect API key: sk-123"), ["sk-123"])
    'Incorrect API key: ***'
    """
    text = " ".join(str(error).partition("\n\n")[0].split()) or type(error).__name__
    return scrub(text, secrets)[:_LONGEST_QUOTE]


def scrub(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret replaced by three stars, longest first.

    A secret is also found without the white space around it, as JSON, in an address, and inside anything in base64.

    >>> scrub("forbidden byte in 'Bearer sk-1\\\\n'", ["sk-1\\n"])
    "forbidden byte in 'Bearer ***'"
    >>> scrub("Authorization: Basic bWU6c2VjcmV0", ["me:secret"])
    'Authorization: Basic ***'
    """
    forms = {form for secret in secrets for plain in (secret, secret.strip()) if plain for form in _forms(plain)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


def holds_secret(data: Any, secrets: Iterable[str]) -> bool:
    """Whether JSON data holds a secret that can be told from ordinary text.

    >>> holds_secret({"text": "the key is sk-4f9aB27c"}, ["sk-4f9aB27c"]), holds_secret({"text": "a test"}, ["test"])
    (True, False)
    """
    known = [secret.strip() for secret in secrets if is_recognisable(secret)]
    if not known:
        return False
    text = json.dumps(data, ensure_ascii=False)
    return any(secret in text or json.dumps(secret)[1:-1] in text for secret in known)


def scrubbed(data: Any, secrets: Iterable[str]) -> Any:
    """JSON data with every recognisable secret in its texts replaced by three stars."""
    known = [secret for secret in secrets if is_recognisable(secret)]
    if isinstance(data, str):
        return scrub(data, known)
    if isinstance(data, dict):
        return {name: scrubbed(value, known) for name, value in data.items()}
    return [scrubbed(value, known) for value in data] if isinstance(data, list) else data


def _forms(secret: str) -> Iterator[str]:
    yield secret
    for escaped in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret)):
        yield escaped[1:-1]
    raw = secret.encode("utf-8", "surrogatepass")
    for encoded in (quote(raw), quote(raw, safe=""), quote_plus(raw)):
        yield encoded
        yield re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), encoded)
    if len(raw) >= _SHORTEST_IN_BASE64:
        yield from _base64_forms(raw)


def _base64_forms(raw: bytes) -> Iterator[str]:
    """What every base64 text shows of a secret in it, whatever stands before and behind."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode()
        yield encode(raw).decode().rstrip("=")
        for before in range(3):
            first, last = math.ceil(8 * before / 6), 8 * (before + len(raw)) // 6
            yield encode(b"\0" * before + raw).decode()[first:last]


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
