"""The matching under which a record scores best, against every possibility."""

import functools
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.record.fields import read_fields
from metrics.record.items import plain, read_item
from metrics.record.matching import Match, match

VALUES = st.sampled_from([1, 2, 3, "heat", "heal", "mix", True])
ITEMS = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3)
NESTED = st.fixed_dictionaries({"k": VALUES, "in": st.lists(ITEMS, max_size=2)})


def both(expected, predicted, fields=None):
    fields = read_fields(fields or {}, None)
    rules = functools.cache(fields.rule)
    items = [read_item(plain(record), fields) for record in (expected, predicted)]
    return items, rules, fields.ordered


def weigh(found: Match, rules):
    """Credit and weight of a matching, straight from the definition."""
    credit = weight = 0.0
    sides = [item for item in (found.expected, found.predicted) if item is not None]
    for place in {place for item in sides for place in item.values}:
        rule = rules(place)
        weight += rule.weight
        if all(place in item.values for item in sides) and len(sides) == 2:
            credit += rule.weight * rule.evaluator.evaluate(sides[1].values[place], sides[0].values[place])
    inner = found.lists.values() if len(sides) == 2 else [
        [Match(one, None) for one in items] for item in sides for items in item.lists.values()
    ]  # fmt: skip
    for one in itertools.chain.from_iterable(inner):
        credit_inside, weight_inside = weigh(one, rules)
        credit, weight = credit + credit_inside, weight + weight_inside
    return credit, weight


def all_matches(expected, predicted, rules, ordered):
    """Every matching of two items, pairs that earn nothing left out."""
    patterns = list(dict.fromkeys([*expected.lists, *predicted.lists]))
    choices = [
        list(all_pairings(expected.lists.get(p, []), predicted.lists.get(p, []), rules, ordered, p in ordered))
        for p in patterns
    ]
    for chosen in itertools.product(*choices):
        yield Match(expected, predicted, dict(zip(patterns, chosen, strict=True)))


def all_pairings(expected, predicted, rules, ordered, keeps_order):
    if not expected:
        yield [Match(None, one) for one in predicted]
        return
    first, rest = expected[0], expected[1:]
    for pairing in all_pairings(rest, predicted, rules, ordered, keeps_order):
        yield [Match(first, None), *pairing]
    for index, other in enumerate(predicted):
        left = predicted[index + 1 :] if keeps_order else predicted[:index] + predicted[index + 1 :]
        skipped = [Match(None, one) for one in predicted[:index]] if keeps_order else []
        for inner in all_matches(first, other, rules, ordered):
            if weigh(inner, rules)[0] > 0:
                for pairing in all_pairings(rest, left, rules, ordered, keeps_order):
                    yield [inner, *skipped, *pairing]


def value(found, rules):
    credit, weight = weigh(found, rules)
    return credit / weight if weight else 0.0


@pytest.mark.parametrize("ordered", [False, True])
@settings(max_examples=60, deadline=None)
@given(expected=st.lists(ITEMS, max_size=3), predicted=st.lists(ITEMS, max_size=3), target=st.none() | VALUES)
def test_no_other_matching_of_a_list_scores_more(ordered, expected, predicted, target):
    (first, second), rules, order = both(
        {"x": expected, "t": 1}, {"x": predicted, "t": target}, {"x": {"ordered": True}} if ordered else None
    )

    found = match(first, second, rules, order)

    best = max(value(one, rules) for one in all_matches(first, second, rules, order))
    assert value(found, rules) == pytest.approx(best)


@settings(max_examples=30, deadline=None)
@given(expected=st.lists(NESTED, max_size=2), predicted=st.lists(NESTED, max_size=2))
def test_no_other_matching_of_lists_inside_lists_scores_more(expected, predicted):
    (first, second), rules, order = both({"x": expected}, {"x": predicted})

    found = match(first, second, rules, order)

    best = max(value(one, rules) for one in all_matches(first, second, rules, order))
    assert value(found, rules) == pytest.approx(best)


def test_two_half_right_pairs_beat_one_right_pair_beside_two_strays():
    """The sum of likenesses would take the right pair (1.0 against 2 * 0.49) and leave two items over."""
    expected = {"x": [{"a": "p", "b": "q"}, {"a": "r", "b": "s"}]}
    predicted = {"x": [{"a": "p", "b": "s"}, {"a": "r", "b": "q"}]}
    (first, second), rules, order = both(expected, predicted)

    found = match(first, second, rules, order)

    assert value(found, rules) == 0.5
    assert all(one.expected and one.predicted for one in found.lists[next(iter(found.lists))])
