"""A JSON Schema as lines."""

import json

import pytest

from harness.models.prompt.outline import outline


def lines(properties, **more):
    return outline({"type": "object", "properties": properties, **more})


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"type": "string"}, "x: text"),
        ({"type": "string", "format": "date", "description": "when\n  it was"}, "x: text date (when it was)"),
        ({"type": "integer"}, "x: whole number"),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 14}, "x: number at least 0, less than 14"),
        ({"type": "boolean"}, "x: true or false"),
        ({"type": "null"}, "x: null"),
        ({"type": ["null", "string", "number"]}, "x: text or number or null"),
        ({"anyOf": [{"type": "null"}, {"type": "number"}]}, "x: number or null"),
        ({"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}, "x: text"),
        ({"allOf": [{"type": "string"}]}, "x: text"),
        ({"enum": ["°C", "K", None, 3]}, 'x: "°C" | "K" | null | 3'),
        ({"const": "x"}, 'x: "x"'),
        ({"type": "array"}, "x: list"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, "x: list of list of number"),
        ({"type": "object"}, "x: map from names to anything"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "x: map from names to number"),
        ({}, "x: anything"),
        (True, "x: anything"),
    ],
)
def test_one_line_per_key(part, line):
    assert lines({"x": part}) == [line]


def test_lists_of_records_stay_on_one_line():
    item = {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "as written"}, "n": {"type": "integer"}},
    }
    assert lines({"items": {"type": "array", "items": item, "description": "all of them"}}) == [
        "items: list of {name: text (as written), n: whole number} (all of them)"
    ]


def test_records_inside_have_dotted_lines_of_their_own():
    inner = {"type": "object", "properties": {"t": {"type": "number"}, "u": {"$ref": "#/$defs/U"}}}
    schema = {"a": inner, "b": {"anyOf": [inner, {"type": "null"}], "description": "b's"}}
    unit = {"type": "object", "title": "U", "description": "a unit", "properties": {"name": {"type": "string"}}}
    assert lines({"a": inner}, **{"$defs": {"U": unit}}) == [
        "a.t: number",
        "a.u: record (a unit)",
        "a.u.name: text",
    ]
    assert lines(schema, **{"$defs": {"U": unit}})[2:4] == ["b: record or null (b's)", "b.t: number"]


def test_a_record_in_two_places_is_described_once():
    material = {"type": "object", "title": "Material", "properties": {"name": {"type": "string"}}}
    reference = {"$ref": "#/$defs/M"}
    found = lines({"a": {"type": "array", "items": reference}, "b": reference}, **{"$defs": {"M": material}})
    assert found == ["a: list of Material {name: text}", "b: Material"]
    del material["title"]
    assert lines({"a": reference, "b": reference}, **{"$defs": {"M": material}}) == ["a: M {name: text}", "b: M"]


def test_recursion_ends():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}
    assert lines({"root": {"$ref": "#/$defs/N"}}, **{"$defs": {"N": node}}) == ["root: N {kids: list of N}"]


def test_a_schema_that_is_a_reference_itself():
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}}}
    assert outline({"$ref": "#/$defs/N", "$defs": {"N": node}}) == ["next: N {next: N or null} or null"]


def test_every_line_is_one_line():
    schema = {"x": {"type": "string", "description": "a\r\n\n b\tc"}}
    assert lines(json.loads(json.dumps(schema))) == ["x: text (a b c)"]
