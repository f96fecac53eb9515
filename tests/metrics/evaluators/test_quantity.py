"""quantity."""

import math

import numpy as np
import pytest

from metrics.evaluators import QuantityEvaluator, WithSiblings, create_evaluator
from metrics.evaluators.states import MISSING


@pytest.mark.parametrize(
    ("extracted", "expected", "value"),
    [
        ("773.15 K", "500 °C", 1.0),
        ("773 K", "500 °C", 1.0),
        ("500 ℃", "500 °C", 1.0),
        ("298 K", "25 °C", 1.0),
        ("932 °F", "500 °C", 1.0),
        ("500 K", "500 °C", 0.0),
        ("501 °C", "500 °C", 0.0),
        ("90 min", "1.5 h", 1.0),
        ("1 mmol", "1 mol", 0.0),
        ("1000 mmol", "1 mol", 1.0),
        ("5 h", "50 h", 0.0),
        ("300 s", "5 min", 1.0),
        ("1 K/min", "1 °C/min", 1.0),
        ("60 K/h", "1 °C min-1", 1.0),
        ("500 mM", "0.5 mol/L", 1.0),
        ("760 torr", "1 atm", 1.0),
        ("2 x 10-4 Pa", "2e-4 Pa", 1.0),
        ("800\x0eC", "800 °C", 1.0),
        ("two hours", "2 h", 1.0),
        ("~5 h", "5 h", 1.0),
        ("500 ± 5 °C", "500 °C", 1.0),
        ("500 ± 5 °C", "500 ± 5 K", 0.0),
        ("500 ± 5 °C", "773.15 ± 5 K", 1.0),
        ("500 ± 5 °C", "500 ± 50 °C", 0.0),
        ("<5 h", "<300 min", 1.0),
        ("<5 h", "5 h", 0.0),
        (">5 h", "<5 h", 0.0),
        ("800-900 °C", "900–800 ℃", 1.0),
        ("1073-1173 K", "800-900 °C", 1.0),
        ("800-850 °C", "800-900 °C", 0.0),
        ("850 °C", "800-900 °C", 0.0),
        ("5 mol%", "5 wt%", 0.0),
        ("5 g", "5 mL", 0.0),
        ("5 samples", "5 batches", 0.0),
        ("5 samples", "5 samples", 1.0),
        (5, 5.0, 1.0),
        ("5", 5, 1.0),
        (5, 6, 0.0),
        (5, "5 h", 0.0),
        ("Several  times", "several times", 1.0),
        ("several times", "5 h", 0.0),
        (True, 1, 0.0),
        (None, "5 h", 0.0),
        ([5], "5 h", 0.0),
        (10**400, 10**400, 1.0),
        ("1e308 km", "1e308 km", 1.0),
        (math.inf, "5 h", 0.0),
    ],
)
def test_right_values(extracted, expected, value):
    assert QuantityEvaluator().evaluate(extracted, expected) == value


# The amounts of fifteen passages of papers, each in the spelling of its text and as a person would write it down.
PASSAGES = [
    ("800 0C to 900 0C", "800-900 °C"),
    ("one to three hours", "1-3 h"),
    ("800\\\x0eC", "800 °C"),
    ("2000oC", "2000 °C"),
    ("two hours", "120 min"),
    ("2 x 10-4P a", "0.0002 Pa"),
    ("700 C", "973.15 K"),
    ("300 degC", "300 °C"),
    ("6-8 h", "360 to 480 min"),
    ("1.15 g", "1150 mg"),
    ("15 min", "0.25 h"),
    ("60 degC", "60 °C"),
    ("1 to 5 mol%", "1-5 mol %"),
    ("1.7 K/min", "102 °C/h"),
    ("1223 K", "949.85 °C"),
    ("~10-3 Pa", "1e-3 Pa"),
    ("- 100 V", "-0.1 kV"),
    ("6.67 x 10- 1 Pa", "0.667 Pa"),
    ("99.998%", "99.998 %"),
    ("1100\u2009–\u2009950\u2009C", "950-1100 °C"),
    ("~30 cm", "0.3 m"),
    ("10 days", "240 h"),
    ("792mg", "0.792 g"),
    ("2.1mmol", "2.1e-3 mol"),
    ("4M", "4 mol/L"),
    ("36hours", "1.5 days"),
    ("1C hour-1", "1 K/h"),
]


