"""The engine through the LM that users hold: what is paid, stored, retried, stopped, counted."""

import asyncio
import copy
import threading

import dspy
import pytest
from dspy import lm15
from dspy.lm15 import Request

from harness.errors import ProgramFailure, RunStopped
from harness.models.calls import before_sending
from harness.models.config import ModelConfig
from harness.models.engine import calls_of_this_context
from harness.models.ledger import Ledger
from harness.models.scripted import ScriptedProvider, reply
from harness.results import RoleUsage


def _ask(lm, question="q", **settings):
    return lm(question, **settings)


def _numbered():
    """A provider that answers "1", "2", ... so that every sent request shows."""
    lock, count = threading.Lock(), [0]

    def script(_: Request) -> str:
        with lock:
            count[0] += 1
            return str(count[0])

    return ScriptedProvider(script)


# What is paid, and what is not


def test_an_equal_request_is_answered_from_the_store(scripted_lm, ledger):
    provider = _numbered()
    lm = scripted_lm(provider)

    assert _ask(lm) == ["1"]
    assert _ask(lm) == ["1"]
    assert _ask(lm, "other") == ["2"]
    assert len(provider.requests) == 2
    assert ledger.usage()["task"] == RoleUsage(2, 1, 20, 10, None, {}, 10, 5, None)


def test_a_replay_takes_no_lock_and_says_nothing_of_sending(scripted_lm, store, monkeypatch):
    told, lm = [], scripted_lm(_numbered())
    with before_sending(lambda: told.append("sent")):
        _ask(lm)
    assert told == ["sent"]
    monkeypatch.setattr(store, "once", lambda *_, **__: pytest.fail("nothing to keep from others"))
    with before_sending(lambda: told.append("sent")):
        assert _ask(lm) == ["1"]
    assert told == ["sent"]


def test_the_second_run_sends_nothing(scripted_lm):
    first, second = _numbered(), _numbered()
    questions = [f"q{n}" for n in range(5)]
    priced = ModelConfig(first.model, price=(1.0, 2.0))
    spent, ledger = Ledger(), Ledger()
    before = [_ask(scripted_lm(first, config=priced, ledger=spent), q) for q in questions]
    after = [_ask(scripted_lm(second, config=priced, ledger=ledger), q) for q in questions]

    assert after == before
    assert second.requests == []
    assert spent.usage()["task"] == RoleUsage(5, 0, 50, 25, pytest.approx(100e-6), {}, 0, 0, 0.0)
    assert ledger.usage()["task"] == RoleUsage(0, 5, 0, 0, 0.0, {}, 50, 25, pytest.approx(100e-6))


def test_equal_requests_in_flight_are_sent_once(scripted_lm, ledger):
    everyone_asks = threading.Barrier(8)
    provider = ScriptedProvider(lambda request: "one")
    lm = scripted_lm(provider)
    answers = []

    def work():
        everyone_asks.wait(10)
        answers.append(_ask(lm.copy()))

    _in_threads(8, work)

    assert answers == [["one"]] * 8
    assert len(provider.requests) == 1
    assert ledger.usage()["task"].calls == 1
    assert ledger.usage()["task"].cached == 7


def test_an_answer_serves_every_role(scripted_lm, ledger):
    provider = _numbered()

    assert _ask(scripted_lm(provider, "task")) == _ask(scripted_lm(provider, "judge")) == ["1"]
    assert ledger.usage()["judge"] == RoleUsage(0, 1, 0, 0, 0.0, {}, 10, 5, None)


def test_another_model_never_shares_an_answer(scripted_lm):
    one, other = ScriptedProvider(["a"], "scripted/one"), ScriptedProvider(["b"], "scripted/other")

    assert _ask(scripted_lm(one)) == ["a"]
    assert _ask(scripted_lm(other)) == ["b"]


def test_rollouts_are_fresh_samples_that_are_kept(scripted_lm):
    provider = _numbered()
    lm = scripted_lm(provider, config=ModelConfig(provider.model, temperature=0.7))

    asked = [_ask(lm, rollout_id=n) for n in range(3)]
    again = [_ask(lm.copy(rollout_id=n)) for n in range(3)]

    assert asked == again == [["1"], ["2"], ["3"]]
    assert len({request.config.seed for request in provider.requests}) == 3
    rerun = ScriptedProvider([])
    lm = scripted_lm(rerun, config=ModelConfig(rerun.model, temperature=0.7), ledger=Ledger())
    assert [_ask(lm, rollout_id=n) for n in range(3)] == asked
    assert rerun.requests == []


def test_rollouts_reach_the_engine_through_a_predictors_config(scripted_lm):
    provider = ScriptedProvider(lambda request: '{"a": "x"}')
    with dspy.context(lm=scripted_lm(provider), adapter=dspy.JSONAdapter()):
        for number in (1, 2, 1):
            dspy.Predict("q -> a")(q="?", config={"rollout_id": number, "temperature": 1.0})

    assert len(provider.requests) == 2


