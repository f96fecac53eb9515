import subprocess
import sys

import pytest

from harness.models.config import ModelConfig, endpoint_digest
from harness.models.schema_bounds import SchemaBounds


@pytest.mark.parametrize(
    ("model", "max_tokens", "limit"),
    [
        ("local/smollm2-135m", None, 512),
        ("openai/gpt-4.1", None, 4096),
        ("openai/gpt-5-mini", None, 32_000),
        ("openai/o3", None, 32_000),
        ("openai/gpt-5-chat", None, 4096),
        ("anthropic/claude-sonnet-4-5", 100, 100),
    ],
)
def test_output_limit(model, max_tokens, limit):
    assert ModelConfig(model, max_tokens=max_tokens).output_limit == limit


@pytest.mark.parametrize(
    ("config", "host"),
    [
        (ModelConfig("local/x.gguf"), ""),
        (ModelConfig("anthropic/claude"), "anthropic"),
        (ModelConfig("openai/m", api_base="http://127.0.0.1:8080/v1"), "127.0.0.1:8080"),
        (ModelConfig("openai/m", api_base="https://me:secret@gate.example/v1?key=secret"), "gate.example"),
        (ModelConfig("openai/m", api_base="nonsense"), "an unreadable address"),
    ],
)
def test_host_shows_no_credentials(config, host):
    assert config.host == host


def test_the_digest_tells_endpoints_apart_and_nothing_else():
    one = ModelConfig("openai/m", api_base="http://x/v1", api_key_env="A", price=(1, 2), timeout=1)

    assert endpoint_digest(one) == endpoint_digest(
        ModelConfig("openai/m", api_base="http://x/v1/", api_key_env="B", temperature=1.0)
    )
    others = [
        endpoint_digest(ModelConfig("openai/n", api_base="http://x/v1")),
        endpoint_digest(ModelConfig("openai/m", api_base="http://y/v1")),
        endpoint_digest(ModelConfig("openai/m")),
        endpoint_digest(one, weights="abc"),
        endpoint_digest(one, weights="abc", n_threads=2),
        endpoint_digest(one, bounds=SchemaBounds()),
        endpoint_digest(one, bounds=SchemaBounds(lengths={"a": 1})),
        endpoint_digest(one, settings={"a": 1}),
    ]
    assert len({endpoint_digest(one), *others}) == 9


def test_reading_a_config_imports_no_model_library():
    program = "import sys, harness.models.config; print(sorted({'dspy', 'mlflow', 'optuna'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "[]"
