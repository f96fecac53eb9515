"""Checking JSON Schemas and deriving what a model is asked for."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from programs.json_schema import (
    asked_for,
    checked_schema,
    closed,
    dotted,
    empty_value,
    has_open_object,
    resolved,
    short,
)

TREE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.org/tree",
    "title": "Tree",
    "type": "object",
    "properties": {
        "label": {"type": "string"},
        "parent": {"$ref": "#/definitions/Node", "description": "the one above"},
        "kids": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["label"],
    "definitions": {
        "Node": {"type": "object", "properties": {"up": {"$ref": "#/definitions/Node", "description": "x"}}},
        "unused": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (["not", "an", "object"], "invoice.json is not a JSON Schema: an object is expected, got list"),
        ({"properties": {"a": {"type": "objekt"}}}, "invoice.json is not a valid JSON Schema at properties.a.type: "),
        ({"type": 3}, "invoice.json is not a valid JSON Schema at type: "),
        ({"default": float("nan")}, "invoice.json is not a JSON Schema: "),
        ({"items": {"$ref": "#/$defs/none"}}, "cannot be followed at items: there is no '#/$defs/none'"),
        ({"items": {"$ref": "other.json"}}, "cannot be followed at items: 'other.json' is outside this schema"),
        ({"items": {"$ref": "#anchor"}}, "'#anchor' is not a schema of this document"),
        ({"items": {"$ref": "#/title"}, "title": "x"}, "'#/title' is not a schema of this document"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "at $defs.a: '#/$defs/a' only leads to itself"),
        (
            {"$defs": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/a"}]}}},
            "'#/$defs/a' only leads to itself",
        ),
        ({"$defs": {"a": {"not": {"allOf": [{"$ref": "#/$defs/a"}]}}}}, "'#/$defs/a' only leads to itself"),
        ({"items": {"$id": "x"}}, "invoice.json has an $id at items; only the schema as a whole may have one"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, "uses $dynamicRef at properties.a; write the reference as $ref"),
    ],
)
def test_a_wrong_schema_is_refused_with_its_place(schema, sentence):
    with pytest.raises(ValueError, match=r"^invoice\.json") as error:
        checked_schema(schema, "invoice.json")
    assert sentence in str(error.value)


def test_a_checked_schema_is_a_copy():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    checked = checked_schema(schema, "it")
    checked["properties"]["a"]["type"] = "number"
    assert schema["properties"]["a"]["type"] == "string"


def test_keywords_are_only_keywords_where_schemas_stand():
    data = {"$ref": "nowhere", "type": "objekt"}
    schema = {"properties": {"$ref": {"type": "string"}, "x": {"default": data, "enum": [data], "const": data}}}
    assert checked_schema(schema, "it") == schema


def test_references_point_to_definitions_and_only_used_ones_stay():
    asked = asked_for(checked_schema(TREE, "it"))
    assert "$id" not in asked
    assert "definitions" not in asked
    assert list(asked["$defs"]) == ["Node", "Tree"]
    assert asked["properties"]["kids"]["items"] == {"$ref": "#/$defs/Tree"}


def test_references_to_recursive_definitions_stand_alone():
    asked = asked_for(checked_schema(TREE, "it"))
    assert asked["properties"]["parent"]["anyOf"][0] == {"$ref": "#/$defs/Node"}
    assert asked["$defs"]["Node"]["properties"]["up"] == {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}


def test_other_references_keep_what_stands_beside_them():
    schema = {"$defs": {"a b": {"type": "string"}}, "type": "array", "items": {"$ref": "#/$defs/a%20b", "title": "x"}}
    assert asked_for(schema) == {
        "type": "array",
        "items": {"$ref": "#/$defs/a_b", "title": "x"},
        "$defs": {"a_b": {"type": "string"}},
    }


def test_definitions_of_equal_names_are_kept_apart():
    schema = {
        "prefixItems": [
            {"$ref": "#/$defs/a"},
            {"$ref": "#/definitions/a"},
            {"$ref": "#/$defs/a~1"},
            {"$ref": "#/$defs/!"},
        ],
        "$defs": {"a": {"type": "string"}, "a/": True, "!": False},
        "definitions": {"a": {"type": "number"}},
    }
    assert asked_for(checked_schema(schema, "it"))["$defs"] == {
        "a": {"type": "string"},
        "a_2": {"type": "number"},
        "a_1": {},
        "_": {"not": {}},
    }


def test_pointers_go_through_lists():
    schema = {"prefixItems": [{"type": "string"}], "items": {"$ref": "#/prefixItems/0"}}
    assert asked_for(checked_schema(schema, "it"))["$defs"] == {"0": {"type": "string"}}


def test_what_may_be_left_out_may_be_null_unless_it_can_be_empty():
    schema = {
        "type": "object",
        "properties": {
            "must": {"type": "string"},
            "may": {"type": "string", "minLength": 1, "description": "d"},
            "null": {"type": ["string", "null"]},
            "list": {"type": "array"},
            "map": {"type": "object", "additionalProperties": {"type": "number"}},
            "any": True,
        },
        "required": ["must"],
    }
    asked = asked_for(schema)["properties"]
    assert asked["may"] == {"description": "d", "anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}
    assert {name: asked[name] for name in asked if name != "may"} == {
        name: part for name, part in schema["properties"].items() if name != "may"
    }


def test_closed_requires_every_key_in_order():
    sent, strict = closed(asked_for(checked_schema(TREE, "it")))
    assert sent["required"] == ["label", "parent", "kids"]
    assert sent["additionalProperties"] is False
    assert sent["$defs"]["Node"]["required"] == ["up"]
    assert strict


def test_closed_resolves_a_reference_at_the_top():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}
    sent, _ = closed({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    assert sent["type"] == "object"
    assert sent["$defs"]["Node"]["additionalProperties"] is False


def test_closed_drops_defaults_and_leaves_maps_open():
    schema = {
        "type": "object",
        "properties": {"n": {"type": "number", "default": 3}, "map": {"type": "object"}},
        "additionalProperties": {"type": "number"},
    }
    sent, strict = closed(schema)
    assert sent["properties"]["n"] == {"type": "number"}
    assert "required" not in sent
    assert not strict


@pytest.mark.parametrize(
    ("schema", "is_open"),
    [
        ({"type": "object"}, True),
        ({"type": "object", "additionalProperties": False}, False),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),
        ({"patternProperties": {"^x": {}}}, True),
        ({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}}, True),
        ({"type": "string"}, False),
    ],
)
def test_open_objects_are_seen(schema, is_open):
    assert has_open_object(schema) is is_open


def test_how_nothing_is_said():
    root = {"$defs": {"l": {"type": "array"}}}
    assert empty_value({"$ref": "#/$defs/l"}, root) == []
    assert empty_value({"type": "object"}, root) == {}
    assert empty_value({"type": "object", "properties": {"a": {}}}, root) is None
    assert empty_value({"type": "string"}, root) is None


def test_resolving_keeps_what_stands_beside_the_reference():
    root = {"$defs": {"a": {"type": "string", "description": "its own"}, "b": True}}
    assert resolved({"$ref": "#/$defs/a", "description": "here"}, root) == {"type": "string", "description": "here"}
    assert resolved({"$ref": "#/$defs/b"}, root) == {}


def test_paths_and_messages():
    assert dotted([]) == ""
    assert dotted([0, "a", 1]) == "[0].a[1]"
    assert len(short("x" * 1000)) == 301


def schemas():
    """Small valid schemas with nesting, optional keys and references."""
    leaves = st.sampled_from([{"type": "string"}, {"type": "number"}, {"enum": ["a", "b"]}, {"$ref": "#/$defs/D"}])
    extended = st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(lambda part: {"type": "array", "items": part}),
            inner.map(lambda part: {"anyOf": [part, {"type": "null"}]}),
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
                lambda parts: {"type": "object", "properties": parts, "required": sorted(parts)[:1]}
            ),
        ),
        max_leaves=6,
    )
    definition = {"type": "object", "properties": {"x": {"type": "integer"}, "d": {"$ref": "#/$defs/D"}}}
    return extended.map(lambda part: {**part, "$defs": {"D": definition}})


@settings(deadline=None)
@given(schemas())
def test_derived_schemas_are_valid_stable_and_leave_the_original_alone(schema):
    before = copy.deepcopy(schema)
    asked = asked_for(checked_schema(schema, "it"))
    sent, _ = closed(asked)
    for derived in (asked, sent):
        checked_schema(derived, "it")
        Draft202012Validator.check_schema(derived)
    assert asked_for(asked) == asked
    assert schema == before
