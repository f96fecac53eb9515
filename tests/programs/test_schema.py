"""Text to a record of the user's own."""

import asyncio
import json

import dspy
import pydantic
import pytest
from dspy.utils import DummyLM
from dspy.utils.exceptions import AdapterParseError

from programs import SchemaExtraction, output_contract


class Invoice(pydantic.BaseModel):
    """An invoice as it arrives.

    Two lines of advice.
    """

    vendor: str
    total: float | None = pydantic.Field(None, description="with tax")


def model(*records):
    adapter = dspy.JSONAdapter()
    return dspy.context(
        lm=DummyLM([{"record": json.dumps(record)} for record in records], adapter=adapter), adapter=adapter
    )


def test_a_class_gives_its_instances():
    with model({"vendor": "ACME", "total": 12.5}):
        assert SchemaExtraction(Invoice)(text="ACME asks for 12.50").record == Invoice(vendor="ACME", total=12.5)


def test_a_schema_gives_plain_data():
    with model({"vendor": "ACME", "total": None}):
        record = SchemaExtraction(Invoice.model_json_schema())(text="ACME").record
    assert record == {"vendor": "ACME", "total": None}


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_file_gives_plain_data(tmp_path, kind):
    path = tmp_path / "invoice.json"
    path.write_text("\ufeff" + json.dumps(Invoice.model_json_schema()), encoding="utf-8")
    with model({"vendor": "ACME", "total": 1}):
        assert asyncio.run(SchemaExtraction(kind(path)).acall(text="ACME")).record == {"vendor": "ACME", "total": 1}


def test_a_record_that_does_not_fit_is_unreadable():
    with model({"total": 12.5}), pytest.raises(AdapterParseError, match="vendor"):
        SchemaExtraction(Invoice)(text="12.50")


def test_class_and_schema_send_the_same_messages():
    programs = [SchemaExtraction(each) for each in (Invoice, Invoice.model_json_schema())]
    for adapter in (dspy.ChatAdapter(), dspy.JSONAdapter()):
        first, second = (adapter.format(program.extract.signature, [], {"text": "t"}) for program in programs)
        assert first == second


def test_the_contract_holds_the_schema_verbatim():
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "x-mine": [1]}
    contract = output_contract(SchemaExtraction(schema, inputs=("title", "body")))
    assert contract.schema == schema
    assert contract.inputs == ("title", "body")
    assert output_contract(SchemaExtraction(Invoice)).schema == Invoice.model_json_schema()


def test_instructions_say_what_the_class_says():
    assert SchemaExtraction(Invoice, inputs=("head", "body", "foot")).extract.signature.instructions == (
        "Extract the Invoice record from the head, body and foot, and leave empty what is not said there.\n\n"
        "An invoice as it arrives.\n\nTwo lines of advice."
    )
    assert SchemaExtraction({"type": "object"}).extract.signature.instructions == (
        "Extract the record from the text, and leave empty what is not said there."
    )
    assert SchemaExtraction(Invoice, instructions="Mine.").extract.signature.instructions == "Mine."


def test_its_arguments_build_it_again_without_the_class():
    program = SchemaExtraction(Invoice, inputs=("page",))
    arguments = json.loads(json.dumps(program.arguments()))
    again = SchemaExtraction(**arguments)
    assert again.extract.signature.instructions == program.extract.signature.instructions
    assert again.input_fields == ("page",)
    assert output_contract(again).schema == output_contract(program).schema


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (("record",), "an input cannot be called 'record': that name is taken"),
        (("demos",), "an input cannot be called 'demos': that name is taken"),
        (("model_fields",), "an input cannot be called 'model_fields': that name is taken"),
        (("two words",), "an input's name is a Python identifier such as 'text', got 'two words'"),
        (("class",), "an input's name is a Python identifier such as 'text', got 'class'"),
        ((3,), "an input's name is a Python identifier such as 'text', got 3"),
        (("a", "a"), "every input has its own name, got a, a"),
        ((), r"inputs is a list of names such as \('text',\), got \(\)"),
        ("text", r"inputs is a list of names such as \('text',\), got 'text'"),
    ],
)
def test_a_wrong_input_is_refused(inputs, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        SchemaExtraction(Invoice, inputs=inputs)


def test_a_wrong_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no schema file"):
        SchemaExtraction(tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"is not a \.json file"):
        SchemaExtraction("schema.py:Invoice")
    broken = tmp_path / "broken.json"
    broken.write_text('{"type": ')
    with pytest.raises(ValueError, match=r"broken\.json cannot be read"):
        SchemaExtraction(broken)
    broken.write_text('{"properties": {"a": {"type": "objekt"}}}')
    with pytest.raises(ValueError, match=r"broken\.json is not a valid JSON Schema at properties\.a\.type"):
        SchemaExtraction(broken)
    with pytest.raises(ValueError, match=r"model is a pydantic class, a JSON Schema or the path .* got int 3"):
        SchemaExtraction(3)
