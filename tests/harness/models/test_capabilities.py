import pytest
from dspy import lm15

from harness.models.capabilities import Capabilities, probe
from harness.models.scripted import ScriptedProvider, reply

RIGHT = '{"probe": "k7q"}'


def _refused(words="response_format is not supported", status=400):
    return lm15.InvalidRequestError(words, status=status)


def _formats(provider):
    return [request.config.response_format["type"] for request in provider.requests]


@pytest.mark.parametrize(
    ("said", "found", "asked"),
    [
        ([RIGHT], Capabilities("json_schema"), ["json_schema"]),
        ([f"<think>a word</think>{RIGHT}"], Capabilities("json_schema"), ["json_schema"]),
        (["Hello!"], Capabilities("none", "json_schema is accepted and ignored"), ["json_schema"]),
        (['{"probe": "hello"}'], Capabilities("none", "json_schema is accepted and ignored"), ["json_schema"]),
        (
            [_refused(), '{"word": "hello"}'],
            Capabilities("json_object", "json_schema is refused"),
            ["json_schema", "json_object"],
        ),
        (
            [_refused(), "Hello!"],
            Capabilities("none", "json_schema is refused; json_object is accepted and ignored"),
            ["json_schema", "json_object"],
        ),
        (
            [_refused(), lm15.UnsupportedFeatureError("no such mode")],
            Capabilities("none", "json_schema and json_object are refused"),
            ["json_schema", "json_object"],
        ),
    ],
)
def test_the_best_way_that_holds_is_found(said, found, asked):
    provider = ScriptedProvider(said)

    assert probe(provider.complete) == found
    assert _formats(provider) == asked


def test_an_object_cut_at_the_limit_still_shows_the_mode():
    provider = ScriptedProvider([_refused(), reply('{"word": "   ', finish_reason="length")])

    assert probe(provider.complete).schema == "json_object"


def test_thoughts_up_to_the_limit_tell_nothing():
    provider = ScriptedProvider([reply("", finish_reason="length")])

    assert probe(provider.complete) == Capabilities("none", "the answer under json_schema was cut before it could tell")


@pytest.mark.parametrize(
    "error",
    [
        lm15.AuthError("bad key"),
        lm15.ServerError("down"),
        _refused("no such path", 404),
        lm15.UnsupportedModelError("no such model"),
        lm15.ContextLengthError("4 tokens at most"),
    ],
)
def test_what_says_nothing_about_the_format_ends_the_probe(error):
    with pytest.raises(type(error)):
        probe(ScriptedProvider([error]).complete)


def test_the_question_is_small_and_its_free_answer_is_no_json():
    provider = ScriptedProvider([RIGHT])
    probe(provider.complete)

    (request,) = provider.requests
    assert "JSON" in request.messages[0].parts[0].text
    assert len(request.messages[0].parts[0].text) < 100
    assert request.config.max_tokens == 1024
