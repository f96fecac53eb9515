"""The connection below a provider's dialect: one deadline per answer, errors in readable words, no proxy to oneself."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dspy._vendor.lm15.transports import ReadTimeout, StdlibTransport, TransportRequest, TransportResponse

CONNECT_SECONDS = 3.0
"""How long a server may take to accept a connection: a dead address is found out long before an answer is late."""

_SECONDS = re.compile(r"^(\d+(?:\.\d+)?)s$")
_ANSWERS = ("choices", "content", "candidates")


class Wire:
    """HTTP for one provider. Safe under threads.

    The transport's own timeout counts from byte to byte, and a server that sends a blank now and then would never be
    late; here the whole answer must be there within `seconds`, give or take one pause.

    Errors come in as many shapes as there are servers. They are put into OpenAI's and Google's common one
    (`{"error": {"message": ...}}`), which dspy's client reads; nothing else of a reply is changed.

    Args:
        seconds: until the whole answer is there.
        direct: no proxy of the environment is used: what listens on this machine is not behind one.
        clock: seconds.
    """

    def __init__(self, seconds: float, *, direct: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._transport = StdlibTransport(
            connect_timeout=min(CONNECT_SECONDS, seconds),
            read_timeout=seconds,
            write_timeout=seconds,
            pool_timeout=seconds,
            trust_env=not direct,
        )

    def stream(self, request: TransportRequest) -> TransportResponse:
        """Send a request and wait for its whole reply; one that is really a stream is passed on as it is.

        Raises:
            lm15's transport errors, which its clients know.
        """
        late = self._clock() + self._seconds
        response = self._transport.stream(request)
        if (response.header("content-type") or "").startswith("text/event-stream"):
            return response
        with response:
            body = b"".join(self._until(late, response))
        status, body, pause = readable(response.status, body)
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

    def _until(self, late: float, response: TransportResponse) -> Iterator[bytes]:
        for chunk in response:
            yield chunk
            if self._clock() > late:
                raise ReadTimeout(f"the answer was not complete after {self._seconds:g} seconds: timed out")


def readable(status: int, body: bytes) -> tuple[int, bytes, float | None]:
    """Status, body and pause (seconds, or None) of a reply whose error, if it is one, stands where clients look.

    A reply that holds nothing but an error is one, whatever its status says: some gateways send the failure of the
    server behind them with status 200.

    >>> readable(422, b'{"detail": "no such field"}')
    (422, b'{"error": {"message": "no such field", "type": null, "code": null}}', None)
    >>> readable(200, b'{"error": {"message": "upstream is down", "code": 502}}')[0]
    502
    """
    try:
        data = json.loads(body)
    except ValueError:
        return status, body, None
    if isinstance(data, list) and len(data) == 1:  # Google wraps some errors into a list
        data = data[0]
    if not isinstance(data, Mapping) or (status < 400 and not _is_only_an_error(data)):
        return status, body, None
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
