import json
import os
from pathlib import Path

import pytest

from harness.data import READERS, check_leaks, labelled, read, split
from harness.errors import UsageError
from programs.ontology import GeneralSynthesisOntology

CORPORA = {"olivetti": ("olivetti_synthesis_gold.jsonl", "doi"), "pcmsp": ("pcmsp_synthesis_gold.jsonl", "paper")}


def jsonl(folder, *rows):
    path = folder / "corpus.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def olivetti(**gold):
    full = {"targets": [{"name": "LiCoO2", "role": "Recipe_Target"}], "precursors": [], "steps": [], **gold}
    return {"id": "o-1", "text": "LiCoO2 was made.", "gold": full, "meta": {"doi": "10.1/x", "title": "On LiCoO2"}}


def pcmsp(**gold):
    full = {"targets": [{"name": "LiCoO2", "type": "target"}], "precursors": [], "steps": [], **gold}
    file = {"file": "original/train/101103PhysRevB1234.tsv"}
    return {"id": "p-1", "text": "LiCoO2 was made.", "gold": full, "meta": file}


def one(folder, name, row, columns=None):
    return read(jsonl(folder, row), READERS[name], columns or {}, require_expected=False)[0]


def o_step(action, materials=(), conditions=(), apparatus=()):
    return {"action": action, "materials": materials, "conditions": conditions, "apparatus": apparatus}


def p_step(action, materials=(), conditions=(), devices=()):
    return {"action": action, "materials": materials, "conditions": conditions, "devices": devices}


def measure(kind, value, unit=None, **more):
    return {"kind": kind, "value": value, "unit": unit, **more}


def test_olivetti_fields_are_text_title_and_doi(tmp_path):
    record = one(tmp_path, "olivetti", olivetti())
    assert (record.id, record.where) == ("o-1", "corpus.jsonl line 1")
    assert record.fields == {"text": "LiCoO2 was made.", "title": "On LiCoO2", "doi": "10.1/x"}
    assert record.expected == {"target_compound": "LiCoO2", "starting_materials": [], "steps": []}


def test_pcmsp_fields_are_text_and_a_paper_that_spellings_share(tmp_path):
    record = one(tmp_path, "pcmsp", pcmsp())
    assert record.fields == {"text": "LiCoO2 was made.", "paper": "physrevb1234"}
    twin = pcmsp() | {"meta": {"file": "original/dev/PhysRevB.1234.tsv"}}
    assert one(tmp_path, "pcmsp", twin).fields["paper"] == "physrevb1234"


def test_columns_rename_fields(tmp_path):
    record = one(tmp_path, "olivetti", olivetti(), {"source_text": "text"})
    assert record.fields == {"source_text": "LiCoO2 was made.", "title": "On LiCoO2", "doi": "10.1/x"}
    with pytest.raises(
        UsageError, match="the olivetti corpus has no field 'txt' for 'source_text'; did you mean 'text'"
    ):
        one(tmp_path, "olivetti", olivetti(), {"source_text": "txt"})


@pytest.mark.parametrize("name", ["olivetti", "pcmsp"])
@pytest.mark.parametrize("row", [{"id": 1, "text": "x"}, {"id": 1, "text": "x", "gold": None, "meta": {}}])
def test_a_file_that_is_not_the_corpus_is_refused(tmp_path, name, row):
    with pytest.raises(UsageError, match=f"corpus.jsonl line 1: this is no row of the {name} corpus"):
        one(tmp_path, name, row)


@pytest.mark.parametrize(
    ("names", "target"),
    [(["samples", "MgB2", "BN"], "MgB2"), (["the final product"], None), ([], None)],
)
def test_the_target_is_the_first_that_names_something(tmp_path, names, target):
    record = one(tmp_path, "olivetti", olivetti(targets=[{"name": name} for name in names]))
    assert (record.expected and record.expected["target_compound"]) == target


@pytest.mark.parametrize(
    ("amounts", "amount"),
    [
        ([("0.038", "M"), ("5", "mL")], (5.0, "mL")),  # what was taken, not how strong it was
        ([("0.1", "M")], (0.1, "M")),
        ([("99.9", "%"), ("2.0", "g")], (2.0, "g")),
        ([("99.9", "%"), ("purity", None)], None),
        ([("1:3", "molar ratio")], None),
        ([("83-167", "mg"), ("1", "mmol")], (1.0, "mmol")),
        ([(["0.2", "0.6"], "g")], None),
        ([(None, "wt%")], None),
    ],
)
def test_olivetti_amounts(tmp_path, amounts, amount):
    mention = {"name": "Li2CO3", "amounts": [{"value": value, "unit": unit} for value, unit in amounts]}
    (material,) = one(tmp_path, "olivetti", olivetti(precursors=[mention])).expected["starting_materials"]
    assert material == {"name": "Li2CO3"} | ({} if amount is None else {"amount": amount[0], "unit": amount[1]})


