"""Records read with a JSON Schema, and the output type made of one."""

import copy
import datetime
import enum
import json

import dspy
import pydantic
import pytest
from dspy.adapters.json_adapter import _get_structured_outputs_response_format
from dspy.clients.legacy_requests import _strict_json_schema
from hypothesis import given, settings
from hypothesis import strategies as st

from programs.json_record import JsonRecord, arranged, fitted, model_type, read_record, record_type
from programs.json_schema import RecordError, asked_for

INVOICE = {
    "title": "Invoice",
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "total": {"type": "number"},
        "paid": {"type": "boolean"},
        "due": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
    },
    "required": ["vendor"],
    "$defs": {
        "Line": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["name"],
        }
    },
}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"vendor": "A"}, {"vendor": "A"}),
        ({"vendor": "A", "total": None}, {"vendor": "A"}),  # absence
        ({"vendor": "A", "due": None}, {"vendor": "A", "due": None}),  # a null the schema knows
        (
            {"vendor": "A", "total": "12.5", "due": " 3", "paid": "true"},
            {"vendor": "A", "total": 12.5, "paid": True, "due": 3},
        ),
        ({"vendor": "12"}, {"vendor": "12"}),  # text stays text where text is asked for
        ({"extra": 1, "vendor": "A"}, {"vendor": "A"}),
        (
            {"vendor": "A", "lines": [{"n": "2", "name": "x", "y": 0}]},
            {"vendor": "A", "lines": [{"name": "x", "n": 2}]},
        ),
    ],
)
def test_reading_loses_nothing_that_was_asked_for(given, read):
    found = read_record(given, INVOICE)
    assert found == read
    assert json.dumps(found) == json.dumps({key: found[key] for key in INVOICE["properties"] if key in found})


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, ""),
        ({"vendor": None}, "vendor"),
        ({"vendor": "A", "total": "twelve"}, "total"),
        ({"vendor": "A", "total": "NaN"}, "total"),
        ({"vendor": "A", "total": "true"}, "total"),
        ({"vendor": "A", "total": "[1]"}, "total"),
        ({"vendor": "A", "paid": "yes"}, "paid"),
        ({"vendor": "A", "lines": [{"name": "x"}, {"name": 3}]}, "lines[1].name"),
        ({"vendor": "A", "lines": [{}]}, "lines[0]"),
        ("text", ""),
    ],
)
def test_what_does_not_fit_is_an_error_with_its_path(given, path):
    with pytest.raises(RecordError) as error:
        read_record(given, INVOICE)
    assert error.value.path == path
    assert str(error.value).startswith(path)
    assert error.value.message


def test_all_of_and_one_of_are_followed():
    schema = {
        "allOf": [{"type": "object", "properties": {"n": {"type": "number"}}}],
        "oneOf": [
            {"properties": {"k": {"const": "a"}}, "required": ["k"]},
            {"properties": {"k": {"const": "b"}, "z": {"type": "integer"}}, "required": ["k"]},
        ],
    }
    assert fitted({"n": "1", "k": "b", "z": "2"}, {"oneOf": schema["oneOf"]}) == {"k": "b", "z": 2}
    assert fitted({"n": "1"}, {"allOf": schema["allOf"]}) == {"n": 1}


def test_free_keys_stay_where_the_schema_takes_them():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}}
    assert fitted({"a": "x", "Fe": "0.5"}, schema) == {"a": "x", "Fe": 0.5}
    assert fitted({"a": "x", "b": 1}, {**schema, "additionalProperties": False}) == {"a": "x", "b": 1}
    assert fitted({"Fe": 1}, {"type": "object"}) == {"Fe": 1}


def test_arranged_writes_every_key_in_order():
    asked = asked_for(INVOICE)
    assert arranged({"lines": [{"name": "x"}], "vendor": "A"}, asked) == {
        "vendor": "A",
        "total": None,
        "paid": None,
        "due": None,
        "lines": [{"name": "x", "n": None}],
    }
    assert list(arranged({"lines": [], "vendor": "A"}, asked)) == list(INVOICE["properties"])


