"""lm_call: one question, its answer, and nothing of the surroundings used or touched."""

import logging
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from dspy import lm15

from harness.models.scripted import reply, request_text
from metrics.evaluators.json_answer import number_of
from metrics.evaluators.lm_call import Question
from metrics.evaluators.lm_evaluator import NoAnswerError


def read(answer):
    return number_of(answer, "score")


@pytest.fixture
def question():
    return Question("Grade it.", {"value": "what to grade"}, {"score": (float, "a number from 0 to 1")}, read)


def test_the_prompt_holds_instructions_value_and_form(question, scripted_lm):
    lm, provider = scripted_lm(['{"score": 1}'])
    answer = question.ask(lm, 0.0, {"value": '"LiCoO₂"'})
    assert (answer.value, answer.raw, list(answer.repaired)) == (1, '{"score": 1}', [])
    (request,) = provider.requests
    text = request_text(request)
    for words in ("Grade it.", '"LiCoO₂"', "what to grade", "a number from 0 to 1", '"score"'):
        assert words in text
    assert request.config.response_format == {
        "type": "json_schema",
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"score": {"type": "number"}},
            "required": ["score"],
            "additionalProperties": False,
        },
    }


def test_a_model_without_schemas_is_asked_for_json(question, scripted_lm):
    lm, provider = scripted_lm(['{"score": 1}'], supports_response_schema=False)
    question.ask(lm, 0.0, {"value": "1"})
    assert provider.requests[0].config.response_format == {"type": "json_object"}


@pytest.mark.parametrize(
    ("model", "given", "sent"),
    [
        ("scripted/m", 0.0, 0.0),
        ("scripted/m", 0.7, 0.7),
        ("scripted/m", None, 0.3),
        ("openai/gpt-5-mini", 0.0, None),
        ("openai/gpt-5-mini@1f2e3d", 0.0, None),
        ("openai/o3", 1.0, None),
        ("openai/gpt-5-chat-latest", 0.0, 0.0),
        ("openai/gpt-4.1", 0.2, 0.2),
    ],
)
def test_the_temperature_is_the_given_one_where_the_model_takes_one(question, scripted_lm, model, given, sent):
    settings = {"temperature": 0.3} if model == "scripted/m" else {}
    lm, provider = scripted_lm(['{"score": 1}'], model, **settings)
    question.ask(lm, given, {"value": "1"})
    assert provider.requests[0].config.temperature == sent


def test_an_unreadable_answer_is_asked_for_once_more_with_its_fault(question, scripted_lm):
    lm, provider = scripted_lm(["Score: 1", '```json\n{"score": "1"}\n```'])
    answer = question.ask(lm, 0.0, {"value": "1"})
    assert answer.value == 1
    assert list(answer.repaired) == ["code fence", "number as text", "asked again"]
    first, second = provider.requests
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    assert second.messages[0] == first.messages[0]
    assert second.messages[1].text == "Score: 1"
    assert "the answer is not JSON" in second.messages[2].text


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        (["no", "no"], "the answer is not JSON: expecting value at character 0; asked again: the same once more"),
        (["no", '{"score": null}'], "asked again: score is null"),
        (['{"Score": 1}', "{}"], "the answer has no 'score'; asked again: the same once more"),
        ([reply(""), "no"], "the answer is empty; asked again: the answer is not JSON"),
        (
            ["no", lm15.ServerError("away")],
            "not JSON: expecting value at character 0; asked again, the model gave no answer",
        ),
    ],
)
def test_a_second_unreadable_answer_is_none(question, scripted_lm, replies, words):
    lm, provider = scripted_lm(replies)
    with pytest.raises(NoAnswerError) as caught:
        question.ask(lm, 0.0, {"value": "1"})
    assert words in str(caught.value)
    assert caught.value.kind == "unreadable"
    assert len(provider.requests) == 2


def test_an_endless_answer_is_shown_again_in_part_only(question, scripted_lm):
    lm, provider = scripted_lm(["x" * 50_000, '{"score": 1}'])
    question.ask(lm, 0.0, {"value": "1"})
    assert len(request_text(provider.requests[1])) < 5_000


@pytest.mark.parametrize("error", [lm15.ServerError("all busy"), lm15.AuthError("all busy"), RuntimeError("all busy")])
def test_a_model_that_cannot_be_reached_is_told_apart(question, scripted_lm, error):
    lm, provider = scripted_lm([error])
    with pytest.raises(NoAnswerError, match=r"the model gave no answer: .*all busy") as caught:
        question.ask(lm, 0.0, {"value": "1"})
    assert (caught.value.kind, caught.value.raw) == ("unreached", "")
    assert len(provider.requests) == 1


class Stopped(BaseException):
    pass


def test_what_stops_a_run_passes_through(question, scripted_lm):
    lm, _ = scripted_lm([Stopped()])
    with pytest.raises(Stopped):
        question.ask(lm, 0.0, {"value": "1"})


def test_a_fault_of_the_reader_is_a_fault_and_no_missing_answer(scripted_lm):
    broken = Question("Grade it.", {"value": "v"}, {"score": (float, "n")}, lambda answer: 1 / 0)
    lm, _ = scripted_lm(['{"score": 1}'])
    with pytest.raises(ZeroDivisionError):
        broken.ask(lm, 0.0, {"value": "1"})


def test_nothing_of_the_surroundings_is_used_or_touched(question, scripted_lm):
    judge, asked = scripted_lm(lambda request: '{"score": 1}')
    task, never = scripted_lm(lambda request: '{"score": 0}', "scripted/task")
    trace: list = []
    adapter = dspy.ChatAdapter()
    with dspy.track_usage() as usage, dspy.context(lm=task, adapter=adapter, trace=trace, track_usage=True):
        assert question.ask(judge, 0.0, {"value": "1"}).value == 1
        assert dspy.settings.lm is task
        assert dspy.settings.adapter is adapter
    assert (len(asked.requests), never.requests, trace, usage.get_total_tokens()) == (1, [], [], {})
    assert task.history == []


def test_threads_that_know_no_context_ask_the_given_model(question, scripted_lm):
    judge, asked = scripted_lm(lambda request: '{"score": 1}')
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: question.ask(judge, 0.0, {"value": str(n)}).value, range(64)))
    assert answers == [1] * 64
    assert len({request_text(request) for request in asked.requests}) == len(asked.requests) == 64


def test_each_thread_gets_the_answer_to_its_own_question(question, scripted_lm):
    def echo(request):
        number = request.messages[-1].text.split("## ]]\n")[1].split()[0]
        return f'{{"score": {number}}}'

    judge, _ = scripted_lm(echo)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: question.ask(judge, 0.0, {"value": str(n)}).value, range(100)))
    assert answers == list(range(100))


def test_dspy_has_nothing_to_warn_about(question, scripted_lm, caplog):
    lm, _ = scripted_lm(["no", '{"score": 1}'])
    with caplog.at_level(logging.WARNING):
        question.ask(lm, 0.0, {"value": "1"})
    assert caplog.records == []
