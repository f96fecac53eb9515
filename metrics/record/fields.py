"""The `fields` of a record metric: which places count, by which evaluator, with which weight, in which order."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from metrics.evaluators.base import BaseEvaluator
from metrics.evaluators.by_type import FREE_TEXT, ByTypeEvaluator
from metrics.evaluators.catalogue import CATALOGUE, create_evaluator
from metrics.evaluators.exact import StringCheckEvaluator
from metrics.evaluators.numeric import NumericEvaluator
from metrics.evaluators.siblings import WithSiblings
from metrics.evaluators.states import MISSING
from metrics.nearest import nearest
from metrics.record.paths import EVERY, Pattern, parse, written
from metrics.record.schema import suggested

_OPTIONS = ("weight", "ordered", "evaluator")
_BY_SUGGESTION: Mapping[str | None, BaseEvaluator] = MappingProxyType(
    {"exact": StringCheckEvaluator(), "numeric": NumericEvaluator(), "levenshtein": FREE_TEXT, None: ByTypeEvaluator()}
)


class FieldError(ValueError):
    """One place of a record metric's configuration is wrong.

    Attributes:
        keys: where, from the metric's arguments on: ("fields", "steps[*].action").
    """

    def __init__(self, sentence: str, *keys: str) -> None:
        super().__init__(sentence)
        self.keys = keys


@dataclass(frozen=True, slots=True)
class Rule:
    """How one place counts."""

    evaluator: BaseEvaluator
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fields:
    """What a record metric looks at.

    Attributes:
        rules: the places named, with their rules. Without any, and without `included`, every value of a record counts.
        ordered: the lists whose order matters, each as the pattern of its items.
        schema: suggests evaluators for places without a rule.
        included: places that count with everything inside them, beside those with a rule.
        excluded: places that do not count, with everything inside them.
    """

    rules: Mapping[Pattern, Rule]
    ordered: frozenset[Pattern]
    schema: Mapping[str, Any] | None = None
    included: frozenset[Pattern] = frozenset()
    excluded: frozenset[Pattern] = frozenset()

    def counts(self, pattern: Pattern) -> bool:
        """Whether a single value at this place is looked at, unless a place around it is excluded."""
        if not self.rules and not self.included:
            return True
        return pattern in self.rules or _around(pattern, self.included) is not None

    def rule(self, pattern: Pattern) -> Rule:
        """The rule of a place: the one named, else by schema, else by the type of the expected value."""
        named = self.rules.get(pattern)
        if named is not None:
            return named
        return Rule(_BY_SUGGESTION[suggested(self.schema, pattern) if self.schema is not None else None])

    def with_siblings(self, pattern: Pattern, value: Any, holder: Mapping[str, Any]) -> Any:
        """What the evaluator of a place compares: `value`, with the fields of `holder` beside it where it asks."""
        rule = self.rules.get(pattern)
        if rule is None or not rule.evaluator.siblings:
            return value
        return WithSiblings(value, {name: holder.get(name, MISSING) for name in rule.evaluator.siblings})

    def named(self) -> list[Pattern]:
        """Every place that the configuration names, those beside a value included."""
        beside = ((*pattern[:-1], name) for pattern, rule in self.rules.items() for name in rule.evaluator.siblings)
        return list(dict.fromkeys([*self.rules, *self.ordered, *self.included, *self.excluded, *beside]))

    def options(self) -> dict[str, Any]:
        """Everything that can change a score, as plain data."""
        rules = {written(pattern): [rule.evaluator.version, rule.weight] for pattern, rule in self.rules.items()}
        ordered, included, excluded = (
            sorted(map(written, patterns)) for patterns in (self.ordered, self.included, self.excluded)
        )
        return {"rules": rules, "ordered": ordered, "schema": self.schema, "include": included, "exclude": excluded}


def read_fields(
    fields: Mapping[str, Any],
    schema: Mapping[str, Any] | None,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
) -> Fields:
    """The Fields a configuration stands for.

    Raises:
        FieldError: a path, an evaluator or an option that is none, or paths that contradict each other; the sentence
            names the path.
    """
    if not isinstance(fields, Mapping):
        raise FieldError(f"fields map paths to evaluators, got {fields!r}", "fields")
    rules: dict[Pattern, Rule] = {}
    ordered: set[Pattern] = set()
    for path, entry in fields.items():
        pattern = _parsed(path, "fields")
        try:
            rule, is_ordered = _entry(entry)
            if is_ordered:
                ordered.add(_items_of(pattern, rule))
        except ValueError as error:
            raise FieldError(f"field {path!r}: {error}", "fields", path) from None
        if rule is not None:
            _refuse_lone(path, pattern, rule)
            rules[pattern] = rule
    included, excluded = _paths("include", include), _paths("exclude", exclude)
    _refuse_overlaps(rules, included, excluded, ordered)
    if rules and not included and not any(rule.weight for rule in rules.values()):
        raise FieldError("fields: every weight is 0, so nothing would be measured", "fields")
    return Fields(rules, frozenset(ordered), schema, included, excluded)


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
    if isinstance(evaluator, str):
        evaluator = create_evaluator(evaluator, config)
    if not isinstance(evaluator, BaseEvaluator):
        raise ValueError(f"an evaluator is an alias or a BaseEvaluator, got {evaluator!r}")
    if evaluator.needs_lm and getattr(evaluator, "lm", None) is None:
        raise ValueError(f"{evaluator.name} asks a model and was given none; give it its lm")
    return evaluator


def _refuse_lone(path: str, pattern: Pattern, rule: Rule) -> None:
    if rule.evaluator.siblings and (not pattern or pattern[-1] is EVERY):
        raise FieldError(
            f"field {path!r}: nothing stands beside a single value, so {rule.evaluator.siblings[0]!r} cannot be read",
            "fields",
            path,
        )


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


def _paths(option: str, paths: Collection[str]) -> frozenset[Pattern]:
    if isinstance(paths, str | Mapping) or not isinstance(paths, Collection):
        raise FieldError(f"{option} is a list of paths, got {paths!r}", option)
    return frozenset(_parsed(path, option) for path in paths)


def _parsed(path: str, *keys: str) -> Pattern:
    try:
        return parse(path)
    except ValueError as error:
        raise FieldError(str(error), *keys, str(path)) from None


def _refuse_overlaps(
    rules: Collection[Pattern],
    included: Collection[Pattern],
    excluded: Collection[Pattern],
    ordered: Collection[Pattern],
) -> None:
    """Refuse places of which one takes away what the other asks for."""
    if () in excluded:
        raise FieldError("exclude: '$' leaves out the whole record, so nothing would be measured", "exclude")
    for option, patterns in (("fields", rules), ("include", included), ("exclude", excluded)):
        for pattern in patterns:
            whole = _around(pattern[:-1], rules) if pattern else None
            if whole is not None:
                cannot = "be left out" if option == "exclude" else "count as well"
                inner = written(pattern)
                raise FieldError(
                    f"{option}: {written(whole)!r} is compared whole, so {inner!r} inside it cannot {cannot}", option
                )
    for pattern in (*rules, *included, *ordered):
        left_out = _around(pattern, excluded)
        if left_out is not None:
            raise FieldError(
                f"exclude: {written(left_out)!r} leaves out {written(pattern)!r}, which is to count", "exclude"
            )


def _around(pattern: Pattern, places: Collection[Pattern]) -> Pattern | None:
    """The one of `places` that is `pattern` or holds it; None where none does."""
    if not places:
        return None
    return next((pattern[:n] for n in range(len(pattern) + 1) if pattern[:n] in places), None)
