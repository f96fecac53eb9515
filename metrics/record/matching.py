"""Items of the expected lists matched with items of the predicted ones, at every depth at once.

The value of a record is a share: credit earned / weight of all leaves present on either side. Matching two items
earns their credit and makes leaves they both have count once instead of twice. The matching taken is one under
which that share is highest:

    maximise N(M) / D(M)       N: credit of the pairs in M, D: weight of the leaves present on either side

which turns the ratio into a few ordinary assignments by taking N - share*D, with the share of the matching before
(W. Dinkelbach, Management Science 13, 1967). Because it is the highest over all matchings, making one predicted
value worse can never raise it.

A pair that earns no credit is no match: it is one miss and one false find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from metrics.record.assignment import best_pairs
from metrics.record.fields import Rule
from metrics.record.items import Item
from metrics.record.paths import Pattern

Matrix = NDArray[np.float64]
Rules = Callable[[Pattern], Rule]

_UNSCORED = 0.01
"""What a leaf that cannot be scored earns while matching: enough to be matched, and so to be reported."""
_REPORTED = 1e-9
"""What a leaf of weight 0 earns while matching, where two items have no leaf of weight in common: items that are only
reported are matched, too, and it cannot tip any other choice."""
_CLOSE = 1e-12


@dataclass(frozen=True, slots=True)
class Match:
    """An expected item and the predicted item that goes with it; None where there is none.

    Attributes:
        lists: the matches of the items in their lists, by the pattern of the items.
    """

    expected: Item | None
    predicted: Item | None
    lists: dict[Pattern, list[Match]] = field(default_factory=dict)


@dataclass(slots=True)
class _Level:
    """All items of one kind in the record, whatever they stand in: rows expected, columns predicted.

    `credit` is what a pair's own leaves earn, `overlap` the weight of the leaves both have. The items of parent i
    are `expected[rows[i]:rows[i + 1]]`; so for columns.
    """

    pattern: Pattern
    ordered: bool
    expected: list[Item]
    predicted: list[Item]
    rows: list[int]
    columns: list[int]
    credit: Matrix
    overlap: Matrix
    inner: list[_Level]


@dataclass(slots=True)
class _Solution:
    """A level with the best matching inside every pair of its items added in, for one share."""

    level: _Level
    credit: Matrix
    overlap: Matrix
    gain: Matrix
    inner: list[_Solution]

    def pairs(self, parent_row: int, parent_column: int) -> list[tuple[int, int]]:
        """The best pairs of the items in two parents, as rows and columns of this level."""
        row, column = self.level.rows[parent_row], self.level.columns[parent_column]
        block = self.gain[row : self.level.rows[parent_row + 1], column : self.level.columns[parent_column + 1]]
        if not block.size or block.max() <= 0:
            return []
        return [(row + i, column + j) for i, j in best_pairs(block, ordered=self.level.ordered)]


def match(expected: Item, predicted: Item, rules: Rules, ordered: frozenset[Pattern]) -> Match:
    """The two records, and every item of their lists, matched.

    Args:
        expected, predicted: the records taken apart.
        rules: the rule of each place.
        ordered: the patterns of the items whose order matters.
    """
    if not expected.lists.keys() & predicted.lists.keys():  # nothing to choose
        return Match(expected, predicted, _alone(expected, predicted))
    root = _level((), [expected], [predicted], [0, 1], [0, 1], rules, ordered)
    present = sum(_weight(item, rules) for item in (expected, predicted))
    share = 0.0
    while True:
        solution = _solve(root, share)
        union = present - float(solution.overlap[0, 0])
        better = float(solution.credit[0, 0]) / union if union > 0 else 0.0
        if better <= share + _CLOSE or better >= 1.0 - _CLOSE:
            return _matched(solution, 0, 0)
        share = better


def _weight(item: Item, rules: Rules) -> float:
    own = sum(rules(pattern).weight for pattern in item.values)
    return own + sum(_weight(one, rules) for items in item.lists.values() for one in items)


def _level(
    pattern: Pattern,
    expected: list[Item],
    predicted: list[Item],
    rows: list[int],
    columns: list[int],
    rules: Rules,
    ordered: frozenset[Pattern],
) -> _Level:
    credit, overlap = _own(expected, predicted, rules)
    inner = [
        _level(name, *_flattened(name, expected, predicted), rules, ordered)
        for name in dict.fromkeys(name for item in expected for name in item.lists)
        if any(name in item.lists for item in predicted)
    ]
    return _Level(pattern, pattern in ordered, expected, predicted, rows, columns, credit, overlap, inner)


def _flattened(
    pattern: Pattern, expected: list[Item], predicted: list[Item]
) -> tuple[list[Item], list[Item], list[int], list[int]]:
    (first, rows), (second, columns) = (_joined(pattern, side) for side in (expected, predicted))
    return first, second, rows, columns


def _joined(pattern: Pattern, parents: list[Item]) -> tuple[list[Item], list[int]]:
    joined: list[Item] = []
    starts = [0]
    for parent in parents:
        joined += parent.lists.get(pattern, ())
        starts.append(len(joined))
    return joined, starts


def _own(expected: Sequence[Item], predicted: Sequence[Item], rules: Rules) -> tuple[Matrix, Matrix]:
    """Credit and overlap of every pair by the items' own leaves, one place at a time."""
    credit, overlap, reported = np.zeros((3, len(expected), len(predicted)))
    rows, columns = _holders(expected), _holders(predicted)
    for pattern, holding in rows.items():
        found = columns.get(pattern)
        if found is None:
            continue
        rule = rules(pattern)
        extracted = [predicted[index].values[pattern] for index in found]
        wanted = [expected[index].values[pattern] for index in holding]
        values = rule.evaluator.similarities(extracted, wanted).T
        values = np.where(np.isnan(values), _UNSCORED, values)
        cells = np.ix_(holding, found)
        credit[cells] += rule.weight * values
        overlap[cells] += rule.weight
        if not rule.weight:
            reported[cells] += values
    return np.where(overlap > 0, credit, _REPORTED * reported), overlap


