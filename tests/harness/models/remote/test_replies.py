from dataclasses import replace

import pytest
from dspy import lm15
from dspy.lm15 import Response

from harness.models.remote.replies import limit_is_too_large, read, refusal, rightly_named


def _response(usage=None, finish="stop", said=None):
    unmapped = [{"path": "choices[0].finish_reason", "type": said}] if said else []
    return Response(
        id=None,
        model="m",
        message=lm15.Message.assistant([lm15.TextPart("x")]),
        finish_reason=finish,
        usage=usage or lm15.Usage(),
        provider_data={"_lm15_unmapped": unmapped, "choices": [{}], "content": [], "candidates": [{}]},
    )


@pytest.mark.parametrize(
    ("dialect", "provider", "read_tokens", "written"),
    [
        ("openai-chat", "openrouter", 100, 20),
        ("openai-chat", "xai", 100, 27),
        ("gemini", "gemini", 100, 27),
        ("anthropic", "anthropic", 170, 20),
        (None, None, 100, 20),
    ],
)
def test_usage_counts_what_the_price_is_per(dialect, provider, read_tokens, written):
    usage = lm15.Usage(100, 20, cache_read_tokens=60, cache_write_tokens=10, reasoning_tokens=7)
    counted = read(_response(usage), dialect, provider).usage

    assert (counted.input_tokens, counted.output_tokens) == (read_tokens, written)


@pytest.mark.parametrize(
    ("dialect", "data"),
    [
        ("openai-chat", {}),
        ("openai-chat", {"choices": []}),
        ("anthropic", {"status": "ok"}),
        ("gemini", {"usageMetadata": {}}),
    ],
)
def test_another_document_is_no_completion(dialect, data):
    with pytest.raises(lm15.ProviderError, match=r"the reply is not a completion: it has no (choices|content|cand)"):
        read(replace(_response(), provider_data=data), dialect)


def test_what_was_not_reported_stays_unknown():
    for dialect in ("anthropic", "gemini", "openai-chat"):
        assert read(_response(lm15.Usage(cache_read_tokens=3, reasoning_tokens=3)), dialect).usage.input_tokens is None


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("error", "error"),
        ("abort", "error"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("eos", "stop"),
        (None, "stop"),
    ],
)
def test_a_reason_in_other_words_is_understood(said, finish):
    assert read(_response(said=said), "openai-chat").finish_reason == finish


@pytest.mark.parametrize("code", ["SAFETY", "RECITATION", "promptFeedback", "content_filter", "IMAGE_SAFETY"])
def test_blocked_content_is_an_answer_that_refuses(code):
    answer = refusal(lm15.InvalidRequestError("blocked", provider_code=code, status=400), "m")

    assert answer is not None
    assert (answer.finish_reason, answer.message.parts[0].text) == ("content_filter", "blocked")


@pytest.mark.parametrize("code", [None, "INVALID_ARGUMENT", "MALFORMED_RESPONSE", "invalid_request_error"])
def test_a_bad_request_is_no_refusal(code):
    assert refusal(lm15.InvalidRequestError("bad", provider_code=code), "m") is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, lm15.RateLimitError), (503, lm15.ServerError), (400, lm15.ContextLengthError)],
)
def test_the_status_decides_before_the_words(status, kind):
    error = rightly_named(lm15.ContextLengthError("input tokens exceed the context window", status=status))

    assert type(error) is kind


def test_a_malformed_reply_is_not_the_requests_fault():
    error = rightly_named(lm15.InvalidRequestError("Candidate blocked", provider_code="MALFORMED_RESPONSE"))

    assert type(error) is lm15.ProviderError


def test_other_errors_stay_what_they_are():
    for error in (lm15.AuthError("no"), lm15.InvalidRequestError("top_p"), lm15.TransportError("down")):
        assert rightly_named(error) is error


@pytest.mark.parametrize(
    ("words", "too_large"),
    [
        ("max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens", True),
        ("max_completion_tokens is too large: 9000", True),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", False),
        ("the prompt has too many tokens", False),
    ],
)
def test_a_limit_refused_for_its_size_is_told_from_one_refused_for_its_name(words, too_large):
    assert limit_is_too_large(lm15.InvalidRequestError(words)) is too_large
