"""What must hold for any record: identity, bounds, order, and that damage never pays."""

import copy
import random
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metrics import RecordMetric

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "heat", "heal", "5 h", "50 h", "2"])
RECORDS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
STEPS = st.fixed_dictionaries(
    {
        "target": SCALARS,
        "steps": st.lists(
            st.fixed_dictionaries(
                {
                    "action": SCALARS,
                    "n": SCALARS,
                    "materials": st.lists(st.fixed_dictionaries({"name": SCALARS}), max_size=2),
                }
            ),
            max_size=4,
        ),
    }
)  # fmt: skip
few = settings(max_examples=200)


def value(expected, predicted):
    return RecordMetric().compare(expected, predicted).value


def shuffled(record, rng):
    """The same record with every list in another order."""
    if isinstance(record, dict):
        return {key: shuffled(inner, rng) for key, inner in record.items()}
    if isinstance(record, list):
        return rng.sample([shuffled(inner, rng) for inner in record], len(record))
    return record


def leaf_paths(record, path=()):
    if isinstance(record, dict):
        return [found for key, inner in record.items() for found in leaf_paths(inner, (*path, key))]
    if isinstance(record, list):
        return [found for index, inner in enumerate(record) for found in leaf_paths(inner, (*path, index))]
    return [path]


def held(record, path):
    for key in path:
        record = record[key]
    return record


def at(record, path, new):
    """A copy of `record` with another value at one place."""
    record = copy.deepcopy(record)
    held(record, path[:-1])[path[-1]] = new
    return record


@few
@given(RECORDS)
def test_a_record_equals_itself(record):
    assert value(record, record) == 1.0
    assert value(record, copy.deepcopy(record)) == 1.0


@few
@given(RECORDS, RECORDS)
def test_bounds_determinism_and_no_mutation(expected, predicted):
    before = copy.deepcopy((expected, predicted))

    first = RecordMetric().compare(expected, predicted)

    assert (expected, predicted) == before
    assert 0.0 <= first.value <= 1.0
    assert all(0.0 <= part.value <= 1.0 for part in first.parts.values())
    assert RecordMetric().compare(expected, predicted) == first


@few
@given(RECORDS, RECORDS, st.randoms(use_true_random=False))
def test_the_order_of_items_changes_nothing(expected, predicted, rng):
    first = RecordMetric().compare(expected, predicted)
    other = RecordMetric().compare(shuffled(expected, rng), shuffled(predicted, rng))

    assert other.value == pytest.approx(first.value)
    assert {path: part.value for path, part in other.parts.items()} == pytest.approx(
        {path: part.value for path, part in first.parts.items()}
    )
    assert other.details["n_fields"] == first.details["n_fields"]


@few
@given(STEPS, STEPS, st.booleans(), st.data())
def test_damage_never_raises_the_value(expected, predicted, ordered, data):
    """A present value made worthless, anywhere in the prediction."""
    metric = RecordMetric({"steps": {"ordered": True}} if ordered else {})
    present = [path for path in leaf_paths(predicted) if held(predicted, path) not in (None, "", [])]
    assume(present)
    damaged = at(predicted, data.draw(st.sampled_from(present)), "§§§§")

    assert metric.compare(expected, damaged).value <= metric.compare(expected, predicted).value + 1e-9


@few
@given(STEPS, STEPS, st.booleans())
def test_a_false_item_never_raises_the_value(expected, predicted, ordered):
    metric = RecordMetric({"steps": {"ordered": True}} if ordered else {})
    more = {
        **predicted,
        "steps": [*predicted["steps"], {"action": "§§§§", "n": "§§§§", "materials": [{"name": "§§§§"}]}],
    }

    assert metric.compare(expected, more).value <= metric.compare(expected, predicted).value + 1e-9


@few
@given(STEPS, st.data(), st.integers(0, 2), st.booleans())
def test_dropping_a_right_item_never_raises_the_value(expected, data, n_false, ordered):
    metric = RecordMetric({"steps": {"ordered": True}} if ordered else {})
    kept = [step for step in expected["steps"] if data.draw(st.booleans())]
    false = [{"action": "§§§§", "n": "§§§§"}] * n_false
    assume(kept)
    dropped = data.draw(st.integers(0, len(kept) - 1))

    whole = metric.compare(expected, {**expected, "steps": kept + false}).value
    less = metric.compare(expected, {**expected, "steps": kept[:dropped] + kept[dropped + 1 :] + false}).value
    assert less <= whole + 1e-9


@few
@given(STEPS, STEPS)
def test_leaving_out_a_value_that_is_expected_never_raises_the_value(expected, predicted):
    """At the top of the record, where both sides meet whatever else is in them."""
    assume(expected["target"] not in (None, ""))

    assert value(expected, {**predicted, "target": None}) <= value(expected, predicted) + 1e-9


def test_five_hundred_items_of_five_leaves_are_compared_in_time():
    rng = random.Random(0)
    items = [
        {"name": f"material {rng.random()}", "amount": i * 0.5, "time": f"{i} h", "kind": f"k{i % 7}", "dry": i > 9}
        for i in range(500)
    ]
    predicted = [dict(item) for item in rng.sample(items, 500)]
    for item in predicted[::3]:
        item["name"] = "other " + item["name"]
    RecordMetric().compare({"x": [1, 2]}, {"x": [2, 1]})  # imports

    start = time.process_time()
    score = RecordMetric().compare({"x": items}, {"x": predicted})

    assert time.process_time() - start < 2.0
    assert 0.9 < score.value < 1.0
