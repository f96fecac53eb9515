"""Amounts as papers and models write them."""

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators.readings import reading_of


@pytest.mark.parametrize(
    ("text", "number", "kind"),
    [
        ("500 °C", 500, "temperature"),
        ("800\x0eC", 800, "temperature"),
        ("800\\\x0eC", 800, "temperature"),
        ("850 \u030aC", 850, "temperature"),
        ("800 0C", 800, "temperature"),
        ("8000C", 8000, "temperature"),
        ("2000oC", 2000, "temperature"),
        ("-100 V", -100, "voltage"),
        ("- 100 V", -100, "voltage"),
        ("−196 ℃", -196, "temperature"),
        ("2 x 10-4 Pa", 2e-4, "pressure"),
        ("2 x 10-4P a", 2e-4, "pressure"),
        ("6.67 x 10- 1 Pa", 0.667, "pressure"),
        ("6 × 10−5 MPa", 6e-5, "pressure"),
        ("3 x 105 Pa", 3e5, "pressure"),
        ("5×10^{3} Pa", 5e3, "pressure"),
        ("~10-3 Pa", 1e-3, "pressure"),
        ("10⁻³ Pa", 1e-3, "pressure"),
        ("1e-3 Pa", 1e-3, "pressure"),
        ("1.5e-107 Pa", 1.5e-107, "pressure"),
        ("3 x 1010 Pa", 3e10, "pressure"),
        ("1 K/min", 1, "temperature / time"),
        ("1C hour-1", 1, "temperature / time"),
        ("36hours", 36, "time"),
        ("4M", 4, "concentration"),
        ("15 000 rpm", 15000, "frequency"),
        ("1,000 mg", 1000, "mass"),
        ("5 wt.%", 5, "mass fraction"),
        ("5mol%", 5, "mole fraction"),
        ("1.2 equiv.", 1.2, "equivalents"),
        ("two hours", 2, "time"),
        ("Twelve h", 12, "time"),
        ("twenty-four hours", 24, "time"),
        ("half an hour", 0.5, "time"),
        ("one and a half hours", 1.5, "time"),
        ("1½ h", 1.5, "time"),
        ("1/2 h", 0.5, "time"),
        ("an hour", 1, "time"),
        ("1 h 30 min", 1.5, "time"),
        ("2 hours and 30 minutes", 2.5, "time"),
        ("ca. 5 min", 5, "time"),
        ("for about 5 min", 5, "time"),
        ("pH 7", 7, "pH"),
        ("12-h", 12, "time"),
    ],
)
def test_one_number(text, number, kind):
    read = reading_of(text)

    assert read is not None
    assert read.low == read.high == pytest.approx(number)
    assert (read.unit.kind, read.bound, read.spread) == (kind, "", None)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("800-900 °C", (800, 900)),
        ("800 0C to 900 0C", (800, 900)),
        ("800 °C–900 °C", (800, 900)),
        ("1100-950 C", (950, 1100)),
        ("one to three hours", (1, 3)),
        ("between 5 and 10 h", (5, 10)),
        ("from 5 to 10 h", (5, 10)),
        ("-10 to -5 °C", (-10, -5)),
        ("-10 - -5 °C", (-10, -5)),
        ("-10–5 °C", (-10, 5)),
        ("10-12 h", (10, 12)),
        ("30 min-1 h", (0.5, 1)),
        ("~90 to ~250 nm", (90, 250)),
        ("5 to 6", (5, 6)),
    ],
)
def test_ranges(text, ends):
    read = reading_of(text)

    assert (read.low, read.high) == pytest.approx(ends)


@pytest.mark.parametrize(
    ("text", "bound"),
    [("<5 min", "<"), ("≤ 5 h", "<"), ("up to 900 °C", "<"), ("at least 5 h", ">"), ("more than two weeks", ">")],
)
def test_bounds(text, bound):
    assert reading_of(text).bound == bound


@pytest.mark.parametrize("text", ["500 ± 5 °C", "500±5 °C", "500 +/- 5 °C", "500 °C ± 5 °C"])
def test_spreads(text):
    read = reading_of(text)

    assert (read.low, read.spread, read.unit.kind) == (500.0, 5.0, "temperature")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h",
        "overnight",
        "several times",
        "LiCoO2",
        "12 Main Street",
        "792mg, 2.1mmol",
        "5 h and 3 samples",
        "1:1",
        "1,5 h",
        "2 x 100 mg",
        "1/0 h",
        "1e999 K",
        "100 h in air",
        "1-x",
        "2x",
        "5 °C - 6 h",
        "6-8 h, respectively",
    ],
)
def test_what_is_not_one_amount_is_not_read(text):
    assert reading_of(text) is None


def test_a_bare_number_has_no_unit_and_any_word_may_be_counted():
    assert reading_of("500").unit is None
    assert reading_of("3 samples").unit.is_known is False


@settings(max_examples=300)
@given(st.text(alphabet="0123456789.,-+ex10 to±°C%/~<and half", max_size=120))
def test_any_text_is_read_quickly_into_finite_numbers(text):
    start = time.process_time()
    read = reading_of(text)

    assert time.process_time() - start < 0.5
    assert read is None or (read.low <= read.high and math.isfinite(read.low) and math.isfinite(read.high))


@settings(max_examples=300)
@given(
    st.decimals(min_value=-99999, max_value=99999, places=3), st.sampled_from(["h", "°C", "mol/L", "mL min-1", "wt%"])
)
def test_plain_amounts_are_read_as_written(number, unit):
    read = reading_of(f"{number} {unit}")

    assert (read.low, read.high) == (float(number), float(number))
    assert read.unit.is_known
