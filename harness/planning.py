"""What a run is going to do and cost, before anything is spent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.assembly import Experiment
from harness.costs import dollars
from harness.errors import UsageError
from harness.metric_calls import calls_of_scoring, most_calls_of_a_score
from harness.models.config import ModelConfig
from harness.models.ledger import Price
from harness.models.prompt import prompt_text
from harness.models.remote.known_models import list_price
from harness.models.roles import Endpoints
from metrics.score import Metric

_CHARACTERS_PER_TOKEN = 4
_MOST_READ = 16
"""Test examples whose prompts are rendered for an estimate; more would not make it better."""
HOW_ESTIMATED = f"one token per {_CHARACTERS_PER_TOKEN} characters of a prompt without demonstrations and of its record"


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Tokens of an average call, guessed as `HOW_ESTIMATED` says; a model that thinks takes more."""

    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def usd(self, price: Price) -> float:
        """What such a call costs.

        >>> CallEstimate(1000, 100).usd((3.0, 15.0))
        0.0045
        """
        return (self.input_tokens * price[0] + self.output_tokens * price[1]) / 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned work. `calls` are upper bounds per role; answers already in the store cost nothing.

    Attributes:
        reserve: calls kept back from tuning for the last measurement.
        call: an average call, estimated.
        usd: what all calls of a role would cost at most, estimated; None where no price is known.
    """

    name: str
    splits: Mapping[str, int]
    roles: Mapping[str, str]
    optimizer: str
    arguments: Mapping[str, Any]
    metric: str
    audit: Sequence[str]
    calls: Mapping[str, int]
    reserve: int
    call: CallEstimate
    usd: Mapping[str, float | None]
    notes: Sequence[str]

    def to_document(self) -> dict[str, Any]:
        """The plan as JSON data."""
        return {
            "experiment": self.name,
            "splits": dict(self.splits),
            "roles": dict(self.roles),
            "optimizer": {self.optimizer: dict(self.arguments)},
            "metric": self.metric,
            "audit": list(self.audit),
            "planned_calls": dict(self.calls),
            "reserved_calls": self.reserve,
            "estimate": {
                "input_tokens_per_call": self.call.input_tokens,
                "output_tokens_per_call": self.call.output_tokens,
                "usd": dict(self.usd),
                "how": HOW_ESTIMATED,
            },
            "notes": list(self.notes),
        }


def plan(experiment: Experiment) -> Plan:
    """What `harness run` would do with this experiment."""
    roles = {role: config.model for role, config in experiment.models.items()}
    calls, call = planned_calls(experiment), estimated_call(experiment)
    prices = {role: price_of(experiment.models[role]) for role in calls}
    return Plan(
        name=experiment.name,
        splits=experiment.splits.sizes,
        roles={"teacher": f"{roles['task']} (the task's own)", **roles} if _uses_teacher(experiment) else roles,
        optimizer=experiment.optimizer.name,
        arguments=experiment.arguments.model_dump(mode="json", exclude_none=True),
        metric=f"{experiment.metric.name} ({experiment.metric.version})",
        audit=list(experiment.audits),
        calls=calls,
        reserve=calls_of_a_test_pass(experiment),
        call=call,
        usd={role: None if price is None else calls[role] * call.usd(price) for role, price in prices.items()},
        notes=[*experiment.notes, *_short_of_calls(experiment, calls)],
    )


def planned_calls(experiment: Experiment) -> dict[str, int]:
    """Upper bound of calls per role: baseline and tuned on test, the optimizer's own, and the metrics' for all these.

    A judge's answer that is asked for again, because it cannot be read, is not counted.
    """
    predictors = _predictors(experiment)
    calls = Counter({role: 2 * asked for role, asked in _roles_of_a_test_pass(experiment).items()})
    runs = 0
    for role, asked in optimizer_calls(experiment).items():
        # A run of the program is a call per predictor; a prompt model is asked single questions.
        requests = asked if role == "prompt" else asked * predictors
        runs += 0 if role == "prompt" else asked
        if requests:
            calls[_caller(role, experiment)] += requests
    seen = [*experiment.examples["train"], *experiment.examples["validation"]]
    per_run = most_calls_of_a_score([experiment.metric], seen)  # audits are not asked while tuning
    calls.update({role: runs * asked for role, asked in per_run.items() if runs})
    return dict(calls)


def calls_of_a_test_pass(experiment: Experiment) -> int:
    """Calls that one measurement on test takes, its judges' included, when nothing is answered from the store."""
    return sum(_roles_of_a_test_pass(experiment).values())


