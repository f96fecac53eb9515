"""What a run is going to do and cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.assembly import Experiment
from harness.errors import UsageError
from harness.models.roles import Endpoints


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned work. `calls` are upper bounds per role; answers already in the store cost nothing."""

    name: str
    splits: Mapping[str, int]
    roles: Mapping[str, str]
    optimizer: str
    arguments: Mapping[str, Any]
    metric: str
    audit: Sequence[str]
    calls: Mapping[str, int]
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
            "notes": list(self.notes),
        }


def plan(experiment: Experiment) -> Plan:
    """What `harness run` would do with this experiment."""
    roles = {role: config.model for role, config in experiment.models.items()}
    return Plan(
        name=experiment.name,
        splits=experiment.splits.sizes,
        roles={"teacher": f"{roles['task']} (the task's own)", **roles} if _uses_teacher(experiment) else roles,
        optimizer=experiment.optimizer.name,
        arguments=experiment.arguments.model_dump(mode="json"),
        metric=f"{experiment.metric.name} ({experiment.metric.version})",
        audit=list(experiment.audits),
        calls=planned_calls(experiment),
        notes=list(experiment.notes),
    )


def planned_calls(experiment: Experiment) -> dict[str, int]:
    """Upper bound of calls per role: baseline and tuned on test, and the optimizer's own."""
    by_task, by_teacher = optimizer_calls(experiment)
    predictors = max(1, len(experiment.program.predictors()))
    calls = {"task": (2 * len(experiment.examples["test"]) + by_task) * predictors}
    if by_teacher:
        teacher = "teacher" if "teacher" in experiment.models else "task"
        calls[teacher] = calls.get(teacher, 0) + by_teacher * predictors
    return calls


def optimizer_calls(experiment: Experiment) -> tuple[int, int]:
    """Program runs the optimizer may ask for, by the task's and by the teacher's model."""
    train = experiment.labelled or experiment.examples["train"]
    return experiment.optimizer.calls(experiment.arguments, len(train), len(experiment.examples["validation"]))


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
    """Refuse a budget that cannot even pay for the two measurements on test.

    Raises:
        UsageError: with the smallest number of calls that gives a verdict.
    """
    limit = experiment.spec.budget.calls
    needed = 2 * len(experiment.examples["test"]) * max(1, len(experiment.program.predictors()))
    if limit is not None and limit < needed:
        raise UsageError(
            f"{experiment.spec.where('budget', 'calls')}: {limit} calls do not pay for measuring baseline and tuned "
            f"on {len(experiment.examples['test'])} test examples, which takes {needed}; raise budget.calls or "
            "make data.split.test smaller"
        )


def _uses_teacher(experiment: Experiment) -> bool:
    return optimizer_calls(experiment)[1] > 0
