import pytest
from dspy import lm15
from dspy.lm15 import Request

from harness.models.scripted import ScriptedProvider, reply, request_text


def _request(text="q", system=None):
    return Request(model="scripted/m", system=system, messages=(lm15.Message.user(text),))


def test_a_function_sees_the_request():
    provider = ScriptedProvider(lambda request: request.messages[-1].text.upper())

    assert provider.complete(_request("abc")).text == "ABC"
    assert provider.requests == [_request("abc")]


def test_a_mapping_answers_the_first_part_it_finds_in_system_or_messages():
    provider = ScriptedProvider({"judge": "4", "silicon": "Si"})

    assert provider.complete(_request("silicon")).text == "Si"
    assert provider.complete(_request("silicon", system="you judge")).text == "4"
    with pytest.raises(LookupError, match=r"the script answers \['judge', 'silicon'\], and none of them is in"):
        provider.complete(_request("iron"))


def test_a_sequence_is_followed_and_ends():
    provider = ScriptedProvider(["a", lm15.RateLimitError("429"), reply("c", finish_reason="length")])

    assert provider.complete(_request()).text == "a"
    with pytest.raises(lm15.RateLimitError):
        provider.complete(_request())
    assert provider.complete(_request()).finish_reason == "length"
    with pytest.raises(LookupError, match="the script has 3 replies and was asked once more"):
        provider.complete(_request())
    provider.close()


def test_usage_is_as_scripted():
    assert reply("x", input_tokens=7, output_tokens=None).usage == lm15.Usage(input_tokens=7)


def test_names_are_endpoints():
    assert ScriptedProvider([], "scripted/a").endpoint != ScriptedProvider([], "scripted/b").endpoint


def test_the_text_of_a_request_is_everything_said():
    assert request_text(_request("question", system="rules")) == "rules\n\nquestion"
