"""What an endpoint can do and refuses: found out once, stored, and never taken for an example's fault."""

from dataclasses import replace

import dspy
import pytest
from dspy import lm15
from dspy.lm15 import Request

from harness.errors import RunStopped
from harness.models.ledger import Ledger
from harness.models.scripted import ScriptedProvider, request_text

NO_TEMPERATURE = lm15.InvalidRequestError("'temperature' does not support 0.0 with this model", status=400)
NO_SCHEMA = lm15.InvalidRequestError("response_format json_schema is not supported", status=400)
HELLO = '{"probe": "k7q"}'


class Unknown(ScriptedProvider):
    """An endpoint nobody knows anything of; it can do without what it refuses."""

    def __init__(self, script, *, stays=()):
        super().__init__(script, supports_response_schema=False)
        self.known, self.without, self.stays = {}, [], stays

    @property
    def needs_probe(self):
        return "schema" not in self.known

    def complete(self, request):
        return super().complete(replace(request, config=replace(request.config, **dict.fromkeys(self.without))))

    def give_up(self, setting):
        if setting in self.stays or setting in self.without:
            return False
        self.without.append(setting)
        self.supported_params -= {setting}
        return True

    def adopt(self, facts):
        self.known |= facts
        self.without = list(facts.get("refused", self.without))
        self.supports_response_schema = self.known.get("schema") == "json_schema"

    def facts(self):
        return {**self.known, "refused": self.without}


def _refuses(setting, error):
    return lambda request: error if getattr(request.config, setting) is not None else "fine"


# The probe


def test_what_an_endpoint_can_do_is_asked_once_and_kept(timed_lm, ledger, store):
    provider = Unknown([HELLO])
    lm = timed_lm(provider)
    assert not lm.supports_response_schema

    lm.engine.prepare()
    lm.engine.prepare()
    assert lm.supports_response_schema, "the engine's capabilities are the provider's at every moment"
    assert len(provider.requests) == 1
    assert ledger.usage()["task"].calls == 1
    assert store.facts(provider.endpoint)["schema"] == "json_schema"

    later = Unknown([])
    lm = timed_lm(later, "judge")
    lm.engine.prepare()
    assert lm.supports_response_schema
    assert later.requests == []


def test_a_known_provider_is_not_asked(timed_lm):
    provider = ScriptedProvider([])
    timed_lm(provider).engine.prepare()

    assert provider.requests == []


@pytest.mark.parametrize(
    ("script", "schema"),
    [
        ([NO_SCHEMA, '{"hello": 1}'], "json_object"),
        ([NO_SCHEMA, NO_SCHEMA], "none"),
        (["Hello!"], "none"),
        ([lm15.ServerError("loading"), lm15.RateLimitError("slow down"), HELLO], "json_schema"),
        ([NO_TEMPERATURE, HELLO], "json_schema"),
        ([""], "none"),
    ],
)
def test_a_probe_waits_out_and_adapts_like_any_request(timed_lm, ledger, store, script, schema):
    provider = Unknown(script)
    timed_lm(provider).engine.prepare()

    assert provider.known["schema"] == schema
    assert len(provider.requests) == ledger.usage()["task"].calls == len(script)
    assert store.facts(provider.endpoint) == provider.facts()
    assert store.failures() == []
    assert "response_format" not in provider.without, "the probe itself reads what is refused"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (lm15.AuthError("bad key"), "bad key"),
        (lm15.UnsupportedModelError("no such model"), "no such model"),
        (lm15.ContextLengthError("context of 8 tokens"), "context of 8 tokens"),
        (lm15.InvalidRequestError("no such path", status=404), "no such path"),
        (KeyError("choices"), "'choices'"),
    ],
)
def test_an_endpoint_that_is_not_there_stops_at_the_probe(timed_lm, ledger, store, error, words):
    provider = Unknown([error] * 9)
    with pytest.raises(RunStopped, match=f"judge model 'scripted/model': {words}"):
        timed_lm(provider, "judge").engine.prepare()

    assert len(provider.requests) == 1
    assert store.facts(provider.endpoint) is None


