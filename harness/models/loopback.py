"""A tiny model server on 127.0.0.1 with scripted replies and faults, for tests of a real wire.

It speaks OpenAI's chat dialect, or whichever of `dialects` it is told.

>>> import urllib.request
>>> with LoopbackServer(["hello"]) as server:
...     body = b'{"model": "m", "messages": []}'
...     with urllib.request.urlopen(f"{server.api_base}/chat/completions", body) as response:
...         reply = json.load(response)
>>> reply["choices"][0]["message"]["content"], server.requests[0].body["model"]
('hello', 'm')
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harness.models.dialects import OPENAI, Answer, Dialect, Fault


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server sends back once.

    Attributes:
        status: HTTP status.
        body: JSON data, or bytes sent as they are.
        headers: besides length and type.
        delay: seconds before anything is sent; the server's `close` cuts it short.
        hang_up: close the connection without a reply.
    """

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hang_up: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived: path, headers (names in lower case) and JSON body."""

    path: str
    headers: Mapping[str, str]
    body: Any


Said = str | Answer | Fault | Reply
"""A text is a complete answer; answers and faults are worded in the server's dialect; a Reply is sent as it is."""
Script = Sequence[Said] | Callable[[Received], Said]
"""Replies in order, the last one repeated; or a function of the request."""


def answer(text: str, *, finish_reason: str = "stop", input_tokens: int = 10, output_tokens: int = 5) -> Reply:
    """A chat completion with this text, in OpenAI's dialect."""
    body = OPENAI.answer(Answer(text, input_tokens=input_tokens, output_tokens=output_tokens))
    body["choices"][0]["finish_reason"] = finish_reason
    return Reply(body=body)


def fault(status: int, message: str, *, code: str | None = None, retry_after: float | None = None) -> Reply:
    """An error, in OpenAI's dialect."""
    return _worded(Fault(status, message, code, retry_after), OPENAI)


def _worded(said: Said, dialect: Dialect) -> Reply:
    if isinstance(said, Reply):
        return said
    if isinstance(said, Fault):
        headers = {} if said.retry_after is None else {"Retry-After": f"{said.retry_after:g}"}
        return Reply(said.status, dialect.fault(said), headers)
    return Reply(body=dialect.answer(Answer(said) if isinstance(said, str) else said))


class LoopbackServer:
    """Serves the script on a port of its own from construction to `close`; a context manager.

    Args:
        script: see `Script`.
        dialect: how answers and faults are worded.

    Attributes:
        requests: everything received, in order.
        api_base: for a model's `api_base`.
    """

    def __init__(self, script: Script, dialect: Dialect = OPENAI) -> None:
        self.requests: list[Received] = []
        self._script = script
        self._dialect = dialect
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.api_base = f"http://127.0.0.1:{self._server.server_address[1]}{dialect.root}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> LoopbackServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and end what is still waiting."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next_reply(self, received: Received) -> Reply:
        """Note the request and give the script's reply to it."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(received)
        script = self._script
        said = script(received) if callable(script) else script[min(number, len(script) - 1)]
        reply = _worded(said, self._dialect)
        self._closing.wait(reply.delay)
        return reply


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else every second keep-alive reply waits 40 ms for an acknowledgement

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.next_reply(Received(self.path, headers, body))
            if reply.hang_up:
                self.close_connection = True
                return
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except ConnectionError:  # the client gave up waiting, which is what a slow reply is for
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on stderr."""

    return Handler
