"""A dspy.LM per role, built from what the file says about its model."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import dspy
from dspy.utils.exceptions import LMConfigurationError, LMError

from harness.errors import ProgramFailure, UsageError, nearest
from harness.models.calls import rollout
from harness.models.config import ModelConfig
from harness.models.engine import AsyncRoleEngine, RoleEngine
from harness.models.ledger import Ledger, Price
from harness.models.limits import EndpointLimits
from harness.models.llama_cpp import LlamaCppProvider, LlamaRuntime
from harness.models.provider import Endpoint, Provider
from harness.models.remote.dspy_provider import DspyProvider
from harness.models.remote.known_models import list_price
from harness.models.schema_bounds import SchemaBounds
from harness.models.store import AnswerStore
from harness.models.weights import Weights, locate


class RoleLM(dspy.LM):
    """The LM of one role. Its engine pays, stores and counts; dspy's own cache and retries are off.

    The model's name ends in the first digits of its endpoint's digest, so that whatever keys on the name alone
    cannot take two servers for one.

    A call whose answer is unusable raises the engine's ProgramFailure itself, not dspy's wrapping of it; where an
    adapter wraps it again, `faults.program_failure` finds it.

    Attributes:
        role: task, teacher, prompt or judge.
    """

    def __init__(self, role: str, model: str, engine: RoleEngine, **sampling: Any) -> None:
        super().__init__(
            model, engine=engine, async_engine=AsyncRoleEngine(engine), cache=False, num_retries=0, **sampling
        )
        self.role = role

    @property
    def engine(self) -> RoleEngine:
        """The engine, with its provider and capabilities."""
        return cast(RoleEngine, self._engine_spec)

    def replicated(self, number: int) -> RoleLM:
        """The same LM for replicate `number` of a repeated measurement: it asks all anew, at temperature 0, too."""
        engine = self.engine.replicated(number)
        other = copy.copy(self)
        other._engine_spec, other._async_engine_spec = engine, AsyncRoleEngine(engine)
        return other

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answers as dspy.LM gives them; `rollout_id` reaches the engine."""
        with rollout(kwargs.get("rollout_id", self.kwargs.get("rollout_id"))):
            try:
                return super().__call__(prompt, messages=messages, **kwargs)
            except LMError as error:
                raise _own(error) from None

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """The same, awaited."""
        with rollout(kwargs.get("rollout_id", self.kwargs.get("rollout_id"))):
            try:
                return await super().acall(prompt, messages=messages, **kwargs)
            except LMError as error:
                raise _own(error) from None


def _own(error: LMError) -> Exception:
    return error.__cause__ if isinstance(error.__cause__, ProgramFailure) else error


