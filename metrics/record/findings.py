"""What a matched pair of records says leaf by leaf: credits, counts of lists, lines of feedback."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from metrics.evaluators.base import compared
from metrics.evaluators.states import MISSING
from metrics.evaluators.text import shown
from metrics.record.items import Item
from metrics.record.matching import Match, Rules
from metrics.record.paths import Pattern
from metrics.score import Score

_MAX_LINES = 12
_MAX_CHARACTERS = 2000
_MAX_LINE = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """One leaf that is present on at least one side.

    Attributes:
        pattern: the kind of place.
        weight: of its rule.
        score: what its evaluator says; 0 for a miss and for a false find.
        is_expected, is_predicted: on which sides it has a value.
    """

    pattern: Pattern
    weight: float
    score: Score
    is_expected: bool
    is_predicted: bool

    @property
    def credit(self) -> float:
        """Weight times value, 0 while unscored."""
        return self.weight * (self.score.value or 0.0)


@dataclass(slots=True)
class ListCount:
    """How the items of one kind of list were found, over all such lists of the record.

    Attributes:
        expected, predicted, matched: numbers of items.
        likeness: sum over the matched pairs of their own values, each 0..1.
    """

    expected: int = 0
    predicted: int = 0
    matched: int = 0
    likeness: float = 0.0

    def add(self, other: ListCount) -> None:
        """Take in the counts of the same kind of list elsewhere in the record."""
        self.expected += other.expected
        self.predicted += other.predicted
        self.matched += other.matched
        self.likeness += other.likeness

    def to_details(self) -> dict[str, Any]:
        """Counts, and precision, recall and F1 by likeness, as plain data."""
        counts = {"expected": self.expected, "predicted": self.predicted, "matched": self.matched}
        return counts | rates(self.likeness, self.predicted, self.expected)

    def to_score(self) -> Score:
        """The list as a part of a record's Score: likeness / items on either side, matched ones counted once."""
        either = self.expected + self.predicted - self.matched
        return Score(
            min(1.0, self.likeness / either),
            f"{self.matched} of {self.expected} expected items found among {self.predicted}",
            rate_parts(rates(self.likeness, self.predicted, self.expected)),
            details=self.to_details(),
        )


@dataclass(slots=True)
class Findings:
    """All leaves of a pair of records, the counts of their lists, and a line for everything that is wrong."""

    leaves: list[Finding] = field(default_factory=list)
    lists: dict[Pattern, ListCount] = field(default_factory=dict)
    lines: list[tuple[float, str]] = field(default_factory=list)
    """(weight lost, sentence)"""

    @property
    def weight(self) -> float:
        """Of all leaves together."""
        return math.fsum(leaf.weight for leaf in self.leaves)

    @property
    def value(self) -> float:
        """The weighted mean over the leaves, unscored ones counted 0; without any weight the plain mean."""
        weight = self.weight
        if weight:
            return math.fsum(leaf.credit for leaf in self.leaves) / weight
        return math.fsum(leaf.score.value or 0.0 for leaf in self.leaves) / max(1, len(self.leaves))

    @property
    def is_worthless(self) -> bool:
        """Whether nothing in it earned anything, and nothing is unscored; leaves of weight 0 only among themselves."""
        counted = [leaf for leaf in self.leaves if leaf.weight] or self.leaves
        return all(leaf.score.value == 0.0 for leaf in counted)

    def add(self, other: Findings) -> None:
        """Take in the findings of an item."""
        self.leaves += other.leaves
        self.lines += other.lines
        for pattern, count in other.lists.items():
            self.lists.setdefault(pattern, ListCount()).add(count)

    def feedback(self) -> str:
        """The wrong leaves, the most weight lost first; at most 12 lines and 2,000 characters."""
        lines = [text for _, text in sorted(self.lines, key=lambda line: -line[0])]
        kept: list[str] = []
        length = 0
        for line in lines[:_MAX_LINES]:
            length += len(line) + 1
            if length > _MAX_CHARACTERS:
                break
            kept.append(line)
        more = len(lines) - len(kept)
        return "\n".join([*kept, f"... and {more} more"] if more else kept)


