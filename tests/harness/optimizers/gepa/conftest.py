"""GEPA on scripted models: one answers as its instruction says, the other one writes instructions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import dspy
import pytest

from harness.evaluation import Measure, Runtime
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.prompt import prompt_adapter
from harness.models.roles import Endpoints, build_role_lm
from harness.models.scripted import ScriptedProvider, request_text
from harness.models.store import AnswerStore
from harness.optimizers.compiled import Job
from harness.optimizers.recorder import Recorder
from harness.progress import SilentProgress
from harness.scoring import Scoring
from metrics.score import Score
from programs.contract import output_contract

INSTRUCTION = "Give the label of the `text`."


class Labelling(dspy.Module):
    output_field = "label"

    def __init__(self):
        super().__init__()
        self.extract = dspy.Predict(dspy.Signature("text -> label", INSTRUCTION))

    def forward(self, text):
        return self.extract(text=text)


class Counted:
    """1 for the right label; counts how often it is really applied."""

    name, version = "counted", "1"

    def __init__(self, judge=lambda expected, got: Score(float(expected == got), f"expected {expected}, got {got}")):
        self.applied = 0
        self.judge = judge

    def __call__(self, example, prediction):
        self.applied += 1
        return self.judge(example.expected, prediction.label)

    def compare(self, expected, predicted):
        return Score(0.0)


def example(number: int) -> dspy.Example:
    return dspy.Example(
        id=f"e{number}", group=None, expected=f"L{number}", text=f"sample-{number}", label=f"L{number}"
    ).with_inputs("text")


def by_rules(request) -> str:
    """Knows sample-N when its instruction holds "rule K" with K = N modulo 4."""
    asked = request_text(request)
    number = int(asked.rsplit("sample-", 1)[1].split()[0].strip('"]}'))
    return json.dumps({"label": f"L{number}" if f"rule {number % 4}" in asked else f"no idea {len(asked)}"})


def instruction(text: str) -> str:
    """A reply of the model that writes instructions."""
    return json.dumps({"new_instruction": text})


def learns(request) -> str:
    """The instruction it was shown, with the rule that the first wrong answer needed."""
    asked = request_text(request).rsplit("current_instruction ## ]]", 1)[1]
    current = asked.split("[[ ##")[0].strip()
    missed = re.search(r"expected L(\d+), got no idea", asked)
    return instruction(f"{current} Follow rule {int(missed.group(1)) % 4}." if missed else f"{current} Be careful.")


@pytest.fixture
def bench(tmp_path) -> Callable:
    """A job on scripted models; `told` are the requests for instructions, `answered` those of the program."""
    opened = []

    def make(
        reflect=learns,
        answer=by_rules,
        *,
        metric=None,
        program=None,
        examples=example,
        train=range(8),
        validation=range(20, 24),
        threads=1,
        ledger=None,
        store=None,
        seed=0,
        temperature=0.0,
        role="prompt",
    ):
        providers = [ScriptedProvider(answer, concurrency=threads), ScriptedProvider(reflect, "scripted/writer")]
        endpoints = Endpoints(providers={provider.model: provider for provider in providers})
        ledger, store = ledger or Ledger(), AnswerStore(tmp_path / f"{store or len(opened)}.db")
        opened.append((endpoints, store))

        def lm(role, provider, temperature):
            config = ModelConfig(provider.model, temperature=temperature)
            return build_role_lm(role, config, endpoints=endpoints, store=store, ledger=ledger, wait=lambda _: None)

        task, writer = lm("task", providers[0], 0.0), lm(role, providers[1], temperature)
        program = program or Labelling()
        contract = output_contract(program)
        metric = metric or Counted()
        job = Job(
            program=program,
            train=[examples(number) for number in train],
            labelled=[],
            validation=[examples(number) for number in validation],
            measure=Measure(Scoring(metric, contract, ledger.stop), {}, contract),
            runtime=Runtime(task, prompt_adapter("json"), threads, ledger.stop),
            teacher=writer if role == "teacher" else None,
            seed=seed,
            progress=SilentProgress(),
            log=tmp_path / "run" / "optimizer.log",
            planned=10,
            prompt=writer if role == "prompt" else None,
        )
        job = replace(job, recorder=Recorder(job.program, job.validation))
        return SimpleNamespace(
            job=job, ledger=ledger, metric=metric, answered=providers[0].requests, told=providers[1].requests
        )

    yield make
    for endpoints, store in opened:
        endpoints.close()
        store.close()
