import pytest
from dspy import lm15
from dspy.lm15 import Response
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import FAILURE_KINDS
from harness.models.answers import cut_answer, normalised, unusable

TEXT, THOUGHT, REFUSAL = lm15.TextPart, lm15.ThinkingPart, lm15.RefusalPart
CALL = lm15.ToolCallPart(id="1", name="search", input={})
CITATION = lm15.CitationPart(url="https://a.example")


def _response(*parts, finish_reason="stop"):
    return Response(None, "m", lm15.Message.assistant(parts), finish_reason, lm15.Usage())


def _shape(response):
    return [(part.type, getattr(part, "text", None)) for part in response.message.parts]


@pytest.mark.parametrize(
    ("parts", "shape"),
    [
        ([TEXT("a")], [("text", "a")]),
        ([TEXT('{"a": "x'), TEXT('y"}')], [("text", '{"a": "xy"}')]),
        ([THOUGHT("hm"), TEXT("a")], [("thinking", "hm"), ("text", "a")]),
        ([TEXT("a"), THOUGHT("hm"), TEXT("b")], [("text", "ab"), ("thinking", "hm")]),
        ([TEXT("<think>\nhm\n</think>\n\na")], [("thinking", "hm"), ("text", "a")]),
        ([TEXT("hm, { or [?</think>a")], [("thinking", "hm, { or [?"), ("text", "a")]),
        ([TEXT("<think></think>\n\na")], [("text", "a")]),
        ([TEXT("<think>no end")], [("thinking", "no end"), ("text", "")]),
        ([TEXT("<th"), TEXT("ink>hm</think>a")], [("thinking", "hm"), ("text", "a")]),
        ([TEXT('{"a": "</think>"}')], [("text", '{"a": "</think>"}')]),
        ([TEXT("[[ ## a ## ]] </think>")], [("text", "[[ ## a ## ]] </think>")]),
        ([TEXT("")], [("text", "")]),
        ([CALL], [("tool_call", None)]),
        ([TEXT("a"), CITATION, TEXT("b")], [("text", "ab"), ("citation", None)]),
    ],
)
def test_every_shape_becomes_one(parts, shape):
    assert _shape(normalised(_response(*parts))) == shape


def test_an_answer_of_one_text_stays_as_it_is():
    response = _response(TEXT("a"))

    assert normalised(response) is response


def test_what_a_provider_wants_back_survives_the_joining():
    state = lm15.ContinuationState(provider="gemini", kind="signature", data={"signature": "s"})
    joined = normalised(_response(TEXT("a", continuation=(state,)), TEXT("b")))

    assert joined.message.parts[0].continuation == (state,)


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_normalising_twice_is_normalising_once(texts):
    once = normalised(_response(*map(TEXT, texts)))

    assert normalised(once) == once or "think>" in "".join(texts)


@pytest.mark.parametrize(
    ("response", "kind", "words"),
    [
        (_response(TEXT("")), "empty", "empty answer; see whether"),
        (_response(TEXT(" \n\t")), "empty", "empty answer; see whether"),
        (_response(THOUGHT("hm")), "empty", "empty answer after its reasoning; raise models.judge.max_tokens"),
        (_response(THOUGHT("hm"), TEXT("")), "empty", "empty answer after its reasoning"),
        (_response(THOUGHT(""), TEXT("")), "empty", "empty answer; see whether"),
        (_response(CITATION), "empty", "empty answer; see whether"),
        (_response(REFUSAL("I'd rather not.")), "refusal", "refused to answer: I'd rather not."),
        (_response(TEXT("Well."), REFUSAL("No.")), "refusal", "refused to answer: No."),
        (_response(TEXT("half"), finish_reason="content_filter"), "refusal", "refused to answer; reword"),
        (_response(REFUSAL("No"), finish_reason="length"), "refusal", "refused to answer: No"),
        (
            _response(TEXT('{"a": '), finish_reason="length"),
            "cut",
            "cut at max_tokens=7; raise models.judge.max_tokens",
        ),
        (_response(TEXT(""), finish_reason="length"), "cut", "cut at max_tokens=7"),
        (_response(CALL, finish_reason="length"), "cut", "cut at max_tokens=7"),
        (_response(TEXT("half"), finish_reason="error"), "error", "the server ended the answer with an error"),
    ],
)
def test_what_cannot_be_used_has_a_kind_and_says_what_to_do(response, kind, words):
    found = unusable(response, role="judge", max_tokens=7)

    assert found is not None
    assert found.kind == kind
    assert kind in FAILURE_KINDS
    assert words in found.sentence


@pytest.mark.parametrize(
    "response",
    [
        _response(TEXT("a")),
        _response(THOUGHT("hm"), TEXT("a")),
        _response(CALL, finish_reason="tool_call"),
        _response(TEXT(""), CALL, finish_reason="tool_call"),
        _response(lm15.DataPart(value={"a": 1})),
    ],
)
def test_what_can_be_used(response):
    assert unusable(response, role="task", max_tokens=None) is None


def test_a_cut_without_a_limit_of_ours_is_the_servers():
    assert "set models.task.max_tokens or raise the server's" in cut_answer("task", None).sentence
