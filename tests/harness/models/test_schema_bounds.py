import copy
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models.schema_bounds import (
    FREE_TEXT_LENGTH,
    LARGEST_REPETITION,
    SchemaBounds,
    apply_bounds,
    bounds_from_records,
)


class Step(pydantic.BaseModel):
    action: str
    duration: str | None = None


class Record(pydantic.BaseModel):
    target: str
    steps: list[Step]
    notes: list[list[str]] = []


class Tree(pydantic.BaseModel):
    name: str
    children: list["Tree"] = []


def _open_nodes(schema: Any) -> list[Any]:
    """Every string and list of a schema without an upper bound, found without following references."""
    found = []

    def walk(node: Any):
        if isinstance(node, dict):
            kinds = node.get("type")
            kinds = kinds if isinstance(kinds, list) else [kinds]
            if "string" in kinds and not {"enum", "const", "pattern", "format", "maxLength"} & set(node):
                found.append(node)
            if "array" in kinds and not {"maxItems", "prefixItems"} & set(node):
                found.append(node)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(schema)
    return found


@pytest.mark.parametrize("model", [Step, Record, Tree])
def test_every_list_and_open_string_gets_a_bound(model):
    schema = model.model_json_schema()
    before = copy.deepcopy(schema)

    assert _open_nodes(schema) != []
    assert _open_nodes(apply_bounds(schema, SchemaBounds())) == []
    assert schema == before, "the user's schema is not touched"


def test_bounds_come_from_the_records_field_by_field():
    records = [
        {"target": "LiCoO2", "steps": [{"action": "x" * 40}] * 5, "notes": [["a" * 100]]},
        {"target": "y" * 10, "steps": [{"action": "x" * 90, "duration": None}]},
        None,
    ]
    bounds = bounds_from_records(records, "record")
    wrapped = {"type": "object", "properties": {"record": Record.model_json_schema(), "reasoning": {"type": "string"}}}
    wrapped["$defs"] = wrapped["properties"]["record"].pop("$defs")
    schema = apply_bounds(wrapped, bounds)
    fields = schema["properties"]["record"]["properties"]
    step = schema["$defs"]["Step"]["properties"]

    assert fields["target"]["maxLength"] == 48
    assert fields["steps"]["maxItems"] == 10
    assert step["action"]["maxLength"] == 180
    assert step["duration"]["anyOf"][0]["maxLength"] == 48, "no record speaks of it"
    assert fields["notes"]["maxItems"] == 6
    assert fields["notes"]["items"]["items"]["maxLength"] == 200
    assert schema["properties"]["reasoning"]["maxLength"] == FREE_TEXT_LENGTH


def test_a_definition_on_two_paths_gets_the_larger_bound():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Name"}, "r": {"type": "array", "items": {"$ref": "#/$defs/Name"}}},
        "$defs": {"Name": {"type": "string"}},
    }
    bounds = SchemaBounds(free_text=0, lengths={"a": 60, "r[*]": 500})

    assert apply_bounds(schema, bounds)["$defs"]["Name"]["maxLength"] == 500


def test_the_schemas_own_bounds_stay_unless_llama_cpp_could_not_repeat_so_often():
    schema = {
        "type": "object",
        "properties": {
            "short": {"type": "string", "maxLength": 3},
            "huge": {"type": "string", "maxLength": 100_000},
            "many": {"type": "array", "minItems": 9, "items": {"type": "integer"}},
            "long": {"type": "string", "minLength": 700},
        },
    }
    fields = apply_bounds(schema, SchemaBounds())["properties"]

    assert fields["short"]["maxLength"] == 3
    assert fields["huge"]["maxLength"] == LARGEST_REPETITION
    assert fields["many"]["maxItems"] == 9
    assert fields["long"]["maxLength"] == 700


@pytest.mark.parametrize(
    "closed",
    [
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "const": "a"},
        {"type": "string", "pattern": "^a+$"},
        {"type": "string", "format": "date"},
        {"type": "array", "prefixItems": [{"type": "integer"}]},
        {"type": ["integer", "null"]},
        {},
    ],
)
def test_what_is_closed_already_stays_as_it_is(closed):
    assert apply_bounds(closed, SchemaBounds()) == closed


def test_values_of_open_mappings_and_tuples_are_bounded():
    schema = {
        "type": "object",
        "additionalProperties": {"type": ["string", "null"]},
        "properties": {"pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": False}},
    }
    bounded = apply_bounds(schema, SchemaBounds(free_text=0))

    assert bounded["additionalProperties"]["maxLength"] == 48
    assert bounded["properties"]["pair"]["prefixItems"][0]["maxLength"] == 48


def test_a_reference_to_nowhere_is_left_for_the_runtime_to_refuse():
    schema = {"properties": {"a": {"$ref": "#/$defs/Missing/x"}, "b": {"$ref": "#/$defs/Missing"}}}

    assert apply_bounds(schema, SchemaBounds()) == schema


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)


@given(st.lists(plain_json, max_size=5))
def test_every_record_seen_fits_its_bounds_twice(records):
    bounds = bounds_from_records(records, "out")

    def fits(value: Any, path: str) -> bool:
        if isinstance(value, str):
            return bounds.length(path) >= min(2 * len(value), LARGEST_REPETITION)
        if isinstance(value, list):
            return bounds.items[path] >= max(6, 2 * len(value)) and all(fits(v, f"{path}[*]") for v in value)
        if isinstance(value, dict):
            return all(fits(v, f"{path}.{name}") for name, v in value.items())
        return True

    assert all(fits(record, "out") for record in records)
