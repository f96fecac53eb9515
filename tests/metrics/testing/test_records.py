"""The record suite: the record metric passes every check, and for every check there is a bad metric that fails it."""

import contextlib
import json
import time

import pytest

from metrics import RecordMetric, Score
from metrics.record.items import plain
from metrics.testing import RecordMetricConformance, conformance
from metrics.testing.attacks import FILLER
from metrics.testing.damage import JUNK, leaves

RECORDS = [
    {
        "target": "LiCoO2",
        "notes": None,
        "steps": [{"action": "mix", "hours": 5}, {"action": "heat", "hours": 12, "at": {"t": 900}}],
        "tags": ["oxide", "battery"],
    }
]


class Good:
    """A record metric whose answers a bad one can spoil."""

    name = "good"

    def __init__(self, spoil=lambda expected, predicted, score: score):
        self.spoil = spoil
        self.metric = RecordMetric()

    @property
    def version(self):
        return self.metric.version

    def __call__(self, example, prediction):
        return self.compare(example.expected, prediction)

    def compare(self, expected, predicted):
        return self.spoil(expected, predicted, self.metric.compare(expected, predicted))


def value_of(number):
    """A spoiler that gives the number `number(expected, predicted, value)`; None leaves the value."""

    def spoil(expected, predicted, score):
        found = None if score.value is None else number(expected, predicted, score.value)
        return score if found is None else Score(found, score.feedback)

    return lambda: Good(spoil)


def by(metric):
    return lambda: metric


def bag(record):
    return sorted(json.dumps(held(record, path)) for path in leaves(record)) if record is not None else []


def held(record, path):
    for key in path:
        record = record[key]
    return record


class Bag(Good):
    """Values wherever they stand."""

    def compare(self, expected, predicted):
        wanted, found = set(bag(plain(expected))), set(bag(plain(predicted)))
        return Score(len(wanted & found) / len(wanted) if wanted else 1.0)


class Counting(Good):
    asked = 0

    def compare(self, expected, predicted):
        self.asked += 1
        score = super().compare(expected, predicted)
        return score if score.value is None else Score(score.value, f"question {self.asked}")


class Changing(Good):
    def compare(self, expected, predicted):
        if isinstance(predicted, dict):
            predicted["changed"] = None
        return super().compare(expected, predicted)


class Texts(Good):
    """Reads records out of texts."""

    def compare(self, expected, predicted):
        while isinstance(predicted, list) and len(predicted) == 1:
            predicted = predicted[0]
        with contextlib.suppress(ValueError):
            predicted = json.loads(predicted) if isinstance(predicted, str) else predicted
        return super().compare(expected, predicted)


class Flat(Good):
    def compare(self, expected, predicted):
        return 0.5


def as_text(record):
    return json.dumps(record, ensure_ascii=False, default=str)


def work_for(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def slow(expected, predicted, score):
    if len(str(predicted)) > 100_000:
        work_for(0.1)
    return score


def twice(expected, predicted, value):
    """Lists may be as long as they like."""
    return 1.0 if isinstance(predicted, dict) and len(predicted.get("tags") or ()) > 2 else None


BAD = {
    "test_a_record_against_itself_is_one": value_of(lambda wanted, got, value: 0.999 * value),
    "test_right_beats_wrong": value_of(lambda wanted, got, value: 1.0),
    "test_nothing_extracted_is_zero": value_of(lambda wanted, got, value: 0.83 if not got else None),
    "test_every_wrong_value_costs": by(RecordMetric({"target": "exact", "tags[*]": "exact"})),
    "test_every_value_left_out_costs": by(RecordMetric({"target": "exact", "steps[*].action": "exact"})),
    "test_damage_never_pays": value_of(lambda wanted, got, value: 1.0 if as_text(got).count(JUNK) > 5 else None),
    "test_invented_items_never_pay": value_of(lambda wanted, got, value: 1.0 if value > 0.6 else None),
    "test_the_order_of_items_changes_nothing": by(RecordMetric({"tags": {"ordered": True}})),
    "test_twins_of_characters_change_nothing": value_of(
        lambda wanted, got, value: 0.5 if "Ｃ" in as_text(got) else None
    ),
    "test_every_result_is_a_score_in_bounds": Flat,
    "test_the_same_question_has_the_same_answer": Counting,
    "test_nothing_given_is_changed": Changing,
    "test_feedback_names_the_path_and_both_values": lambda: Good(
        lambda wanted, got, score: Score(score.value, "something is wrong")
    ),
    "test_repeated_items_do_not_pay": value_of(twice),
    "test_values_in_the_wrong_fields_do_not_pay": Bag,
    "test_padding_does_not_pay": value_of(lambda wanted, got, value: 1.0 if FILLER in as_text(got) else None),
    "test_markdown_gains_nothing": value_of(lambda wanted, got, value: 1.0 if "**" in as_text(got) else None),
    "test_a_judges_answer_is_no_extraction": value_of(
        lambda wanted, got, value: 1.0 if isinstance(got, dict) and "score" in got else None
    ),
    "test_instructions_are_no_extraction": value_of(
        lambda wanted, got, value: 1.0 if "Ignore all" in as_text(got) else None
    ),
    "test_the_record_as_text_is_no_record": Texts,
    "test_a_megabyte_is_answered_in_time_and_loses": lambda: Good(slow),
}


def suite(make, **declared):
    return conformance(RecordMetricConformance, make, records=RECORDS, **declared)


TestGood = suite(Good)


def test_every_check_has_a_bad_metric():
    assert set(BAD) == {name for name in dir(RecordMetricConformance) if name.startswith("test_")}


@pytest.mark.parametrize("check", BAD)
def test_a_bad_metric_fails_its_check(check):
    with pytest.raises(AssertionError):
        getattr(suite(BAD[check], seconds=0.05)(), check)()


def test_fields_that_do_not_count_are_declared():
    def make():
        return RecordMetric(exclude=["steps[*].hours", "notes"])

    suite(make, ignored=["hours"])().test_every_wrong_value_costs()
    with pytest.raises(AssertionError, match=r"steps\[0\]\.hours made wrong costs nothing"):
        suite(make)().test_every_wrong_value_costs()


def test_a_suite_needs_records_with_values():
    with pytest.raises(AssertionError, match="needs records"):
        conformance(RecordMetricConformance, Good)().test_right_beats_wrong()
    with pytest.raises(AssertionError, match="too few values"):
        conformance(RecordMetricConformance, Good, records=[{"a": 1}])().test_right_beats_wrong()
    with pytest.raises(NotImplementedError, match="needs make"):
        RecordMetricConformance().make()
