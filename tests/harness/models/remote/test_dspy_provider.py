"""Remote models over a real wire, through the whole engine: faults, probe, settings given up, keys."""

import threading

import dspy
import pydantic
import pytest
from dspy import lm15
from dspy.lm15 import Request

from harness.errors import ProgramFailure, RunStopped, StopReason
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.loopback import LoopbackServer, Reply, answer, fault
from harness.models.remote.dspy_provider import DspyProvider
from harness.models.roles import Endpoints, build_role_lm

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
    usage = ledger.usage()["judge"]
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, 12, 3)
    assert usage.usd == pytest.approx(42e-6)


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
def test_without_a_probe_a_schema_is_sent_only_when_the_file_says_so(connect, declared, sent):
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
        (fault(400, "this server is strange"), "this server is strange"),
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


@pytest.mark.parametrize(
    ("reply", "settings", "sentence"),
    [
        (fault(500, "boom"), {}, "boom"),
        (Reply(503, b""), {}, "HTTP 503"),
        (Reply(hang_up=True), {}, "closed connection"),
        (Reply(delay=5.0), {"timeout": 0.1}, r"no answer within 0\.1 seconds \(models\.judge\.timeout\)"),
        (Reply(body=b'{"choices": [{"mess'), {}, "is not JSON"),
        (Reply(body=b"<html>sorry</html>", headers={"Content-Type": "text/html"}), {}, "is not JSON"),
        (Reply(body=[1, 2]), {}, "the reply is not a completion"),
        (Reply(body={}), {}, "the reply is not a completion: it has no choices"),
    ],
)
def test_what_may_pass_is_tried_again_and_never_becomes_an_answer(connect, reply, settings, sentence):
    with LoopbackServer([reply]) as server, pytest.raises(RunStopped, match=sentence):
        connect(server, **settings)("q")

    assert len(server.requests) > 1


def test_half_a_json_document_once_is_asked_again(connect):
    with LoopbackServer([Reply(body=b'{"choi'), "whole"]) as server:
        assert connect(server)("q") == ["whole"]


def test_an_unreachable_server(connect):
    with LoopbackServer(["never"]) as server:
        pass

    with pytest.raises(RunStopped, match=r"judge model 'openai/m' at 127\.0\.0\.1:[0-9]+: .*refused"):
        connect(server)("q")


def test_an_unusable_answer_fails_one_example_and_no_other(connect):
    refused = {"role": "assistant", "content": None, "refusal": "no thanks"}
    reply = Reply(body={"choices": [{"index": 0, "finish_reason": "stop", "message": refused}]})
    with LoopbackServer([reply, "good"]) as server:
        lm = connect(server)
        with pytest.raises(ProgramFailure, match="no thanks"):
            lm("q")
        assert lm("another") == ["good"]


# What an endpoint can do


def _decodes(body, modes):
    """A server that takes these ways to ask for JSON and no other."""
    form = body.get("response_format")
    if form and form["type"] not in modes:
        return fault(400, f"response_format.type {form['type']!r} is not supported")
    return '{"probe": "k7q"}' if form else "hello"


@pytest.mark.parametrize(
    ("modes", "found", "probes"),
    [
        (("json_schema", "json_object"), "json_schema", 1),
        (("json_object",), "json_object", 2),
        ((), "none", 2),
    ],
)
def test_the_endpoint_is_asked_once_how_it_takes_json(connect, modes, found, probes):
    with LoopbackServer(lambda received: _decodes(received.body, modes)) as server:
        lm = connect(server)
        lm.engine.prepare()
        assert len(server.requests) == probes
        later = connect(server)
        later.engine.prepare()
        assert len(server.requests) == probes

    for engine in (lm.engine, later.engine):
        assert engine.supports_response_schema is (found == "json_schema")
        assert ("response_format" in engine.supported_params) is (found != "none")
        assert engine.provider.facts()["schema"] == found


@pytest.mark.parametrize(("modes", "sent"), [(("json_object",), {"type": "json_object"}), ((), None)])
def test_a_program_asks_as_the_endpoint_takes_it(connect, modes, sent):
    with LoopbackServer(lambda received: _decodes(received.body, modes)) as server:
        lm = connect(server)
        lm.engine.prepare()
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            assert dspy.Predict("question -> probe")(question="q, in JSON") if modes else True
        form = {"type": "json_schema", "name": "a", "schema": {"type": "object"}}
        lm.engine.provider.complete(_asking(response_format=form))

    assert server.requests[-1].body.get("response_format") == sent