def test_arranged_writes_defaults_and_empties():
    schema = {
        "type": "object",
        "properties": {
            "currency": {"type": "string", "default": "EUR"},
            "map": {"type": "object"},
            "inner": {
                "oneOf": [{"type": "object", "properties": {"a": {"type": ["null", "string"]}}}, {"type": "null"}]
            },
            "must": {"type": "string"},
        },
        "required": ["must", "inner"],
    }
    written = arranged({"inner": {}, "other": 1}, asked_for(schema))
    assert written == {"currency": "EUR", "map": {}, "inner": {"a": None}, "other": 1}
    assert arranged("text", schema) == "text"


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {"vendor": st.text()},
        optional={
            "total": st.floats(allow_nan=False, allow_infinity=False),
            "paid": st.booleans(),
            "due": st.none() | st.integers(),
            "lines": st.lists(st.fixed_dictionaries({"name": st.text()}, optional={"n": st.integers()}), max_size=3),
        },
    )
)
def test_what_a_model_writes_in_full_reads_as_the_record_it_means(record):
    before = copy.deepcopy(record)
    read = read_record(record, INVOICE)
    again = read_record(arranged(record, asked_for(INVOICE)), INVOICE)
    assert read == record == before
    assert {"lines": [], "due": None} | again == {"lines": [], "due": None} | read


class Colour(enum.Enum):
    RED = "red"


class Leaf(pydantic.BaseModel):
    name: str
    kids: list["Leaf"] = []
    above: "Leaf | None" = pydantic.Field(None, description="its parent")


class Rich(pydantic.BaseModel):
    """A record with everything."""

    vendor: str = pydantic.Field(alias="sender", description="who sent it")
    when: datetime.datetime
    colour: Colour = Colour.RED
    shares: dict[str, float] = {}
    tree: Leaf | None = None


RICH = {"vendor": "Ä", "when": "2024-01-02T03:04:05Z", "tree": {"name": "a", "kids": [{"name": "b", "above": None}]}}


def answer_model(output):
    signature = dspy.Signature({"text": (str, dspy.InputField()), "record": (output, dspy.OutputField())}, "Do.")
    return _get_structured_outputs_response_format(signature)


def test_a_class_and_its_schema_ask_for_the_same_bytes():
    of_class, of_schema = model_type(Rich), record_type(json.loads(json.dumps(model_type(Rich).schema)))
    assert of_class.__name__ == of_schema.__name__ == "Rich"
    sent = [json.dumps(_strict_json_schema(answer_model(each).model_json_schema())) for each in (of_class, of_schema)]
    assert sent[0] == sent[1]
    shown = [json.dumps(pydantic.TypeAdapter(each).json_schema()) for each in (of_class, of_schema)]
    assert shown[0] == shown[1]


def test_definitions_move_to_the_top_of_whatever_is_around_the_record():
    schema = answer_model(model_type(Rich)).model_json_schema()
    assert "$defs" not in schema["properties"]["record"]
    assert schema["$defs"]["Leaf"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/Leaf"}


def test_dspy_changes_no_schema_of_ours():
    output = model_type(Rich)
    before = copy.deepcopy((output.schema, output.asked))
    for _ in range(2):
        _strict_json_schema(answer_model(output).model_json_schema())
    assert (output.schema, output.asked) == before


def test_a_class_gives_instances_and_a_schema_plain_data():
    instance = pydantic.TypeAdapter(model_type(Rich)).validate_python(RICH)
    assert isinstance(instance, Rich)
    assert instance.when.year == 2024
    assert instance.tree.kids[0].name == "b"
    assert pydantic.TypeAdapter(record_type(model_type(Rich).schema)).validate_python(RICH) == {
        **RICH,
        "tree": {"name": "a", "kids": [{"name": "b", "above": None}]},
    }


def test_an_instance_is_read_too():
    instance = model_type(Rich).read(RICH)
    assert model_type(Rich).read(instance) == instance


def test_records_may_use_aliases_or_names():
    assert model_type(Rich).schema["required"] == ["vendor", "when"]

    class Aliased(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(serialize_by_alias=True)
        vendor: str = pydantic.Field(alias="sender")

    assert model_type(Aliased).schema["required"] == ["sender"]
    assert model_type(Aliased).read({"sender": "A"}).vendor == "A"


def test_a_validator_of_the_class_has_the_last_word():
    class Checked(pydantic.BaseModel):
        parts: list[int]

        @pydantic.field_validator("parts")
        @classmethod
        def ascending(cls, value):
            if value != sorted(value):
                raise ValueError("not ascending")
            return value

    with pytest.raises(RecordError, match=r"^parts: .*not ascending"):
        model_type(Checked).read({"parts": [2, 1]})


def test_a_class_without_a_schema_is_refused():
    class Odd(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        thing: slice

    with pytest.raises(ValueError, match="Odd has no JSON Schema"):
        model_type(Odd)


def test_a_schema_without_title_is_a_record():
    output = record_type({"type": "object"})
    assert output.__name__ == "Record"
    assert issubclass(output, JsonRecord)
