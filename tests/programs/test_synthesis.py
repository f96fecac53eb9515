"""Text to GeneralSynthesisOntology."""

import asyncio
import json

import dspy
import pytest
from dspy.utils import DummyLM

from programs import GeneralSynthesisOntology, SynthesisExtraction, output_contract

SYNTHESIS = {
    "target_compound": "TiO2",
    "target_compound_type": "ceramics & glasses",
    "synthesis_method": "sol-gel",
    "steps": [{"step_number": 1, "action": "heat", "conditions": {"temperature": 500, "temp_unit": "C"}}],
}


@pytest.fixture
def model():
    adapter = dspy.JSONAdapter()
    lm = DummyLM([{"synthesis": json.dumps(SYNTHESIS)}] * 2, adapter=adapter)
    with dspy.context(lm=lm, adapter=adapter):
        yield lm


def test_it_gives_the_ontology(model):
    synthesis = SynthesisExtraction()(text="TiO2 by sol-gel").synthesis
    assert isinstance(synthesis, GeneralSynthesisOntology)
    assert synthesis.steps[0].conditions.temperature == 500


def test_the_asynchronous_way_gives_the_same(model):
    prediction = asyncio.run(SynthesisExtraction(target=True).acall(text="a and b", target_material="a"))
    assert prediction.synthesis == GeneralSynthesisOntology(**SYNTHESIS)


@pytest.mark.parametrize(("target", "inputs"), [(False, ("text",)), (True, ("text", "target_material"))])
def test_its_contract(target, inputs):
    program = SynthesisExtraction(target=target)
    contract = output_contract(program)
    assert contract.field == "synthesis"
    assert contract.inputs == inputs == tuple(program.extract.signature.input_fields)
    assert contract.schema == GeneralSynthesisOntology.model_json_schema()
    assert contract.plain(contract.validate(SYNTHESIS)) == GeneralSynthesisOntology(**SYNTHESIS).model_dump()
    assert [name for name, _ in program.named_predictors()] == ["extract"]


def test_its_arguments_build_it_again():
    program = SynthesisExtraction(target=True)
    again = SynthesisExtraction(**program.arguments())
    assert again.extract.signature.equals(program.extract.signature)


@pytest.mark.parametrize("adapter", [dspy.JSONAdapter(), dspy.ChatAdapter()])
def test_every_allowed_value_is_in_the_prompt_once(adapter):
    shown = adapter.format(SynthesisExtraction().extract.signature, [], {"text": "t"})[0]["content"]
    properties = GeneralSynthesisOntology.model_json_schema()["properties"]
    for field in ("target_compound_type", "synthesis_method"):
        allowed = properties[field]["enum"]
        assert all(value in shown for value in allowed)
        assert shown.count(allowed[-2]) == 1
