"""Which legends are one name, and which are not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.figure.names import canonical, name_matrix, name_similarity, resolved


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Pd/Zr02", "Pd/ZrO2"),
        ("Pd/ZrO₂", "Pd/ZrO2"),
        ("blank", "Blank"),
        ("Ni7CO3/SiO2", "Ni7Co3/SiO2"),
        ("$\\mathrm{ZrO_2}$", "ZrO2"),
        ("ZrO<sub>2</sub>", "ZrO2"),
        ("3Ru_10K_CaO", "3Ru/10K-CaO"),
        ("Nylon 6-6", "Nylon 6,6"),
        ("1 bar", "1bar"),
        ("0.50% PVA", "0.5 % PVA"),
        ("γ-Al2O3", "gamma-Al2O3"),
        ("A12O3", "Al2O3"),
        ("Pd–Cu/", "Pd-Cu/"),
        (" Graphite", "Graphite"),
        ("−0.1 V", "-0.1 V"),
    ],
)
def test_one_name(first, second):
    assert name_similarity(first, second) == name_similarity(second, first) == 1.0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Pd-Cu/ZrO2", "Cu-Pd/ZrO2"),
        ("Pd-Cu/ZrO2", "CuPd/ZrO2"),
        ("Cu-Pd/Zr02", "CuPd/ZrO2"),
        ("Pd-Cu/", "Cu-Pd/"),
        ("Pd/ZrO2", "Pt/ZrO2"),
        ("Ni/ZrO2", "Ni/Al2O3"),
        ("0.4% TiO2", "0.5% TiO2"),
        ("40bar", "10bar"),
        ("3Ru_CaO", "3Ru_10K_CaO"),
        ("Mg6Fe2", "Mg5Co1Fe2"),
        ("triangle_filled", "triangle_filled_down"),
        ("triangle_filled", "triangle_empty"),
        ("PEEK", "PEKK"),
        ("MWCNT/PS", "SWCNT/PS"),
        ("-0.1 V", "0.1 V at pH 7"),
        ("a", ""),
        ("x" * 400, "x" * 401),
    ],
)
def test_two_names(first, second):
    assert name_similarity(first, second) == name_similarity(second, first) == 0.0


def test_a_misspelt_name_is_alike():
    assert 0.8 < name_similarity("Acetylene balck/PVA", "Acetylene black/PVA") < 1.0
    assert 0.8 < name_similarity("ZrO2 nanorod", "ZrO2 nanorods") < 1.0


def test_a_name_that_is_there_is_no_candidate_for_another():
    alike, same = name_matrix(["Co", "CO"], ["CO", "Co"])
    assert same.tolist() == [[False, True], [True, False]]
    assert alike.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_the_same_form_on_one_side_twice_leaves_the_choice_open():
    _, same = name_matrix(["ZRO2"], ["ZrO₂", "zro2"])
    assert same.tolist() == [[True, True]]
    assert resolved(["zrO2"], ["ZRO2", "ZrO₂"]) == ["zrO2"]
    assert resolved(["ZRO2", "ZrO2", "zrO2"], ["ZRO2"]) == ["ZRO2"] * 3


def test_names_that_say_nothing_are_themselves():
    assert canonical("***") == "***"
    assert name_similarity("***", "---") == 0.0
    assert resolved(["", "a"], []) == ["", "a"]


@settings(max_examples=300)
@given(st.text(max_size=12), st.text(max_size=12))
def test_any_two_names(first, second):
    assert name_similarity(first, first) == 1.0
    likeness = name_similarity(first, second)
    assert 0.0 <= likeness <= 1.0
    assert likeness == name_similarity(second, first)
