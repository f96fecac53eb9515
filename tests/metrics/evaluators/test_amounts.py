"""Numbers with units, recognised in a text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.evaluators.amounts import amount_in, are_comparable

MEASURED = [
    "5 h",
    "50h",
    "0.5 M",
    "1 mmol",
    "1,000 mg",
    "800–900 ℃",
    "5 to 6 h",
    "10 ± 2 mM",
    "<5 min",
    "ca. 5 min",
    "6.67 x 10-1 Pa",
    "1.5 °C/min",
    "100 mL min-1",
    "100 mA g−1",
    "5 wt.%",
    "5 mol%",
    "99.9%",
    "10 cm3",
    "5 μL",
    "2 weeks",
    "500 ° C",
    "-100 V",
]
OTHER = ["", "h", "500", "LiCoO2", "2-propanol", "12 Main Street", "wt%", "overnight", "5 h and 3 min", "5 h" * 30]


@pytest.mark.parametrize("text", MEASURED)
def test_amounts_with_units(text):
    assert amount_in(text).is_unit


@pytest.mark.parametrize("text", OTHER)
def test_other_texts_are_no_amounts(text):
    assert amount_in(text) is None


@pytest.mark.parametrize("text", ["3 samples", "12 Main", "2 theta"])
def test_any_one_word_can_be_counted(text):
    assert not amount_in(text).is_unit


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("5 h", "5hours"),
        ("5 h", "5.0 Hrs"),
        ("800–900 °C", "800 to 900 degC"),
        ("5 wt%", "5 wt. %"),
        ("5 ℃/min", "5 °C / minute"),
        ("~5 h", "about 5 h"),
        ("1,000 mg", "1000mg"),
        ("10 +/- 2 mM", "10±2 mM"),
    ],
)
def test_spellings_of_the_same_amount(first, second):
    assert amount_in(first) == amount_in(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [("5 h", "50 h"), ("1 mmol", "1 mol"), ("5 s", "5 S"), ("<5 h", ">5 h"), ("5 mM", "5 MM"), ("5-6 h", "5±6 h")],
)
def test_different_amounts(first, second):
    assert amount_in(first) != amount_in(second)


def test_comparable_are_measurements_and_equal_words():
    samples, batches, hours, moles = (amount_in(text) for text in ("3 samples", "3 batches", "3 h", "3 mol"))

    assert are_comparable(hours, moles)
    assert are_comparable(samples, amount_in("4 samples"))
    assert not are_comparable(samples, batches)
    assert not are_comparable(samples, hours)


@given(st.text(alphabet="0123456789.,-+ehx10 to±°C%/", max_size=60))
def test_any_text_is_read_quickly(text):
    start = time.process_time()
    amount_in(text)
    assert time.process_time() - start < 0.1
