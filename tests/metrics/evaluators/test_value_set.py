"""set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import BaseEvaluator
from metrics.evaluators import LevenshteinEvaluator, SetEvaluator, create_evaluator

WORDS = st.sampled_from(["Ar", "N2", "N₂", "O2", "air", "Air", "He", "", None, 5, "5", 5.0, True])
LISTS = st.lists(WORDS, max_size=6)


class Asked(BaseEvaluator):
    """Says 0.5 of everything, and counts how often it is asked."""

    def __init__(self, config=None):
        super().__init__(config)
        self.asked = []

    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        self.asked.append((extracted, expected))
        return 0.5


@pytest.mark.parametrize(
    ("extracted", "expected", "value", "precision", "recall"),
    [
        (["N2", "Ar"], ["Ar", "N2"], 1.0, 1.0, 1.0),
        (["N₂"], ["N2"], 1.0, 1.0, 1.0),
        (["Ar"], ["Ar", "N2"], 2 / 3, 1.0, 0.5),
        (["Ar", "N2", "O2"], ["Ar", "N2"], 0.8, 2 / 3, 1.0),
        (["Ar", "Ar"], ["Ar"], 2 / 3, 0.5, 1.0),
        (["Ar"], ["Ar", "Ar"], 2 / 3, 1.0, 0.5),
        (["O2"], ["Ar"], 0.0, 0.0, 0.0),
        (["Ar", "", None], ["Ar"], 1.0, 1.0, 1.0),
        ("Ar", ["Ar"], 1.0, 1.0, 1.0),
        (["Ar"], "Ar", 1.0, 1.0, 1.0),
        ("Ar, N2", ["Ar", "N2"], 0.0, 0.0, 0.0),
        ([["Ar", 1]], [["Ar", 1.0]], 1.0, 1.0, 1.0),
        ({"a": 1}, ["Ar"], 0.0, 0.0, 0.0),
    ],
)
def test_right_values(extracted, expected, value, precision, recall):
    score = SetEvaluator().score(extracted, expected)

    assert score.value == pytest.approx(value)
    assert score.parts["precision"].value == pytest.approx(precision)
    assert score.parts["recall"].value == pytest.approx(recall)


def test_an_empty_side_has_nothing_to_divide_by():
    nothing_found = SetEvaluator().score([], ["Ar"])

    assert nothing_found.value == 0.0
    assert nothing_found.parts["precision"].error == "precision: nothing to divide by"
    assert nothing_found.parts["recall"].value == 0.0
    assert SetEvaluator().evaluate([], []) == 1.0
    assert SetEvaluator().evaluate([None], [""]) == 1.0
    assert SetEvaluator().evaluate(None, []) == 0.0


def test_a_text_is_split_where_a_separator_is_given():
    split = SetEvaluator({"separator": ","})

    assert split.evaluate("N2 ,Ar,", ["Ar", "N2"]) == 1.0
    assert split.evaluate("N2, Ar", "Ar,N2") == 1.0
    assert split.evaluate("N2; Ar", ["Ar", "N2"]) == 0.0


def test_the_inner_evaluator_gives_the_credit_of_the_best_pairing():
    alike = SetEvaluator({"evaluator": "levenshtein"})
    amounts = SetEvaluator({"evaluator": {"quantity": {"default_unit": "degC"}}})

    assert alike.evaluate(["Jon Doe", "John Doe"], ["John Doe", "Jane Roe"]) == pytest.approx((1.0 + 5 / 8) / 2)
    assert amounts.evaluate(["773.15 K", 100], ["100 °C", "500 °C"]) == 1.0
    assert (
        SetEvaluator({"evaluator": LevenshteinEvaluator({"threshold": 0.9})}).evaluate(["Jon Doe"], ["John Doe"]) == 0
    )


def test_the_inner_evaluator_is_asked_once_per_pair():
    asked = Asked()
    score = SetEvaluator({"evaluator": asked}).score(["a", "b", "c"], ["b", "a"])

    assert sorted(asked.asked) == [("a", "a"), ("b", "b")]
    assert score.value == pytest.approx(2 / 5)


def test_feedback_names_what_is_missing_too_much_and_partly_right():
    score = SetEvaluator({"evaluator": "levenshtein"}).score(["Jon", "xyz"], ["John", "abc"], field_path="authors")

    assert score.feedback == (
        "authors: expected ['John', 'abc'], got ['Jon', 'xyz'] "
        "(missing 'abc'; not expected 'xyz'; partly right 'Jon' for 'John')"
    )
    many = SetEvaluator().score([], list(range(100)))
    assert many.feedback.endswith("(missing 0, 1, 10, 11, 12 and 95 more)")
    assert many.details == {"n_expected": 100, "n_extracted": 0, "n_matched": 0}


def test_what_cannot_be_compared_is_unscored():
    assert SetEvaluator().score(["a"], {"a": 1}, field_path="x").error == (
        "x: set compares values, not objects; name the values inside"
    )
    inner = SetEvaluator({"evaluator": "levenshtein"}).score(["a"], [["a"]], field_path="x")
    assert inner.error == "x: levenshtein compares texts, not lists or objects; name the values inside"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"evaluator": "exakt"}, "set: evaluator: unknown evaluator 'exakt', did you mean 'exact'?"),
        ({"evaluator": {"exact": {"case": 1}}}, "set: evaluator: exact: unknown option 'case'"),
        ({"evaluator": 5}, "set: evaluator: an alias, {alias: {options}} or a BaseEvaluator, got 5"),
        ({"evaluator": {"quantity": {"unit_field": "unit"}}}, "nothing stands beside a single value, so 'unit'"),
        ({"evaluator": "score_judge"}, "set: evaluator: score_judge asks a model, once per pair of values"),
        ({"separator": ""}, "set: separator: string should have at least 1 character"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(config, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is compared below, and holds signs of patterns
        create_evaluator("set", config)

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_versions_follow_the_inner_evaluator():
    assert SetEvaluator().version == SetEvaluator({"evaluator": {"exact": {"case_sensitive": True}}}).version
    assert SetEvaluator().version != SetEvaluator({"evaluator": "levenshtein"}).version
    assert SetEvaluator().prepared().version == SetEvaluator().version


@settings(max_examples=300)
@given(LISTS, LISTS, st.sampled_from(["exact", "levenshtein"]), st.randoms(use_true_random=False))
def test_order_and_sides_do_not_matter(extracted, expected, inner, shuffled):
    values = SetEvaluator({"evaluator": inner})
    value = values.evaluate(extracted, expected)

    assert 0.0 <= value <= 1.0
    if extracted and expected:
        assert values.evaluate(expected, extracted) == pytest.approx(value)
    shuffled.shuffle(extracted)
    shuffled.shuffle(expected)
    assert values.evaluate(extracted, expected) == pytest.approx(value)


@settings(max_examples=300)
@given(LISTS.filter(any), LISTS)
def test_more_right_values_never_lower_and_more_wrong_ones_never_raise(expected, found):
    extracted = [value for value in found if value in expected]
    values = SetEvaluator()
    value = values.evaluate(extracted, expected)

    assert values.evaluate([*extracted, "something else"], expected) <= value
    assert values.evaluate(expected, expected) == 1.0


@settings(max_examples=200)
@given(st.lists(LISTS.filter(any), min_size=1, max_size=4), st.lists(LISTS.filter(any), min_size=1, max_size=4))
def test_the_matrix_says_what_the_single_comparison_says(extracted, expected):
    values = SetEvaluator({"evaluator": "levenshtein"})

    np.testing.assert_allclose(
        values.similarities(extracted, expected), [[values.evaluate(a, b) for b in expected] for a in extracted]
    )