def _holders(items: Sequence[Item]) -> dict[Pattern, list[int]]:
    holders: dict[Pattern, list[int]] = {}
    for index, item in enumerate(items):
        for pattern in item.values:
            holders.setdefault(pattern, []).append(index)
    return holders


def _solve(level: _Level, share: float) -> _Solution:
    inner = [_solve(one, share) for one in level.inner]
    credit, overlap = (level.credit.copy(), level.overlap.copy()) if inner else (level.credit, level.overlap)
    for one in inner:
        for row, column in _promising(one):
            for i, j in one.pairs(row, column):
                credit[row, column] += one.credit[i, j]
                overlap[row, column] += one.overlap[i, j]
    gain = np.where(credit > 0, credit + share * overlap, 0.0)
    return _Solution(level, credit, overlap, gain, inner)


def _promising(solution: _Solution) -> Iterator[tuple[int, int]]:
    """The pairs of parents between whose items there is anything to gain."""
    starts = solution.level.rows, solution.level.columns
    rows, columns = (np.repeat(np.arange(len(side) - 1), np.diff(side)) for side in starts)
    first, second = np.nonzero(solution.gain > 0)
    n_columns = len(solution.level.columns) - 1
    for code in np.unique(rows[first] * n_columns + columns[second]).tolist():
        yield divmod(code, n_columns)


def _matched(solution: _Solution, row: int, column: int) -> Match:
    level = solution.level
    expected, predicted = level.expected[row], level.predicted[column]
    lists = _alone(expected, predicted)
    by_pattern = {one.level.pattern: one for one in solution.inner}
    for pattern in lists:
        if expected.lists.get(pattern) and predicted.lists.get(pattern):
            lists[pattern] = _matches(by_pattern[pattern], row, column)
    return Match(expected, predicted, lists)


def _alone(expected: Item, predicted: Item) -> dict[Pattern, list[Match]]:
    """The lists of two items, no item of which has a counterpart."""
    return {
        pattern: [
            *(Match(one, None) for one in expected.lists.get(pattern, ())),
            *(Match(None, one) for one in predicted.lists.get(pattern, ())),
        ]
        for pattern in dict.fromkeys([*expected.lists, *predicted.lists])
    }


def _matches(solution: _Solution, parent_row: int, parent_column: int) -> list[Match]:
    level = solution.level
    pairs = dict(solution.pairs(parent_row, parent_column))
    taken = set(pairs.values())
    rows = range(level.rows[parent_row], level.rows[parent_row + 1])
    columns = range(level.columns[parent_column], level.columns[parent_column + 1])
    return [
        *(_matched(solution, row, pairs[row]) if row in pairs else Match(level.expected[row], None) for row in rows),
        *(Match(None, level.predicted[column]) for column in columns if column not in taken),
    ]
