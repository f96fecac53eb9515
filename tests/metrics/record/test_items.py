"""Records taken apart."""

import datetime
import enum

import pytest
from pydantic import BaseModel, Field

from metrics.record.fields import read_fields
from metrics.record.items import plain, read_item
from metrics.record.paths import EVERY, parse, written

EVERYTHING = read_fields({}, None)


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    made: datetime.date
    colour: Colour
    number: int = Field(alias="no")


def test_plain_data_is_what_the_json_would_hold():
    model = Model(made=datetime.date(2024, 1, 2), colour=Colour.RED, no=3)

    assert plain({"m": model, 5: (1, 2)}) == {"m": {"made": "2024-01-02", "colour": "red", "no": 3}, "5": [1, 2]}
    assert plain(Model.model_construct(colour="unknown")) == {"colour": "unknown"}
    assert plain(None) is None


def test_plain_data_is_a_copy():
    record = {"a": [{"b": 1}]}
    copy = plain(record)
    copy["a"][0]["b"] = 2

    assert record == {"a": [{"b": 1}]}


def test_a_record_that_holds_itself_is_refused():
    record: dict = {}
    record["self"] = record

    with pytest.raises(ValueError, match="a record is JSON data or a model: circular reference"):
        plain(record)


def test_values_absences_and_lists_are_kept_apart():
    record = {"a": 1, "b": {"c": None, "d": ""}, "e": [], "f": [{"g": 0}, None, {}, {"g": None}]}

    item = read_item(record, EVERYTHING)

    assert {written(place): value for place, value in item.values.items()} == {"a": 1}
    assert {written(place): value for place, value in item.absent.items()} == {"b.c": None, "b.d": "", "e": []}
    (kept,) = item.lists[("f", EVERY)]
    assert kept.values == {("f", EVERY, "g"): 0}


def test_places_are_named_by_position():
    record = {"s": [{"m": [{"n": "x"}, {"n": "y"}]}], "grid": [[1, 2]]}

    item = read_item(record, read_fields({path: {"ordered": True} for path in ("s", "s[*].m", "grid[*]")}, None))

    (step,) = item.lists[parse("s[*]")]
    materials = step.lists[parse("s[*].m[*]")]
    assert [one.place(parse("s[*].m[*].n")) for one in materials] == ["s[0].m[0].n", "s[0].m[1].n"]
    (line,) = item.lists[parse("grid[*]")]
    assert [one.place(one.pattern) for one in line.lists[parse("grid[*][*]")]] == ["grid[0][0]", "grid[0][1]"]


def test_records_that_are_no_objects():
    assert read_item("yes", EVERYTHING).place(()) == "$"
    (item,) = read_item(["x"], EVERYTHING).lists[(EVERY,)]
    assert item.place((EVERY,)) == "[0]"
    assert read_item(None, EVERYTHING).values == {}


def test_items_without_order_are_sorted_alike_whatever_their_order_was():
    first, second = {"x": [{"n": [2, 1]}, {"n": [3]}]}, {"x": [{"n": [3]}, {"n": [1, 2]}]}

    assert read_item(first, EVERYTHING).rank == read_item(second, EVERYTHING).rank


def test_a_named_place_is_taken_whole_and_others_are_left():
    item = read_item({"a": [1, 2], "b": 3}, read_fields({"a": "exact"}, None))

    assert item.values == {("a",): [1, 2]}
    assert item.lists == {}


@pytest.mark.parametrize("nothing", [[], {}, [None], {"b": ""}, [{"c": [None]}, []]])
def test_a_place_taken_whole_that_holds_nothing_anywhere_is_absent(nothing):
    item = read_item({"a": nothing}, read_fields({"a": "exact"}, None))

    assert (item.values, item.absent) == ({}, {("a",): nothing})
    assert read_item({"a": [nothing, 0]}, read_fields({"a": "exact"}, None)).values == {("a",): [nothing, 0]}
