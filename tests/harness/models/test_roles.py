from pathlib import Path

import dspy
import pytest

from harness.errors import RunStopped, UsageError
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.loopback import LoopbackServer, fault
from harness.models.roles import Endpoints, RoleLM, build_role_lm, preflight
from harness.models.schema_bounds import SchemaBounds
from harness.models.scripted import ScriptedProvider


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF but not really")
    return path


def _build(store, config, role="task", *, environ=None, ledger=None, endpoints=None, **more):
    endpoints = endpoints or Endpoints(environ or {})
    return build_role_lm(role, config, endpoints=endpoints, store=store, ledger=ledger or Ledger(), **more)


def test_dspys_own_cache_and_retries_are_off(scripted_lm):
    lm = scripted_lm(ScriptedProvider(["x"]), "judge")

    assert isinstance(lm, dspy.LM)
    assert (lm.cache, lm.num_retries, lm.role) == (False, 0, "judge")
    assert lm.kwargs == {"temperature": 0.0, "max_tokens": 4096}


def test_the_name_tells_servers_apart(store):
    names = {_build(store, ModelConfig("openai/m", api_base=base)).model for base in ("http://a/v1", "http://b/v1")}

    assert len(names) == 2
    assert all(name.startswith("openai/m@") for name in names)


def test_a_copy_keeps_role_and_engine(scripted_lm):
    lm = scripted_lm(ScriptedProvider(["x"]), "judge")
    copied = lm.copy(temperature=0.9, rollout_id=3)

    assert isinstance(copied, RoleLM)
    assert copied.role == "judge"
    assert copied.engine is lm.engine
    assert copied.kwargs["rollout_id"] == 3


def test_a_missing_key_is_a_sentence_with_model_role_and_variable(store):
    config = ModelConfig("openai/m", api_base="http://x/v1", api_key_env="LAB_KEY")

    with pytest.raises(UsageError, match=r"models\.judge: 'openai/m' needs its key in .* LAB_KEY, which is not set"):
        _build(store, config, "judge", environ={"LAB_KEY": ""})


def test_a_missing_usual_key(store):
    with pytest.raises(UsageError, match=r"models\.task: 'anthropic/claude-x' needs its key .* ANTHROPIC_API_KEY"):
        _build(store, ModelConfig("anthropic/claude-x"))


def test_reasoning_models_get_no_temperature_and_room_to_think(store):
    lm = _build(store, ModelConfig("openai/gpt-5-mini", temperature=0.3), environ={"OPENAI_API_KEY": "k"})

    assert lm.kwargs == {"temperature": None, "max_completion_tokens": 32_000}
    assert "temperature" not in lm.supported_params


def test_too_little_room_to_think_is_a_sentence(store):
    with pytest.raises(UsageError, match=r"models\.task: 'openai/gpt-5-mini' cannot be set up: .*16000"):
        _build(store, ModelConfig("openai/gpt-5-mini", max_tokens=100), environ={"OPENAI_API_KEY": "k"})


@pytest.mark.parametrize("model", ["openai/", "/x", "gpt-4.1", ""])
def test_half_a_model_name(store, model):
    with pytest.raises(UsageError, match=r"models\.task: '.*' is no model: write provider/name"):
        _build(store, ModelConfig(model, api_base="http://x/v1"))


def test_a_budget_in_usd_needs_a_price(store):
    ledger = Ledger(max_usd=1)
    config = ModelConfig("openai/m", api_base="http://x/v1")

    with pytest.raises(UsageError, match=r"budget\.usd cannot be kept: the price of models\.task .* is unknown"):
        _build(store, config, ledger=ledger)
    assert _build(store, ModelConfig("openai/m", api_base="http://x/v1", price=(1, 2)), ledger=ledger)
    assert _build(store, ModelConfig("openai/gpt-4.1-mini"), ledger=ledger, environ={"OPENAI_API_KEY": "k"})


def test_a_local_model_costs_nothing(store, gguf):
    lm = _build(store, ModelConfig(f"local/{gguf.name}"), ledger=Ledger(max_usd=1), base_dir=gguf.parent)

    assert lm.model.startswith("local/tiny.gguf@")
    assert lm.supports_response_schema
    assert lm.kwargs["max_tokens"] == 512