@pytest.mark.parametrize(("written", "meant"), PASSAGES, ids=ascii)
def test_amounts_of_papers(written, meant):
    assert QuantityEvaluator().evaluate(written, meant) == 1.0
    assert QuantityEvaluator().evaluate(meant, written) == 1.0


def test_feedback_names_place_both_values_and_the_difference_in_the_expected_unit():
    quantity = QuantityEvaluator()

    assert quantity.score("100 min", "1.5 h", field_path="time").feedback == (
        "time: expected '1.5 h', got '100 min' (off by 0.166667 h)"
    )
    assert "(off by 20 and 40 °C)" in quantity.score("780-860 °C", "800-900 °C").feedback
    assert "(g is mass, mol is amount of substance)" in quantity.score("1 mol", "1 g").feedback
    assert "(no unit, where h was expected)" in quantity.score(5, "5 h").feedback
    assert "an upper bound, where an amount was expected" in quantity.score("<5 h", "5 h").feedback
    assert "not both are amounts; compared as text" in quantity.score("often", "5 h").feedback


def test_tolerances_are_in_the_unit_of_the_expected_value_and_in_kelvin():
    absolute = QuantityEvaluator({"absolute_tolerance": 5, "relative_tolerance": 0})
    relative = QuantityEvaluator({"relative_tolerance": 0.01})

    assert [absolute.evaluate(f"{kelvin} K", "500 °C") for kelvin in (778.1, 778.2)] == [1.0, 0.0]
    assert [absolute.evaluate(text, "10 min") for text in ("0.25 h", "0.26 h")] == [1.0, 0.0]
    assert [relative.evaluate(text, "500 °C") for text in ("507.7 °C", "507.8 °C")] == [1.0, 0.0]
    assert [relative.evaluate(text, "100 g") for text in ("101 g", "0.102 kg")] == [1.0, 0.0]


def test_partial_credit_falls_as_in_numeric_and_a_range_is_as_right_as_its_worse_end():
    linear = QuantityEvaluator({"absolute_tolerance": 10, "relative_tolerance": 0, "partial": "linear", "width": 4})

    assert [linear.evaluate(f"{t} °C", "500 °C") for t in (510, 520, 530, 550)] == pytest.approx([1, 0.75, 0.5, 0])
    assert linear.evaluate("500-630 °C", "500-600 °C") == pytest.approx(0.5)
    assert linear.evaluate("520-630 °C", "500-600 °C") == pytest.approx(0.5)


def test_differences_of_temperature():
    assert QuantityEvaluator({"difference": True}).evaluate("10 K", "10 °C") == 1.0
    assert QuantityEvaluator().evaluate("10 K", "10 °C") == 0.0


# --- words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extracted", "expected", "value"),
    [
        ("RT", "room temperature", 1.0),
        ("Room  Temperature", "20-25 °C", 1.0),
        ("23 °C", "room temperature", 1.0),
        ("298 K", "room temperature", 1.0),
        ("room temperature", "23 °C", 1.0),
        ("30 °C", "room temperature", 0.0),
        ("10-40 °C", "room temperature", 0.0),
        ("14 h", "overnight", 1.0),
        ("overnight", "24 h", 0.0),
        ("overnight", "room temperature", 0.0),
        ("ambient", "ambient temperature", 1.0),
        ("1 bar", "ambient pressure", 1.0),
    ],
)
def test_words_mean_the_ranges_of_a_declared_table(extracted, expected, value):
    assert QuantityEvaluator().evaluate(extracted, expected) == value


def test_a_word_is_never_a_bare_number_and_says_what_it_was_read_as():
    quantity = QuantityEvaluator()

    assert quantity.evaluate(14, "overnight") == 0.0
    assert quantity.score("overnight", 14).value is None
    assert quantity.score("23 °C", "rt").feedback.endswith("('rt' is read as 20 to 25 °C)")
    assert QuantityEvaluator({"default_unit": "h"}).evaluate(14, "overnight") == 1.0


