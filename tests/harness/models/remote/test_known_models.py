import socket

import pytest

from harness.models.config import ModelConfig
from harness.models.remote.known_models import decodes_under_schema, list_price


@pytest.mark.parametrize("model", ["openai/gpt-4.1-mini", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"])
def test_common_models_have_a_price_and_decode_under_a_schema(model):
    price = list_price(ModelConfig(model))

    assert price is not None
    assert 0 < price[0] < price[1] < 1000
    assert decodes_under_schema(ModelConfig(model)) is True


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig("openai/gpt-4.1-mini", api_base="http://gateway/v1"),
        ModelConfig("ollama/gpt-4.1-mini"),
        ModelConfig("openai/nobody-knows-this"),
        ModelConfig("local/smollm2-135m"),
        ModelConfig("sample_spec"),
    ],
)
def test_nothing_is_assumed_of_other_places(config):
    assert list_price(config) is None
    assert decodes_under_schema(config) is None


def test_nothing_is_asked_of_the_network(monkeypatch):
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)

    def refuse(*_: object, **__: object):
        raise AssertionError("a look-up left this machine")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert list_price(ModelConfig("openai/gpt-4.1-mini")) is not None
