"""The `fields` of a record metric: which places count, by which evaluator, with which weight, in which order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from metrics.evaluators.base import BaseEvaluator
from metrics.evaluators.by_type import FREE_TEXT, ByTypeEvaluator
from metrics.evaluators.catalogue import CATALOGUE, create_evaluator
from metrics.evaluators.exact import StringCheckEvaluator
from metrics.evaluators.numeric import NumericEvaluator
from metrics.nearest import nearest
from metrics.record.paths import EVERY, Pattern, parse, written
from metrics.record.schema import suggested

_OPTIONS = ("weight", "ordered", "evaluator")
_BY_SUGGESTION: Mapping[str | None, BaseEvaluator] = MappingProxyType(
    {"exact": StringCheckEvaluator(), "numeric": NumericEvaluator(), "levenshtein": FREE_TEXT, None: ByTypeEvaluator()}
)


@dataclass(frozen=True, slots=True)
class Rule:
    """How one place counts."""

    evaluator: BaseEvaluator
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fields:
    """What a record metric looks at.

    Attributes:
        rules: the places named, with their rules. Empty: every value of a record counts.
        ordered: the lists whose order matters, each as the pattern of its items.
        schema: suggests evaluators for places without a rule.
    """

    rules: Mapping[Pattern, Rule]
    ordered: frozenset[Pattern]
    schema: Mapping[str, Any] | None = None

    def counts(self, pattern: Pattern) -> bool:
        """Whether a single value at this place is looked at."""
        return not self.rules or pattern in self.rules

    def rule(self, pattern: Pattern) -> Rule:
        """The rule of a place: the one named, else by schema, else by the type of the expected value."""
        named = self.rules.get(pattern)
        if named is not None:
            return named
        return Rule(_BY_SUGGESTION[suggested(self.schema, pattern) if self.schema is not None else None])

    def named(self) -> list[Pattern]:
        """Every place that the configuration names."""
        return [*self.rules, *(pattern for pattern in self.ordered if pattern not in self.rules)]

    def options(self) -> dict[str, Any]:
        """Everything that can change a score, as plain data."""
        rules = {written(pattern): [rule.evaluator.version, rule.weight] for pattern, rule in self.rules.items()}
        ordered = sorted(written(pattern) for pattern in self.ordered)
        return {"rules": rules, "ordered": ordered, "schema": self.schema}


def read_fields(fields: Mapping[str, Any], schema: Mapping[str, Any] | None) -> Fields:
    """The Fields a configuration stands for.

    Raises:
        ValueError: a path, an evaluator or an option that is none; the sentence names the path.
    """
    if not isinstance(fields, Mapping):
        raise ValueError(f"fields map paths to evaluators, got {fields!r}")
    rules: dict[Pattern, Rule] = {}
    ordered: set[Pattern] = set()
    for path, entry in fields.items():
        pattern = parse(path)
        try:
            rule, is_ordered = _entry(entry)
            if is_ordered:
                ordered.add(_items_of(pattern, rule))
        except ValueError as error:
            raise ValueError(f"field {path!r}: {error}") from None
        if rule is not None:
            rules[pattern] = rule
    _refuse_overlaps(rules)
    if rules and not any(rule.weight for rule in rules.values()):
        raise ValueError("fields: every weight is 0, so nothing would be measured")
    return Fields(rules, frozenset(ordered), schema)


def _entry(entry: Any) -> tuple[Rule | None, bool]:
    """The rule and the order of one entry: `alias`, an evaluator, or a mapping with one of them and options."""
    if isinstance(entry, str | BaseEvaluator):
        return Rule(_evaluator(entry)), False
    if not isinstance(entry, Mapping):
        raise ValueError(f"an evaluator is an alias, a mapping or a BaseEvaluator, got {entry!r}")
    weight, ordered = _weight(entry.get("weight", 1.0)), entry.get("ordered", False)
    if not isinstance(ordered, bool):
        raise ValueError(f"ordered is true or false, got {ordered!r}")
    for name in entry:
        if name not in CATALOGUE and name not in _OPTIONS:
            raise ValueError(f"unknown evaluator or option {name!r}, {nearest(str(name), [*CATALOGUE, *_OPTIONS])}")
    aliases = [name for name in entry if name not in ("weight", "ordered")]
    if not aliases and "weight" not in entry and ordered:
        return None, True
    if len(aliases) != 1:
        named = " and ".join(repr(alias) for alias in aliases) or "none"
        raise ValueError(f"name one evaluator ({', '.join(CATALOGUE)}), got {named}")
    alias = aliases[0]
    evaluator = _evaluator(entry[alias]) if alias == "evaluator" else _evaluator(alias, entry[alias])
    return Rule(evaluator, weight), ordered


def _evaluator(evaluator: Any, config: Mapping[str, Any] | None = None) -> BaseEvaluator:
    if isinstance(evaluator, BaseEvaluator):
        return evaluator
    if not isinstance(evaluator, str):
        raise ValueError(f"an evaluator is an alias or a BaseEvaluator, got {evaluator!r}")
    return create_evaluator(evaluator, config)


def _weight(weight: Any) -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
        raise ValueError(f"weight is a number, 0 or more, got {weight!r}")
    return float(weight)


def _items_of(pattern: Pattern, rule: Rule | None) -> Pattern:
    """The items of the list that a path with `ordered` names: `steps` and `steps[*]` alike."""
    if pattern[-1:] == (EVERY,):
        return pattern
    if rule is not None:
        raise ValueError("ordered belongs to a list; give it at the list's own path, with [*] at its end")
    return (*pattern, EVERY)


def _refuse_overlaps(rules: Mapping[Pattern, Rule]) -> None:
    for pattern in rules:
        for length in range(len(pattern)):
            if pattern[:length] in rules:
                whole, inner = written(pattern[:length]), written(pattern)
                raise ValueError(f"fields: {whole!r} is compared whole, so {inner!r} inside it cannot count as well")