@pytest.mark.parametrize(
    ("values", "amount"),
    [(["99.9%", "0.4 g"], (0.4, "g")), (["5N"], None), (["99.9 wt.%"], None), (["stoichiometric amounts"], None)],
)
def test_pcmsp_amounts(tmp_path, values, amount):
    mention = {"name": "Li2CO3", "type": "recipe", "values": values}
    (material,) = one(tmp_path, "pcmsp", pcmsp(precursors=[mention])).expected["starting_materials"]
    assert material == {"name": "Li2CO3"} | ({} if amount is None else {"amount": amount[0], "unit": amount[1]})


def test_a_material_stands_once_with_what_its_mentions_say_together(tmp_path):
    mentions = [
        {"name": "Li2CO3", "brand": ["Alfa\\rAesar"]},
        {"name": "reagents"},
        {"name": "Co3O4"},
        {"name": "li2co3", "amounts": [{"value": "2", "unit": "g"}], "brand": ["Fluka"]},
        {"name": "Li2CO3", "amounts": [{"value": "3", "unit": "g"}]},
    ]
    assert one(tmp_path, "olivetti", olivetti(precursors=mentions)).expected["starting_materials"] == [
        {"name": "Li2CO3", "vendor": "Alfa Aesar", "amount": 2.0, "unit": "g"},
        {"name": "Co3O4"},
    ]


def test_steps_are_operations_with_something_annotated_and_are_numbered(tmp_path):
    water = {"name": "water", "role": "Solvent_Material"}
    steps = [
        o_step("purchased", [water]),
        o_step("dissolved", [water, {"name": "LiCoO2", "role": "Recipe_Target"}, {"name": "mixture", "role": "Other"}]),
        o_step("stirred"),
        o_step("filtered", [{"name": "mixture", "role": "Participant_Material"}]),
        o_step(
            "spin-coated",
            apparatus=[{"name": "furnace", "descriptors": ["a", "tubular"], "properties": [measure("", "42", "mL")]}],
        ),
    ]
    assert one(tmp_path, "olivetti", olivetti(steps=steps)).expected["steps"] == [
        {"step_number": 1, "action": "dissolve", "materials": [{"name": "water"}]},
        {"step_number": 2, "action": "filter"},
        {"step_number": 3, "action": "spin-coated", "equipment": [{"name": "tubular furnace", "settings": "42 mL"}]},
    ]


@pytest.mark.parametrize(
    ("action", "conditions", "step"),
    [
        (
            "calcined",
            [measure("temperature", "700", "degC"), measure("duration", "2", "h"), measure("pressure", "5", "Pa")],
            {
                "conditions": {
                    "temperature": 700.0,
                    "temp_unit": "C",
                    "duration": 2.0,
                    "time_unit": "h",
                    "pressure": 5.0,
                    "pressure_unit": "Pa",
                }
            },
        ),
        ("dried", [measure("temperature", "70-80", "degC")], {"description": "70-80 degC"}),
        (
            "dried",
            [measure("misc", "overnight"), measure("misc", "vacuum")],
            {"description": "overnight", "conditions": {"atmosphere": "vacuum"}},
        ),
        (
            "heated",
            [measure("heating_rate", "5", "degC/min", type=["heating rate"])],
            {"description": "heating rate 5 degC/min"},
        ),
        ("heated", [measure("temperature", ["800", "900"], "K")], {"description": "800, 900 K"}),
        (
            "heated",
            [measure("temperature", "800", "K"), measure("duration", "1", "h"), measure("temperature", "900", "K")],
            {"description": "800 K; 900 K", "conditions": {"duration": 1.0, "time_unit": "h"}},
        ),
        ("heated", [measure("temperature", "800", "K")] * 2, {"conditions": {"temperature": 800.0, "temp_unit": "K"}}),
        ("adjusted", [measure("ph", "6", "pH")], {"conditions": {"ph": 6.0}}),
        ("adjusted", [measure("ph", None, "pH")], {}),
        (
            "stirred",
            [measure("stirring_speed", "600", "rpm")],
            {"conditions": {"stirring": True, "stirring_speed": 600.0}},
        ),
        ("centrifuged", [measure("stirring_speed", "7000", "rpm")], {"description": "7000 rpm"}),
        (
            "mixed",
            [measure("other", "three", "times"), measure("misc", "room temperature")],
            {"description": "three times; room temperature"},
        ),
    ],
)
def test_olivetti_conditions(tmp_path, action, conditions, step):
    (found,) = one(tmp_path, "olivetti", olivetti(steps=[o_step(action, conditions=conditions)])).expected["steps"]
    assert {name: value for name, value in found.items() if name not in ("step_number", "action")} == step


@pytest.mark.parametrize(
    ("gases", "step"),
    [
        (["argon"], {"conditions": {"atmosphere": "Ar"}}),
        (["N2"], {"conditions": {"atmosphere": "N2"}}),
        (["O2", "N2"], {"description": "O2; N2"}),
        (["water vapor"], {"description": "water vapor"}),
    ],
)
def test_an_atmosphere_is_one_gas(tmp_path, gases, step):
    materials = [{"name": name, "role": "Atmospheric_Material"} for name in gases]
    (found,) = one(tmp_path, "olivetti", olivetti(steps=[o_step("heated", materials)])).expected["steps"]
    assert found == {"step_number": 1, "action": "heat", **step}


