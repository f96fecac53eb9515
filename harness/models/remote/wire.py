"""The connection below a provider's dialect: one deadline per answer, errors in readable words, no proxy to oneself."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dspy import lm15
from dspy._vendor.lm15.transports import StdlibTransport, TransportRequest, TransportResponse

CONNECT_SECONDS = 2.0
"""How long a server may take to accept a connection: a dead address is found out long before an answer is late."""
LARGEST_REPLY = 64 * 2**20
"""Bytes of a reply, unpacked: no completion comes near it, and a server that pours without end does not fill memory."""
REPLY_TOO_LARGE = "reply_too_large"
"""The error's `provider_code` when that is what was wrong: another attempt would be as large."""

_SECONDS = re.compile(r"^(\d+(?:\.\d+)?)s$")
_ANSWERS = ("choices", "content", "candidates")
_USAGES = ("usage", "usageMetadata")


class Wire:
    """HTTP for one provider. Safe under threads.

    The transport's own timeout counts from byte to byte, and a server that sends a blank now and then would never be
    late; here the whole answer, headers included, must be there within `seconds` of the start, streams as well.

    Errors come in as many shapes as there are servers. They are put into OpenAI's and Google's common one
    (`{"error": {"message": ...}}`), which dspy's client reads. A token count that is
    none is made unknown, so that the answer beside it stands. Nothing else of a reply is changed.

    Args:
        seconds: until the whole answer is there.
        largest: bytes of a reply, unpacked.
        direct: no proxy of the environment is used: what listens on this machine is not behind one.
        clock: seconds.
    """

    def __init__(
        self,
        seconds: float,
        *,
        direct: bool = False,
        largest: int = LARGEST_REPLY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._largest = largest
        self._clock = clock
        self._transport = _Transport(
            clock,
            connect_timeout=min(CONNECT_SECONDS, seconds),
            read_timeout=seconds,
            write_timeout=seconds,
            pool_timeout=seconds,
            trust_env=not direct,
        )

    def stream(self, request: TransportRequest) -> TransportResponse:
        """Send a request and wait for its whole reply.

        Raises:
            lm15's transport errors, which its clients know.
            lm15.ProviderError: the reply is larger than `largest`, packed twice, or nested too deeply to be read.
        """
        due = _Due(request.method, request.url, request.headers, request.body, late=self._clock() + self._seconds)
        with self._transport.stream(due) as response:
            try:
                status, body, pause = readable(response.status, self._whole(response))
            except lm15.ProviderError:
                if response.status < 400:
                    raise
                status, body, pause = response.status, b"", None  # an error is one without its words, too
        headers = list(response.headers)
        if pause is not None and response.header("retry-after") is None:
            headers.append(("Retry-After", f"{pause:g}"))
        return TransportResponse(
            status=status,
            reason=response.reason,
            headers=headers,
            http_version=response.http_version,
            chunks=iter((body,)),
            release=lambda _: None,
        )

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _whole(self, response: TransportResponse) -> bytes:
        if len(_codings(response)) > 1:  # each unpacks a thousandfold, and the first is not seen until the last is done
            raise lm15.ProviderError("the reply is packed more than once", status=response.status)
        chunks: list[bytes] = []
        left = self._largest
        for chunk in response:
            left -= len(chunk)
            if left < 0:
                raise lm15.ProviderError(
                    f"the reply is larger than {self._largest:,} bytes",
                    status=response.status,
                    provider_code=REPLY_TOO_LARGE,
                )
            chunks.append(chunk)
        return b"".join(chunks)


@dataclass(slots=True)
class _Due(TransportRequest):
    """A request whose reply must be there when the clock says `late`."""

    late: float = field(default=math.inf, kw_only=True)


class _TimedSocket:
    """A socket that waits until a moment instead of for a while."""

    def __init__(self, inner: Any, clock: Callable[[], float]) -> None:
        self.late = math.inf
        self._inner = inner
        self._clock = clock

    def settimeout(self, seconds: float) -> None:
        """Not heeded: `late` is what counts."""

    def sendall(self, content: bytes) -> None:
        self._inner.settimeout(self._left())
        self._inner.sendall(content)

    def recv(self, most: int) -> bytes:
        self._inner.settimeout(self._left())
        return self._inner.recv(most)

    def fileno(self) -> int:
        return self._inner.fileno()

    def close(self) -> None:
        self._inner.close()

    def _left(self) -> float:
        left = self.late - self._clock()
        if left <= 0:
            raise TimeoutError("timed out")
        return left


class _Transport(StdlibTransport):
    """The transport with one deadline for all that is sent and received for one request."""

    def __init__(self, clock: Callable[[], float], **options: Any) -> None:
        super().__init__(**options)
        self._clock = clock

    def _open(self, *place: Any, **options: Any) -> Any:
        connection: Any = super()._open(*place, **options)
        connection.sock = _TimedSocket(connection.sock, self._clock)
        return connection

    def _send_request(self, conn: Any, request: Any, *place: Any, **options: Any) -> None:
        conn.sock.late = request.late
        super()._send_request(conn, request, *place, **options)


def _codings(response: TransportResponse) -> list[str]:
    named = (
        coding.strip().lower() for value in response.headers_all("content-encoding") for coding in value.split(",")
    )
    return [coding for coding in named if coding and coding != "identity"]


def readable(status: int, body: bytes) -> tuple[int, bytes, float | None]:
    """Status, body and pause (seconds, or None) of a reply whose error, if it is one, stands where clients look.

    A reply that holds nothing but an error is one, whatever its status says: some gateways send the failure of the
    server behind them with status 200.

    Raises:
        lm15.ProviderError: it is nested too deeply to be read.

    >>> readable(422, b'{"detail": "no such field"}')
    (422, b'{"error": {"message": "no such field", "type": null, "code": null}}', None)
    >>> readable(200, b'{"error": {"message": "upstream is down", "code": 502}}')[0]
    502
    """
    try:
        data = json.loads(body)
    except ValueError:
        return status, body, None
    except RecursionError:
        raise lm15.ProviderError("the reply is nested too deeply to be read", status=status) from None
    if isinstance(data, list) and len(data) == 1:  # Google wraps some errors into a list
        data = data[0]
    if not isinstance(data, Mapping) or (status < 400 and not _is_only_an_error(data)):
        return status, _with_true_counts(data, body), None
    error = data.get("error")
    inner: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    if status < 400:
        status = _status_in(inner)
    words = _words(data, inner)
    if words:
        whole = {"type": data.get("type"), "code": data.get("code"), **inner, "message": words}
        rest = {name: data[name] for name in ("type", "request_id") if name in data}
        named = {"message": words, **{name: whole[name] for name in whole if name != "message"}}
        body = json.dumps({**rest, "error": named}).encode()
    return status, body, _pause(inner)


def _with_true_counts(data: Any, body: bytes) -> bytes:
    """The body, in which every count of tokens is a count or null; as it was when that is so already."""
    if not isinstance(data, Mapping):
        return body
    told = {name: data[name] for name in _USAGES if data.get(name) is not None}
    true = {name: _true_counts(usage) for name, usage in told.items()}
    # Compared as text: to Python, True equals 1.
    return body if json.dumps(told) == json.dumps(true) else json.dumps({**data, **true}).encode()


def _true_counts(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, Mapping):
        return None
    return {name: _true_count(name, value) if "token" in name.lower() else value for name, value in usage.items()}


def _true_count(name: str, value: Any) -> Any:
    if name.endswith("_details"):
        return _true_counts(value)
    if name.endswith("Details"):  # Gemini: one entry per modality
        return [entry for entry in _mappings(value) if _is_count(entry.get("tokenCount"))]
    return value if _is_count(value) else None


def _mappings(value: Any) -> Iterable[Mapping[str, Any]]:
    return (entry for entry in value if isinstance(entry, Mapping)) if isinstance(value, list) else ()


def _is_count(value: Any) -> bool:
    """Whether it is a whole number that is not negative; 12.0 is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_only_an_error(data: Mapping[str, Any]) -> bool:
    return bool(data.get("error")) and not any(data.get(name) for name in _ANSWERS)


def _status_in(error: Mapping[str, Any]) -> int:
    code = error.get("code")
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def _words(data: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    """The words of the first place that has some."""
    said = inner.get("message") or data.get("error") or data.get("detail") or data.get("message") or data.get("msg")
    raw = (inner.get("metadata") or {}).get("raw") if isinstance(inner.get("metadata"), Mapping) else None
    words = _flat(said)
    # OpenRouter says "Provider returned error" and keeps the provider's own words beside it.
    return f"{words}: {_flat(raw)}" if raw else words


def _flat(said: Any) -> str:
    if isinstance(said, str):
        return said
    if isinstance(said, list):  # FastAPI: one entry per field that is wrong
        return "; ".join(filter(None, (_flat(item) for item in said)))
    if isinstance(said, Mapping):
        where = ".".join(str(step) for step in said.get("loc", ()) if step != "body")
        words = said.get("msg") or said.get("message")
        if words:
            return f"{where}: {words}" if where else str(words)
    return json.dumps(said, ensure_ascii=False) if said else ""


def _pause(error: Mapping[str, Any]) -> float | None:
    """Google says in the body how long to wait: `{"@type": ".../RetryInfo", "retryDelay": "17s"}`."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        said = _SECONDS.match(str(detail.get("retryDelay", ""))) if isinstance(detail, Mapping) else None
        if said:
            return float(said.group(1))
    return None
