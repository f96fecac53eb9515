import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.data.quantities import measure, measure_text, one_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("700", 700.0),
        (" 0.5 ", 0.5),
        (".5", 0.5),
        ("-10", -10.0),
        ("− 10", -10.0),
        ("1,073", 1073.0),
        ("15 000", 15000.0),
        ("10,500.5", 10500.5),
        ("Two", 2.0),
        ("thirty", 30.0),
        ("1x10-5", 1e-5),
        ("6.67 x 10- 1", 0.667),
        ("6 × 10−5", 6e-5),
        ("28 +- 2", 28.0),
        ("110 ± 5", 110.0),
    ],
)
def test_one_number_is_read(text, number):
    assert one_number(text) == pytest.approx(number)


@pytest.mark.parametrize(
    "text",
    [
        "70-80",
        "10-3",
        "3 x 105",
        "several",
        "overnight",
        "1,5",
        "1:3",
        "99.9%",
        "x",
        "",
        "1.2.3",
        None,
        ["3", "24"],
        700,
    ],
)
def test_what_is_not_one_number_is_none(text):
    assert one_number(text) is None


@given(st.decimals(min_value=0, max_value=99999, places=3))
def test_plain_decimals_are_read_as_written(number):
    assert one_number(str(number)) == float(number)


@pytest.mark.parametrize(
    ("value", "unit", "kind", "measured"),
    [
        ("700", "degC", "temperature", (700.0, "C")),
        ("700", "deg C", "temperature", (700.0, "C")),
        ("873", "K", "temperature", (873.0, "K")),
        ("two", "days", "duration", (2.0, "days")),
        ("2", "weeks", "duration", (14.0, "days")),
        ("1", "month", "duration", None),
        ("50", "MPa", "pressure", (50.0, "MPa")),
        ("1x10-5", "Torr", "pressure", (1e-5, "torr")),
        ("400", "mTorr", "pressure", (400.0, "mtorr")),
        ("600", "rpm", "stirring_speed", (600.0, "rpm")),
        ("7", "pH", "ph", (7.0, "")),
        ("20", "ml", "quantity", (20.0, "mL")),
        ("5", "cm3", "quantity", (5.0, "mL")),
        ("77", "\u00b5L", "quantity", (77.0, "μL")),
        ("99", "%", "quantity", None),
        ("40000", "Mw", "quantity", None),
        ("50", "wt %", "concentration", (50.0, "wt%")),
        ("2", "mol dm-3", "concentration", (2.0, "mol/L")),
        ("5", None, "quantity", None),
        ("70-80", "degC", "temperature", None),
    ],
)
def test_a_measure_needs_one_number_in_a_unit_of_its_kind(value, unit, kind, measured):
    assert measure(value, unit, kind) == measured


DEGREES = [
    "°C",
    " °C",
    "\u2009°C",
    "◦C",
    "∘C",
    "ºC",
    "˚C",
    " ̊C",
    "oC",
    " oC",
    "o C",
    "℃",
    "\\\x0eC",
    " \uf0b0C",
    " C",
    " degrees C",
]


@pytest.mark.parametrize("degree", DEGREES, ids=ascii)
def test_every_degree_sign_seen_in_papers_is_read(degree):
    assert measure_text(f"850{degree}", "temperature") == (850.0, "C")


@pytest.mark.parametrize(
    ("text", "kind", "measured"),
    [
        ("750 0C", "temperature", (750.0, "C")),  # the degree sign became a zero
        ("7000C", "temperature", None),  # here too, perhaps
        ("12000 C", "temperature", None),
        ("of1150◦C", "temperature", (1150.0, "C")),
        ("~1000 °C", "temperature", (1000.0, "C")),
        ("about 1,073\u202fK", "temperature", (1073.0, "K")),
        ("800 \u200b°C", "temperature", (800.0, "C")),
        ("600–800 °C", "temperature", None),
        ("850", "temperature", None),
        ("24 h", "temperature", None),
        ("up to 700 °C", "temperature", None),
        ("1300, 1375 and 1450 °C", "temperature", None),
        ("room temperature", "temperature", None),
        ("12-h", "duration", (12.0, "h")),
        ("thirty  minutes", "duration", (30.0, "min")),
        ("one week", "duration", (7.0, "days")),
        ("> 2 weeks", "duration", None),
        ("24 – 48 hours", "duration", None),
        ("approximately 1.0\u2009GPa", "pressure", (1.0, "GPa")),
        ("∼6 × 10−5 MPa", "pressure", (6e-5, "MPa")),
        ("10-4 Torr", "pressure", None),  # a lost exponent or a range
        ("2.00 \u200bg", "quantity", (2.0, "g")),
        ("5N", "quantity", None),
        ("stoichiometric", "quantity", None),
    ],
)
def test_text_is_a_measure_or_none(text, kind, measured):
    assert measure_text(text, kind) == measured


@given(st.text(max_size=30), st.sampled_from(["temperature", "duration", "pressure", "quantity", "concentration"]))
def test_any_text_is_a_finite_number_or_none(text, kind):
    measured = measure_text(text, kind)
    assert measured is None or abs(measured[0]) < float("inf")
