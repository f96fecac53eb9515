import json
import subprocess
import sys
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.data.record import Record
from harness.data.splits import NAMES, Splits, split
from harness.errors import UsageError


def records(count, group=None):
    return [
        Record(str(n), {"text": f"text {n}"}, {"n": n}, None if group is None else group(n), f"line {n}")
        for n in range(count)
    ]


def ids(splits):
    return {name: [record.id for record in part] for name, part in splits.parts().items()}


@pytest.mark.parametrize(
    ("count", "asked", "sizes"),
    [
        (10, {}, (4, 2, 4)),
        (8, {}, (3, 2, 3)),
        (101, {}, (41, 20, 40)),
        (100, {"train": 40, "validation": 20, "test": 30}, (40, 20, 30)),
        (100, {"train": 0.1, "validation": 0.2, "test": 0.3}, (10, 20, 30)),
        (100, {"test": 40}, (40, 20, 40)),
        (100, {"train": 10, "validation": 10}, (10, 10, 80)),
        (90, {"train": 0.5, "validation": 15}, (45, 15, 30)),
        (5, {"train": 2, "validation": 1, "test": 2}, (2, 1, 2)),
        (3, {"train": 1, "validation": 1, "test": 1}, (1, 1, 1)),
        (7, {"train": 0.34, "validation": 0.33, "test": 0.33}, (3, 2, 2)),
    ],
)
def test_sizes_without_groups_are_exact(count, asked, sizes):
    assert tuple(split(records(count), **asked).sizes.values()) == sizes


@pytest.mark.parametrize(
    ("count", "asked", "sentence"),
    [
        (
            60,
            {"train": 40, "validation": 40, "test": 80},
            "more than there is: train 40 . validation 40 . test 80, of 60",
        ),
        (10, {"train": 0.8, "test": 5}, "more than there is: train 0.8 . test 5, of 10 records"),
        (10, {"train": 10}, "the split 'validation' would be empty: the rest of 10 records"),
        (10, {"validation": 0.01}, "the split 'validation' would be empty: 0.01 of 10 records"),
        (10, {"test": 0}, "data.split.test: 0 leaves the split empty"),
        (10, {"test": -1}, "data.split.test: -1 leaves the split empty"),
        (10, {"train": 1.5}, "data.split.train: 1.5 is no share; a share lies between 0 and 1"),
        (10, {"train": 40.0}, "data.split.train: 40.0 is no share; write 40 for a count"),
        (10, {"train": 0.0}, "data.split.train: 0.0 is no share"),
        (10, {"train": float("nan")}, "data.split.train: nan is no share"),
        (10, {"train": True}, "data.split.train: True is no size"),
        (10, {"train": "40"}, "data.split.train: '40' is no size"),
        (5, {}, "5 records are too few to cut"),
        (7, {}, "7 records are too few to cut"),
        (2, {"train": 1, "validation": 1}, "the split 'test' would be empty: the rest of 2 records"),
    ],
)
def test_what_cannot_be_cut_is_one_sentence(count, asked, sentence):
    with pytest.raises(UsageError, match=sentence):
        split(records(count), **asked)


@pytest.mark.parametrize("groups", [1, 2])
def test_too_few_groups_are_counted_in_the_sentence(groups):
    with pytest.raises(UsageError, match=f"30 records in {groups} groups cannot be cut in three"):
        split(records(30, lambda n: str(n % groups)), train=10, validation=10, test=10)
    with pytest.raises(UsageError, match=f"30 records in {groups} groups are too few"):
        split(records(30, lambda n: str(n % groups)))


def test_three_groups_fill_three_splits_even_where_the_sizes_say_otherwise():
    parts = split(records(30, lambda n: str(n % 3)), train=26, validation=2, test=2)
    assert parts.sizes == {"train": 10, "validation": 10, "test": 10}


def test_seeds_differ_and_the_order_is_shuffled():
    cuts = [ids(split(records(50), seed=seed)) for seed in range(5)]
    assert len({json.dumps(cut) for cut in cuts}) == 5
    assert cuts[0]["train"] != sorted(cuts[0]["train"], key=int)
    # Every seed draws from the whole file, not from its head.
    assert all(max(map(int, cut["train"])) > 30 and min(map(int, cut["test"])) < 20 for cut in cuts)


