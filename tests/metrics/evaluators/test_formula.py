"""formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators import FormulaEvaluator, create_evaluator

MIXED = st.sampled_from(
    [
        "LiCoO2",
        "CoLiO2",
        "LiCoO₂",
        "LiCoO3",
        "Li2Co2O4",
        "Fe3+",
        "Fe2+",
        "α-Fe2O3",
        "γ-Fe2O3",
        "Fe2O3",
        "D2O",
        "H2O",
        "water",
        "Water",
        "Ni/Al2O3",
        "Li1-xCoO2",
        "5",
        5,
        True,
        ["LiCoO2"],
        {"a": 1},
    ]
)
CONFIGS = st.fixed_dictionaries(
    {
        "reduced": st.booleans(),
        "tolerance": st.sampled_from([0.0, 0.005]),
        "partial": st.sampled_from(["none", "overlap"]),
    }
)


@pytest.mark.parametrize(
    ("extracted", "expected", "value"),
    [
        ("CoLiO2", "LiCoO2", 1.0),
        ("LiCoO₂", "LiCoO2", 1.0),
        (" LiCoO2 ", "LiCoO2", 1.0),
        ("LiCoO3", "LiCoO2", 0.0),
        ("CuSO4.5H2O", "CuSO4·5H2O", 1.0),
        ("CuSO4", "CuSO4·5H2O", 0.0),
        ("LaCl3.7H2O", "LaCl3·7H2O", 1.0),
        ("CO", "Co", 0.0),
        ("water", "H2O", 0.0),
        ("H2O", "water", 0.0),
        ("Water", "water", 1.0),
        ("lithium cobalt oxide", "LiCoO2", 0.0),
        ("D2O", "H2O", 0.0),
        ("Fe2O3", "α-Fe2O3", 1.0),
        ("γ-Fe2O3", "α-Fe2O3", 0.0),
        ("Pd-Cu/ZrO2", "Cu-Pd/ZrO2", 0.0),
        ("Ni/ZrO₂", "Ni/ZrO2", 1.0),
        ("CH3OCH3", "C2H5OH", 1.0),
        (5, "5", 1.0),
        (None, "None", 0.0),
        (["LiCoO2"], "LiCoO2", 0.0),
    ],
)
def test_right_values(extracted, expected, value):
    assert FormulaEvaluator().evaluate(extracted, expected) == value


def test_feedback_names_the_elements_that_differ():
    formula = FormulaEvaluator()

    assert formula.score("LiCo2O4", "LiCoO2", field_path="target").feedback == (
        "target: expected 'LiCoO2', got 'LiCo2O4' (differs in Co: 2 for 1, O: 4 for 2)"
    )
    assert "charge: +2 for +3" in formula.score("Fe2+", "Fe3+").feedback
    assert "phase γ for α" in formula.score("γ-Fe2O3", "α-Fe2O3").feedback
    assert "Lix: -2 for -1" in formula.score("Li1-2xCoO2", "Li1-xCoO2").feedback
    assert formula.score("water", "H2O").feedback == "expected 'H2O', got 'water' ('water' is no formula)"
    assert formula.score("water", "ice").feedback.endswith("(neither is a formula; compared as text)")


def test_the_same_per_atom():
    reduced = FormulaEvaluator({"reduced": True})

    assert reduced.evaluate("Li2Co2O4", "LiCoO2") == 1.0
    assert reduced.evaluate("Li2-2xCo2O4", "Li1-xCoO2") == 1.0
    assert reduced.evaluate("Li2CoO2", "LiCoO2") == 0.0


def test_a_tolerance_of_amounts_never_makes_an_element_appear():
    loose = FormulaEvaluator({"tolerance": 0.005})

    assert loose.evaluate("LiNi0.33Co0.33Mn0.33O2", "LiNi1/3Co1/3Mn1/3O2") == 1.0
    assert loose.evaluate("Y3Al5O12", "Y2.995Ce0.005Al5O12") == 0.0


def test_the_share_of_atoms_in_common():
    overlap = FormulaEvaluator({"partial": "overlap"})

    assert overlap.evaluate("LiCoO2", "CoLiO2") == 1.0
    assert overlap.evaluate("LiCoO3", "LiCoO2") == pytest.approx(8 / 9)
    assert overlap.evaluate("NaCl", "LiCoO2") == 0.0
    assert overlap.evaluate("Fe2+", "Fe3+") == pytest.approx(1 - 1 / 7)


def test_lists_and_objects_are_no_formulas():
    score = FormulaEvaluator().score("LiCoO2", ["LiCoO2"], field_path="target")

    assert score.error == "target: formula compares formulas, not lists or objects; name the values inside"


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="formula: partial: input should be 'none' or 'overlap'"):
        create_evaluator("formula", {"partial": "half"})


@settings(max_examples=300)
@given(st.lists(MIXED, min_size=1, max_size=6), st.lists(MIXED, min_size=1, max_size=6), CONFIGS)
def test_the_matrix_says_what_the_single_comparison_says(extracted, expected, config):
    formula = FormulaEvaluator(config)

    def single(first, second):
        value = formula.score(first, second).value
        return np.nan if value is None else value

    np.testing.assert_array_equal(
        formula.similarities(extracted, expected), [[single(a, b) for b in expected] for a in extracted]
    )


@settings(max_examples=300)
@given(MIXED, MIXED, CONFIGS)
def test_neither_side_comes_first(first, second, config):
    formula = FormulaEvaluator(config)
    values = [formula.score(a, b).value for a, b in ((first, second), (second, first))]

    assert None in values or values[0] == values[1]
    assert all(value is None or 0.0 <= value <= 1.0 for value in values)
