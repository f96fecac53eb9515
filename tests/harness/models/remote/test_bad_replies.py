"""Replies without an end, without measure and without sense: each is one fault of one request."""

import contextlib
import gzip
import json
import socket
import threading

import pytest
from dspy import lm15
from dspy._vendor.lm15.transports import ReadTimeout, TransportRequest
from dspy.lm15 import Request

from harness.models.config import ModelConfig
from harness.models.dialects import ANTHROPIC, DIALECTS, GEMINI, OPENAI, Answer
from harness.models.faults import fault_name
from harness.models.loopback import LoopbackServer, Reply
from harness.models.remote.dspy_provider import DspyProvider
from harness.models.remote.wire import REPLY_TOO_LARGE, Wire, readable

MODELS = {"Anthropic": "anthropic/claude-x", "Gemini": "gemini/gemini-x", "OpenRouter": "openrouter/meta/x"}
QUESTION = Request(model="m", messages=(lm15.Message.user("q"),))
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"


class Dripping:
    """A server that says `first` and then `again` every 5 ms, until the client leaves."""

    def __init__(self, first, again):
        self._first, self._again = first, again
        self._closing = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.api_base = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._closing.set()
        self._thread.join()
        self._listening.close()

    def _serve(self):
        with contextlib.suppress(OSError), self._listening.accept()[0] as client:
            client.sendall(self._first)
            while not self._closing.wait(0.005):
                client.sendall(self._again)


def _ask(server, model="openai/x", **settings):
    provider = DspyProvider("judge", ModelConfig(model, api_base=server.api_base, **settings), {})
    try:
        return provider.complete(QUESTION)
    finally:
        provider.close()


def _post(server, wire):
    try:
        return wire.stream(TransportRequest("POST", f"{server.api_base}/chat/completions", body=b"{}")).read()
    finally:
        wire.close()


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (HEAD, b"X-Slow: 1\r\n"),
        (b"H", b""),
        (CHUNKED + b"Content-Type: text/event-stream\r\n\r\n", b"8\r\n: ping\n\n\r\n"),
        (CHUNKED + b"\r\n", b"1\r\n \r\n"),
        (CHUNKED + b"\r\n2\r\n{}\r\n0\r\n", b"X-Trailer: 1\r\n"),
        (CHUNKED + b"Content-Encoding: gzip\r\n\r\n", b"14\r\n" + gzip.compress(b"") + b"\r\n"),
        (HEAD + b"\r\n", b" "),
    ],
    ids=["headers", "silence", "pings", "blanks", "trailers", "packed nothing", "until it closes"],
)
def test_whatever_trickles_in_the_answer_is_late(first, again):
    with Dripping(first, again) as server, pytest.raises(lm15.TimeoutError) as caught:
        _ask(server, timeout=0.15)

    assert str(caught.value) == "no answer within 0.15 seconds (models.judge.timeout)"


def test_every_request_on_a_connection_has_its_own_deadline():
    now = [0.0]
    wire = Wire(5.0, direct=True, clock=lambda: now[0])

    def later(_):
        now[0] += 4.0
        return Reply(body={"choices": [1]})

    with LoopbackServer(later) as server:
        request = TransportRequest("POST", f"{server.api_base}/chat/completions", body=b"{}")
        bodies = [wire.stream(request).read() for _ in range(3)]
        stats = wire._transport.pool_stats()
    wire.close()

    assert bodies == [b'{"choices": [1]}'] * 3
    assert stats["total_opened"] == 1


def test_what_comes_after_the_deadline_is_not_read():
    now = [0.0]

    def later(_):
        now[0] += 6.0
        return Reply(body=b"x" * 1_000_000)

    with LoopbackServer(later) as server, pytest.raises(ReadTimeout):
        _post(server, Wire(5.0, direct=True, clock=lambda: now[0]))


PACKED = {"Content-Encoding": "gzip"}
LARGE = b"x" * 1_000_001


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (LARGE, {}),
        (LARGE, {"Content-Type": "text/event-stream"}),
        (gzip.compress(LARGE), PACKED),
    ],
    ids=["plain", "stream", "packed"],
)
def test_a_reply_too_large_is_not_read_to_its_end(body, headers):
    wire = Wire(5.0, direct=True, largest=1_000_000)
    larger = pytest.raises(lm15.ProviderError, match=r"^the reply is larger than 1,000,000 bytes")
    with LoopbackServer([Reply(body=body, headers=headers)]) as server, larger as caught:
        _post(server, wire)

    assert (fault_name(caught.value), caught.value.provider_code) == ("unreadable_reply", REPLY_TOO_LARGE)


