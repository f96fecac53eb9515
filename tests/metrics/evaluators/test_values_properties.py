"""What holds of quantity, formula, set and numeric whatever they are given."""

import copy
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metrics.evaluators import create_evaluator

AMOUNTS = st.sampled_from(
    [
        "5 h",
        "300 min",
        "5",
        5,
        5.0,
        "500 °C",
        "773.15 K",
        "800-900 °C",
        "<5 h",
        "5 ± 1 h",
        "5 ± 2 h",
        "overnight",
        "14 h",
        "rt",
        "23 °C",
        "5 mol%",
        "5 wt%",
        "3 samples",
        "often",
        "LiCoO2",
        "CoLiO2",
        True,
        ["5 h"],
        {"a": 1},
        "1e308 km",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | AMOUNTS
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
EVALUATORS = st.sampled_from(
    [
        ("numeric", {"relative_tolerance": 0.1, "partial": "linear"}),
        ("quantity", {}),
        ("quantity", {"missing_unit": "assume", "partial": "linear", "absolute_tolerance": 3, "width": 5}),
        ("quantity", {"default_unit": "degC", "difference": True}),
        ("formula", {}),
        ("formula", {"partial": "overlap", "reduced": True, "tolerance": 0.01}),
        ("set", {}),
        ("set", {"evaluator": "quantity", "separator": ","}),
    ]
)
UNITS = {
    "time": {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0},
    "mass": {"mg": 1e-3, "g": 1.0, "kg": 1e3},
    "pressure": {"Pa": 1.0, "kPa": 1e3, "bar": 1e5, "mbar": 100.0},
    "concentration": {"mM": 1.0, "mol/L": 1e3, "mol m-3": 1.0},
}


@settings(max_examples=400)
@given(EVALUATORS, ANYTHING, ANYTHING)
def test_any_values_give_a_number_in_bounds_or_a_reason_and_stay_as_they_are(chosen, extracted, expected):
    evaluator, before = create_evaluator(*chosen), copy.deepcopy((extracted, expected))
    score = evaluator.score(extracted, expected, field_path="a.b")

    assert repr((extracted, expected)) == repr(before)
    assert score.feedback.startswith("a.b: ") or score.value is None
    if score.value is None:
        assert score.error
    else:
        assert 0.0 <= score.value <= 1.0


@settings(max_examples=400)
@given(EVALUATORS, ANYTHING)
def test_a_value_is_itself_or_cannot_be_compared(chosen, value):
    assert create_evaluator(*chosen).score(value, copy.deepcopy(value)).value in (1.0, None) or "nan" in repr(value)


@settings(max_examples=200)
@given(EVALUATORS, st.lists(AMOUNTS, min_size=1, max_size=5), st.lists(AMOUNTS, min_size=1, max_size=5))
def test_the_matrix_says_what_the_single_comparison_says(chosen, extracted, expected):
    evaluator = create_evaluator(*chosen)

    def single(first, second):
        value = evaluator.score(first, second).value
        return math.nan if value is None else value

    np.testing.assert_allclose(
        evaluator.similarities(extracted, expected), [[single(a, b) for b in expected] for a in extracted]
    )


# --- quantity ---------------------------------------------------------------------------------------------------

NUMBERS = st.floats(1e-3, 1e6) | st.integers(1, 10**6)


@settings(max_examples=300)
@given(st.data(), st.sampled_from(sorted(UNITS)), NUMBERS, NUMBERS)
def test_the_unit_in_which_an_amount_is_given_changes_nothing(data, kind, first, second):
    units = UNITS[kind]
    names = st.sampled_from(sorted(units))
    one, other = data.draw(names), data.draw(names)
    quantity = create_evaluator("quantity", {"relative_tolerance": 0.05, "partial": "linear"})
    value = quantity.evaluate(f"{first!r} {one}", f"{second!r} {one}")
    converted = second * units[one] / units[other]

    assert quantity.evaluate(f"{first!r} {one}", f"{converted!r} {other}") == pytest.approx(value, abs=1e-6)
    assert quantity.evaluate(f"{first!r} {one}", f"{first * units[one] / units[other]!r} {other}") == 1.0


@settings(max_examples=300)
@given(st.floats(-270, 5000), st.floats(-270, 5000))
def test_celsius_and_kelvin_are_one_scale(first, second):
    quantity = create_evaluator("quantity", {"relative_tolerance": 0.01, "partial": "linear"})
    values = [
        quantity.evaluate(extracted, expected)
        for extracted in (f"{first!r} °C", f"{first + 273.15!r} K")
        for expected in (f"{second!r} degC", f"{second + 273.15!r} K")
    ]

    assert values == pytest.approx([values[0]] * 4, abs=1e-6)


@settings(max_examples=300)
@given(NUMBERS, NUMBERS, st.sampled_from(["h", "°C", "mol%"]), st.sampled_from(["none", "linear"]))
def test_within_one_unit_an_absolute_tolerance_knows_no_sides(first, second, unit, partial):
    config = {"absolute_tolerance": 100, "relative_tolerance": 0, "partial": partial, "width": 3}
    quantity, sides = create_evaluator("quantity", config), (f"{first!r} {unit}", f"{second!r} {unit}")

    assert quantity.evaluate(*sides) == pytest.approx(quantity.evaluate(*sides[::-1]), abs=1e-6)


@settings(max_examples=200)
@given(NUMBERS, st.sampled_from([(" ℃", " °C"), (" µL", " μL"), ("\u2009h", " h"), ("\u00a0mol·L−1", " mol L-1")]))
def test_unicode_twins_are_the_same_unit(number, twins):
    assert create_evaluator("quantity").evaluate(*(f"{number!r}{unit}" for unit in twins)) == 1.0


@settings(max_examples=200)
@given(NUMBERS, NUMBERS)
def test_further_off_never_counts_more(first, second):
    assume(first != second)
    quantity = create_evaluator("quantity", {"relative_tolerance": 0.5, "partial": "linear", "width": 4})
    near, far = sorted((first, second))

    assert quantity.evaluate(f"{1000 + far!r} g", "1 kg") <= quantity.evaluate(f"{1000 + near!r} g", "1 kg")


# --- formula ----------------------------------------------------------------------------------------------------

SUBSCRIPTS = str.maketrans("0123456789.", "₀₁₂₃₄₅₆₇₈₉.")
COUNTS = st.integers(1, 99) | st.decimals(min_value="0.05", max_value="0.95", places=2)
ATOMS = st.lists(st.tuples(st.sampled_from(["Li", "Co", "O", "La", "H", "S"]), COUNTS), min_size=1, max_size=6)


@settings(max_examples=300)
@given(ATOMS, st.randoms(use_true_random=False))
def test_subscripts_and_order_change_nothing(atoms, shuffled):
    written = "".join(f"{element}{count}" for element, count in atoms)
    shuffled.shuffle(atoms)
    other = "".join(f"{element}{count}".translate(SUBSCRIPTS) for element, count in atoms)

    assert create_evaluator("formula").evaluate(other, written) == 1.0
    assert create_evaluator("formula").evaluate(written + "Fe", written) == 0.0


@settings(max_examples=200)
@given(ATOMS, ATOMS)
def test_overlap_is_one_for_equal_compositions_only(first, second):
    overlap = create_evaluator("formula", {"partial": "overlap"})
    written = ["".join(f"{element}{count}" for element, count in atoms) for atoms in (first, second)]
    value = overlap.evaluate(*written)

    assert overlap.evaluate(*written[::-1]) == value
    assert (value == 1.0) == (create_evaluator("formula").evaluate(*written) == 1.0)