@pytest.mark.parametrize(
    ("action", "conditions", "step"),
    [
        (
            "sintered",
            [("temperature", "850\u2009◦C"), ("duration", "one week"), ("pressure_or_atmosphere", "6 GPa")],
            {
                "conditions": {
                    "temperature": 850.0,
                    "temp_unit": "C",
                    "duration": 7.0,
                    "time_unit": "days",
                    "pressure": 6.0,
                    "pressure_unit": "GPa",
                }
            },
        ),
        (
            "sealed",
            [("pressure_or_atmosphere", "evacuated"), ("pressure_or_atmosphere", "10-4 Torr")],
            {"description": "10-4 Torr", "conditions": {"atmosphere": "vacuum"}},
        ),
        ("heated", [("pressure_or_atmosphere", "flow of Argon gas")], {"conditions": {"atmosphere": "Ar"}}),
        (
            "heated",
            [("pressure_or_atmosphere", "argon/hydrogen atmosphere")],
            {"description": "argon/hydrogen atmosphere"},
        ),
        ("heated", [("pressure_or_atmosphere", "oxygen free")], {"description": "oxygen free"}),
        ("heated", [("pressure_or_atmosphere", "air"), ("pressure_or_atmosphere", "Ar")], {"description": "air; Ar"}),
        ("heated", [("temperature", "24 hours"), ("temperature", "temperature")], {"description": "24 hours"}),
        ("stirred", [("rate", "700 rpm")], {"conditions": {"stirring": True, "stirring_speed": 700.0}}),
        ("cooled", [("rate", "5 °C/min"), ("operation", "slowly")], {"description": "5 °C/min; slowly"}),
    ],
)
def test_pcmsp_conditions(tmp_path, action, conditions, step):
    annotated = [{"kind": kind, "text": text} for kind, text in conditions]
    (found,) = one(tmp_path, "pcmsp", pcmsp(steps=[p_step(action, conditions=annotated)])).expected["steps"]
    assert {name: value for name, value in found.items() if name not in ("step_number", "action")} == step


def test_pcmsp_steps_name_materials_and_devices(tmp_path):
    step = p_step(
        "placed",
        [{"name": "MgB2", "type": "target"}, {"name": "Mg", "type": "recipe"}, {"name": "tube", "type": "Device"}],
        devices=[{"name": "boat", "descriptors": ["Alumina", "an"]}],
    )
    assert one(tmp_path, "pcmsp", pcmsp(steps=[step])).expected["steps"] == [
        {"step_number": 1, "action": "place", "materials": [{"name": "Mg"}], "equipment": [{"name": "Alumina boat"}]}
    ]


needs_corpora = pytest.mark.skipif("HARNESS_DATA" not in os.environ, reason="HARNESS_DATA names no folder of corpora")


def corpus(name):
    file, group_by = CORPORA[name]
    path = Path(os.environ["HARNESS_DATA"]) / file
    return labelled(read(path, READERS[name], {}, group_by, inputs=("text",), require_expected=False))


@needs_corpora
@pytest.mark.parametrize("name", CORPORA)
def test_every_real_record_is_a_part_of_the_ontology(name):
    having, lacking = corpus(name)
    assert len(having) > 3 * len(lacking)
    for record in having:
        # Strict: a number that is text or a field of another name would pass as something else otherwise.
        filled = {**record.expected, "target_compound_type": "other", "synthesis_method": "other"}
        ontology = GeneralSynthesisOntology.model_validate(filled, strict=True)
        assert [step.step_number for step in ontology.steps] == list(range(1, len(ontology.steps) + 1))


@needs_corpora
@pytest.mark.parametrize("name", CORPORA)
def test_real_records_hold_what_people_annotated(name):
    having, _ = corpus(name)
    steps = [step for record in having for step in record.expected["steps"]]
    materials = [material for record in having for material in record.expected["starting_materials"]]
    assert len(steps) > 5 * len(having)
    assert len(materials) > 2 * len(having)
    assert sum("temperature" in step.get("conditions", {}) for step in steps) > len(having)
    assert sum("atmosphere" in step.get("conditions", {}) for step in steps) > len(having) / 2
    # Names are the paper's own words.
    found = [record.expected["target_compound"] in record.fields["text"] for record in having]
    assert sum(found) / len(found) > 0.95


@needs_corpora
@pytest.mark.parametrize("name", CORPORA)
def test_real_corpora_grouped_by_paper_have_no_leak(name):
    having, _ = corpus(name)
    for seed in range(10):
        splits = split(having, seed=seed)
        assert sum(splits.sizes.values()) == len(having)
        check_leaks(splits, ["text"])


@needs_corpora
def test_the_papers_pcmsp_has_twice_are_found_without_groups():
    path = Path(os.environ["HARNESS_DATA"]) / CORPORA["pcmsp"][0]
    having, _ = labelled(read(path, READERS["pcmsp"], require_expected=False))
    with pytest.raises(UsageError, match="nearly the same example"):
        check_leaks(split(having, seed=3), ["text"])
