"""The form in which texts are compared, and what equals what."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.evaluators.text import (
    equal,
    equal_matrix,
    identity,
    normalized,
    number_in,
    shown,
    similarity,
    similarity_matrix,
)

VALUES = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 2.5, "0", "1", "1.0", "true", "True", "x", True, False, "−1", [1], ["1"], {"a": 1}]),
)


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("LiCoO₂", "LiCoO2"),
        ("500 ℃", "500 °C"),
        ("500 ºC", "500 °C"),
        ("500 ˚C", "500 °C"),
        ("5–10 h", "5-10 h"),
        ("−5", "-5"),
        ("10⁻⁴", "10-4"),
        ("ﬁlm", "film"),
        ("5\u2009h", "5 h"),
        ("5 µm", "5 μm"),
        ("Schro\u0308dinger", "Schrödinger"),
        ("CuSO4•5H2O", "CuSO4·5H2O"),
        ("stoichio\u00admetric", "stoichiometric"),
        ("Young’s “modulus”", 'Young\'s "modulus"'),
        ("ＡＢＣ", "ABC"),
        ("∆T", "ΔT"),
    ],
)
def test_writings_of_the_same_text(written, same):
    assert normalized(written) == normalized(same)


@pytest.mark.parametrize(("first", "second"), [("Co", "CO"), ("NO2", "N O2"), ("α-Fe", "β-Fe"), ("a.b", "a·b")])
def test_different_texts_stay_different(first, second):
    assert normalized(first) != normalized(second)


@given(st.text())
def test_normal_form_is_final_and_blind_to_composition(text):
    form = normalized(text)

    assert normalized(form) == form
    assert normalized(unicodedata.normalize("NFD", text)) == normalized(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500", 500),
        ("+5", 5),
        (" -0.5 ", -0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("−3", -3),
        ("12345678901234567891", 12345678901234567891),
        ("5 h", None),
        ("1,000", None),
        ("1_000", None),
        ("nan", None),
        ("inf", None),
        ("0x10", None),
        ("", None),
        ("1e9999", None),
        ("9" * 41, None),
    ],
)
def test_number_in_a_text(text, number):
    assert number_in(text) == number


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (500, 500.0, True),
        ("500", 500, True),
        ("500.0", 500, True),
        ("500", "500.0", False),
        ("007", "7", False),
        ("007", 7, True),
        (True, 1, False),
        (False, 0, False),
        ("true", True, True),
        ("False", False, True),
        ("yes", True, False),
        ([1, 2], [1.0, 2.0], True),
        ([1, 2], [2, 1], False),
        ({"a": 1, "b": "x"}, {"b": "x", "a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ("[1]", [1], False),
        (b"x", b"x", True),
    ],
)
def test_what_equals_what(first, second, same):
    assert equal(identity(first, normalized), identity(second, normalized)) is same
    assert equal(identity(second, normalized), identity(first, normalized)) is same


@given(st.lists(VALUES, max_size=6), st.lists(VALUES, max_size=6))
def test_the_matrix_says_what_the_single_comparison_says(rows, columns):
    first, second = ([identity(value, normalized) for value in side] for side in (rows, columns))
    matrix = equal_matrix(first, second)

    assert matrix.shape == (len(rows), len(columns))
    assert matrix.tolist() == [[float(equal(row, column)) for column in second] for row in first]


@given(st.lists(st.text(max_size=5), min_size=1, max_size=5), st.lists(st.text(max_size=5), min_size=1, max_size=5))
def test_similarity_lies_in_bounds_and_the_matrix_agrees(rows, columns):
    matrix = similarity_matrix(rows, columns)

    assert ((matrix >= 0) & (matrix <= 1)).all()
    np.testing.assert_array_equal(matrix, [[similarity(row, column) for column in columns] for row in rows])


def test_shown_values_stay_on_one_short_line():
    assert shown("a\nb\u2028c") == "'a\\nb\\u2028c'"
    assert len(shown("x" * 10_000)) == 120
    assert len(shown(list(range(1000)))) == 120
    assert shown(900) == "900"
    assert shown(None) == "null"
