"""Remote models: dspy's native client for the providers it knows, LiteLLM for the rest.

The engines of dspy are used below its LM class: one request, one response, no second cache, retry, history or price
look-up, and no call to anywhere but the endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dspy import lm15
from dspy._vendor.lm15.registry import lookup
from dspy.clients.engines import LiteLLMEngine, LM15Engine
from dspy.clients.engines.lm15_engine import timeouts_for
from dspy.lm15 import ProviderDefinition, Request, Response, RouterConfig, UnknownModelError, UnsupportedFeatureError

from harness.errors import UsageError
from harness.models.config import ModelConfig, endpoint_digest
from harness.models.known_models import decodes_under_schema

CONCURRENCY = 8
_NO_KEY = "EMPTY"
_BASE_URL_VARIABLES = ("API_BASE", "BASE_URL")
_SEEDED_DIALECTS = ("openai-chat", "gemini")
_COMPATIBLE = "openai-compatible"


class DspyProvider:
    """A model behind a provider's API.

    Args:
        role: for messages only.
        config: the role's model. Without an `api_base`, OPENAI_BASE_URL and its like are heeded, as the
            providers' own clients do.
        environ: where the key is read, once, here.

    Raises:
        UsageError: the name is not provider/name, or the key's variable is not set.

    See `engine.Provider` for the attributes.
    """

    concurrency = CONCURRENCY

    def __init__(self, role: str, config: ModelConfig, environ: Mapping[str, str]) -> None:
        if not all(config.model.partition("/")):
            raise UsageError(
                f"models.{role}: {config.model!r} is no model: write provider/name, such as openai/gpt-4.1-mini, "
                "or local/smollm2-135m"
            )
        key_of_address = config.api_base is None
        config = replace(config, api_base=config.api_base or _ambient_base(config.model, environ))
        self.model = config.model
        self.host = config.host
        self.endpoint = endpoint_digest(config)
        self._fixed_sampling = config.fixed_sampling
        self._timeout = f"no answer within {config.timeout:g} seconds (models.{role}.timeout)"
        self._wire_model, definition = _route(config)
        key = _key(role, config, definition, environ, usual=key_of_address)
        self.secrets = tuple(filter(None, (key if key != _NO_KEY else None, *_credentials(config.api_base))))
        self._engine = _engine(config, self._wire_model, definition, key)
        schema = config.response_schema
        self.supports_response_schema = decodes_under_schema(config) if schema == "auto" else schema
        self.supported_params = _params(self.supports_response_schema, definition, config)

    def complete(self, request: Request) -> Response:
        """One attempt at the provider. Raises dspy.lm15 errors, ProviderError itself for an unreadable reply."""
        config = request.config
        if self._fixed_sampling:
            config = replace(config, temperature=None)
        try:
            return self._engine.complete(replace(request, model=self._wire_model, config=config))
        except lm15.TransportError as error:
            if "timed out" not in str(error):
                raise
            raise lm15.TransportError(self._timeout) from error
        except (TypeError, ValueError, KeyError, AttributeError) as error:  # a reply of another shape
            raise lm15.ProviderError(f"the reply is not a completion: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._engine.close()


def _route(config: ModelConfig) -> tuple[str, ProviderDefinition | None]:
    """The name dspy's native client routes by and the provider behind it; None for LiteLLM's."""
    prefix, _, name = config.model.partition("/")
    if prefix == "openai" and name and config.api_base and not config.fixed_sampling:
        return f"{_COMPATIBLE}:{name}", _compatible(config.api_base)
    spellings = [config.model, f"{prefix}:{name}"] if name else [config.model]
    for spelling in spellings:
        try:
            resolution = LM15Engine(RouterConfig(env={})).resolve(spelling)
        except (UnknownModelError, UnsupportedFeatureError):
            continue
        return spelling, lookup(resolution.provider)
    return config.model, None


def _compatible(api_base: str) -> ProviderDefinition:
    """Any server that speaks OpenAI's chat dialect; many of them know only `max_tokens`."""
    return ProviderDefinition.chat(
        lm15.AccessPolicy(provider=_COMPATIBLE, env_keys=("OPENAI_API_KEY",), base_url=api_base),
        compat=lm15.OpenAIChatCompat(instruction_role="system", max_tokens_field="max_tokens", cache_control="none"),
    )


def _engine(config: ModelConfig, wire_model: str, definition: ProviderDefinition | None, key: str | None) -> Any:
    if definition is None:
        options = {"api_key": key, "api_base": config.api_base, "timeout": config.timeout}
        return LiteLLMEngine(**{name: value for name, value in options.items() if value is not None})
    return LM15Engine(
        RouterConfig(
            api_keys={definition.id: key} if key else None,
            base_urls={definition.id: config.api_base} if config.api_base else None,
            timeouts=timeouts_for(config.timeout),
            providers=(definition,) if definition.id == _COMPATIBLE else (),
        )
    )


def _key(
    role: str, config: ModelConfig, definition: ProviderDefinition | None, environ: Mapping[str, str], *, usual: bool
) -> str | None:
    """The key to send. `usual` allows the provider's own variables: never to an address the file names."""
    if config.api_key_env:
        key = environ.get(config.api_key_env)
        if not key:
            raise UsageError(_missing(role, config, config.api_key_env))
        return key
    if not usual:
        return _NO_KEY
    if definition is None:
        return environ.get(f"{config.model.partition('/')[0].upper()}_API_KEY")
    variables = definition.access.env_keys
    key = next((environ[name] for name in variables if environ.get(name)), None)
    if key is None and variables:
        raise UsageError(_missing(role, config, " or ".join(variables)))
    return key or definition.placeholder_key


def _missing(role: str, config: ModelConfig, variable: str) -> str:
    return f"models.{role}: {config.model!r} needs its key in the environment variable {variable}, which is not set"


def _ambient_base(model: str, environ: Mapping[str, str]) -> str | None:
    prefix = model.partition("/")[0].upper().replace("-", "_")
    return next((environ[f"{prefix}_{name}"] for name in _BASE_URL_VARIABLES if environ.get(f"{prefix}_{name}")), None)


def _credentials(api_base: str | None) -> tuple[str, ...]:
    """What of an address must not be shown: `user:password@`."""
    if api_base is None or "@" not in api_base:
        return ()
    return (api_base.split("://", 1)[-1].rsplit("@", 1)[0],)


def _params(schema: bool, definition: ProviderDefinition | None, config: ModelConfig) -> frozenset[str]:
    params = {"max_tokens", "top_p", "stop"}
    if not config.fixed_sampling:
        params.add("temperature")
        if definition is not None and definition.dialect in _SEEDED_DIALECTS:
            params.add("seed")
    if schema:
        params.add("response_format")
    return frozenset(params)
