"""Every dialect's errors over a real wire: the right class, the provider's own words, the pause it asks for."""

import socket

import pytest
from dspy import lm15
from dspy.lm15 import Request

from harness.models.config import ModelConfig
from harness.models.dialects import ANTHROPIC, DIALECTS, GEMINI, LLAMA_SERVER, OLLAMA, OPENAI, OPENROUTER, VLLM, Fault
from harness.models.loopback import LoopbackServer, Reply
from harness.models.remote.dspy_provider import DspyProvider

MODELS = {"Anthropic": "anthropic/claude-x", "Gemini": "gemini/gemini-x", "OpenRouter": "openrouter/meta/x"}
QUESTION = Request(model="m", messages=(lm15.Message.user("q"),))

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


def error_of(said, dialect=OPENAI, **settings):
    """What a provider raises when the server says this."""
    with LoopbackServer([said], dialect) as server:
        config = ModelConfig(MODELS.get(dialect.name, "openai/x"), api_base=server.api_base, **settings)
        provider = DspyProvider("judge", config, {})
        try:
            with pytest.raises(lm15.LM15Error) as caught:
                provider.complete(QUESTION)
        finally:
            provider.close()
    return caught.value


@every_dialect
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, lm15.InvalidRequestError),
        (401, lm15.AuthError),
        (429, lm15.RateLimitError),
        (500, lm15.ServerError),
        (503, lm15.ServerError),
        (529, lm15.ServerError),
    ],
)
def test_an_error_has_its_class_and_the_providers_words(dialect, status, kind):
    error = error_of(Fault(status, "the words of 静脉"), dialect)

    assert type(error) is kind
    assert "the words of 静脉" in str(error)


@every_dialect
def test_a_model_that_is_not_there(dialect):
    error = error_of(Fault(404, "model x not found"), dialect)

    assert isinstance(error, lm15.InvalidRequestError)
    assert error.status == 404
    assert "model x not found" in str(error)


@every_dialect
def test_the_pause_a_server_asks_for_is_told(dialect):
    assert error_of(Fault(429, "slow down", retry_after=7), dialect).retry_after == 7.0


def test_gemini_says_in_the_body_how_long_to_wait():
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}
    body = {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [retry]}}

    assert error_of(Reply(429, body), GEMINI).retry_after == 17.5


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        (ANTHROPIC, "This request would exceed your organization's rate limit of 50,000 input tokens per minute"),
        (GEMINI, "You exceeded your current quota: generate_content_free_tier_input_token_count, limit: 250000"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_rate_limit_in_tokens_is_no_overlong_input(dialect, words):
    error = error_of(Fault(429, words, retry_after=2), dialect)

    assert type(error) is lm15.RateLimitError
    assert error.retry_after == 2.0


@pytest.mark.parametrize(
    ("dialect", "words", "code"),
    [
        (OPENAI, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
        (VLLM, "This model's maximum context length is 2048 tokens. However, you requested 4000 tokens", None),
        (LLAMA_SERVER, "the request exceeds the available context size", "exceed_context_size_error"),
        (OPENROUTER, "This endpoint's maximum context length is 32768 tokens", None),
        (OLLAMA, "prompt is too long: 9000 tokens", None),
        (ANTHROPIC, "prompt is too long: 201000 tokens > 200000 maximum", None),
        (GEMINI, "The input token count (1200000) exceeds the maximum number of tokens allowed", None),
        (OPENAI, "Requested 9000 tokens, the limit is 8192", None),
        (OPENAI, "This model's maximum prompt length is 8192 but the request contains 9000 tokens.", None),
        (OPENAI, "Input validation error: `inputs` must have less than 4095 tokens. Given: 9000", None),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_overlong_input_is_known_by_its_words(dialect, words, code):
    assert type(error_of(Fault(400, words, code), dialect)) is lm15.ContextLengthError


@every_dialect
def test_a_payload_too_large_is_an_overlong_input(dialect):
    assert type(error_of(Fault(413, "Payload Too Large"), dialect)) is lm15.ContextLengthError
    assert type(error_of(Reply(413, b"<html>"), dialect)) is lm15.ContextLengthError


@every_dialect
def test_an_overlong_input_may_be_called_unprocessable(dialect):
    words = "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000 `inputs` tokens"

    assert type(error_of(Fault(422, words), dialect)) is lm15.ContextLengthError


def test_an_output_limit_that_is_too_large_is_a_wrong_setting():
    words = "max_tokens is too large: 9000. This model's maximum context length is 2048 tokens"

    assert type(error_of(Fault(400, words), VLLM)) is lm15.InvalidRequestError


def test_geminis_wrong_key_is_a_wrong_key():
    assert type(error_of(Fault(400, "API key not valid. Please pass a valid API key."), GEMINI)) is lm15.AuthError


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "upstream is down", "code": 502}}, "upstream is down"),
        ({"error": "out of memory"}, "out of memory"),
        ({"error": {"message": "later", "code": 429}, "choices": []}, "later"),
    ],
)
def test_an_error_sent_with_status_200_is_an_error(body, words):
    error = error_of(Reply(body=body))

    assert isinstance(error, lm15.ServerError | lm15.RateLimitError)
    assert words in str(error)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"detail": [{"loc": ["body", "messages", 0], "msg": "field required"}]}, "messages.0: field required"),
        ({"object": "error", "message": "not on this server", "code": 400}, "not on this server"),
        ([{"error": {"message": "in a list", "code": 400}}], "in a list"),
        ({"strange": 1}, "HTTP 400"),
        (b"<html>Bad Gateway</html>", "Bad Gateway"),
        (b"plain words", "plain words"),
    ],
)
def test_an_error_of_any_shape_keeps_its_words(body, words):
    assert words in str(error_of(Reply(400, body)))


def test_openrouter_tells_the_words_of_the_provider_behind_it():
    error = error_of(Fault(400, "temperature is not supported"), OPENROUTER)

    assert "Provider returned error: temperature is not supported" in str(error)


def test_a_server_that_never_answers_names_the_setting():
    error = error_of(Reply(delay=5.0), timeout=0.05)

    assert type(error) is lm15.TimeoutError
    assert str(error) == "no answer within 0.05 seconds (models.judge.timeout)"


def test_a_server_that_accepts_no_connection_is_told_from_one_that_is_slow(monkeypatch):
    def refuse(*_, **__):
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", refuse)
    provider = DspyProvider("judge", ModelConfig("openai/x", api_base="http://192.0.2.1/v1"), {})
    with pytest.raises(lm15.TransportError, match=r"no connection within 2 seconds: .* models\.judge\.api_base"):
        provider.complete(QUESTION)
    provider.close()
