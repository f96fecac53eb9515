"""The connection itself: its deadline, its errors, its proxies."""

import json
import socket

import pytest
from dspy._vendor.lm15.transports import ConnectTimeout, TransportRequest

from harness.models.loopback import LoopbackServer, Reply
from harness.models.remote.wire import CONNECT_SECONDS, Wire, readable


def _post(wire, server):
    return wire.stream(TransportRequest("POST", f"{server.api_base}/chat/completions", body=b"{}"))


@pytest.fixture
def wire():
    wire = Wire(5.0, direct=True)
    yield wire
    wire.close()


def test_a_reply_comes_as_it_was_sent(wire):
    body = '{"choices": [{"message": {"content": "静脉"}}]}'.encode()
    with LoopbackServer([Reply(body=body, headers={"X-Id": "7"})]) as server:
        response = _post(wire, server)

    assert (response.status, response.read(), response.header("x-id")) == (200, body, "7")


def test_connections_are_used_again(wire):
    with LoopbackServer([Reply(body={"choices": [1]})]) as server:
        for _ in range(3):
            _post(wire, server).read()

    assert wire._transport.pool_stats()["total_opened"] == 1


def test_a_server_that_accepts_nothing_is_given_up_soon(monkeypatch):
    asked = []

    def refuse(address, timeout=None, **_):
        asked.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", refuse)
    for seconds in (120.0, 0.5):
        wire = Wire(seconds)
        with pytest.raises(ConnectTimeout):
            wire.stream(TransportRequest("POST", "http://192.0.2.1/v1/chat/completions"))
        wire.close()

    assert asked == [CONNECT_SECONDS, 0.5]


def test_what_listens_on_this_machine_is_not_asked_through_a_proxy(monkeypatch, wire):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with LoopbackServer([Reply(body={"choices": [1]})]) as server:
        assert _post(wire, server).status == 200


def test_what_calls_itself_a_stream_is_read_to_its_end(wire):
    stream = Reply(body=b"data: 1\n\n", headers={"Content-Type": "text/event-stream"})
    with LoopbackServer([stream]) as server, _post(wire, server) as response:
        assert list(response.iter_lines()) == [b"data: 1\n", b"\n"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b'{"choices": []}'),
        (200, b'{"choices": [1], "error": null}'),
        (200, b'{"choices": [1], "error": {"message": "late"}}'),
        (200, b"half {"),
        (500, b"<html>"),
        (500, b"[1, 2]"),
    ],
)
def test_what_is_no_error_or_cannot_be_read_is_left_alone(status, body):
    assert readable(status, body) == (status, body, None)


@pytest.mark.parametrize("code", ["rate_limit", None, 7, True, 200])
def test_an_error_with_status_200_and_no_status_inside_is_the_servers(code):
    assert readable(200, json.dumps({"error": {"message": "oops", "code": code}}).encode())[0] == 500