def test_the_table_can_be_added_to_changed_and_emptied():
    words = QuantityEvaluator({"words": {"Weekend": "2 days", "overnight": "12 h", "rt": None}})

    assert words.evaluate("48 h", "weekend") == 1.0
    assert words.evaluate("14 h", "overnight") == 0.0
    assert words.evaluate("23 °C", "rt") == 0.0
    assert words.evaluate("23 °C", "room temperature") == 1.0
    assert words.version != QuantityEvaluator().version


# --- where the unit comes from ---------------------------------------------------------------------------------


def test_a_missing_unit_is_refused_or_assumed_as_declared():
    refusing, assuming = QuantityEvaluator(), QuantityEvaluator({"missing_unit": "assume"})

    assert refusing.evaluate(900, "900 °C") == 0.0
    assert refusing.score("900 °C", 900).error == (
        "the expected value has no unit and the extracted one has; give unit_field, default_unit or "
        "missing_unit: assume"
    )
    assert assuming.evaluate(900, "900 °C") == assuming.evaluate("900 °C", 900) == 1.0
    assert assuming.score(900, "900 °C").feedback.endswith("(taken to be in °C)")
    assert assuming.evaluate(901.5, "900 °C") == 0.0


def test_the_default_unit_is_that_of_bare_numbers_only():
    quantity = QuantityEvaluator({"default_unit": "degC"})

    assert quantity.evaluate(900, "1173.15 K") == 1.0
    assert quantity.evaluate("1173.15 K", 900) == 1.0
    assert quantity.evaluate("900", 900) == 1.0


@pytest.mark.parametrize(
    ("extracted", "expected", "value"),
    [
        ((1173.15, "K"), (900, "C"), 1.0),
        ((900, "K"), (900, "C"), 0.0),
        (("900", "°C"), (900, "C"), 1.0),
        (("800-900", "°C"), ("800 to 900", "C"), 1.0),
        (("900 °C", None), (900, "C"), 1.0),
        (("900 °C", "C"), (900, "C"), 1.0),
        (("900 K", "C"), (900, "C"), 0.0),
        ((900, None), (900, "C"), 0.0),
        ((900, MISSING), (900, MISSING), 1.0),
        (("room temperature", None), (23, "C"), 1.0),
        (("several", "h"), ("several", "h"), 1.0),
        (("several", "h"), ("several", "days"), 0.0),
        ((5, "batches"), (5, "batches"), 1.0),
        ((5, 7), (5, 7), 1.0),
    ],
)
def test_the_unit_of_a_field_beside_the_value(extracted, expected, value):
    quantity = QuantityEvaluator({"unit_field": "unit"})
    first, second = (WithSiblings(number, {"unit": unit}) for number, unit in (extracted, expected))

    assert quantity.evaluate(first, second) == value


def test_two_units_are_no_amount():
    quantity = QuantityEvaluator({"unit_field": "unit"})
    double, single = WithSiblings("900 K", {"unit": "C"}), WithSiblings(900, {"unit": "C"})

    assert "two units: 'K' in the value and 'C' in unit" in quantity.score(double, single).feedback
    assert quantity.score(single, double).value is None


def test_lists_and_objects_are_no_amounts():
    score = QuantityEvaluator().score("5 h", ["5 h"], field_path="time")

    assert score.error == "time: quantity compares amounts, not lists or objects; name the values"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"default_unit": "dgC"}, "quantity: default_unit: 'dgC' is no unit; write it as in"),
        ({"words": {"long": "a while"}}, "quantity: words: 'long' means an amount such as '12 to 16 h', not 'a while'"),
        ({"unit_field": "conditions.unit"}, "quantity: unit_field: string should match pattern"),
        ({"missing_unit": "guess"}, "quantity: missing_unit: input should be 'refuse' or 'assume'"),
        ({"unit": "h"}, "quantity: unknown option 'unit'"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(config, sentence):
    with pytest.raises(ValueError, match=sentence):
        create_evaluator("quantity", config)


def test_a_hundred_amounts_are_compared_with_a_hundred_at_once():
    texts = [f"{number} min" for number in range(100)]
    values = QuantityEvaluator().similarities(texts, [f"{number / 60!r} h" for number in range(100)])

    np.testing.assert_array_equal(values, np.eye(100))
