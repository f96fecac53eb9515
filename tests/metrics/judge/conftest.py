"""A small rubric, answers by it, and LMs of every kind a judge meets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dspy
import pytest

from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.loopback import LoopbackServer
from harness.models.roles import Endpoints, RoleLM, build_role_lm
from harness.models.scripted import ScriptedProvider
from harness.models.store import AnswerStore
from metrics.judge.rubric import Rubric

INVOICE = """\
name: invoice
version: 2
instructions: |
  You check invoices that a program read.
inputs:
  text: the invoice
  record: {description: what the program read, json: true, candidate: true}
  note: {description: a remark, optional: true}
scale: {low: 1, high: 5, step: 0.5}
criteria:
  amounts: every amount is the invoice's, with its currency
  parties: {description: vendor and customer are right, weight: 2}
  dates: dates are right
anchors: {5: all right, 1: useless}
lists: {missing: what is missing}
flags: {is_foreign: the invoice is not in euros}
"""


@pytest.fixture
def rubric() -> Rubric:
    return Rubric.from_text(INVOICE)


@pytest.fixture
def answer() -> Callable[..., str]:
    """An answer as a good model gives it: `answer(rubric, amounts=3, wrapped=False)`; other scores are 4."""

    def make(rubric: Rubric, *, wrapped: bool = True, reasoning: str = "read it twice", **scores) -> str:
        said: dict = {}
        for name in rubric.criteria:
            said |= {f"{name}_reasoning": f"because of {name}", f"{name}_score": scores.get(name, 4)}
        evaluation: dict = {"reasoning": reasoning, "scores": said}
        if rubric.flags:
            evaluation["failure_flags"] = dict.fromkeys(rubric.flags, False)
        evaluation |= {"confidence_level": "high", **{name: ["one thing"] for name in rubric.lists}}
        return json.dumps({"evaluation": evaluation} if wrapped else evaluation)

    return make


@pytest.fixture
def served_lm() -> Callable[..., tuple[dspy.LM, LoopbackServer]]:
    """A plain dspy.LM and the server on 127.0.0.1 behind it: `served_lm(script, "openai/judge", temperature=0.9)`."""
    servers: list[LoopbackServer] = []

    def make(script, model: str = "openai/a-judge", **settings) -> tuple[dspy.LM, LoopbackServer]:
        server = LoopbackServer(script)
        servers.append(server)
        settings = {"cache": False, "num_retries": 0, "api_key": "key", **settings}
        return dspy.LM(model, api_base=server.api_base, **settings), server

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    store = AnswerStore(tmp_path / "answers.db")
    yield store
    store.close()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def role_lm(store: AnswerStore, ledger: Ledger) -> Callable[..., tuple[RoleLM, ScriptedProvider]]:
    """The LM of role judge over a script, with store and ledger, and the provider behind it."""

    def make(script, model: str = "scripted/judge", **provided) -> tuple[RoleLM, ScriptedProvider]:
        provider = ScriptedProvider(script, model, **provided)
        endpoints = Endpoints(environ={}, providers={model: provider})
        config = ModelConfig(model)
        lm = build_role_lm("judge", config, endpoints=endpoints, store=store, ledger=ledger, wait=lambda seconds: None)
        return lm, provider

    return make
