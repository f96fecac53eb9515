"""Formulas as text."""

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators.composition import ELEMENTS, composition_of


def test_there_are_118_elements():
    assert len(ELEMENTS) == 118


SAME = [
    ("LiCoO2", "CoLiO2"),
    ("LiCoO2", "LiCoO₂"),
    ("LiCoO2", "LiCoO 2"),
    ("LiCoO2", "$LiCoO_2$"),
    ("LiCoO2", "LiCoO<sub>2</sub>"),
    ("La0.8Sr0.2MnO3", "Sr0.2La0.8MnO3"),
    ("La0.8Sr0.2MnO3", "La 0.8 Sr 0.2 MnO 3"),
    ("La0.8Sr0.2MnO3", "La.8Sr.2MnO3"),
    ("La0.80Sr0.20MnO3", "La₀.₈Sr₀.₂MnO₃"),
    ("La0.8Sr0.2MnO3", "La1-xSrxMnO3 (x = 0.2)"),
    ("Li1-xCoO2", "Li_{1-x}CoO_{2}"),
    ("LiNi1/3Co1/3Mn1/3O2", "Li[Ni1/3Co1/3Mn1/3]O2"),
    ("LiNi0.8Co0.1Mn0.1O2", "Li(Ni0.8Co0.1Mn0.1)O2"),
    ("Ca(OH)2", "CaO2H2"),
    ("(NH4)2SO4", "N2H8SO4"),
    ("K4[Fe(CN)6]", "K4FeC6N6"),
    ("[Co(NH3)6]Cl3", "CoN6H18Cl3"),
    ("CuSO4·5H2O", "CuSO4.5H2O"),
    ("CuSO4·5H2O", "CuSO4*5H2O"),
    ("CuSO4·5H2O", "CuSO4 · 5 H2O"),
    ("CuSO4·5H2O", "CuSO4 5H2O"),
    ("CuSO4·5H2O", "CuSO4•5(H2O)"),
    ("CuSO4·5H2O", "CuSO4 × 5H2O"),
    ("CuSO4·5H2O", "CuSO4 \x04 5H2O"),
    ("CuSO4·5H2O", "CuSO9H10"),
    ("LaCl3.7H2O", "LaCl3·7H2O"),
    ("KAl(SO4)2.12H2O", "KAl(SO4)2·12H2O"),
    ("V2O5.0.5H2O", "V2O5·½H2O"),
    ("CaO.SiO2", "CaSiO3"),
    ("3CaO·Al2O3", "Ca3Al2O6"),
    ("0.5Li2MnO3·0.5LiMn2O4", "Li1.5Mn1.5O3.5"),
    ("La0.6Sr0.4CoO3-δ", "La0.6Sr0.4CoO3−delta"),
    ("La0.6Sr0.4CoO3-δ", "La0.6Sr0.4CoO3-d"),
    ("Nd2(1-x)Zr2(1+x)O7", "Nd2-2xZr2+2xO7"),
    ("Fe3+", "Fe³⁺"),
    ("Fe3+", "Fe^{3+}"),
    ("Fe3+", "Fe+3"),
    ("SO42-", "SO₄²⁻"),
    ("SO42-", "SO4^2-"),
    ("SO42-", "SO4 2-"),
    ("[Fe(CN)6]4-", "[Fe(CN)6]^{4-}"),
    ("²H2O", "D2O"),
    ("¹³CO2", "[13C]O2"),
    ("Zn(OAc)2", "Zn(CH3COO)2"),
    ("EtOH", "C2H5OH"),
    ("alpha-Fe2O3", "α-Fe2O3"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_writings_of_the_same_composition(first, second):
    assert composition_of(first) is not None
    assert composition_of(first) == composition_of(second)


def test_products_of_symbols():
    amounts = composition_of("(La1-xSrx)1-yMnO3").amounts

    assert amounts["La"] == {(): 1, ("x",): -1, ("y",): -1, ("x", "y"): 1}
    assert amounts["Sr"] == {("x",): 1, ("x", "y"): -1}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("LiCoO2", "Li2CoO2"),
        ("LiCoO2", "Li2Co2O4"),
        ("CO", "Co"),
        ("H2O", "D2O"),
        ("13CO2", "¹³CO2"),
        ("Fe2+", "Fe3+"),
        ("Fe3+", "Fe"),
        ("NH4+", "NH4"),
        ("CoCl2", "CoCl2·6H2O"),
        ("CoCl2·2H2O", "CoCl2·6H2O"),
        ("Li1-xCoO2", "Li1-yCoO2"),
        ("ZrO2-x", "ZrO2+x"),
        ("LaMnO3±δ", "LaMnO3+δ"),
        ("La0.8Sr0.2MnO3", "La0.7Sr0.3MnO3"),
        ("α-Fe2O3", "γ-Fe2O3"),
    ],
)
def test_different_compositions(first, second):
    assert None not in (composition_of(first), composition_of(second))
    assert composition_of(first) != composition_of(second)


@pytest.mark.parametrize(("text", "charge"), [("Fe3+", 3), ("NH4+", 1), ("SO42-", -2), ("Cl-", -1), ("PO43-", -3)])
def test_charges_of_flat_text(text, charge):
    assert composition_of(text).charge == charge


@pytest.mark.parametrize(
    "text",
    [
        "",
        "water",
        "lithium cobalt oxide",
        "Iron",
        "Tin",
        "Six",
        "Zinc",
        "LiCoO2 powder",
        "Ni/Al2O3",
        "Cu-Pd/ZrO2",
        "Pd/Zr02",
        "Zr02",
        "Li0",
        "CO2)",
        "(CO2",
        "[CO2)",
        "()",
        "·",
        "x",
        "CuO-ZrO2",
        "Ti3C2Tx",
        "MOF-5",
        "CnH2n+2",
        "La1-xSrxMnO3 (x = 0, 0.1)",
        "((((((((((H))))))))))",
        "C" * 201,
        "Fe999+",
    ],
)
def test_what_is_no_formula(text):
    assert composition_of(text) is None


SYMBOLS = st.sampled_from(["Li", "Co", "O", "Fe", "La", "H", "C", "Cl", "S"])


@settings(max_examples=300)
@given(st.lists(st.tuples(SYMBOLS, st.integers(1, 99)), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_elements_does_not_matter(counts, shuffled):
    written = "".join(f"{symbol}{count}" for symbol, count in counts)
    shuffled.shuffle(counts)
    found = composition_of(written)

    assert found == composition_of("".join(f"{symbol}{count}" for symbol, count in counts))
    assert sum(amount[()] for amount in found.amounts.values()) == sum(Fraction(count) for _, count in counts)


@settings(max_examples=300)
@given(st.text(alphabet="LiCoOFe()[]{}0123456789.·*+-^xyδ/ H2O", max_size=200) | st.text(max_size=200))
def test_any_text_is_read_quickly(text):
    start = time.process_time()
    composition_of(text)

    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("text", ["(" * 100 + "H" + ")" * 100, "((x)" * 50, "Li" + "1+x" * 60, "(1-x)" * 40, "9" * 200])
def test_hostile_text_is_read_quickly(text):
    start = time.process_time()
    composition_of(text)

    assert time.process_time() - start < 0.5
