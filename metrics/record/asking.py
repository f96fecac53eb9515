"""The models that the evaluators of a record ask: how often, and in place of whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from metrics.asking import RoleModel, role_lm
from metrics.evaluators.base import BaseEvaluator
from metrics.record.fields import Fields, Rule
from metrics.record.items import Item, plain, read_item
from metrics.record.paths import Pattern


def calls_by_role(fields: Fields, expected: Any) -> dict[str, int]:
    """Calls by role that comparing one prediction takes at most: a place is judged once per value it holds here.

    What only the prediction holds is a false find and needs no judge.
    """
    asking = {
        pattern: model.role
        for pattern, rule in fields.rules.items()
        if isinstance(model := getattr(rule.evaluator, "lm", None), RoleModel)
    }
    if not asking:
        return {}
    held = Counter(_places(read_item(plain(expected), fields)))
    calls = Counter[str]()
    for pattern, role in asking.items():
        calls[role] += held[pattern]
    return {role: count for role, count in calls.items() if count}


def bound_fields(fields: Fields, lms: Mapping[str, Any]) -> Fields:
    """The same fields with every evaluator ready to score.

    Raises:
        ValueError, ImportError: a model, weights or an address that an evaluator needs is not there.
    """
    rules = {pattern: Rule(_ready(rule.evaluator, lms), rule.weight) for pattern, rule in fields.rules.items()}
    return replace(fields, rules=rules)


def _ready(evaluator: BaseEvaluator, lms: Mapping[str, Any]) -> BaseEvaluator:
    model = getattr(evaluator, "lm", None)
    if isinstance(model, RoleModel):
        evaluator = evaluator.with_lm(role_lm(model, lms))  # pyright: ignore[reportAttributeAccessIssue]
    return evaluator.prepared()


def _places(item: Item) -> Iterator[Pattern]:
    yield from item.values
    for items in item.lists.values():
        for one in items:
            yield from _places(one)
