"""The figure suite: for every check there is a bad metric that fails it."""

import math
import time

import pytest

from metrics import Score
from metrics.evaluators.text import normalized
from metrics.figure import FigureMetric
from metrics.testing import FigureMetricConformance, conformance


class Good:
    """A figure metric whose answers a bad one can spoil."""

    name, version = "good", "1"

    def __init__(self, spoil=lambda expected, predicted, score: score):
        self.spoil = spoil
        self.metric = FigureMetric()

    def __call__(self, example, prediction):
        return self.compare(example.expected, prediction)

    def compare(self, expected, predicted):
        return self.spoil(expected, predicted, self.metric.compare(expected, predicted))


def value_of(number):
    def spoil(expected, predicted, score):
        found = number(expected, predicted)
        return score if found is None else Score(found, score.feedback)

    return lambda: Good(spoil)


def series(figure):
    return (figure or {}).get("name_to_coordinates", {})


def points(figure):
    return [point for one in series(figure).values() for point in one]


class ByName(Good):
    """Precision only: every predicted point near a true point of the series of the same name."""

    near = 1.0

    def compare(self, expected, predicted):
        common = [name for name in series(expected) if series(predicted).get(name)]
        if not common:
            return Score(0.0)
        shares = [
            sum(any(math.dist(one, other) < self.near for other in series(expected)[name]) for one in found)
            / len(found)
            for name in common
            for found in [series(predicted)[name]]
        ]
        return Score(sum(shares) / len(shares))


class Recall(ByName):
    """Recall only: every true point near a predicted one."""

    def compare(self, expected, predicted):
        return super().compare(predicted or {}, expected)


class FirstSeries(ByName):
    """Looks at the first series, whatever its name."""

    def compare(self, expected, predicted):
        first = [dict(zip("a", series(figure).values(), strict=False)) for figure in (expected, predicted)]
        return super().compare(*({"name_to_coordinates": one} for one in first))


class Counting(Good):
    asked = 0

    def compare(self, expected, predicted):
        self.asked += 1
        return Score(super().compare(expected, predicted).value, f"question {self.asked}")


class Changing(Good):
    def compare(self, expected, predicted):
        points(predicted)[0].append(0.0)
        return Score(1.0)


class Flat(Good):
    def compare(self, expected, predicted):
        return 1.0


def work_for(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def slow(expected, predicted, score):
    if len(points(predicted)) > 1000:
        work_for(0.2)
    return score


def ascii_names(expected, predicted):
    return 0.5 if predicted and any(normalized(name) != name for name in series(predicted)) else None


BAD = {
    "test_a_figure_against_itself_is_one": value_of(lambda wanted, got: 0.9),
    "test_right_beats_wrong": value_of(lambda wanted, got: 1.0),
    "test_nothing_extracted_is_zero": value_of(lambda wanted, got: None if points(got) else 1.0),
    "test_more_noise_never_pays": value_of(lambda wanted, got: 1.0),
    "test_missing_points_never_pay": ByName,
    "test_missing_series_never_pay": ByName,
    "test_false_points_never_pay": Recall,
    "test_false_series_never_pay": ByName,
    "test_order_changes_nothing": FirstSeries,
    "test_twins_of_characters_change_nothing": value_of(ascii_names),
    "test_every_result_is_a_score_in_bounds": Flat,
    "test_the_same_question_has_the_same_answer": Counting,
    "test_nothing_given_is_changed": Changing,
    "test_feedback_names_the_series_that_is_wrong": lambda: Good(lambda wanted, got, score: Score(score.value, "bad")),
    "test_one_point_or_a_point_per_series_does_not_pay": ByName,
    "test_points_everywhere_do_not_pay": Recall,
    "test_the_same_series_under_every_name_does_not_pay": FirstSeries,
    "test_text_is_no_figure": value_of(lambda wanted, got: 0.6),
    "test_ten_thousand_points_and_a_megabyte_are_answered_in_time": lambda: Good(slow),
}


def test_every_check_has_a_bad_metric():
    assert set(BAD) == {name for name in dir(FigureMetricConformance) if name.startswith("test_")}


@pytest.mark.parametrize("check", BAD)
def test_a_bad_metric_fails_its_check(check):
    with pytest.raises(AssertionError):
        getattr(conformance(FigureMetricConformance, BAD[check], seconds=0.1)(), check)()


def test_a_suite_needs_something_to_test():
    with pytest.raises(NotImplementedError, match="needs make"):
        FigureMetricConformance().make()
