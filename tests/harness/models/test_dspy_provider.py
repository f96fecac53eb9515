"""Remote models over a real wire: a loopback server that answers, refuses, hangs and breaks off."""

import socket
import subprocess
import sys
import textwrap

import dspy
import pydantic
import pytest

from harness.errors import ProgramFailure, RunStopped, StopReason
from harness.models.config import ModelConfig
from harness.models.dspy_provider import DspyProvider
from harness.models.ledger import Ledger
from harness.models.loopback import LoopbackServer, Reply, answer, fault
from harness.models.roles import Endpoints, build_role_lm
from harness.results import RoleUsage

KEY = "sk-loopback-1234567890"


@pytest.fixture
def connect(store, ledger, waits):
    """Builds an LM on a server: `connect(server, "openai/m", **settings of the model)`."""
    opened = []

    def build(server, model="openai/m", role="judge", environ=None, **settings):
        endpoints = Endpoints({"KEY": KEY} if environ is None else environ)
        opened.append(endpoints)
        config = ModelConfig(model, **{"api_base": server.api_base, "api_key_env": "KEY", **settings})
        return build_role_lm(role, config, endpoints=endpoints, store=store, ledger=ledger, wait=waits.append)

    yield build
    for endpoints in opened:
        endpoints.close()


def test_a_compatible_server_gets_what_every_such_server_understands(connect, ledger):
    with LoopbackServer([answer("hi", input_tokens=12, output_tokens=3)]) as server:
        lm = connect(server, temperature=0.0, max_tokens=77, price=(1.0, 10.0))
        assert lm("hello ℃") == ["hi"]
        assert lm("hello ℃") == ["hi"]

    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello ℃"}],
        "max_tokens": 77,
        "temperature": 0.0,
    }
    assert ledger.usage()["judge"] == RoleUsage(1, 1, 12, 3, pytest.approx(42e-6))


@pytest.mark.parametrize(
    ("model", "path", "key_header"),
    [
        ("openai/m", "/v1/chat/completions", "authorization"),
        ("openai/gpt-5-mini", "/v1/chat/completions", "authorization"),
        ("ollama/llama3", "/v1/chat/completions", "authorization"),
        ("openrouter/meta/llama-3", "/v1/chat/completions", "authorization"),
        ("anthropic/claude-sonnet-4-5", "/v1/messages", "x-api-key"),
        ("gemini/gemini-2.5-flash", "/v1/models/gemini-2.5-flash:generateContent", "x-goog-api-key"),
    ],
)
def test_each_provider_is_spoken_to_in_its_own_dialect(connect, model, path, key_header):
    with LoopbackServer([fault(401, "no")]) as server, pytest.raises(RunStopped, match="no"):
        connect(server, model)("q")

    assert server.requests[0].path == path
    assert KEY in server.requests[0].headers[key_header]


def test_sampled_requests_carry_a_seed(connect):
    with LoopbackServer(["a", "b"]) as server:
        lm = connect(server, temperature=0.8)
        lm("q", rollout_id=1)
        lm("q", rollout_id=2)

    assert len({request.body["seed"] for request in server.requests}) == 2


def test_a_reasoning_model_gets_no_temperature(connect):
    with LoopbackServer(["a", "b"]) as server:
        lm = connect(server, "openai/gpt-5-mini")
        lm("q")
        lm("q", temperature=0.7, rollout_id=1)

    assert [request.body.get("temperature") for request in server.requests] == [None, None]
    assert server.requests[0].body["max_completion_tokens"] == 32_000


