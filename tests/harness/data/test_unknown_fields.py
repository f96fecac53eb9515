"""A misspelt field is named wherever it stands, with the nearest field there."""

import pytest
from pydantic import BaseModel

from harness.data.unknown_fields import unknown_fields


class Line(BaseModel):
    amount: float | None = None
    name: str = ""
    within: list["Line"] = []


class Place(BaseModel):
    city: str


class Invoice(BaseModel):
    vendor: str = ""
    lines: list[Line] = []
    place: Place | None = None
    words: dict[str, int] = {}
    either: Line | Place | None = None


SCHEMA = Invoice.model_json_schema()


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"vendr": "a"}, {"vendr": "did you mean 'vendor'?"}),
        ({"lines": [{"name": "a"}, {"amont": 1}]}, {"lines[*].amont": "did you mean 'amount'?"}),
        ({"lines": [{"within": [{"nam": "x"}]}]}, {"lines[*].within[*].nam": "did you mean 'name'?"}),
        ({"place": {"zzz": 1}}, {"place.zzz": "known: city"}),
        ({"either": {"cty": 1, "amount": 2}}, {"either.cty": "did you mean 'city'?"}),
        ({"words": {"anything": 1}, "lines": None, "place": "text", "vendor": {"no": 1}}, {}),
        ([{"vendr": 1}], {}),
        (None, {}),
    ],
)  # fmt: skip
def test_paths(record, found):
    assert unknown_fields([record, {}], SCHEMA) == found


def test_a_schema_that_takes_other_fields_takes_them():
    closed = {"properties": {"a": {"type": "string"}}}
    assert unknown_fields([{"b": 1}], closed) == {"b": "known: a"}
    assert unknown_fields([{"b": 1}], {**closed, "additionalProperties": False}) == {"b": "known: a"}
    for keyword, value in (("additionalProperties", True), ("patternProperties", {"^b": {}})):
        assert unknown_fields([{"b": 1}], {**closed, keyword: value}) == {}
    assert unknown_fields([{"b": 1}], {"type": "object"}) == {}