def _roles_of_a_test_pass(experiment: Experiment) -> dict[str, int]:
    examples = experiment.examples["test"]
    calls = Counter({"task": len(examples) * _predictors(experiment)})
    calls.update(calls_of_scoring(_metrics(experiment), examples))
    return dict(calls)


def _metrics(experiment: Experiment) -> list[Metric]:
    return [experiment.metric, *experiment.audits.values()]


def estimated_call(experiment: Experiment) -> CallEstimate:
    """An average call of this experiment, from its test examples; no model is asked."""
    examples = experiment.examples["test"]
    shown = examples[:: -(-len(examples) // _MOST_READ)]
    adapter = experiment.dspy_adapter()
    prompts = [
        len(text)
        for example in shown
        for text in prompt_text(experiment.program, adapter, dict(example.inputs())).values()
    ]
    records = [len(json.dumps(example["expected"], ensure_ascii=False, default=str)) for example in shown]
    return CallEstimate(
        round(fmean(prompts or [0]) / _CHARACTERS_PER_TOKEN), round(fmean(records) / _CHARACTERS_PER_TOKEN)
    )


def price_of(config: ModelConfig) -> Price | None:
    """USD per million input and output tokens: the file's, nothing for a local model, the list's; None unknown."""
    return config.price or ((0.0, 0.0) if config.is_local else list_price(config))


def optimizer_calls(experiment: Experiment) -> Mapping[str, int]:
    """What the optimizer may ask for at most: runs of the program by "task" and "teacher", questions to "prompt"."""
    examples = experiment.examples
    return experiment.optimizer.calls(
        experiment.arguments, len(examples["train"]), len(examples["validation"]), _predictors(experiment)
    )


def _caller(role: str, experiment: Experiment) -> str:
    """The declared role whose model answers for `role`."""
    instead = {"prompt": ("prompt", "teacher"), "teacher": ("teacher",)}.get(role, ())
    return next((declared for declared in instead if declared in experiment.models), "task")


def check_ready(experiment: Experiment) -> None:
    """Everything a run would need before its first call: weights, keys, a budget that pays for a verdict.

    Raises:
        UsageError: what is missing.
    """
    check_budget(experiment)
    with Endpoints() as endpoints:
        for role, config in experiment.models.items():
            endpoints.find(role, config, base_dir=experiment.spec.folder)


def check_budget(experiment: Experiment) -> None:
    """Refuse a budget that cannot even pay for the two measurements on test: calls exactly, all else estimated.

    Raises:
        UsageError: with the smallest amount that gives a verdict, and how it was reckoned.
    """
    budget, asked = experiment.spec.budget, _roles_of_a_test_pass(experiment)
    needed = 2 * sum(asked.values())
    if budget.calls is not None and budget.calls < needed:
        raise _too_small(experiment, "calls", f"{budget.calls} calls do", f"{needed}")
    if budget.tokens is None and budget.usd is None:
        return
    call = estimated_call(experiment)
    reckoned = f"({needed} calls of about {call.tokens} tokens: {HOW_ESTIMATED})"
    if budget.tokens is not None and budget.tokens < needed * call.tokens:
        raise _too_small(experiment, "tokens", f"{budget.tokens} tokens do", f"about {needed * call.tokens} {reckoned}")
    prices = [(calls, price_of(experiment.models[role])) for role, calls in asked.items()]
    usd = 2 * sum(calls * call.usd(price) for calls, price in prices if price is not None)
    if budget.usd is not None and budget.usd < usd:
        raise _too_small(experiment, "usd", f"{budget.usd:g} USD does", f"about {dollars(usd)} {reckoned}")


def _too_small(experiment: Experiment, key: str, given: str, needed: str) -> UsageError:
    return UsageError(
        f"{experiment.spec.where('budget', key)}: {given} not pay for measuring baseline and tuned on "
        f"{len(experiment.examples['test'])} test examples, which takes {needed}; raise budget.{key} or make "
        "data.split.test smaller"
    )


def _short_of_calls(experiment: Experiment, calls: Mapping[str, int]) -> list[str]:
    """A word on a limit that leaves tuning less than it may ask for."""
    limit, needed, planned = experiment.spec.budget.calls, 2 * calls_of_a_test_pass(experiment), sum(calls.values())
    if limit is None or limit >= planned:
        return []
    left = limit - needed
    return [
        f"budget.calls leaves {left or 'no'} call{'' if left == 1 else 's'} for tuning, which may ask for "
        f"{planned - needed}; where they end, the best candidate by then is measured on test"
    ]


def _predictors(experiment: Experiment) -> int:
    return max(1, len(experiment.program.predictors()))


def _uses_teacher(experiment: Experiment) -> bool:
    return optimizer_calls(experiment).get("teacher", 0) > 0