def test_a_reply_just_small_enough_is_read():
    with LoopbackServer([Reply(body=gzip.compress(LARGE), headers=PACKED)]) as server:
        assert _post(server, Wire(5.0, direct=True, largest=len(LARGE))) == LARGE


def test_a_flood_without_end_is_left():
    chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    larger = pytest.raises(lm15.ProviderError, match="larger than 25,000 bytes")
    with Dripping(CHUNKED + b"\r\n", chunk) as server, larger:
        _post(server, Wire(5.0, direct=True, largest=25_000))


def test_what_is_packed_twice_is_not_unpacked():
    twice = Reply(body=gzip.compress(gzip.compress(b"{}")), headers={"Content-Encoding": "gzip, gzip"})
    with LoopbackServer([twice]) as server, pytest.raises(lm15.ProviderError, match="packed more than once") as caught:
        _ask(server)

    assert fault_name(caught.value) == "unreadable_reply"


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"choices":' * 100_000, b"[" * 50_000 + b"]" * 50_000])
def test_a_reply_nested_too_deeply_is_unreadable(body):
    with LoopbackServer([Reply(body=body)]) as server, pytest.raises(lm15.ProviderError) as caught:
        _ask(server)

    assert fault_name(caught.value) == "unreadable_reply"
    assert str(caught.value).startswith("the reply is nested too deeply to be read")


def test_a_readers_own_depth_is_no_end_of_the_run(monkeypatch):
    def too_deep(_):
        raise RecursionError("maximum recursion depth exceeded")

    provider = DspyProvider("judge", ModelConfig("openai/x", api_base="http://127.0.0.1:9/v1"), {})
    monkeypatch.setattr(provider._engine, "complete", too_deep)
    with pytest.raises(lm15.ProviderError, match="not a completion: maximum recursion depth") as caught:
        provider.complete(QUESTION)
    provider.close()

    assert fault_name(caught.value) == "unreadable_reply"


def test_an_error_that_cannot_be_read_is_still_that_error():
    with LoopbackServer([Reply(503, b"[" * 200_000)]) as server, pytest.raises(lm15.ServerError, match="HTTP 503"):
        _ask(server)


NO_COUNTS = ["12", "many", 1.5, float("nan"), float("inf"), -1, True, [1], {"a": 1}, None]
COUNTED = {"OpenAI": "prompt_tokens", "Anthropic": "input_tokens", "Gemini": "promptTokenCount"}


def _usage_of(usage, dialect):
    place = "usageMetadata" if dialect is GEMINI else "usage"
    body = {**dialect.answer(Answer("the answer")), place: usage}
    with LoopbackServer([Reply(body=body)], dialect) as server:
        response = _ask(server, MODELS.get(dialect.name, "openai/x"))
    assert response.text == "the answer"
    return response.usage


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC, GEMINI], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("count", NO_COUNTS, ids=repr)
def test_a_count_that_is_none_is_unknown(dialect, count):
    answer = dialect.answer(Answer("the answer"))
    usage = answer["usageMetadata" if dialect is GEMINI else "usage"]
    counts = dict.fromkeys([*usage, *COUNTED.values()], count)
    counted = _usage_of(counts, dialect)

    assert (counted.input_tokens, counted.output_tokens, counted.total_tokens) == (None, None, None)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("usage", [[1, 2], "many", 7, True, None, [], {}], ids=repr)
def test_usage_that_is_none_is_unknown(dialect, usage):
    assert _usage_of(usage, dialect) == lm15.Usage()


@pytest.mark.parametrize("details", [[1], "x", 5, {"cached_tokens": "3", "audio_tokens": -1}, {"cached_tokens": True}])
def test_details_that_are_none_leave_the_counts_beside_them(details):
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": details, "cost": 0.5}
    counted = _usage_of(usage, OPENAI)

    assert (counted.input_tokens, counted.output_tokens, counted.cache_read_tokens) == (10, 5, None)


@pytest.mark.parametrize("details", [[1], "x", [{"modality": "AUDIO", "tokenCount": "3"}], {"a": 1}])
def test_geminis_details_that_are_none_leave_the_counts_beside_them(details):
    counted = _usage_of({"promptTokenCount": 10, "candidatesTokenCount": 5, "promptTokensDetails": details}, GEMINI)

    assert (counted.input_tokens, counted.output_tokens, counted.input_audio_tokens) == (10, 5, None)


def test_usage_that_is_right_is_left_as_it_came():
    details = [{"modality": "AUDIO", "tokenCount": 3}]
    usage = {
        "prompt_tokens": 12.0,
        "cost": 0.5,
        "tier": "standard",
        "total_tokens": None,
        "promptTokensDetails": details,
    }
    body = json.dumps({"choices": [1], "usage": usage}, indent=3).encode()

    assert readable(200, body) == (200, body, None)
