"""What an experiment file says about one role's model, as plain data.

Nothing here imports dspy or opens anything, so a file can be read and checked before a model is thought of.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

LOCAL_PREFIX = "local/"
LOCAL_MAX_TOKENS = 512
REMOTE_MAX_TOKENS = 4096
REASONING_MAX_TOKENS = 32_000

# OpenAI's reasoning families accept no temperature but their own and think within max_tokens.
_REASONING = re.compile(r"^(o[1345](-.*)?|gpt-5(\.\d+)*(?!-chat)(-.*)?)$")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One role's model.

    Attributes:
        model: `provider/name`, or `local/NAME` / `local/PATH.gguf` for a model run in this process.
        api_base: a server of one's own, or a gateway; None is the provider's own address, or for ollama/, vllm/,
            llamacpp/, lm_studio/ and sglang/ the one where that server usually listens on this machine.
        api_key_env: the environment variable that holds the key; None is the provider's usual one. With an
            `api_base` and no variable no key is sent: a key meant for one provider never travels to another.
        temperature: 0.0 is greedy. Ignored by models whose sampling is fixed (`fixed_sampling`).
        max_tokens: output limit per answer; None is 512 for a local model (about ten times a short record),
            4096 for a remote one, 32000 for a reasoning model, whose thinking counts.
        timeout: seconds until the whole answer must be there; connecting is given up after 3.
        requests_per_minute: requests are spaced so that no more than this many start in a minute.
        response_schema: whether the server decodes under a JSON Schema; "auto" asks what is known of the model,
            and where nothing is known, the server itself, once.
        price: USD per million input and output tokens; None is unknown, which is not zero.

    >>> ModelConfig("local/smollm2-135m").output_limit
    512
    """

    model: str
    api_base: str | None = None
    api_key_env: str | None = None
    temperature: float = 0.0
    max_tokens: int | None = None
    timeout: float = 120.0
    requests_per_minute: float | None = None
    response_schema: bool | Literal["auto"] = "auto"
    price: tuple[float, float] | None = None

    @property
    def is_local(self) -> bool:
        """True for a model that runs in this process."""
        return self.model.startswith(LOCAL_PREFIX)

    @property
    def fixed_sampling(self) -> bool:
        """True when the model refuses a temperature: OpenAI's reasoning families.

        >>> ModelConfig("openai/gpt-5-mini").fixed_sampling, ModelConfig("openai/gpt-4.1").fixed_sampling
        (True, False)
        """
        return bool(_REASONING.match(self.model.rsplit("/", 1)[-1].lower()))

    @property
    def output_limit(self) -> int:
        """`max_tokens`, or the default its attribute's text gives."""
        if self.max_tokens is not None:
            return self.max_tokens
        if self.is_local:
            return LOCAL_MAX_TOKENS
        return REASONING_MAX_TOKENS if self.fixed_sampling else REMOTE_MAX_TOKENS

    @property
    def host(self) -> str:
        """Where the model is, for people: no credentials, no path; empty for a local model.

        >>> ModelConfig("openai/x", api_base="http://me:secret@gpu1:8000/v1").host
        'gpu1:8000'
        """
        if self.is_local:
            return ""
        if self.api_base is None:
            return self.model.split("/", 1)[0]
        parts = urlsplit(self.api_base)
        name = parts.hostname or "an unreadable address"
        return f"{name}:{parts.port}" if parts.port else name


def endpoint_digest(config: ModelConfig, **settings: Any) -> str:
    """A sha256 of everything that decides what an endpoint answers to one request, sampling aside.

    Args:
        config: the model; its address and name count, its key, price and rate do not.
        settings: what a provider adds: weights, threads, slots, context size, schema bounds. Dataclasses and
            plain JSON data.

    >>> a, b = ModelConfig("openai/m", api_base="http://x/v1"), ModelConfig("openai/m", api_base="http://y/v1")
    >>> endpoint_digest(a) == endpoint_digest(b)
    False
    """
    content = {
        "model": config.model,
        "api_base": config.api_base.rstrip("/") if config.api_base else None,
        **{name: _plain(value) for name, value in settings.items() if value is not None},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
