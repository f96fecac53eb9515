"""Where a model's name leads: to which dialect, which address, which key. Nothing is opened here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from dspy import lm15
from dspy._vendor.lm15.registry import lookup
from dspy.clients.engines import LM15Engine
from dspy.lm15 import ProviderDefinition, RouterConfig, UnknownModelError, UnsupportedFeatureError

from harness.errors import UsageError
from harness.models.config import ModelConfig

COMPATIBLE = "openai-compatible"
"""The provider under which every server that speaks OpenAI's chat dialect is addressed."""
NO_KEY = "EMPTY"
"""What is sent where no key is meant to be: servers without keys ignore it, and those with keys refuse it."""

_SERVERS = {
    "ollama": "http://localhost:11434/v1",
    "ollama_chat": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "hosted_vllm": "http://localhost:8000/v1",
    "llamacpp": "http://localhost:8080/v1",
    "llama_cpp": "http://localhost:8080/v1",
    "lm_studio": "http://localhost:1234/v1",
    "sglang": "http://localhost:30000/v1",
}
"""Servers one runs oneself and where each listens when nothing else is said."""
_BASE_URL_VARIABLES = ("API_BASE", "BASE_URL")


@dataclass(frozen=True, slots=True)
class Route:
    """Where one model's requests go.

    Attributes:
        config: the model, with the address found out for it.
        wire_model: the name dspy's native client routes by.
        definition: the provider behind it; None for one that LiteLLM alone knows.
        key: what is sent as the key; None when LiteLLM shall look for one itself.
    """

    config: ModelConfig
    wire_model: str
    definition: ProviderDefinition | None
    key: str | None

    @property
    def dialect(self) -> str | None:
        """openai-chat, anthropic, gemini, ...; None when LiteLLM chooses."""
        return self.definition.dialect if self.definition else None

    @property
    def other_limit_field(self) -> str | None:
        """The second name of the output limit, for a server that refuses the first; None where there is one name."""
        if self.definition is None or self.dialect != "openai-chat":
            return None
        says_completion = self.definition.id == "openai-chat" or self.definition.compat == "openai"
        return "max_tokens" if says_completion else "max_completion_tokens"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be seen: the key, and `user:password@` of the address."""
        address = self.config.api_base or ""
        credentials = address.split("://", 1)[-1].rsplit("@", 1)[0] if "@" in address else None
        return tuple(filter(None, (self.key if self.key != NO_KEY else None, credentials)))


def find_route(role: str, config: ModelConfig, environ: Mapping[str, str]) -> Route:
    """The route of a role's model.

    The address is the file's `api_base`; else what OPENAI_BASE_URL and its like say, as the providers' own clients
    read them; else where the named server usually listens. A key goes only where it was meant for: with an
    `api_base` of the file, or at a server of one's own, none but `api_key_env` names.

    Raises:
        UsageError: the name is not provider/name, or the key's variable is not set.

    >>> route = find_route("task", ModelConfig("ollama/llama3.2:3b"), {"OPENAI_API_KEY": "sk-1"})
    >>> route.config.api_base, route.wire_model, route.key
    ('http://localhost:11434/v1', 'openai-compatible:llama3.2:3b', 'EMPTY')
    """
    prefix, _, name = config.model.partition("/")
    if not (prefix and name):
        raise UsageError(
            f"models.{role}: {config.model!r} is no model: write provider/name, such as openai/gpt-4.1-mini, "
            "or local/smollm2-135m"
        )
    said = config.api_base
    own_server = prefix in _SERVERS
    config = replace(config, api_base=_address(prefix, said or _ambient_base(prefix, environ)))
    wire_model, definition = _definition(config, own_server=own_server)
    key = _key(role, config, definition, environ, usual=said is None and not own_server)
    return Route(config, wire_model, definition, key)


def is_loopback(address: str | None) -> bool:
    """True for an address on this machine, which no proxy can reach for us.

    >>> is_loopback("http://localhost:8000/v1"), is_loopback("http://gpu1:8000/v1"), is_loopback(None)
    (True, False, False)
    """
    host = urlsplit(address or "").hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _address(prefix: str, said: str | None) -> str | None:
    if prefix not in _SERVERS:
        return said
    if said is None:
        return _SERVERS[prefix]
    # All of these servers answer under /v1, and their own tools are told the address without it.
    return f"{said.rstrip('/')}/v1" if urlsplit(said).path in ("", "/") else said


def _ambient_base(prefix: str, environ: Mapping[str, str]) -> str | None:
    start = prefix.upper().replace("-", "_")
    return next((environ[f"{start}_{end}"] for end in _BASE_URL_VARIABLES if environ.get(f"{start}_{end}")), None)


def _definition(config: ModelConfig, *, own_server: bool) -> tuple[str, ProviderDefinition | None]:
    prefix, _, name = config.model.partition("/")
    if config.api_base and (own_server or (prefix == "openai" and not config.fixed_sampling)):
        return f"{COMPATIBLE}:{name}", _compatible(config.api_base)
    for spelling in (config.model, f"{prefix}:{name}"):
        try:
            resolution = LM15Engine(RouterConfig(env={})).resolve(spelling)
        except (UnknownModelError, UnsupportedFeatureError):
            continue
        return spelling, lookup(resolution.provider)
    return config.model, None


def _compatible(api_base: str) -> ProviderDefinition:
    """Any server that speaks OpenAI's chat dialect; many of them know only `max_tokens`."""
    return ProviderDefinition.chat(
        lm15.AccessPolicy(provider=COMPATIBLE, env_keys=("OPENAI_API_KEY",), base_url=api_base),
        compat=lm15.OpenAIChatCompat(instruction_role="system", max_tokens_field="max_tokens", cache_control="none"),
    )


def _key(
    role: str, config: ModelConfig, definition: ProviderDefinition | None, environ: Mapping[str, str], *, usual: bool
) -> str | None:
    """The key to send. `usual` allows the provider's own variables."""
    if config.api_key_env:
        key = environ.get(config.api_key_env)
        if not key:
            raise UsageError(_missing(role, config, config.api_key_env))
        return key
    if not usual:
        return NO_KEY
    if definition is None:
        return environ.get(f"{config.model.partition('/')[0].upper()}_API_KEY")
    variables = definition.access.env_keys
    key = next((environ[name] for name in variables if environ.get(name)), None)
    if key is None and variables:
        raise UsageError(_missing(role, config, " or ".join(variables)))
    return key or definition.placeholder_key


def _missing(role: str, config: ModelConfig, variable: str) -> str:
    return f"models.{role}: {config.model!r} needs its key in the environment variable {variable}, which is not set"
