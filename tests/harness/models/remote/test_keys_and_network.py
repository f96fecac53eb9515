"""A key goes to the one server it was meant for, and no request to any other place at all."""

import socket
import subprocess
import sys
import textwrap
import threading

import pytest

from harness.errors import RunStopped, UsageError
from harness.models.config import ModelConfig
from harness.models.loopback import LoopbackServer, answer, fault
from harness.models.remote import dspy_provider
from harness.models.remote.dspy_provider import DspyProvider
from harness.models.roles import Endpoints, build_role_lm

KEY = "sk-loopback-1234567890"


@pytest.fixture
def build(store, ledger, waits):
    opened = []

    def build(role, config, environ):
        endpoints = Endpoints(environ)
        opened.append(endpoints)
        return build_role_lm(role, config, endpoints=endpoints, store=store, ledger=ledger, wait=waits.append)

    yield build
    for endpoints in opened:
        endpoints.close()


def test_two_roles_in_two_threads_never_see_each_others_key_or_address(store, ledger):
    environ = {"MISTRAL": "key-of-mistral", "OTHER": "key-of-other", "OPENAI_API_KEY": "key-of-openai"}
    with LoopbackServer(["a"]) as first, LoopbackServer(["b"]) as second, Endpoints(environ) as endpoints:
        configs = {
            "task": ModelConfig("openai/same-name", api_base=first.api_base, api_key_env="MISTRAL"),
            "judge": ModelConfig("openai/same-name", api_base=second.api_base, api_key_env="OTHER"),
        }
        lms = {
            role: build_role_lm(role, config, endpoints=endpoints, store=store, ledger=ledger)
            for role, config in configs.items()
        }
        gate = threading.Barrier(2)

        def work(role):
            for number in range(10):
                gate.wait(10)
                lms[role](f"question {number}")

        threads = [threading.Thread(target=work, args=(role,)) for role in lms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert {request.headers["authorization"] for request in first.requests} == {"Bearer key-of-mistral"}
    assert {request.headers["authorization"] for request in second.requests} == {"Bearer key-of-other"}
    assert len(first.requests) == len(second.requests) == 10


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "ollama/llama3", "anthropic/claude-x", "gemini/g", "groq/g"])
def test_without_a_key_of_its_own_an_address_gets_none(build, model):
    usual = {f"{name}_API_KEY": "usual-key" for name in ("OPENAI", "OLLAMA", "ANTHROPIC", "GEMINI", "GOOGLE", "GROQ")}
    with LoopbackServer([fault(401, "who are you?")]) as server, pytest.raises(RunStopped, match="who are you"):
        build("task", ModelConfig(model, api_base=server.api_base), usual)("q")

    assert "usual-key" not in repr(server.requests)


def test_the_key_is_in_no_file_and_no_repr(build, store, tmp_path):
    with LoopbackServer([answer("fine"), fault(401, f"bad {KEY}")]) as server:
        lm = build("task", ModelConfig("openai/m", api_base=server.api_base, api_key_env="KEY"), {"KEY": KEY})
        lm("q")
        with pytest.raises(RunStopped):
            lm("r")
        seen = repr(lm.__dict__) + repr(lm.history) + repr(lm.engine.__dict__) + repr(lm.engine.provider)
    store.close()

    assert KEY not in seen
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_credentials_in_an_address_are_blotted_out(build):
    with LoopbackServer([fault(401, "who is me:pass?")]) as server:
        base = server.api_base.replace("http://", "http://me:pass@")
        with pytest.raises(RunStopped) as caught:
            build("task", ModelConfig("openai/m", api_base=base), {})("q")

    assert "pass" not in caught.value.message
    assert "127.0.0.1" in caught.value.message


def test_a_gateway_in_the_environment_is_used_and_names_the_endpoint(build):
    with LoopbackServer(["via gateway"]) as server:
        config = ModelConfig("openai/gpt-4.1-mini")
        lm = build("task", config, {"OPENAI_BASE_URL": server.api_base, "OPENAI_API_KEY": KEY})
        direct = build("task", config, {"OPENAI_API_KEY": KEY})
        assert lm("q") == ["via gateway"]

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert lm.model != direct.model


def test_nothing_but_the_endpoint_is_contacted(build, monkeypatch):
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    reached = []

    def watched(real):
        def call(host, *arguments, **more):
            place = host[0] if isinstance(host, tuple) else host
            reached.append(place)
            if place != "127.0.0.1":
                raise OSError(f"{place} is not to be reached")
            return real(host, *arguments, **more)

        return call

    monkeypatch.setattr(socket, "create_connection", watched(socket.create_connection))
    monkeypatch.setattr(socket, "getaddrinfo", watched(socket.getaddrinfo))
    with LoopbackServer(["fine"]) as server:
        config = ModelConfig("openai/m", api_base=server.api_base, price=(1.0, 1.0))
        lm = build("task", config, {})
        lm.engine.prepare()
        assert lm("q") == ["fine"]

    assert set(reached) == {"127.0.0.1"}


def _run(program, tmp_path, **environ):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        timeout=120,
        env={"HOME": str(tmp_path), **environ},
    )


@pytest.mark.slow
def test_a_provider_only_litellm_knows_goes_through_litellm_and_nowhere_else(tmp_path):
    program = """
        import socket, sys
        from pathlib import Path
        real = socket.getaddrinfo
        def only_here(host, *more, **named):
            assert host in ("127.0.0.1", "localhost"), f"a look-up of {host}"
            return real(host, *more, **named)
        socket.getaddrinfo = only_here
        from harness.models.config import ModelConfig
        from harness.models.ledger import Ledger
        from harness.models.loopback import LoopbackServer, fault
        from harness.models.roles import Endpoints, build_role_lm
        from harness.models.store import AnswerStore
        store, ledger = AnswerStore(Path(sys.argv[1])), Ledger()
        with LoopbackServer(["fine", fault(401, "bad sk-mistral-1")]) as server:
            endpoints = Endpoints({"MISTRAL_API_KEY": "sk-mistral-1"})
            lm = build_role_lm("task", ModelConfig("mistral/tiny", api_base=server.api_base,
                               api_key_env="MISTRAL_API_KEY"), endpoints=endpoints, store=store, ledger=ledger,
                               wait=lambda seconds: None)
            print(lm("q"), server.requests[0].headers["authorization"])
            try:
                lm("r")
            except BaseException as stop:
                print(type(stop).__name__, stop)
            endpoints.close()
    """
    run = _run(program, tmp_path, LITELLM_LOCAL_MODEL_COST_MAP="True")

    first, second = run.stdout.strip().splitlines()
    assert first == "['fine'] Bearer sk-mistral-1"
    assert second.startswith("RunStopped task model 'mistral/tiny' at 127.0.0.1:")
    assert "bad ***" in second


def test_litellm_is_not_loaded_where_it_would_call_home(monkeypatch):
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    monkeypatch.setattr(dspy_provider.sys, "modules", {})

    with pytest.raises(UsageError, match=r"models\.task: 'mistral/tiny' needs LiteLLM, .* set LITELLM_LOCAL_MODEL"):
        DspyProvider("task", ModelConfig("mistral/tiny"), {"MISTRAL_API_KEY": "k"})


def test_a_key_for_litellm_is_found_and_kept_secret_too(monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    provider = DspyProvider("task", ModelConfig("mistral/tiny"), {"MISTRAL_API_KEY": "sk-mistral-1"})
    without = DspyProvider("task", ModelConfig("mistral/tiny"), {})
    provider.close()

    assert provider.secrets == ("sk-mistral-1",)
    assert without.secrets == ()
    assert "seed" not in provider.supported_params
