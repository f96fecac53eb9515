"""Spellings of units, and what each is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators.units import unit_of


@pytest.mark.parametrize(
    ("spellings", "kind", "factor"),
    [
        (("h", "hr", "hrs", "Hours", "hour"), "time", 3600.0),
        (("min", "mins", "Minutes"), "time", 60.0),
        (("K", "kelvin", "°K", "deg K"), "temperature", 1.0),
        (("K/min", "°C/min", "C min-1", "℃ / minute", "K per min"), "temperature / time", 1 / 60),
        (("mL min-1", "ml/min", "cm3 min^-1", "cc/min"), "volume / time", 1e-6 / 60),
        (("W/m K", "W m-1 K-1", "W/(m·K)"), "mass * length / time ** 3 / temperature", 1000.0),
        (("mAh/g", "mA h g-1", "mAh g−1"), "current * time / mass", 3.6),
        (("M", "mol/L", "mol dm-3", "mol L-1"), "concentration", 1000.0),
        (("Torr", "torr", "mmHg"), "pressure", 133322.4),
        (("Pa", "P a"), "pressure", 1000.0),  # in grams, metres and seconds, as Pint counts
        (("rpm", "r/min", "rev/min", "min-1"), "frequency", 1 / 60),
        (("μL", "µL", "uL"), "volume", 1e-9),
        (("wt%", "wt.%", "wt. %", "% w/w", "weight %", "mass%"), "mass fraction", 0.01),
        (("mol%", "mole %", "mol.%"), "mole fraction", 0.01),
        (("%", "percent"), "dimensionless", 0.01),
        (("equiv", "eq.", "equivalents"), "equivalents", 1.0),
        (("drops", "drop"), "drops", 1.0),
    ],
)
def test_spellings_of_one_unit(spellings, kind, factor):
    for spelling in spellings:
        unit = unit_of(spelling)
        assert (unit.is_known, unit.kind, unit.offset) == (True, kind, 0.0), spelling
        assert unit.factor == pytest.approx(factor, rel=1e-4), spelling


CELSIUS = ["C", "°C", "℃", "º C", "˚C", "oC", "o C", "degC", "deg C", "deg.C", "degrees C", "Celsius", "° celsius"]
LOST_DEGREES = ["0C", "\x0eC", "\\\x0eC", "\uf0b0C"]


@pytest.mark.parametrize("spelling", CELSIUS + LOST_DEGREES, ids=ascii)
def test_every_degree_sign_seen_in_papers_is_one(spelling):
    assert unit_of(spelling).in_base(500) == pytest.approx(773.15)


def test_fahrenheit_and_farad_celsius_and_coulomb():
    assert unit_of("F").in_base(212) == pytest.approx(373.15)
    assert unit_of("C hour-1").kind == "temperature / time"
    assert unit_of("mF").kind == unit_of("C").kind.replace("temperature", unit_of("mF").kind)
    assert unit_of("C/g").kind == unit_of("mAh/g").kind


def test_differences_of_temperature_have_no_zero_point():
    assert unit_of("°C", is_difference=True).in_base(10) == unit_of("K", is_difference=True).in_base(10) == 10.0


@pytest.mark.parametrize("text", ["", "samples", "5", "dB", "m^9m^9", "h" * 70, "Ym9 Ym9 Ym9 Ym9", "nan", "x/y", "()"])
def test_other_texts_are_kinds_of_their_own(text):
    unit = unit_of(text)

    assert not unit.is_known
    assert unit.kind != unit_of("other").kind
    assert (unit.factor, unit.offset) == (1.0, 0.0)


def test_one_letter_keeps_its_case():
    assert unit_of("S").kind != unit_of("s").kind
    assert unit_of("mPa").factor != unit_of("MPa").factor


@settings(max_examples=300)
@given(st.text(max_size=70) | st.text(alphabet="gmolLhK°C%/·-123 ()^*", max_size=30))
def test_any_text_is_a_unit_of_some_kind(text):
    unit = unit_of(text)

    assert unit.kind
    assert 0.0 < unit.factor < float("inf")
