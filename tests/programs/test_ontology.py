"""The ontology is the established one, name by name."""

from typing import get_args

import pydantic
import pytest

from programs.ontology import (
    Conditions,
    Equipment,
    GeneralSynthesisOntology,
    Material,
    ProcessStep,
    SynthesisMethod,
    TargetCompoundType,
)

LEAST = {"target_compound": "TiO2", "target_compound_type": "ceramics & glasses", "synthesis_method": "sol-gel"}
FIELDS = {
    GeneralSynthesisOntology: "target_compound target_compound_type synthesis_method starting_materials "
    "steps equipment notes",
    Material: "name vendor amount unit purity",
    Equipment: "name instrument_vendor settings",
    Conditions: "temperature temp_unit duration time_unit pressure pressure_unit atmosphere stirring stirring_speed ph",
    ProcessStep: "step_number action description materials equipment conditions",
}
REQUIRED = {
    GeneralSynthesisOntology: ["target_compound", "target_compound_type", "synthesis_method"],
    Material: ["name"],
    Equipment: ["name"],
    Conditions: None,
    ProcessStep: ["step_number", "action"],
}


@pytest.mark.parametrize("model", FIELDS)
def test_fields_and_their_order(model):
    assert list(model.model_fields) == FIELDS[model].split()
    assert model.model_json_schema().get("required") == REQUIRED[model]


@pytest.mark.parametrize("model", FIELDS)
def test_every_field_is_described(model):
    assert all(field.description for field in model.model_fields.values())


def test_the_lists_of_values_are_whole():
    assert len(get_args(TargetCompoundType)) == len(set(get_args(TargetCompoundType))) == 16
    assert len(get_args(SynthesisMethod)) == len(set(get_args(SynthesisMethod))) == 35
    assert {"functional materials & catalysts", "other"} <= set(get_args(TargetCompoundType))
    assert {"solution-based", "mechanochemical", "other"} <= set(get_args(SynthesisMethod))


def test_types_of_conditions():
    conditions = Conditions(temperature=500, stirring=True, ph=7, atmosphere="Ar")
    assert conditions.model_dump(exclude_none=True) == {
        "temperature": 500.0,
        "stirring": True,
        "ph": 7.0,
        "atmosphere": "Ar",
    }
    with pytest.raises(pydantic.ValidationError):
        Conditions(temperature="room temperature")


def test_an_amount_is_a_bare_number():
    assert Material(name="HCl").amount is None
    with pytest.raises(pydantic.ValidationError):
        Material(name="HCl", amount="in excess")


def test_null_lists_are_empty():
    synthesis = GeneralSynthesisOntology(**LEAST, starting_materials=None, equipment=None, steps=[])
    step = ProcessStep(step_number=1, action="heat", materials=None, equipment=None)
    assert (synthesis.starting_materials, synthesis.equipment) == ([], [])
    assert (step.materials, step.equipment, step.conditions) == ([], [], None)


def test_it_reads_like_a_mapping():
    synthesis = GeneralSynthesisOntology(**LEAST)
    assert list(synthesis.keys()) == list(GeneralSynthesisOntology.model_fields)
    assert synthesis["target_compound"] == "TiO2"
    assert {**synthesis} == synthesis.model_dump()
    with pytest.raises(KeyError):
        synthesis["nothing"]


def test_an_unknown_method_is_refused():
    with pytest.raises(pydantic.ValidationError, match="synthesis_method"):
        GeneralSynthesisOntology(**{**LEAST, "synthesis_method": "alchemy"})
