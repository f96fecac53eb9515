"""Remote models: dspy's native client for the providers it knows, LiteLLM for the rest.

The engines of dspy are used below its LM class: one request, one response, no second cache, retry, history or price
look-up, and no call to anywhere but the endpoint.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dspy import lm15
from dspy.clients.engines import LiteLLMEngine, LM15Engine
from dspy.lm15 import Request, Response, RouterConfig

from harness.errors import UsageError
from harness.models.config import ModelConfig, endpoint_digest
from harness.models.remote import replies
from harness.models.remote.known_models import decodes_under_schema
from harness.models.remote.routes import COMPATIBLE, Route, find_route, is_loopback
from harness.models.remote.terms import Terms
from harness.models.remote.wire import CONNECT_SECONDS, Wire

CONCURRENCY = 8
_SEEDED_DIALECTS = ("openai-chat", "gemini")
_WITHOUT_JSON_MODE = ("anthropic",)
_OFFLINE_VARIABLE = "LITELLM_LOCAL_MODEL_COST_MAP"


class DspyProvider:
    """A model behind a provider's API.

    What the endpoint refuses, or cannot do, is remembered in its terms: a request is changed to fit them before it is
    sent, and `facts` gives them to a later run, which then never asks again.

    Args:
        role: for messages only.
        config: the role's model; see `routes.find_route` for its address and key.
        environ: where the key is read, once, here.

    Raises:
        UsageError: the name is not provider/name, the key's variable is not set, or the provider is one that
            LiteLLM alone knows and LiteLLM would fetch a price table from the internet when it is loaded.

    See `engine.Provider` for the attributes.
    """

    concurrency = CONCURRENCY

    def __init__(self, role: str, config: ModelConfig, environ: Mapping[str, str]) -> None:
        route = find_route(role, config, environ)
        config = route.config
        self.model = config.model
        self.host = config.host
        self.endpoint = endpoint_digest(config)
        self.secrets = route.secrets
        self._route = route
        self._timeout = f"no answer within {config.timeout:g} seconds (models.{role}.timeout)"
        self._unconnected = (
            f"no connection within {CONNECT_SECONDS:g} seconds: is the server running, is models.{role}.api_base right?"
        )
        self._wire: Wire | None = None
        self._engine = self._open(role, environ)
        self._at_first = _terms(config, route)
        self._terms = self._at_first
        self._lock = threading.Lock()
        self._sent = threading.local()

    @property
    def needs_probe(self) -> bool:
        """Whether nobody knows yet how this endpoint can be asked for JSON."""
        return self._terms.schema is None

    @property
    def supports_response_schema(self) -> bool:
        """Whether it decodes under a JSON Schema, as far as is known."""
        return self._terms.schema == "json_schema"

    @property
    def supported_params(self) -> frozenset[str]:
        """OpenAI's names of the settings it heeds."""
        terms = self._terms
        params = {"max_tokens", "top_p", "stop"}
        if not self._route.config.fixed_sampling:
            params.add("temperature")
            if self._route.dialect in _SEEDED_DIALECTS:
                params.add("seed")
        if terms.schema in ("json_schema", "json_object"):
            params.add("response_format")
        return frozenset(params - terms.refused)

    def complete(self, request: Request) -> Response:
        """One attempt at the provider. Raises dspy.lm15 errors, ProviderError itself for an unreadable reply."""
        route, terms = self._route, self._terms
        request = terms.adapted(replace(request, model=route.wire_model))
        if route.config.fixed_sampling:
            request = replace(request, config=replace(request.config, temperature=None))
        self._sent.terms, self._sent.form = terms, (request.config.response_format or {}).get("type")
        self._sent.too_large = False
        try:
            response = self._engine.complete(request)
        except lm15.TransportError as error:
            if replies.is_late(error):
                raise lm15.TimeoutError(self._timeout) from error
            if replies.is_unconnected(error):
                raise lm15.TransportError(self._unconnected) from error
            raise
        except lm15.UnsupportedFeatureError as error:
            if error.feature != "config.response_format":
                raise
            raise lm15.InvalidRequestError(str(error)) from error
        except lm15.LM15Error as error:
            refused = replies.refusal(error, request.model)
            if refused is not None:
                return refused
            self._sent.too_large = replies.limit_is_too_large(error)
            renamed = replies.rightly_named(error)
            if renamed is error:
                raise
            raise renamed from error
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:  # a reply of another shape
            raise lm15.ProviderError(f"the reply is not a completion: {error}") from error
        return replies.read(response, route.dialect, route.definition.id if route.definition else None)

    def give_up(self, setting: str) -> bool:
        """Do without a setting from now on, because this thread's last request was refused for it.

        Args:
            setting: temperature, seed, max_tokens (sent under its other name) or response_format (the next simpler
                way to ask for JSON, unless the file demands one).

        Returns:
            Whether the next request will be another one. False: the refusal stands.
        """
        if setting == "response_format" and self._route.config.response_schema != "auto":
            return False
        if setting == "max_tokens" and getattr(self._sent, "too_large", False):
            return False  # the number was refused; under another name a server may not know, it would not hold
        with self._lock:
            sent: Terms = getattr(self._sent, "terms", self._terms)
            if self._terms.part(setting) != sent.part(setting):
                return True  # another thread was refused the same in the meantime
            changed = self._terms.without(setting, getattr(self._sent, "form", None))
            if changed is None:
                return False
            self._terms = changed
            return True

    def adopt(self, facts: Mapping[str, Any]) -> None:
        """Take over what was found out about this endpoint: by `capabilities.probe`, or by an earlier run.

        Args:
            facts: `schema` and `note` as Capabilities has them, or what `facts` gave. A way to ask for JSON that
                the file demands is kept.
        """
        with self._lock:
            self._terms = self._terms.adopting(facts, schema=self._route.config.response_schema == "auto")

    def facts(self) -> dict[str, Any]:
        """What was found out by asking, as JSON data; empty when nothing was."""
        return self._terms.facts(self._at_first)

    def close(self) -> None:
        """Close the connections."""
        self._engine.close()
        if self._wire is not None:
            self._wire.close()

    def _open(self, role: str, environ: Mapping[str, str]) -> Any:
        config, definition, key = self._route.config, self._route.definition, self._route.key
        if definition is None:
            _refuse_a_call_home(role, config)
            options = {"api_key": key, "api_base": config.api_base, "timeout": config.timeout}
            return LiteLLMEngine(**{name: value for name, value in options.items() if value is not None})
        self._wire = Wire(config.timeout, direct=is_loopback(config.api_base))
        return LM15Engine(
            RouterConfig(
                env=environ,
                api_keys={definition.id: key} if key else None,
                base_urls={definition.id: config.api_base} if config.api_base else None,
                transport=self._wire,
                providers=(definition,) if definition.id == COMPATIBLE else (),
            )
        )


def _terms(config: ModelConfig, route: Route) -> Terms:
    terms = Terms(
        json_object=route.dialect not in _WITHOUT_JSON_MODE,
        other_limit_field=route.other_limit_field,
    )
    if config.response_schema != "auto":
        return replace(terms, schema="json_schema" if config.response_schema else "none")
    known = decodes_under_schema(config)
    return terms if known is None else replace(terms, schema="json_schema" if known else "none")


def _refuse_a_call_home(role: str, config: ModelConfig) -> None:
    """LiteLLM downloads a price table when it is loaded, unless the environment of the process says otherwise."""
    if "litellm" in sys.modules or os.environ.get(_OFFLINE_VARIABLE, "").lower() == "true":
        return
    name = config.model.partition("/")[2]
    raise UsageError(
        f"models.{role}: {config.model!r} needs LiteLLM, which downloads a price table when it is loaded: set "
        f"{_OFFLINE_VARIABLE}=True, or write openai/{name} with the provider's OpenAI-compatible address as api_base"
    )
