"""Metrics that ask language models of their own: what stands for a model until there is one, and who asks how often.

A metric is built and checked before any model is there. `RoleModel` holds the place of the model until a run has it;
`bound` then puts it in. A metric of your own that asks models offers the two methods of `AsksModels`, and is planned,
paid and bound like the others; one that asks none needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from metrics.score import Metric


@dataclass(frozen=True, slots=True)
class RoleModel:
    """Stands for the LM of a role until a run has one; nothing can be asked of it.

    Attributes:
        role: the role's name: "judge".
        model: the model's name; it is part of a metric's version, before and after.
    """

    role: str
    model: str


@runtime_checkable
class AsksModels(Protocol):
    """A metric that may ask language models of its own."""

    def model_calls(self, expected: Any) -> Mapping[str, int]:
        """Calls by role that one score takes at most for this expected record, answers asked again not counted.

        Roles of which it never asks anything are left out, so a metric without a model gives an empty mapping.
        """
        ...

    def bind(self, lms: Mapping[str, Any]) -> Metric:
        """The same metric, of the same version, with the LM of its role in place of every `RoleModel`.

        Called once, before the first call of any model: whatever else the metric needs (weights, an address) is
        looked for here, and what is missing is raised as ValueError or ImportError in one sentence.
        """
        ...


def bound(metric: Metric, lms: Mapping[str, Any]) -> Metric:
    """`metric` with its models in place; itself where it asks none."""
    return metric.bind(lms) if isinstance(metric, AsksModels) else metric


def model_calls(metric: Metric, expected: Any) -> Mapping[str, int]:
    """Calls by role that one score of `metric` takes at most for this expected record; empty where it asks nothing."""
    return metric.model_calls(expected) if isinstance(metric, AsksModels) else {}


def replicated(metric: Metric, number: int) -> Metric:
    """`metric` for replicate `number` of a repeated measurement, in which its models are asked anew.

    A metric whose answers can differ has a method of this name; any other is itself.
    """
    again = getattr(metric, "replicated", None)
    return metric if not number or again is None else again(number)


def role_lm(model: RoleModel, lms: Mapping[str, Any]) -> Any:
    """The LM of a role.

    Raises:
        ValueError: the run has none.

    >>> role_lm(RoleModel("judge", "openai/m"), {"task": object()})
    Traceback (most recent call last):
    ValueError: models.judge (openai/m) is needed and not there; there are: task
    """
    if model.role not in lms:
        there = ", ".join(lms) or "none"
        raise ValueError(f"models.{model.role} ({model.model}) is needed and not there; there are: {there}")
    return lms[model.role]
