"""Answers that are none: what is recorded, asked again, replayed and said."""

import contextlib

import dspy
import pytest
from dspy import lm15
from dspy.lm15 import Request, Response

from harness.errors import ProgramFailure
from harness.models import faults
from harness.models.config import ModelConfig
from harness.models.engine import calls_of_this_context
from harness.models.ledger import Ledger
from harness.models.scripted import ScriptedProvider, reply

CUT = reply('{"half', finish_reason="length", output_tokens=9)


def _response(*parts, finish_reason="stop"):
    return Response(None, "m", lm15.Message.assistant(parts), finish_reason, lm15.Usage(10, 5))


def _needs(tokens):
    """A provider whose answer is cut below so many tokens."""
    return ScriptedProvider(lambda request: "whole" if (request.config.max_tokens or 0) >= tokens else CUT)


def _limits(provider):
    return [request.config.max_tokens for request in provider.requests]


# Cut answers


def test_a_cut_answer_is_asked_for_once_more_with_twice_the_limit(timed_lm, ledger, store):
    provider = _needs(18)
    lm = timed_lm(provider, price=(1.0, 1.0))

    assert lm("q") == ["whole"]
    assert _limits(provider) == [9, 18]
    usage = ledger.usage()["task"]
    assert (usage.calls, usage.failures, usage.output_tokens) == (2, {"cut": 1}, 14)
    assert [kind for _, kind, _ in store.failures()] == ["cut"]


def test_the_cure_is_replayed(timed_lm, ledger):
    lm, provider = timed_lm(_needs(18)), _needs(18)
    lm("q")
    assert lm("q") == ["whole"]
    again = Ledger()

    assert timed_lm(provider, ledger=again)("q") == ["whole"]
    assert provider.requests == []
    assert (again.usage()["task"].calls, again.usage()["task"].cached) == (0, 2)
    assert ledger.usage()["task"].failures == {"cut": 1}


def test_an_answer_cut_twice_is_a_failure_and_is_replayed(timed_lm, store):
    provider, later = _needs(100), _needs(100)
    sentence = (
        r"^task model 'scripted/model': answer cut at max_tokens=9; raise models\.task\.max_tokens \(18 cuts it too\)$"
    )
    with pytest.raises(ProgramFailure, match=sentence) as caught:
        timed_lm(provider)("q")
    assert caught.value.kind == "cut"
    assert _limits(provider) == [9, 18]
    with pytest.raises(ProgramFailure, match=sentence.replace("task", "judge")):
        timed_lm(later, "judge")("q")
    assert later.requests == []


def test_a_cut_answer_is_never_stored_as_one(timed_lm, store):
    for provider in (_needs(18), _needs(100)):
        with calls_of_this_context() as calls, contextlib.suppress(ProgramFailure):
            timed_lm(provider)("q")
        for call in calls:
            stored = store.get(call.key)
            assert stored is None or stored.response["finish_reason"] == "stop"


def test_a_higher_limit_starts_where_the_second_one_ended(timed_lm):
    with pytest.raises(ProgramFailure):
        timed_lm(_needs(30))("q")
    provider = _needs(30)

    assert timed_lm(provider)("q", max_tokens=18) == ["whole"]
    assert _limits(provider) == [36]


def test_a_server_without_a_limit_in_the_request_is_not_asked_again(timed_lm):
    provider = ScriptedProvider([CUT])
    lm = timed_lm(provider)
    request = Request(model=lm.model, messages=(lm15.Message.user("q"),))

    with pytest.raises(ProgramFailure, match="cut at the server's own limit, as the request has none; set"):
        lm(request)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (lm15.InvalidRequestError("max_tokens is too large: 18"), "bad_request", "max_tokens is too large: 18"),
        (lm15.ContextLengthError("18 more than the context has"), "context_length", "18 more than the context has"),
    ],
)
def test_a_limit_beyond_the_model_leaves_the_answer_cut(timed_lm, ledger, error, kind, said):
    class Handy(ScriptedProvider):
        def give_up(self, setting):
            raise AssertionError("the limit's name is right")

    def script(request):
        return error if request.config.max_tokens == 18 else CUT

    lm = timed_lm(Handy(script))
    for number in range(5):
        with pytest.raises(
            ProgramFailure, match=rf"raise models\.task\.max_tokens \(18 is refused: {said}\)"
        ) as caught:
            lm(f"q{number}")
        assert caught.value.kind == "cut"
    assert ledger.usage()["task"].failures == {"cut": 5, kind: 5}
    assert ledger.stopped is None, "none of that is trouble of the endpoint"


def test_a_longer_answer_that_cannot_be_used_is_what_it_is(timed_lm):
    lm = timed_lm(ScriptedProvider([CUT, reply("", finish_reason="content_filter")]))

    with pytest.raises(ProgramFailure, match="refused to answer") as caught:
        lm("q")
    assert caught.value.kind == "refusal"