def test_a_spent_budget_refuses_the_probe(timed_lm):
    provider = Unknown([HELLO])
    with pytest.raises(RunStopped, match="budget of 0 calls"):
        timed_lm(provider, ledger=Ledger(max_calls=0)).engine.prepare()

    assert provider.requests == []


# Settings that are refused


def test_a_refused_setting_is_left_out_from_then_on(timed_lm, ledger, store):
    provider = Unknown(_refuses("temperature", NO_TEMPERATURE))
    lm = timed_lm(provider)

    assert [lm("a"), lm("b")] == [["fine"], ["fine"]]
    assert [request.config.temperature for request in provider.requests] == [0.0, None, None]
    assert ledger.usage()["task"].calls == 3
    assert ledger.usage()["task"].failures == {"bad_request": 1}
    assert store.facts(provider.endpoint) == {"refused": ["temperature"]}

    later = Unknown(_refuses("temperature", NO_TEMPERATURE))
    lm = timed_lm(later, ledger=Ledger())
    later.known["schema"] = "none"
    lm.engine.prepare()
    assert lm("c") == ["fine"]
    assert len(later.requests) == 1


def test_a_refused_seed_is_left_out_and_samples_stay_apart(timed_lm):
    provider = Unknown(_refuses("seed", lm15.InvalidRequestError("Unrecognized request argument: seed")))
    lm = timed_lm(provider)
    for rollout in range(2):
        assert lm("q", temperature=1.0, rollout_id=rollout) == ["fine"]

    assert [request.config.seed is None for request in provider.requests] == [False, True, True]


def test_each_setting_is_given_up_at_most_once(timed_lm):
    provider = Unknown([NO_TEMPERATURE, lm15.InvalidRequestError("max_tokens: not permitted"), NO_TEMPERATURE])
    provider.give_up = lambda setting: True
    with pytest.raises(RunStopped, match="'temperature' does not support"):
        timed_lm(provider)("q")

    assert len(provider.requests) == 3


def test_a_form_is_given_up_step_by_step(timed_lm):
    provider = Unknown([NO_SCHEMA, NO_SCHEMA, "fine"])
    provider.give_up = lambda setting: True
    lm = timed_lm(provider)
    form = {"type": "json_object"}
    request = Request(model=lm.model, messages=(lm15.Message.user("q"),), config=lm15.Config(response_format=form))

    assert lm(request).text == "fine"


def test_a_setting_that_cannot_be_given_up_is_an_ordinary_bad_request(timed_lm, ledger):
    provider = Unknown([NO_TEMPERATURE] * 9, stays=("temperature",))
    with pytest.raises(RunStopped, match=r"'temperature' does not support 0\.0 with this model"):
        timed_lm(provider)("q")

    assert len(provider.requests) == 1


def test_a_setting_that_was_not_sent_is_not_the_reason(timed_lm):
    provider = Unknown([lm15.InvalidRequestError("seed is refused")] * 9)
    with pytest.raises(RunStopped, match="seed is refused"):
        timed_lm(provider)("q")

    assert provider.without == []


def test_an_adapted_request_is_paid_for_from_the_budget(timed_lm):
    provider = Unknown(_refuses("temperature", NO_TEMPERATURE))
    with pytest.raises(RunStopped, match="budget of 1 calls"):
        timed_lm(provider, ledger=Ledger(max_calls=1))("q")

    assert len(provider.requests) == 1


def test_an_adapter_learns_what_the_probe_found(timed_lm):
    provider = Unknown(lambda request: HELLO if "hello" in request_text(request) else '{"a": "yes"}')
    lm = timed_lm(provider)
    lm.engine.prepare()
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        assert dspy.Predict("q -> a")(q="?").a == "yes"

    assert provider.requests[-1].config.response_format["type"] == "json_schema"