def rates(credit: float, predicted: float, expected: float) -> dict[str, float | None]:
    """Precision, recall and F1 of a soft credit; None where the side they divide by is empty.

    >>> rates(1.0, 1, 2)
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666}
    """
    return {
        "precision": credit / predicted if predicted else None,
        "recall": credit / expected if expected else None,
        "f1": 2 * credit / (predicted + expected) if predicted + expected else None,
    }


def rate_parts(found: Mapping[str, float | None]) -> dict[str, Score]:
    """Rates as parts of a Score; unscored where a rate is None, for then one side was empty.

    >>> rate_parts(rates(0.0, 0, 2))["precision"].error
    'precision: nothing to divide by'
    """
    return {
        name: Score.unscored(f"{name}: nothing to divide by") if rate is None else Score(min(1.0, rate))
        for name, rate in found.items()
    }


def collect(match: Match, rules: Rules, input_data: Mapping[str, Any] | None) -> Findings:
    """The findings of two matched records or items; every pair of values goes to its evaluator exactly once."""
    if match.expected is None or match.predicted is None:
        present = match.expected or match.predicted
        return Findings() if present is None else _alone(present, match.expected is not None, rules)
    findings = Findings()
    for pattern in dict.fromkeys([*match.expected.values, *match.predicted.values]):
        _add_leaf(findings, pattern, match.expected, match.predicted, rules, input_data)
    for pattern, matches in match.lists.items():
        count = findings.lists.setdefault(pattern, ListCount())
        for one in matches:
            found = collect(one, rules, input_data)
            count.expected += one.expected is not None
            count.predicted += one.predicted is not None
            if one.expected is not None and one.predicted is not None:
                if found.is_worthless:
                    found = _alone(one.expected, True, rules)
                    found.add(_alone(one.predicted, False, rules))
                else:
                    count.matched += 1
                    count.likeness += found.value
            findings.add(found)
    return findings


def _add_leaf(
    findings: Findings,
    pattern: Pattern,
    expected: Item,
    predicted: Item,
    rules: Rules,
    input_data: Mapping[str, Any] | None,
) -> None:
    rule, place = rules(pattern), (expected if pattern in expected.values else predicted).place(pattern)
    wanted, got = (item.values.get(pattern, item.absent.get(pattern, MISSING)) for item in (expected, predicted))
    is_expected, is_predicted = pattern in expected.values, pattern in predicted.values
    if is_expected and is_predicted:
        score = rule.evaluator.score(got, wanted, input_data, place)
    else:
        score = Score(0.0, compared(got, wanted, place))
    findings.leaves.append(Finding(pattern, rule.weight, score, is_expected, is_predicted))
    if score.value is None or score.value < 1.0:
        findings.lines.append((rule.weight * (1.0 - (score.value or 0.0)), score.feedback))


def _alone(item: Item, is_expected: bool, rules: Rules) -> Findings:
    """A miss (an expected item) or a false find: all its leaves count 0, and one line tells of them."""
    findings = Findings()
    held: list[str] = []
    for one in _with_inner(item):
        for pattern, value in one.values.items():
            miss = Score(0.0, "")
            findings.leaves.append(Finding(pattern, rules(pattern).weight, miss, is_expected, not is_expected))
            inside = one.path.removeprefix(item.path).removeprefix(".")
            held.append(" ".join(text for text in (inside, one.names[pattern], shown(value)) if text))
        for pattern, items in one.lists.items():
            count = findings.lists.setdefault(pattern, ListCount())
            if is_expected:
                count.expected += len(items)
            else:
                count.predicted += len(items)
    contents = ", ".join(held)
    line = f"{item.path}: missing, expected {contents}" if is_expected else f"{item.path}: not expected, got {contents}"
    if len(line) > _MAX_LINE:
        line = line[: _MAX_LINE - 1] + "…"
    findings.lines.append((sum(leaf.weight for leaf in findings.leaves), line))
    return findings


def _with_inner(item: Item) -> Iterator[Item]:
    yield item
    for items in item.lists.values():
        for one in items:
            yield from _with_inner(one)