def test_several_samples_of_one_call_differ(scripted_lm):
    provider = _numbered()
    lm = scripted_lm(provider)

    assert _ask(lm, n=3, temperature=1.0) == ["1", "2", "3"]
    assert _ask(lm, n=3, temperature=1.0) == ["1", "2", "3"]
    assert len(provider.requests) == 3


def test_a_replicate_or_a_seed_is_a_new_measurement_of_sampled_answers(scripted_lm):
    provider = _numbered()
    sampled = ModelConfig(provider.model, temperature=1.0)

    assert _ask(scripted_lm(provider, config=sampled)) == ["1"]
    assert _ask(scripted_lm(provider, config=sampled, seed=1)) == ["2"]
    assert _ask(scripted_lm(provider, config=sampled, replicate=1)) == ["3"]
    assert _ask(scripted_lm(provider)) == ["4"]
    assert _ask(scripted_lm(provider, seed=1)) == ["4"], "a greedy answer serves every seed"
    assert _ask(scripted_lm(provider, replicate=1)) == ["5"]


def test_a_greedy_request_is_sent_without_a_seed(scripted_lm):
    provider = _numbered()
    _ask(scripted_lm(provider))
    _ask(scripted_lm(provider), temperature=0.5, seed=11)

    assert [request.config.seed for request in provider.requests] == [None, 11]


def test_usage_is_exact_under_threads(scripted_lm, store):
    ledger = Ledger()
    roles = ("task", "judge")
    lms = {
        role: scripted_lm(
            ScriptedProvider(lambda r: reply("x", input_tokens=len(r.messages[0].text), output_tokens=3), role),
            role,
            ledger=ledger,
            config=ModelConfig(role, price=(1.0, 2.0)),
        )
        for role in roles
    }

    def work(worker: int):
        for n in range(10):
            for role in roles:
                _ask(lms[role].copy(), f"{role}{worker}{n}")

    _in_threads(8, lambda: work(threading.get_ident()), number=work)

    for role in roles:
        tokens = 8 * 10 * (len(role) + 2)
        usage = ledger.usage()[role]
        assert (usage.calls, usage.cached, usage.input_tokens, usage.output_tokens) == (80, 0, tokens, 240)
        assert usage.usd == pytest.approx((tokens + 480) / 1e6)


def test_a_replayed_answer_spends_nothing_and_says_what_it_once_cost(scripted_lm):
    lm = scripted_lm(_numbered())
    request = Request(model=lm.model, messages=(lm15.Message.user("q"),))
    fresh, replayed = lm(request), lm(request)

    assert fresh.usage.input_tokens == 10
    assert replayed.usage == lm15.Usage()
    assert replayed.provider_data == {"replayed": {"input_tokens": 10, "output_tokens": 5}}
    assert replayed.text == fresh.text


def test_whoever_observes_learns_what_was_paid(scripted_lm):
    lm = scripted_lm(_numbered(), "judge")
    with calls_of_this_context() as calls:
        _ask(lm)
        _ask(lm)

    assert [(call.role, call.cached, call.input_tokens, call.output_tokens) for call in calls] == [
        ("judge", False, 10, 5),
        ("judge", True, 10, 5),
    ]
    assert calls.fresh == 1
    assert calls[0].key == calls[1].key
    assert calls[0].seconds > 0


# The engine as dspy's


def test_copies_share_the_engine(scripted_lm):
    lm = scripted_lm(_numbered())

    assert copy.copy(lm.engine) is lm.engine
    assert copy.deepcopy(lm.engine) is lm.engine
    assert copy.deepcopy(lm._async_engine_spec) is copy.copy(lm._async_engine_spec) is lm._async_engine_spec
    program = dspy.Predict("q -> a")
    program.set_lm(lm)
    assert program.deepcopy().lm.engine is lm.engine


def test_awaited_calls_share_answers_with_the_others(scripted_lm):
    provider = _numbered()
    lm = scripted_lm(provider)

    async def run():
        return await asyncio.gather(*(lm.acall("q", rollout_id=n % 2, temperature=1.0) for n in range(6)))

    answers = asyncio.run(run())
    assert len(provider.requests) == 2
    assert answers == [_ask(lm, rollout_id=n % 2, temperature=1.0) for n in range(6)]


def test_an_awaited_failure_is_the_same_failure(scripted_lm):
    refusal = reply("x", finish_reason="content_filter")
    lm = scripted_lm(ScriptedProvider([refusal, *[lm15.AuthError("bad key")] * 4]))

    with pytest.raises(ProgramFailure, match="refused to answer"):
        asyncio.run(lm.acall("q"))
    with pytest.raises(RunStopped, match="bad key"):
        asyncio.run(lm.acall("q"))


def test_capabilities_are_the_providers(scripted_lm):
    without = scripted_lm(ScriptedProvider(["x"], supports_response_schema=False))
    lm = scripted_lm(ScriptedProvider(["x"], "scripted/other"))

    assert lm.supports_response_schema
    assert not without.supports_response_schema
    assert "response_format" in lm.supported_params
    assert not lm.supports_function_calling
    assert not lm.supports_reasoning


def _in_threads(count, work, number=None):
    threads = [
        threading.Thread(target=number, args=(n,)) if number else threading.Thread(target=work) for n in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