def test_cut_answers_in_a_row_are_the_questions_own(timed_lm, ledger):
    lm = timed_lm(_needs(100))
    for question in "abcde":
        with pytest.raises(ProgramFailure):
            lm(question)
    assert ledger.stopped is None


def test_calls_are_counted_where_they_were_paid(timed_lm):
    lm = timed_lm(_needs(18))
    for fresh in (2, 0):
        with calls_of_this_context() as calls:
            lm("q")
        assert calls.fresh == fresh
    assert len({call.key for call in calls}) == 1


# Other answers that cannot be used


@pytest.mark.parametrize(
    ("response", "kind", "sent", "sentence"),
    [
        (_response(lm15.TextPart(" \n")), "empty", 3, r"empty answer; see whether .* \(3 attempts\)"),
        (_response(lm15.ThinkingPart("hm")), "empty", 3, r"empty answer after its reasoning; raise models\.task\.max"),
        (reply("x", finish_reason="error"), "error", 3, r"the server ended the answer with an error; .*\(3 attempts\)"),
        (reply("x", finish_reason="content_filter"), "refusal", 1, "refused to answer"),
        (_response(lm15.RefusalPart("I'd rather not.")), "refusal", 1, "refused to answer: I'd rather not"),
    ],
)
def test_an_unusable_answer_is_a_failure_and_is_never_stored(
    timed_lm, store, ledger, time, response, kind, sent, sentence
):
    provider = ScriptedProvider([response] * sent + ["good"])
    lm = timed_lm(provider)

    with pytest.raises(ProgramFailure, match=f"task model 'scripted/model': {sentence}") as caught:
        lm("q")
    assert caught.value.kind == kind
    assert [failure[1] for failure in store.failures()] == [kind] * sent
    usage = ledger.usage()["task"]
    assert (usage.calls, usage.input_tokens, usage.failures) == (sent, 10 * sent, {kind: sent})
    assert len(time.waits) == sent - 1
    assert ledger.stopped is None
    assert lm("q") == ["good"], "the next one is asked anew"


def test_an_empty_answer_is_asked_for_again_as_the_same_sample(timed_lm, ledger, store):
    provider = ScriptedProvider([reply(""), "fine"])
    lm = timed_lm(provider)

    assert lm("q", rollout_id=1, temperature=0.7) == ["fine"]
    one, two = provider.requests
    assert one == two
    assert one.config.seed is not None
    assert ledger.usage()["task"].failures == {"empty": 1}
    assert [kind for _, kind, _ in store.failures()] == ["empty"]


def test_several_parts_and_reasoning_make_one_answer(timed_lm):
    parts = (lm15.ThinkingPart("hm"), lm15.TextPart('{"a": "x'), lm15.TextPart('y"}'))
    lm = timed_lm(ScriptedProvider([_response(*parts), reply("<think>hm</think>{}")]))

    for _ in ("sent", "replayed"):
        assert lm("q") == [{"text": '{"a": "xy"}', "reasoning_content": "hm"}]
        assert lm("other") == [{"text": "{}", "reasoning_content": "hm"}]


def test_a_tool_call_is_a_complete_answer(timed_lm):
    call = _response(lm15.ToolCallPart(id="1", name="search", input={"q": "x"}), finish_reason="tool_call")
    lm = timed_lm(ScriptedProvider([call]))
    request = Request(model=lm.model, messages=(lm15.Message.user("q"),))

    assert lm(request).message == lm(request).message == call.message


def test_an_answer_that_proves_unusable_later_is_counted_and_recorded(timed_lm, ledger, store):
    class Talkative(ScriptedProvider):
        secrets = ("sk-secret",)

    lm = timed_lm(Talkative(["x"]))
    with calls_of_this_context() as calls:
        lm("q")
        lm.engine.note_unusable("invalid", "does not parse: sk-secret")
    lm.engine.note_unusable("invalid", "nobody watches")

    assert ledger.usage()["task"].failures == {"invalid": 2}
    assert store.failures() == [
        (calls[0].key, "invalid", "task model 'scripted/model': does not parse: ***"),
        ("", "invalid", "task model 'scripted/model': nobody watches"),
    ]


# Through dspy


def test_a_failure_keeps_its_class_and_sentence_through_a_program(timed_lm):
    lm = timed_lm(_needs(100))
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()), pytest.raises(Exception) as caught:  # noqa: PT011
        dspy.ChainOfThought("q -> a")(q="?")

    failure = faults.program_failure(caught.value)
    assert failure is not None
    assert "raise models.task.max_tokens" in str(failure)


def test_evaluate_of_dspy_counts_it_as_one_failed_example(scripted_lm):
    provider = ScriptedProvider({"bad": CUT, "": '{"a": "yes"}'})
    lm = scripted_lm(provider, config=ModelConfig(provider.model))
    devset = [dspy.Example(q=q, a="yes").with_inputs("q") for q in ("good", "bad")]
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        result = dspy.Evaluate(devset=devset, metric=lambda e, p: float(e.a == p.a), num_threads=1)(
            dspy.Predict("q -> a")
        )

    assert result.score == 50.0
