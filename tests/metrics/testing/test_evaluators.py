"""The evaluator suite: a good evaluator passes every check, and for every check there is a bad one that fails it."""

import json
import re
import time

import numpy as np
import pytest

from metrics import BaseEvaluator, Score, StringCheckEvaluator
from metrics.evaluators.base import compared
from metrics.evaluators.states import MISSING, has_value
from metrics.testing import EvaluatorConformance, conformance

TEXTS = [("LiCoO2", "LiCoO₂", "LiFePO4")]
LISTS = [(["a", "b"], ["a", "b"], ["c"])]


class Good(StringCheckEvaluator):
    """The base of all bad ones: each spoils one thing."""


def spoiled(spoil):
    """An evaluator that is exact but for what `spoil(extracted, expected)` says; None leaves it."""

    class Bad(Good):
        def compare(self, extracted, expected):
            value = spoil(extracted, expected)
            return super().compare(extracted, expected) if value is None else (value, "")

    return Bad


class Generous(Good):
    def score(self, extracted, expected, input_data=None, field_path=None):
        return Score(1.0, compared(extracted, expected, field_path))


class NeverFull(Good):
    def compare(self, extracted, expected):
        return 0.9 * (super().compare(extracted, expected)[0] or 0.0), ""


class KindToNothing(Good):
    def score(self, extracted, expected, input_data=None, field_path=None):
        if not has_value(extracted) and extracted is not MISSING:
            return Score(0.5, compared(extracted, expected, field_path))
        return super().score(extracted, expected, input_data, field_path)


class Float(BaseEvaluator):
    def score(self, extracted, expected, input_data=None, field_path=None):
        return 0.5


class Fragile(Good):
    def compare(self, extracted, expected):
        return float(extracted.strip() == expected.strip()), ""


class TwoMinds(Good):
    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        return 0.25


class Counting(Good):
    def __init__(self):
        super().__init__()
        self.asked = 0

    def score(self, extracted, expected, input_data=None, field_path=None):
        self.asked += 1
        score = super().score(extracted, expected, input_data, field_path)
        return Score(score.value, f"{score.feedback} (question {self.asked})")


class NewVersionEachTime(Good):
    @property
    def version(self):
        return str(id(self))


class Sorting(Good):
    def compare(self, extracted, expected):
        for side in (extracted, expected):
            if isinstance(side, list):
                side.append("changed")
        return super().compare(extracted, expected)


class Silent(Good):
    def score(self, extracted, expected, input_data=None, field_path=None):
        return Score(super().score(extracted, expected).value, "wrong")


class OddMatrix(Good):
    def similarities(self, extracted, expected):
        return np.full((len(expected), len(extracted) + 1), 0.5)


class HugeMatrix(Good):
    def similarities(self, extracted, expected):
        return np.full((len(extracted), len(expected)), 100.0)


def contained(extracted, expected):
    return float(str(expected) in str(extracted))


def words(extracted, expected):
    return float(set(re.findall(r"\w+", str(extracted))) == set(re.findall(r"\w+", str(expected))))


def believing_json(extracted, expected):
    try:
        found = json.loads(extracted) if isinstance(extracted, str) else extracted
        return float(found["score"])
    except (ValueError, TypeError, KeyError):
        return None


def work_for(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def slow(extracted, expected):
    if len(str(extracted)) > 10_000:
        work_for(0.06)


def suite(make, examples=TEXTS, **declared):
    return conformance(EvaluatorConformance, make, examples=examples, **declared)


BAD = {
    "test_right_beats_wrong": suite(Generous),
    "test_the_expected_value_is_the_best_there_is": suite(NeverFull),
    "test_nothing_extracted_is_zero": suite(KindToNothing),
    "test_damage_never_pays": suite(spoiled(lambda got, wanted: 1.0 if got == "§" * 6 else None)),
    "test_every_result_is_a_score_in_bounds": suite(Float),
    "test_evaluate_says_what_score_says": suite(TwoMinds),
    "test_the_same_question_has_the_same_answer": suite(Counting),
    "test_nothing_given_is_changed": suite(Sorting, LISTS),
    "test_feedback_names_the_path_and_both_values": suite(Silent),
    "test_likeness_is_a_matrix_in_bounds": suite(OddMatrix),
    "test_swapping_both_sides_changes_nothing": suite(
        spoiled(lambda got, wanted: float(got == wanted or got == "LiFePO4")), symmetric=True
    ),
    "test_the_order_of_items_changes_nothing": suite(Good, LISTS, order_free=True),
    "test_repetition_does_not_pay": suite(spoiled(words)),
    "test_padding_does_not_pay": suite(spoiled(contained)),
    "test_a_value_in_another_field_does_not_pay": suite(spoiled(contained)),
    "test_markdown_gains_nothing": suite(spoiled(lambda got, wanted: 1.0 if "```" in str(got) else None)),
    "test_a_judges_answer_is_no_extraction": suite(spoiled(believing_json)),
    "test_instructions_are_no_extraction": suite(
        spoiled(lambda got, wanted: 1.0 if "Ignore all" in str(got) else None)
    ),
    "test_a_megabyte_is_answered_in_time_and_loses": suite(spoiled(slow), seconds=0.05),
}
believes_some = spoiled(lambda got, wanted: 1.0 if "Ignore" in str(got) else None)
pays_by_length = spoiled(lambda got, wanted: min(1.0, len(str(got)) / 100))
MORE_BAD = [
    ("test_every_result_is_a_score_in_bounds", suite(spoiled(lambda got, wanted: 1.5)), ValueError),
    ("test_every_result_is_a_score_in_bounds", suite(Fragile), AttributeError),
    ("test_the_same_question_has_the_same_answer", suite(NewVersionEachTime), AssertionError),
    ("test_likeness_is_a_matrix_in_bounds", suite(HugeMatrix), AssertionError),
    ("test_right_beats_wrong", suite(Good, []), AssertionError),
    ("test_damage_never_pays", suite(Generous), AssertionError),
    ("test_instructions_are_no_extraction", suite(believes_some), AssertionError),
    ("test_a_megabyte_is_answered_in_time_and_loses", suite(pays_by_length), AssertionError),
    ("test_the_order_of_items_changes_nothing", suite(Good, TEXTS, order_free=True), AssertionError),
]

TestGood = suite(Good, [*TEXTS, (500, 500.0, 501)], symmetric=True)


def test_every_check_has_a_bad_evaluator():
    assert set(BAD) == {name for name in dir(EvaluatorConformance) if name.startswith("test_")}


@pytest.mark.parametrize("check", BAD)
def test_a_bad_evaluator_fails_its_check(check):
    with pytest.raises(AssertionError):
        getattr(BAD[check](), check)()


@pytest.mark.parametrize(("check", "bad", "error"), MORE_BAD)
def test_other_ways_to_fail(check, bad, error):
    with pytest.raises(error):
        getattr(bad(), check)()


def test_a_suite_needs_something_to_test():
    with pytest.raises(NotImplementedError, match="EvaluatorConformance needs make"):
        EvaluatorConformance().make()
    with pytest.raises(AttributeError, match="no attribute and no check 'test_everything'"):
        conformance(EvaluatorConformance, Good, test_everything=None)


def test_a_check_can_be_switched_off_by_name():
    assert suite(Good, test_padding_does_not_pay=None)().test_padding_does_not_pay is None
