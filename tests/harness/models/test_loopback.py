import http.client
import json
import time
from urllib.parse import urlsplit

import pytest

from harness.models.dialects import DIALECTS, Answer, Fault
from harness.models.loopback import LoopbackServer, Reply, answer, fault


def _post(server, body=b"{}", timeout=10.0):
    parts = urlsplit(server.api_base)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    try:
        connection.request("POST", "/v1/chat/completions", body, {"X-Test": "yes"})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def test_replies_come_in_order_and_the_last_one_stays():
    with LoopbackServer(["a", "b"]) as server:
        texts = [json.loads(_post(server)[2])["choices"][0]["message"]["content"] for _ in range(3)]

    assert texts == ["a", "b", "b"]
    assert [request.path for request in server.requests] == ["/v1/chat/completions"] * 3
    assert server.requests[0].headers["x-test"] == "yes"


def test_a_function_sees_what_was_received():
    with LoopbackServer(lambda received: received.body["say"]) as server:
        body = json.loads(_post(server, b'{"say": "it"}')[2])

    assert body["choices"][0]["message"]["content"] == "it"


def test_an_answer_has_the_usage_it_was_given():
    body = answer("x", finish_reason="length", input_tokens=3, output_tokens=4).body

    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert body["choices"][0]["finish_reason"] == "length"


def test_a_fault_has_status_header_and_words():
    with LoopbackServer([fault(429, "slow", retry_after=1.5)]) as server:
        status, headers, body = _post(server)

    assert (status, headers["Retry-After"]) == (429, "1.5")
    assert json.loads(body)["error"]["message"] == "slow"


def test_bytes_are_sent_as_they_are():
    with LoopbackServer([Reply(body=b"half {", headers={"Content-Type": "text/plain"})]) as server:
        _, headers, body = _post(server)

    assert (headers["Content-Type"], body) == ("text/plain", b"half {")


def test_hanging_up():
    with LoopbackServer([Reply(hang_up=True)]) as server, pytest.raises(http.client.RemoteDisconnected):
        _post(server)


def test_a_slow_reply_does_not_outlive_its_server():
    began = time.monotonic()
    with LoopbackServer([Reply(delay=60)]) as server, pytest.raises(TimeoutError):
        _post(server, timeout=0.05)

    assert time.monotonic() - began < 30


def test_it_listens_on_this_machine_only():
    with LoopbackServer(["x"]) as server:
        assert server.api_base.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_answers_and_faults_are_worded_in_its_dialect(dialect):
    with LoopbackServer([Answer("x"), Fault(429, "slow", retry_after=2)], dialect) as server:
        assert server.api_base.endswith(dialect.root)
        told = [_post(server) for _ in range(2)]

    assert json.loads(told[0][2]) == dialect.answer(Answer("x"))
    assert json.loads(told[1][2]) == dialect.fault(Fault(429, "slow"))
    assert (told[1][0], told[1][1]["Retry-After"]) == (429, "2")