@pytest.mark.parametrize(("declared", "sent"), [("auto", None), (True, "json_schema"), (False, None)])
def test_a_schema_is_sent_to_an_unknown_server_only_when_the_file_says_so(connect, declared, sent):
    class Invoice(pydantic.BaseModel):
        vendor: str

    signature = dspy.Signature({"text": (str, dspy.InputField()), "invoice": (Invoice, dspy.OutputField())}, "Read.")
    with LoopbackServer(['{"invoice": {"vendor": "ACME"}}']) as server:
        lm = connect(server, response_schema=declared)
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            assert dspy.Predict(signature)(text="ACME").invoice == Invoice(vendor="ACME")

    assert (server.requests[0].body.get("response_format") or {}).get("type") == sent
    assert lm.supports_response_schema is (sent is not None)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (fault(401, f"Incorrect API key provided: {KEY}."), r"Incorrect API key provided: \*\*\*"),
        (fault(404, "The model `m` does not exist", code="model_not_found"), "The model `m` does not exist"),
        (fault(402, "Payment required"), "Payment required"),
        (fault(429, "You exceeded your current quota", code="insufficient_quota"), "You exceeded your current quota"),
        (fault(400, "response_format is not supported"), "response_format is not supported"),
    ],
)
def test_a_dead_model_stops_the_run_at_its_first_call_in_the_providers_words(connect, reply, sentence, waits):
    with LoopbackServer([reply]) as server:
        lm = connect(server)
        with pytest.raises(RunStopped, match=f"judge model 'openai/m' at 127.0.0.1:[0-9]+: {sentence}") as caught:
            lm("q")
        with pytest.raises(RunStopped, match=sentence):
            lm("another")

    assert caught.value.reason is StopReason.MODEL
    assert (len(server.requests), waits) == (1, [])


def test_a_429_is_waited_out_and_is_no_score(connect, waits):
    with LoopbackServer([fault(429, "slow down", retry_after=3), fault(500, "oops"), answer("fine")]) as server:
        assert connect(server)("q") == ["fine"]

    assert waits == [3.0, 2.0]
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("reply", "settings", "sentence"),
    [
        (fault(500, "boom"), {}, "boom"),
        (Reply(503, b""), {}, "HTTP 503"),
        (Reply(hang_up=True), {}, "closed connection"),
        (Reply(delay=5.0), {"timeout": 0.2}, r"no answer within 0\.2 seconds \(models\.judge\.timeout\)"),
        (Reply(body=b'{"choices": [{"mess'), {}, "is not JSON"),
        (Reply(body=b"<html>sorry</html>", headers={"Content-Type": "text/html"}), {}, "is not JSON"),
        (Reply(body=[1, 2]), {}, "the reply is not a completion"),
    ],
)
def test_what_may_pass_is_tried_four_times(connect, waits, reply, settings, sentence):
    with LoopbackServer([reply]) as server, pytest.raises(RunStopped, match=rf"{sentence}.*\(4 attempts\)"):
        connect(server, **settings)("q")

    assert len(server.requests) == 4
    assert len(waits) == 3


def test_half_a_json_document_once_is_asked_again(connect):
    with LoopbackServer([Reply(body=b'{"choi'), "whole"]) as server:
        assert connect(server)("q") == ["whole"]


def test_an_unreachable_server(connect, ledger):
    with LoopbackServer(["never"]) as server:
        pass

    with pytest.raises(RunStopped, match=r"judge model 'openai/m' at 127\.0\.0\.1:[0-9]+: .*\(4 attempts\)"):
        connect(server)("q")
    assert ledger.usage()["judge"].calls == 4


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (answer("half a", finish_reason="length"), r"answer cut at max_tokens=4096; raise models\.judge\.max_tokens"),
        (answer(""), "empty answer"),
        (answer("x", finish_reason="content_filter"), "refused to answer"),
        (Reply(body={"choices": []}), "empty answer"),
        (Reply(body={}), "empty answer"),
        (fault(400, "maximum context length is 4096 tokens", code="context_length_exceeded"), "4096 tokens"),
        (
            Reply(
                body={
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": "stop",
                            "message": {"role": "assistant", "content": None, "refusal": "no thanks"},
                        }
                    ]
                }
            ),
            "refused to answer: no thanks",
        ),
    ],
)
def test_an_unusable_answer_fails_one_example_and_no_other(connect, reply, sentence):
    with LoopbackServer([reply, "good"]) as server:
        lm = connect(server)
        with pytest.raises(ProgramFailure, match=sentence):
            lm("q")
        assert lm("another") == ["good"]


def test_two_models_never_see_each_others_key_or_address(connect):
    with LoopbackServer(["a"]) as mistral, LoopbackServer(["b"]) as other:
        environ = {"MISTRAL": "key-of-mistral", "OTHER": "key-of-other", "OPENAI_API_KEY": "key-of-openai"}
        connect(mistral, "openai/mistral-small", environ=environ, api_key_env="MISTRAL")("q")
        connect(other, "openai/gpt-4o", environ=environ, api_key_env="OTHER")("q")
        connect(other, "openai/gpt-4o-mini", environ=environ, api_key_env=None)("q")

    assert [r.headers["authorization"] for r in mistral.requests] == ["Bearer key-of-mistral"]
    assert [r.headers["authorization"] for r in other.requests] == ["Bearer key-of-other", "Bearer EMPTY"]
    assert [r.body["model"] for r in other.requests] == ["gpt-4o", "gpt-4o-mini"]


