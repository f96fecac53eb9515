"""Evaluators that need a field beside the value they judge."""

import copy

import pytest

from metrics import BaseEvaluator, RecordMetric

PATH = "steps[*].conditions.temperature"
TEMPERATURE = {PATH: {"quantity": {"unit_field": "temp_unit", "relative_tolerance": 0.01}}}


def record(*temperatures):
    return {"steps": [{"conditions": {"temperature": number, "temp_unit": unit}} for number, unit in temperatures]}


EXPECTED = record((900, "C"), (500, "C"))


@pytest.mark.parametrize(
    ("predicted", "value"),
    [
        (record((900, "C"), (500, "C")), 1.0),
        (record((773.15, "K"), (1173.15, "K")), 1.0),
        (record((900, "°C"), ("773 K", None)), 1.0),
        (record((905, "C"), (500, "C")), 1.0),
        (record((900, "K"), (500, "C")), 1 / 3),
        (record((900, None), (500, "C")), 1 / 3),
        ({"steps": [{"conditions": {"temperature": 900}}]}, 0.0),
    ],
)
def test_units_stand_beside_the_numbers(predicted, value):
    assert RecordMetric(TEMPERATURE).compare(EXPECTED, predicted).value == pytest.approx(value)


def test_nothing_is_changed_and_the_unit_itself_does_not_count():
    predicted = record((900, "K"))
    before = copy.deepcopy((EXPECTED, predicted))
    score = RecordMetric(TEMPERATURE).compare(EXPECTED, predicted)

    assert (EXPECTED, predicted) == before
    assert list(score.parts) == [PATH] or set(score.parts) == {PATH, "steps[*]"}


def test_feedback_shows_value_unit_and_difference():
    metric = RecordMetric({"temperature": {"quantity": {"unit_field": "unit"}}})
    score = metric.compare({"temperature": 900, "unit": "C"}, {"temperature": 900, "unit": "K"})

    assert score.feedback == "temperature: expected 900 [unit: 'C'], got 900 [unit: 'K'] (off by 273.15 C)"
    absent = metric.compare({"temperature": 900, "unit": "C"}, {"unit": "K"})
    assert absent.feedback == "temperature: expected 900 [unit: 'C'], got nothing"


def test_a_unit_that_only_the_prediction_has_leaves_the_record_unscored():
    score = RecordMetric(TEMPERATURE).compare(record((900, None)), record((900, "C")))

    assert score.value is None
    assert "steps[0].conditions.temperature: the expected value has no unit" in score.error


def test_a_unit_may_count_as_a_field_of_its_own_and_may_be_left_out():
    both = RecordMetric({"temperature": {"quantity": {"unit_field": "unit"}}, "unit": "exact"})
    rest = RecordMetric({"temperature": {"quantity": {"unit_field": "unit"}}}, exclude=["unit"])

    assert both.compare({"temperature": 0, "unit": "C"}, {"temperature": 273.15, "unit": "K"}).value == 0.5
    assert rest.compare({"temperature": 0, "unit": "C"}, {"temperature": 273.15, "unit": "K"}).value == 1.0


def test_a_misspelled_field_beside_the_value_is_found():
    metric = RecordMetric({PATH: {"quantity": {"unit_field": "tmp_unit"}}})

    assert metric.unmatched_paths([EXPECTED]) == ["steps[*].conditions.tmp_unit"]
    assert RecordMetric(TEMPERATURE).unmatched_paths([EXPECTED]) == []


@pytest.mark.parametrize("path", ["$", "temperatures[*]"])
def test_a_single_value_has_nothing_beside_it(path):
    with pytest.raises(ValueError, match=r"nothing stands beside a single value, so 'unit' cannot be read"):
        RecordMetric({path: {"quantity": {"unit_field": "unit"}}})


def test_an_evaluator_of_ones_own_is_handed_what_it_asks_for():
    class SameWithin(BaseEvaluator):
        siblings = ("limit",)

        def evaluate(self, extracted, expected, input_data=None, field_path=None):
            return float(abs(extracted.value - expected.value) <= expected.siblings["limit"])

    metric = RecordMetric({"size": SameWithin()})

    assert metric.compare({"size": 5, "limit": 2}, {"size": 6}).value == 1.0
    assert metric.compare({"size": 5, "limit": 0}, {"size": 6}).value == 0.0
