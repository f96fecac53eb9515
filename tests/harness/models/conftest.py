"""A store, a ledger, and a way to build a role's LM over a scripted provider without waiting for anything."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, RoleLM, build_role_lm
from harness.models.scripted import ScriptedProvider
from harness.models.store import AnswerStore


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
