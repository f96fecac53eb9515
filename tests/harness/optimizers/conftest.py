"""A job on scripted models: sample-N is to be answered with LN, and a script decides when the model does."""

from __future__ import annotations

import json
from types import SimpleNamespace

import dspy
import pytest

from harness.evaluation import Measure, Runtime
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, build_role_lm
from harness.models.scripted import ScriptedProvider, request_text
from harness.models.store import AnswerStore
from harness.optimizers.catalogue import compile_program, find_optimizer
from harness.optimizers.compiled import Job
from harness.progress import SilentProgress
from harness.scoring import Scoring
from metrics.score import Score
from programs.contract import output_contract


class Copy(dspy.Module):
    output_field = "label"

    def __init__(self):
        super().__init__()
        self.extract = dspy.Predict("text -> label")

    def forward(self, text):
        return self.extract(text=text)


class Exact:
    """1 or 0; or whatever `judge(expected, got)` gives."""

    name, version = "exact", "1"

    def __init__(self, judge=lambda expected, got: Score(float(expected == got))):
        self.judge = judge
        self.calls = 0

    def __call__(self, example, prediction):
        self.calls += 1
        return self.judge(example.expected, prediction.label)

    def compare(self, expected, predicted):
        return Score(0.0)


def example(number, labelled=True):
    filled = {"label": f"L{number}"} if labelled else {}
    return dspy.Example(
        id=f"e{number}", group=None, expected=f"L{number}", text=f"sample-{number}", **filled
    ).with_inputs("text")


def right_when(condition):
    """A model that answers sample-N with LN when `condition(prompt, N)`, else with 'wrong'."""

    def script(request):
        asked = request_text(request)
        number = int(asked.rsplit("sample-", 1)[1].split()[0])
        return json.dumps({"label": f"L{number}" if condition(asked, number) else "wrong"})

    return script


def has_demos(asked, number):
    return asked.count("sample-") > 1


def says(*instructions):
    """A prompt model whose proposals and advice are these, in order, the last one for ever."""
    given = list(instructions)

    def script(request):
        answer = dict.fromkeys(
            ("observations", "summary", "program_description", "module_description"), "About labels."
        )
        asked = request_text(request)
        if "proposed_instruction" in asked or "module_advice" in asked:
            text = given.pop(0) if len(given) > 1 else given[0]
            if isinstance(text, BaseException):
                return text
            answer |= {"proposed_instruction": text, "discussion": "None.", "module_advice": {"extract": text}}
        return json.dumps(answer)

    return script


@pytest.fixture
def scripts():
    """What the scripted models may say, and metrics."""
    return SimpleNamespace(right_when=right_when, has_demos=has_demos, says=says, Exact=Exact)


@pytest.fixture
def job(tmp_path):
    """Makes a Job: `job(script)` with a task model, and a prompt model when `prompt` is given."""
    opened = []

    def make(
        script,
        *,
        prompt=None,
        train=range(6),
        labelled=True,
        metric=None,
        validation=range(10, 14),
        threads=1,
        max_calls=None,
        seed=0,
    ):
        task = ScriptedProvider(script, concurrency=threads)
        asked = ScriptedProvider(prompt, "scripted/prompt") if prompt else None
        endpoints = Endpoints(providers={provider.model: provider for provider in (task, asked) if provider})
        ledger, store = Ledger(max_calls), AnswerStore(tmp_path / f"{len(opened)}.db")
        opened.append((endpoints, store))

        def lm(role, provider):
            config = ModelConfig(provider.model)
            return build_role_lm(
                role, config, endpoints=endpoints, store=store, ledger=ledger, seed=seed, wait=lambda _: None
            )

        program = Copy()
        contract = output_contract(program)
        examples = [example(number, labelled) for number in train]
        made = Job(
            program=program,
            train=examples,
            labelled=examples if labelled else [],
            validation=[example(number) for number in validation],
            measure=Measure(Scoring(metric or Exact(), contract, ledger.stop), {}, contract),
            runtime=Runtime(lm("task", task), dspy.JSONAdapter(), threads, ledger.stop),
            teacher=None,
            seed=seed,
            progress=SilentProgress(),
            log=tmp_path / "run" / "optimizer.log",
            planned=10,
            prompt=lm("prompt", asked) if asked else None,
        )
        return SimpleNamespace(job=made, provider=task, prompt=asked, ledger=ledger)

    yield make
    for endpoints, store in opened:
        endpoints.close()
        store.close()


@pytest.fixture
def compiled():
    """Compiles what `job` made: `compiled(made, name, **arguments)`."""

    def compile_(made, name, **arguments):
        return compile_program(*find_optimizer(name, arguments, "a file"), made.job)

    return compile_