class Endpoints:
    """The endpoints of one process: roles with the same one share its model in memory and its limits.

    An explicit object with a lifetime, a context manager; there is no global one.

    Args:
        environ: where keys are read; None is the process's environment.
        providers: providers to use as they are, by model name: scripted ones, or one's own. With them, no other model
            is called.
    """

    def __init__(
        self, environ: Mapping[str, str] | None = None, providers: Mapping[str, Provider] | None = None
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._given = dict(providers or {})
        self._lock = threading.Lock()
        self._weights: dict[tuple[str, Path | None], Weights] = {}
        self._runtimes: dict[Path, LlamaRuntime] = {}
        self._limits: dict[tuple[Any, ...], EndpointLimits] = {}
        self._providers: list[Provider] = []

    def __enter__(self) -> Endpoints:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def find(
        self, role: str, config: ModelConfig, *, bounds: SchemaBounds | None = None, base_dir: Path | None = None
    ) -> Endpoint:
        """The endpoint for a role's model.

        Raises:
            UsageError: a missing key, missing weights, a name no provider knows.
        """
        with self._lock:
            if self._given:
                provider, place = self._provided(role, config.model), config.model
            elif config.is_local:
                runtime = self._runtime(config.model, base_dir)
                provider, place = LlamaCppProvider(config.model, runtime, bounds=bounds), str(runtime.weights.path)
            else:
                provider = DspyProvider(role, config, self._environ)
                place = provider.endpoint
            self._providers.append(provider)
            # Two accounts at one address are limited apart.
            account = (place, config.api_key_env, config.requests_per_minute)
            if account not in self._limits:
                self._limits[account] = EndpointLimits(provider.concurrency, config.requests_per_minute)
            return Endpoint(provider, self._limits[account])

    def _provided(self, role: str, model: str) -> Provider:
        """One of the given providers: where some are given, no other model is ever called."""
        if model not in self._given:
            raise UsageError(
                f"models.{role}: no provider was given for {model!r}, and where providers are given no other model is "
                f"called; {nearest(model, self._given)}"
            )
        return self._given[model]

    def close(self) -> None:
        """Close every provider handed out and free local models; a later call loads them again."""
        with self._lock:
            providers, self._providers = self._providers, []
            self._runtimes.clear()
        for provider in providers:
            provider.close()

    def _runtime(self, model: str, base_dir: Path | None) -> LlamaRuntime:
        if (model, base_dir) not in self._weights:
            self._weights[model, base_dir] = locate(model, base_dir)
        weights = self._weights[model, base_dir]
        return self._runtimes.setdefault(weights.path.resolve(), LlamaRuntime(weights))


def preflight(lms: Mapping[str, RoleLM]) -> list[str]:
    """Find out what has to be known of every role's endpoint before its first request; one sentence per role.

    Nothing is sent to an endpoint that is known or was asked in an earlier run; see `RoleEngine.prepare`.

    Raises:
        RunStopped: a model is not there, or a limit is reached.
    """
    for lm in lms.values():
        lm.engine.prepare()
    return [_preflight_sentence(role, lm.engine.provider) for role, lm in lms.items()]


def _preflight_sentence(role: str, provider: Provider) -> str:
    place = f" at {provider.host}" if provider.host else ""
    facts = provider.facts()
    if provider.supports_response_schema:
        how = "decodes under the schema"
    elif "response_format" in provider.supported_params:
        how = "is asked for JSON by its JSON mode, without the schema"
    else:
        how = "is asked for JSON in the prompt alone"
    told = [f"{role}: {provider.model}{place} {how}" + (f" ({facts['note']})" if facts.get("note") else "")]
    refused = facts.get("refused", [])
    if refused:
        told.append(f"{' and '.join(refused)} {'is' if len(refused) == 1 else 'are'} not sent, since refused there")
    if facts.get("max_tokens_field"):
        told.append(f"the output limit is sent as {facts['max_tokens_field']}")
    return "; ".join(told)


def build_role_lm(
    role: str,
    config: ModelConfig,
    *,
    endpoints: Endpoints,
    store: AnswerStore,
    ledger: Ledger,
    seed: int = 0,
    replicate: int = 0,
    bounds: SchemaBounds | None = None,
    base_dir: Path | None = None,
    wait: Callable[[float], None] | None = None,
) -> RoleLM:
    """The LM of one role.

    Args:
        role: its name in the file and in the ledger.
        config: its model.
        endpoints: the process's endpoints; roles built from one object share models and limits.
        store: answers.
        ledger: the run's accounts.
        seed: the run's seed, for sampled answers.
        replicate: the number of a whole repeated measurement; a new number sends everything anew.
        bounds: on the schema a local model decodes under.
        base_dir: what a relative weights path is relative to.
        wait: lets seconds pass between attempts; None waits for real.

    Raises:
        UsageError: a missing key, missing weights, settings the model cannot take, a budget in USD for a model
            whose price is unknown.
    """
    endpoint = endpoints.find(role, config, bounds=bounds, base_dir=base_dir)
    price = _price(role, config, ledger)
    engine = RoleEngine(
        role, endpoint, store=store, ledger=ledger, price=price, seed=seed, replicate=replicate, wait=wait
    )
    name = f"{config.model}@{endpoint.provider.endpoint[:6]}"
    temperature = None if config.fixed_sampling else config.temperature
    try:
        return RoleLM(role, name, engine, temperature=temperature, max_tokens=config.output_limit)
    except (LMConfigurationError, ValueError) as error:
        raise UsageError(f"models.{role}: {config.model!r} cannot be set up: {error}") from error


def _price(role: str, config: ModelConfig, ledger: Ledger) -> Price | None:
    price = config.price or ((0.0, 0.0) if config.is_local else list_price(config))
    if price is None and ledger.max_usd is not None:
        raise UsageError(
            f"budget.usd cannot be kept: the price of models.{role} ({config.model!r}) is unknown; "
            f"add price: {{input: ..., output: ...}} in USD per million tokens, or leave budget.usd out"
        )
    return price