def test_known_models_are_not_asked():
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}
    for model in ("openai/gpt-4.1-mini", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"):
        provider = DspyProvider("task", ModelConfig(model), keys)
        provider.close()
        assert (provider.needs_probe, provider.supports_response_schema, provider.facts()) == (False, True, {})


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig("openai/gpt-4.1-mini", api_base="http://gateway/v1"),
        ModelConfig("openai/nobody-knows-this", api_key_env="KEY"),
        ModelConfig("ollama/llama3"),
    ],
)
def test_unknown_places_and_names_are_asked(config):
    provider = DspyProvider("task", config, {"KEY": KEY})
    provider.close()

    assert provider.needs_probe
    assert "response_format" not in provider.supported_params


# Settings given up


def _asking(**config):
    return Request(model="m", messages=(lm15.Message.user("q"),), config=lm15.Config(**config))


def _refusing(setting, words):
    return lambda received: fault(400, words) if setting in received.body else "fine"


@pytest.mark.parametrize(
    ("setting", "words", "left"),
    [
        ("temperature", "'temperature' does not support 0.0 with this model.", set()),
        ("seed", "seed is not supported", set()),
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", {"max_completion_tokens"}),
    ],
)
def test_a_refused_setting_is_given_up_once_and_remembered(connect, setting, words, left):
    with LoopbackServer(_refusing(setting, words)) as server:
        assert connect(server, temperature=0.8)("q", rollout_id=1) == ["fine"]
        later = connect(server, temperature=0.8)
        later.engine.prepare()  # finds the facts; the probe itself is answered too
        before = len(server.requests)
        assert later("r", rollout_id=2) == ["fine"]

    bodies = [request.body for request in server.requests]
    assert [setting in body for body in bodies[:2]] == [True, False]
    assert left <= set(bodies[-1])
    assert (len(bodies) - before, setting in bodies[-1]) == (1, False)
    if setting != "max_tokens":
        assert setting not in later.engine.supported_params


def test_a_refused_seed_is_not_sent_again():
    with LoopbackServer(_refusing("seed", "seed is not supported")) as server:
        provider = DspyProvider("task", ModelConfig("openai/m", api_base=server.api_base), {})
        with pytest.raises(lm15.InvalidRequestError, match="seed"):
            provider.complete(_asking(seed=3))
        assert provider.give_up("seed")
        assert provider.complete(_asking(seed=3)).text == "fine"
        provider.close()

    assert "seed" not in provider.supported_params


def test_a_limit_refused_for_its_size_is_no_other_name(connect):
    words = "max_tokens is too large: 4096. This model supports at most 2048 completion tokens."
    with LoopbackServer([fault(400, words)]) as server, pytest.raises(RunStopped, match="at most 2048"):
        connect(server)("q")

    assert len(server.requests) == 1


def test_what_the_file_demands_is_not_given_up():
    provider = DspyProvider("task", ModelConfig("openai/m", api_base="http://x/v1", response_schema=True), {})
    provider.close()

    assert provider.give_up("response_format") is False
    provider.adopt({"schema": "none"})
    assert provider.supports_response_schema


def test_threads_refused_the_same_give_it_up_together():
    gate = threading.Barrier(4)

    def serve(received):
        if "max_tokens" in received.body:
            gate.wait(10)
            return fault(400, "max_tokens is not supported")
        return "fine"

    outcomes = []
    with LoopbackServer(serve) as server:
        provider = DspyProvider("task", ModelConfig("openai/m", api_base=server.api_base), {})

        def work():
            with pytest.raises(lm15.InvalidRequestError):
                provider.complete(_asking(max_tokens=5))
            outcomes.append(provider.give_up("max_tokens"))
            outcomes.append(provider.complete(_asking(max_tokens=5)).text)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert provider.give_up("max_tokens") is False
        provider.close()

    assert outcomes.count(True) == outcomes.count("fine") == 4
    assert server.requests[-1].body["max_completion_tokens"] == 5


def test_prices_of_unknown_servers_are_unknown_not_zero(connect, ledger):
    with LoopbackServer(["a"]) as server:
        connect(server)("q")

    assert ledger.usage()["judge"].usd is None
    assert Ledger().usage() == {}