def test_roles_on_one_file_share_one_model_in_memory(store, gguf):
    with Endpoints({}) as endpoints:
        config = ModelConfig(f"local/{gguf.name}")
        task = endpoints.find("task", config, base_dir=gguf.parent, bounds=SchemaBounds())
        judge = endpoints.find("judge", ModelConfig(f"local/{gguf}"))
        copy = gguf.with_name("copy.gguf")
        copy.write_bytes(b"other bytes")
        other = endpoints.find("teacher", ModelConfig(f"local/{copy}"))

        assert task.provider._runtime is judge.provider._runtime
        assert task.limits is judge.limits
        assert task.provider.endpoint != judge.provider.endpoint, "other bounds, other answers"
        assert other.provider._runtime is not task.provider._runtime


def test_accounts_are_limited_apart_and_roles_on_one_account_together():
    endpoints = Endpoints({"A": "a", "B": "b"})
    one = ModelConfig("openai/m", api_base="http://x/v1", api_key_env="A")

    task, judge = endpoints.find("task", one), endpoints.find("judge", one)
    other = endpoints.find("task", ModelConfig("openai/m", api_base="http://x/v1", api_key_env="B"))

    assert task.limits is judge.limits
    assert task.limits is not other.limits


def test_closing_reaches_every_provider():
    class Closing(ScriptedProvider):
        closed = 0

        def close(self):
            self.closed += 1

    provider = Closing(["x"])
    with Endpoints({}, {provider.model: provider}) as endpoints:
        endpoints.find("task", ModelConfig(provider.model))

    assert provider.closed == 1


def test_keys_are_read_from_the_process_environment_by_default(monkeypatch, store):
    monkeypatch.setenv("LAB_KEY", "k")
    config = ModelConfig("openai/m", api_base="http://x/v1", api_key_env="LAB_KEY")

    assert build_role_lm("task", config, endpoints=Endpoints(), store=store, ledger=Ledger()).role == "task"


# What is told before the first request


class _Endpoint(ScriptedProvider):
    """A script whose endpoint turned out to have these facts."""

    def __init__(self, params, found, host="gpu1:8000"):
        super().__init__(
            ["never asked"], "scripted/m", supports_response_schema="response_format" in params and not found
        )
        self.supported_params = frozenset(params)
        self.host = host
        self._found = found

    def facts(self):
        return self._found


@pytest.mark.parametrize(
    ("params", "found", "sentence"),
    [
        ({"response_format"}, {}, "judge: scripted/m at gpu1:8000 decodes under the schema"),
        (
            {"response_format"},
            {"schema": "json_object", "note": "json_schema is refused"},
            "judge: scripted/m at gpu1:8000 is asked for JSON by its JSON mode, without the schema "
            "(json_schema is refused)",
        ),
        (
            {},
            {"schema": "none", "refused": ["seed", "temperature"], "max_tokens_field": "max_completion_tokens"},
            "judge: scripted/m at gpu1:8000 is asked for JSON in the prompt alone; seed and temperature are not sent, "
            "since refused there; the output limit is sent as max_completion_tokens",
        ),
        (
            {},
            {"refused": ["temperature"]},
            "judge: scripted/m at gpu1:8000 is asked for JSON in the prompt alone; temperature is not sent, since "
            "refused there",
        ),
    ],
)
def test_preflight_tells_where_and_how_every_role_is_asked(scripted_lm, params, found, sentence):
    provider = _Endpoint(params, found)

    assert preflight({"judge": scripted_lm(provider, "judge")}) == [sentence]
    assert provider.requests == []


def test_preflight_asks_one_endpoint_once(store, ledger):
    with LoopbackServer(['{"probe": "k7q"}']) as server, Endpoints({}) as endpoints:
        config = ModelConfig("openai/m", api_base=server.api_base)
        lms = {role: _build(store, config, role, ledger=ledger, endpoints=endpoints) for role in ("task", "teacher")}
        told = preflight(lms)

    place = server.api_base.split("/")[2]
    assert told == [f"{role}: openai/m at {place} decodes under the schema" for role in lms]
    assert len(server.requests) == ledger.usage()["task"].calls == 1


def test_preflight_stops_at_a_model_that_is_not_there(store):
    with LoopbackServer([fault(404, "no model m here")]) as server, Endpoints({}) as endpoints:
        lm = _build(store, ModelConfig("openai/m", api_base=server.api_base), endpoints=endpoints)
        with pytest.raises(RunStopped, match="no model m here"):
            preflight({"task": lm})

    assert len(server.requests) == 1


def test_where_providers_are_given_no_other_model_is_called():
    endpoints = Endpoints(environ={}, providers={"openai/mine": ScriptedProvider(["x"], "openai/mine")})
    with pytest.raises(UsageError, match=r"no provider was given for 'openai/mien'.*did you mean 'openai/mine'"):
        endpoints.find("task", ModelConfig("openai/mien"))
