import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.data.cells import fit, read_columns


def column(*cells):
    return [row["x"] for row in read_columns([{"x": cell} for cell in cells], ["x"])]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("5", "2.5", " -3 "), [5, 2.5, -3]),
        (("true", "false", "null"), [True, False, None]),
        (("1001", "A17"), ["1001", "A17"]),  # one column, one type
        (("007", "12"), ["007", "12"]),
        (("1e5", "3"), ["1e5", "3"]),
        (("12.50", "3.75"), ["12.50", "3.75"]),  # a schema says whether these are numbers
        (("yes", "no"), ["yes", "no"]),
        (("NaN", "1e999"), ["NaN", "1e999"]),
        (('"5"', '"6"'), ["5", "6"]),  # quoting keeps digits text
        (('{"a": 1}', "[1, 2]", "plain"), [{"a": 1}, [1, 2], "plain"]),
        (("[Cu(pz)2](PF6)2", "5"), ["[Cu(pz)2](PF6)2", "5"]),
        (("[" * 5000, "5"), ["[" * 5000, "5"]),
    ],
)
def test_a_column_has_one_type(cells, values):
    read = column(*cells)
    assert read == values
    assert [type(value) for value in read] == [type(value) for value in values]


def test_only_the_named_columns_are_read_and_gaps_stay_gaps():
    assert read_columns([{"id": "1", "n": "5"}, {"id": "2"}], ["n"]) == [{"id": "1", "n": 5}, {"id": "2"}]


@given(st.lists(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_numbers_survive_a_csv(numbers):
    read = column(*[json.dumps(number) for number in numbers])
    assert [(type(value), repr(value)) for value in read] == [(type(value), repr(value)) for value in numbers]


@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_text_stays_or_is_json_that_writes_the_same(text):
    (value,) = column(text)
    assert value == text or json.loads(text.strip()) == value


SCHEMA = {
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "number": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "total": {"type": "number"},
        "count": {"type": "integer"},
        "paid": {"type": "boolean"},
        "either": {"type": ["string", "number"]},
        "level": {"enum": [1, 2, 3]},
        "fixed": {"const": True},
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "anything": {},
        "loop": {"$ref": "#/$defs/Loop"},
        "broken": {"$ref": "#/nowhere/at/all"},
        "open": True,
    },
    "$defs": {
        "Item": {"type": "object", "properties": {"price": {"type": "number"}, "code": {"type": "string"}}},
        "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "number"}]},
    },
}


@pytest.mark.parametrize(
    ("record", "fitted"),
    [
        ({"vendor": 42, "number": 1001}, {"vendor": "42", "number": "1001"}),
        ({"total": "12.50", "count": "7", "paid": "TRUE"}, {"total": 12.5, "count": 7, "paid": True}),
        ({"count": "7.0", "total": "5"}, {"count": 7, "total": 5}),
        ({"count": "7.5", "total": "about 5", "paid": "yes"}, {"count": "7.5", "total": "about 5", "paid": "yes"}),
        ({"total": "1_000", "count": "١٢"}, {"total": "1_000", "count": "١٢"}),
        ({"total": "1e999"}, {"total": "1e999"}),
        ({"count": "9007199254740993"}, {"count": 9007199254740993}),
        ({"either": "5", "anything": "5", "unknown": "5", "broken": "5", "open": "5"},) * 2,
        ({"either": 5}, {"either": 5}),
        ({"vendor": True, "paid": True}, {"vendor": "true", "paid": True}),
        ({"level": "2", "fixed": "true"}, {"level": 2, "fixed": True}),
        (
            {"items": [{"price": "1.20", "code": 7}, {"other": "x"}]},
            {"items": [{"price": 1.2, "code": "7"}, {"other": "x"}]},
        ),
        ({"items": "none", "vendor": ["a"]}, {"items": "none", "vendor": ["a"]}),
        ({"loop": "5"}, {"loop": 5}),
        ({"number": None, "total": None}, {"number": None, "total": None}),
    ],
)
def test_cells_take_the_types_the_schema_declares(record, fitted):
    before = json.dumps(record)
    result = fit(record, SCHEMA)
    assert result == fitted
    assert json.dumps(result) == json.dumps(fitted)
    assert json.dumps(record) == before


def test_whatever_is_no_record_is_fitted_too():
    assert fit("5", {"type": "integer"}) == 5
    assert fit(None, {"type": "integer"}) is None
