from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.data.digest import dataset_digest
from harness.data.record import Record

RECORDS = [
    Record("1", {"text": "a", "doi": "x"}, {"n": 1, "items": [{"a": None}]}, "g", "a.csv line 2"),
    Record("2", {"text": "b"}, {"n": 2}, None, "a.csv line 3"),
]


def test_the_digest_is_sha256_and_the_same_on_every_machine():
    assert dataset_digest(RECORDS) == "cc70c54a016b965029d4ab7f4212b734e41dd52fc6fc33d02e85a9f90f9e2729"


@pytest.mark.parametrize(
    "change",
    [
        {"id": "3"},
        {"fields": {"text": "B"}},
        {"fields": {"text": "b", "more": 1}},
        {"expected": {"n": 3}},
        {"expected": {"n": "2"}},
        {"expected": {"n": 2, "m": None}},
        {"expected": None},
        {"group": "g"},
    ],
)
def test_every_value_counts(change):
    assert dataset_digest([RECORDS[0], replace(RECORDS[1], **change)]) != dataset_digest(RECORDS)


def test_place_and_key_order_do_not_count():
    moved = replace(RECORDS[0], where="b.csv line 9", fields=dict(reversed(RECORDS[0].fields.items())))
    assert dataset_digest([RECORDS[1], moved]) == dataset_digest(RECORDS)


@given(st.dictionaries(st.text(), st.text(), max_size=6), st.randoms())
def test_the_order_of_records_does_not_count(texts, random):
    records = [Record(identity, {"text": text}, {"gold": text}, None, "") for identity, text in texts.items()]
    digest = dataset_digest(records)
    random.shuffle(records)
    assert dataset_digest(records) == digest


def test_contents_that_read_alike_in_a_row_differ():
    one = [Record("1", {"text": "a"}, None, None, ""), Record("2", {"text": "b"}, None, None, "")]
    two = [Record("1", {"text": "a"}, None, None, ""), Record("2", {"text": 'b"],["3'}, None, None, "")]
    assert len({dataset_digest(one), dataset_digest(two), dataset_digest(one[:1]), dataset_digest([])}) == 4
