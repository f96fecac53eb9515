"""A store, a ledger, and a way to build a role's LM over a scripted provider without waiting for anything."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.models.config import ModelConfig
from harness.models.engine import RoleEngine
from harness.models.ledger import Ledger
from harness.models.limits import EndpointLimits
from harness.models.provider import Endpoint, Provider
from harness.models.roles import Endpoints, RoleLM, build_role_lm
from harness.models.scripted import ScriptedProvider
from harness.models.store import AnswerStore


class Time:
    """A clock that only waiting moves; `waits` are the seconds that were waited."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def timed_lm(store: AnswerStore, ledger: Ledger, time: Time) -> Callable[..., RoleLM]:
    """Builds the LM of a role whose limits and waits go by the clock of `time`: `timed_lm(provider, role="task")`."""

    def build(provider: Provider, role: str = "task", *, limits: EndpointLimits | None = None, **more) -> RoleLM:
        limits = limits or EndpointLimits(provider.concurrency, clock=time.clock, wait=time.wait)
        engine = RoleEngine(
            role, Endpoint(provider, limits), **{"store": store, "ledger": ledger, "wait": time.wait, **more}
        )
        return RoleLM(role, provider.model, engine, temperature=0.0, max_tokens=9)

    return build


@pytest.fixture
def store(tmp_path: Path):
    store = AnswerStore(tmp_path / "answers.db")
    yield store
    store.close()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def waits() -> list[float]:
    """The seconds the engine would have waited between attempts."""
    return []


@pytest.fixture
def scripted_lm(store: AnswerStore, ledger: Ledger, waits: list[float]) -> Callable[..., RoleLM]:
    """Builds the LM of a role over a ScriptedProvider: `scripted_lm(provider, role="task", **settings)`."""

    def build(provider: ScriptedProvider, role: str = "task", *, config: ModelConfig | None = None, **more) -> RoleLM:
        return build_role_lm(
            role,
            config or ModelConfig(provider.model),
            endpoints=Endpoints(environ={}, providers={provider.model: provider}),
            **{"store": store, "ledger": ledger, "wait": waits.append, **more},
        )

    return build
