"""The record metric on what people annotated in two corpora: what must not change a value, and what must."""

import json
import os
import random
from pathlib import Path

import pytest

from metrics import RecordMetric
from metrics.testing.damage import changed, every_leaf, held, leaves, shuffled, twin

pytestmark = pytest.mark.skipif(
    "HARNESS_DATA" not in os.environ, reason="HARNESS_DATA names no folder with the annotated corpora"
)

CORPORA = {"olivetti": 180, "pcmsp": 265}
UNITS = ("mol", "°C", "min", "g", "Pa", "rpm")
POSITIONS = ("span", "n", "next")
"""Where something stands in the text, which a shuffled list does not say."""
MOST_ITEMS = 2


def sampled(record, chance):
    """A few items of every list, in their order, without positions in the text."""
    if isinstance(record, dict):
        return {name: sampled(inner, chance) for name, inner in record.items() if name not in POSITIONS}
    if isinstance(record, list):
        kept = sorted(chance.sample(range(len(record)), min(MOST_ITEMS, len(record))))
        return [sampled(record[index], chance) for index in kept]
    return record


@pytest.fixture(scope="module", params=CORPORA)
def records(request):
    """Every record of a corpus, sampled, each with its own source of chance."""
    path = Path(os.environ["HARNESS_DATA"]) / f"{request.param}_synthesis_gold.jsonl"
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        chance = random.Random(number)
        gold = json.loads(line)["gold"]
        others = chance.sample([name for name in gold if name != "steps"], 2)
        found.append((sampled({name: gold[name] for name in ("steps", *others)}, chance), chance))
    assert len(found) == CORPORA[request.param]
    return found


def dropped(record, chance):
    path = chance.choice(list(leaves(record)))
    return changed(record, path, None)


def swapped(record, chance):
    """One value replaced by another one of the record, or a unit by another unit."""
    paths = list(leaves(record))
    units = [path for path in paths if path[-1] == "unit"]
    path = chance.choice(units if units and chance.random() < 0.5 else paths)
    others = UNITS if path in units else [held(record, other) for other in paths]
    others = [other for other in others if str(other).lower() != str(held(record, path)).lower()]
    return changed(record, path, chance.choice(others or ["§"]))


def test_every_record_is_right_against_itself_and_in_other_writing_and_order(records):
    metric = RecordMetric()
    same = [
        ("itself", lambda record, chance: record),
        ("shuffled", lambda record, chance: shuffled(record, chance.randint(1, 3))),
        ("in twins of its characters", lambda record, chance: every_leaf(record, twin)),
    ]
    wrong = [
        (number, what, score.value, score.feedback or score.error)
        for number, (record, chance) in enumerate(records)
        for what, change in same
        if (score := metric.compare(record, change(record, chance))).value != 1.0
    ]
    assert wrong == []


def test_every_record_falls_by_one_value_dropped_or_swapped(records):
    metric = RecordMetric()
    wrong = [
        (number, change.__name__, score.value, score.error)
        for number, (record, chance) in enumerate(records)
        for change in (dropped, swapped)
        if (score := metric.compare(record, change(record, chance))).value is None or not score.value < 1.0
    ]
    assert wrong == []
