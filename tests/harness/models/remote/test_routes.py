import pytest

from harness.errors import UsageError
from harness.models.config import ModelConfig
from harness.models.remote.routes import find_route, is_loopback

ENVIRON = {
    "OPENAI_API_KEY": "key-of-openai",
    "ANTHROPIC_API_KEY": "key-of-anthropic",
    "GEMINI_API_KEY": "key-of-gemini",
    "OPENROUTER_API_KEY": "key-of-openrouter",
    "MISTRAL_API_KEY": "key-of-mistral",
    "MINE": "my-key",
}


@pytest.mark.parametrize(
    ("model", "wire_model", "dialect", "address", "key"),
    [
        ("openai/gpt-4.1-mini", "openai/gpt-4.1-mini", "openai-chat", None, "key-of-openai"),
        ("anthropic/claude-x", "anthropic/claude-x", "anthropic", None, "key-of-anthropic"),
        ("gemini/gemini-x", "gemini/gemini-x", "gemini", None, "key-of-gemini"),
        ("openrouter/meta/x:free", "openrouter/meta/x:free", "openai-chat", None, "key-of-openrouter"),
        ("mistral/tiny", "mistral/tiny", None, None, "key-of-mistral"),
        ("ollama/l:3b", "openai-compatible:l:3b", "openai-chat", "http://localhost:11434/v1", "EMPTY"),
        ("ollama_chat/l", "openai-compatible:l", "openai-chat", "http://localhost:11434/v1", "EMPTY"),
        ("vllm/org/m", "openai-compatible:org/m", "openai-chat", "http://localhost:8000/v1", "EMPTY"),
        ("hosted_vllm/m", "openai-compatible:m", "openai-chat", "http://localhost:8000/v1", "EMPTY"),
        ("llamacpp/m", "openai-compatible:m", "openai-chat", "http://localhost:8080/v1", "EMPTY"),
        ("llama_cpp/m", "openai-compatible:m", "openai-chat", "http://localhost:8080/v1", "EMPTY"),
        ("lm_studio/m", "openai-compatible:m", "openai-chat", "http://localhost:1234/v1", "EMPTY"),
        ("sglang/m", "openai-compatible:m", "openai-chat", "http://localhost:30000/v1", "EMPTY"),
    ],
)
def test_a_name_leads_to_a_dialect_an_address_and_a_key(model, wire_model, dialect, address, key):
    route = find_route("task", ModelConfig(model), ENVIRON)

    assert (route.wire_model, route.dialect, route.config.api_base, route.key) == (wire_model, dialect, address, key)


@pytest.mark.parametrize("model", ["openai/m", "ollama/m", "anthropic/m", "gemini/m", "openrouter/m", "mistral/m"])
def test_a_key_of_a_provider_never_goes_to_an_address_of_the_file(model):
    config = ModelConfig(model, api_base="http://other/v1")

    assert find_route("task", config, ENVIRON).key == "EMPTY"
    assert find_route("task", config, ENVIRON).secrets == ()


@pytest.mark.parametrize("model", ["openai/m", "ollama/m", "anthropic/m", "gemini/m", "openrouter/m"])
def test_the_key_the_file_names_goes_with_it(model):
    route = find_route("task", ModelConfig(model, api_base="http://other/v1", api_key_env="MINE"), ENVIRON)

    assert (route.key, route.secrets) == ("my-key", ("my-key",))


@pytest.mark.parametrize(
    ("model", "said", "address"),
    [
        ("ollama/m", "http://gpu1:11434", "http://gpu1:11434/v1"),
        ("vllm/m", "http://gpu1:8000/", "http://gpu1:8000/v1"),
        ("vllm/m", "http://gpu1/serve/v1", "http://gpu1/serve/v1"),
        ("openai/m", "http://gpu1:8000", "http://gpu1:8000"),
    ],
)
def test_own_servers_answer_under_v1(model, said, address):
    assert find_route("task", ModelConfig(model, api_base=said), {}).config.api_base == address


def test_the_environment_names_an_address():
    environ = {**ENVIRON, "OLLAMA_API_BASE": "http://gpu1:11434", "OPENAI_BASE_URL": "http://gateway/v1"}

    assert find_route("task", ModelConfig("ollama/m"), environ).config.api_base == "http://gpu1:11434/v1"
    gateway = find_route("task", ModelConfig("openai/m"), environ)
    assert (gateway.config.api_base, gateway.key) == ("http://gateway/v1", "key-of-openai")


def test_credentials_of_an_address_are_secrets():
    assert find_route("task", ModelConfig("openai/m", api_base="http://me:pass@x/v1"), {}).secrets == ("me:pass",)


@pytest.mark.parametrize("model", ["m", "/m", "openai/", ""])
def test_half_a_name_is_a_sentence(model):
    with pytest.raises(UsageError, match=r"models\.task: .* is no model: write provider/name"):
        find_route("task", ModelConfig(model), {})


@pytest.mark.parametrize(
    ("config", "variable"),
    [
        (ModelConfig("openai/m"), "OPENAI_API_KEY"),
        (ModelConfig("gemini/m"), "GEMINI_API_KEY or GOOGLE_API_KEY"),
        (ModelConfig("ollama/m", api_key_env="MINE"), "MINE"),
    ],
)
def test_a_missing_key_is_a_sentence_with_its_variable(config, variable):
    with pytest.raises(UsageError, match=f"environment variable {variable}, which is not set"):
        find_route("task", config, {})


@pytest.mark.parametrize(
    ("model", "api_base", "other"),
    [
        ("openai/gpt-4.1-mini", None, "max_tokens"),
        ("openai/m", "http://x/v1", "max_completion_tokens"),
        ("openrouter/m", None, "max_completion_tokens"),
        ("anthropic/m", None, None),
        ("gemini/m", None, None),
        ("mistral/m", None, None),
    ],
)
def test_the_output_limit_has_two_names_in_one_dialect_only(model, api_base, other):
    assert find_route("task", ModelConfig(model, api_base=api_base), ENVIRON).other_limit_field == other


@pytest.mark.parametrize(
    ("address", "here"),
    [("http://127.0.0.1:1/v1", True), ("http://[::1]:1/v1", True), ("https://api.example.org", False), ("", False)],
)
def test_which_addresses_are_on_this_machine(address, here):
    assert is_loopback(address) is here