def test_a_new_record_moves_few_of_the_others():
    before, after = split(records(100)), split(records(101))
    moved = sum(len(set(ids(before)[name]) - set(ids(after)[name])) for name in NAMES)
    assert moved <= 10


def test_the_cut_is_the_same_in_another_process_with_another_hash_seed():
    code = (
        "from harness.data import Record, split\n"
        "rows = [Record(str(n), {}, n, None if n % 3 else f'g{n % 5}', '') for n in range(40)]\n"
        "print([[r.id for r in part] for part in split(rows, seed=7).parts().values()])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {
        "[['2', '0', '15', '30', '19', '20', '17', '37', '32', '26', '14', '29', '5', '18', '3', '33'], "
        "['31', '10', '13', '23', '12', '27', '8', '1'], "
        "['35', '28', '4', '25', '24', '39', '9', '11', '7', '38', '22', '21', '36', '6', '34', '16']]\n"
    }


@st.composite
def data_sets(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=8, max_size=25))
    lone = draw(st.integers(0, 10))
    rows = [
        Record(f"{group}-{n}", {"text": f"{group} {n}"}, {}, f"g{group}", "")
        for group, size in enumerate(sizes)
        for n in range(size)
    ]
    return [*rows, *(Record(f"lone {n}", {"text": str(n)}, {}, None, "") for n in range(lone))]


@given(data_sets(), st.integers())
def test_default_shares_use_every_record_once_and_keep_groups_together(rows, seed):
    parts = split(rows, seed=seed).parts()
    assert Counter(record.id for part in parts.values() for record in part) == Counter(record.id for record in rows)
    assert all(parts.values())
    sides = {}
    for name, part in parts.items():
        for record in part:
            if record.group is not None:
                assert sides.setdefault(record.group, name) == name


@given(data_sets(), st.integers(0, 3), st.data())
def test_counts_are_met_to_within_the_largest_group(rows, seed, data):
    total = len(rows)
    train = data.draw(st.integers(1, total - 2))
    validation = data.draw(st.integers(1, total - train - 1))
    test = data.draw(st.integers(1, total - train - validation))
    asked = {"train": train, "validation": validation, "test": test}
    largest = max(Counter(record.group or record.id for record in rows).values())
    sizes = split(rows, **asked, seed=seed).sizes
    for name in NAMES:
        assert abs(sizes[name] - asked[name]) <= 2 * largest
    assert sum(sizes.values()) <= total


@given(data_sets(), st.randoms(), st.integers())
def test_the_order_of_the_file_makes_no_difference(rows, random, seed):
    cut = ids(split(rows, seed=seed))
    random.shuffle(rows)
    assert ids(split(rows, seed=seed)) == cut


@given(data_sets(), st.integers())
def test_saved_splits_come_back(rows, seed):
    parts = split(rows, seed=seed)
    document = json.loads(json.dumps(parts.to_document()))
    assert Splits.from_document(document, reversed(rows)) == parts


def test_saved_splits_refuse_data_that_changed():
    rows = records(20)
    document = split(rows).to_document()
    used = document["test"][0]
    with pytest.raises(UsageError, match=f"saved test split has 1 records that the data no longer has: '{used}'"):
        Splits.from_document(document, [record for record in rows if record.id != used])
    changed = [Record(r.id, r.fields, {"n": -1} if r.id == used else r.expected, r.group, r.where) for r in rows]
    with pytest.raises(UsageError, match="a record of the saved test split has changed"):
        Splits.from_document(document, changed)


def test_a_document_holds_ids_and_no_content():
    document = split(records(10)).to_document()
    assert document["seed"] == 0
    assert sorted(document["train"] + document["validation"] + document["test"]) == [str(n) for n in range(10)]
    assert set(document["digests"]) == set(NAMES)
    assert "text" not in json.dumps({**document, "digests": None})


def test_a_group_and_a_lone_record_of_the_same_name_are_two():
    rows = [Record("a", {}, {}, None, ""), *[Record(f"{n}", {}, {}, "a" if n < 2 else None, "") for n in range(9)]]
    parts = split(rows, seed=3)
    assert sum(parts.sizes.values()) == 10


def test_many_groups_are_cut_quickly():
    rows = records(20_000, lambda n: str(n // 3))
    start = time.perf_counter()
    assert abs(split(rows).sizes["train"] - 8000) <= 2
    assert time.perf_counter() - start < 5