def test_the_key_is_in_no_file_and_no_repr(connect, store, tmp_path):
    with LoopbackServer([answer("fine"), fault(401, f"bad {KEY}")]) as server:
        lm = connect(server)
        lm("q")
        with pytest.raises(RunStopped):
            lm("r")
        seen = repr(lm.__dict__) + repr(lm.history) + repr(lm.engine.__dict__) + repr(lm.engine.provider)
    store.close()

    assert KEY not in seen
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_credentials_in_an_address_are_blotted_out(connect):
    with LoopbackServer([fault(401, "who is me:pass?")]) as server:
        base = server.api_base.replace("http://", "http://me:pass@")
        with pytest.raises(RunStopped) as caught:
            connect(server, api_base=base)("q")

    assert "pass" not in caught.value.message
    assert "127.0.0.1" in caught.value.message


def test_a_gateway_in_the_environment_is_used_and_names_the_endpoint(connect):
    with LoopbackServer(["via gateway"]) as server:
        environ = {"OPENAI_BASE_URL": server.api_base, "OPENAI_API_KEY": KEY}
        lm = connect(server, "openai/gpt-4.1-mini", environ=environ, api_base=None, api_key_env=None)
        direct = connect(
            server, "openai/gpt-4.1-mini", environ={"OPENAI_API_KEY": KEY}, api_base=None, api_key_env=None
        )
        assert lm("q") == ["via gateway"]

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert lm.model != direct.model


def test_nothing_but_the_endpoint_is_contacted(connect, monkeypatch):
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    reached = []
    connect_socket = socket.socket.connect

    def watched(self, address):
        reached.append(address[0])
        return connect_socket(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    with LoopbackServer(["fine"]) as server:
        connect(server, price=(1, 1))("q")

    assert set(reached) == {"127.0.0.1"}


def test_a_provider_only_litellm_knows_goes_through_litellm(tmp_path):
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from harness.models.config import ModelConfig
        from harness.models.ledger import Ledger
        from harness.models.loopback import LoopbackServer, fault
        from harness.models.roles import Endpoints, build_role_lm
        from harness.models.store import AnswerStore
        store, ledger = AnswerStore(Path(sys.argv[1])), Ledger()
        with LoopbackServer(["fine", fault(401, "bad sk-mistral-1")]) as server:
            endpoints = Endpoints({"MISTRAL_API_KEY": "sk-mistral-1"})
            lm = build_role_lm("task", ModelConfig("mistral/tiny", api_base=server.api_base,
                               api_key_env="MISTRAL_API_KEY"), endpoints=endpoints, store=store, ledger=ledger)
            print(lm("q"), server.requests[0].headers["authorization"])
            try:
                lm("r")
            except BaseException as stop:
                print(type(stop).__name__, stop)
            endpoints.close()
    """)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        timeout=120,
        env={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(tmp_path)},
    )

    first, second = run.stdout.strip().splitlines()
    assert first == "['fine'] Bearer sk-mistral-1"
    assert second.startswith("RunStopped task model 'mistral/tiny' at 127.0.0.1:")
    assert "bad ***" in second


def test_a_key_for_litellm_is_found_and_kept_secret_too():
    provider = DspyProvider("task", ModelConfig("mistral/tiny"), {"MISTRAL_API_KEY": "sk-mistral-1"})
    without = DspyProvider("task", ModelConfig("mistral/tiny"), {})
    provider.close()

    assert provider.secrets == ("sk-mistral-1",)
    assert without.secrets == ()
    assert "seed" not in provider.supported_params


def test_a_local_server_lm15_knows_needs_no_key():
    assert DspyProvider("task", ModelConfig("ollama/llama3"), {}).host == "ollama"


def test_prices_of_unknown_servers_are_unknown_not_zero(connect, ledger):
    with LoopbackServer(["a"]) as server:
        connect(server)("q")

    assert ledger.usage()["judge"].usd is None
    assert Ledger().usage() == {}
