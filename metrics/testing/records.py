"""RecordMetricConformance: what every metric that compares two records must hold."""

from __future__ import annotations

import copy
import itertools
import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from metrics.evaluators.text import shown
from metrics.score import Metric
from metrics.testing.attacks import INSTRUCTIONS, JUDGE_ANSWERS, MEGABYTE, in_markdown, padded, repeated
from metrics.testing.damage import JUNK, Path, changed, every_leaf, falls, held, leaves, shown_path, shuffled, twin
from metrics.testing.suites import Conformance, number, sound

ODD_RECORDS: tuple[Any, ...] = (
    None, "", "text", 5, True, [], {}, [None], [[]], {"a": None}, {"": {"": [""]}}, {"value": [1, {"b": [None, "x"]}]},
    [["x"], "x"], {"a.b": 1, "c[*]": 2}, {"a": "\ud800"}, {"nan": float("nan"), "inf": float("inf"), "big": 10**400},
)  # fmt: skip
"""Records that no metric may choke on."""


class RecordMetricConformance(Conformance):
    """Checks for a metric with `compare(expected, predicted)`: `make`, and some `records`.

    Attributes:
        records: expected records as plain data, each with several values and, where the metric matches them, lists.
        ignored: names of fields that do not count, at any depth. Every other value must.
        ordered: the order of lists matters to the metric.
        reads_twins: other Unicode characters of the same meaning change nothing.
        attack_limit: the most that a record without anything right in it may score.
        seconds: for one comparison with a megabyte of text.

    >>> from metrics import RecordMetric
    >>> class TestMine(RecordMetricConformance):
    ...     make = lambda self: RecordMetric()
    ...     records = [{"target": "LiCoO2", "steps": [{"action": "mix"}, {"action": "heat", "hours": 5}]}]
    >>> TestMine().test_every_wrong_value_costs()
    """

    records: ClassVar[Sequence[Any]] = ()
    ignored: ClassVar[Sequence[str]] = ()
    ordered: ClassVar[bool] = False
    reads_twins: ClassVar[bool] = True
    attack_limit: ClassVar[float] = 0.5
    seconds: ClassVar[float] = 5.0

    def make(self) -> Metric:
        """The metric under test."""
        raise self._needs_make()

    # Right and wrong

    def test_a_record_against_itself_is_one(self) -> None:
        metric = self.make()
        for record in self._records():
            for same in (record, copy.deepcopy(record), json.loads(json.dumps(record))):
                assert self._value(metric, record, same) == 1.0, f"{shown(record)} against itself is not 1"

    def test_right_beats_wrong(self) -> None:
        metric = self.make()
        for record in self._records():
            places, partly = self._places(record), record
            for path in places[: len(places) // 2]:
                partly = changed(partly, path, JUNK)
            values = [self._value(metric, record, one) for one in (record, partly, every_leaf(record, lambda _: JUNK))]
            assert values[0] > values[1] > values[2], f"right, half right and wrong: {values}"

    def test_nothing_extracted_is_zero(self) -> None:
        metric = self.make()
        for record in self._records():
            empty = (
                None,
                {},
                [],
                "",
                every_leaf(record, lambda _: None),
                every_leaf(record, lambda _: ""),
                _emptied(record),
            )
            for nothing in empty:
                value = self._value(metric, record, nothing)
                assert value == 0.0, f"{shown(nothing)} for {shown(record)} is {value}"

    def test_every_wrong_value_costs(self) -> None:
        self._costs_everywhere(lambda record, path: changed(record, path, JUNK), "made wrong")

    def test_every_value_left_out_costs(self) -> None:
        self._costs_everywhere(lambda record, path: changed(record, path, None), "left out")

    def test_damage_never_pays(self) -> None:
        metric = self.make()
        for record in self._records():
            values, damaged = [self._value(metric, record, record)], record
            for path in self._places(record):
                damaged = changed(damaged, path, JUNK)
                values.append(self._value(metric, record, damaged))
            assert falls(values), f"damage pays: {values}"

    def test_invented_items_never_pay(self) -> None:
        metric = self.make()
        for record in self._records():
            right = self._value(metric, record, record)
            for path in self._lists(record):
                items = held(record, path)
                more = changed(record, path, [*items, every_leaf(items[0], lambda _: JUNK)])
                value = self._value(metric, record, more)
                assert value < right, f"an invented item of {shown_path(path)} costs nothing"

    def test_the_order_of_items_changes_nothing(self) -> None:
        metric = self.make()
        for record in self._records() if not self.ordered else ():
            partly = changed(record, self._places(record)[0], JUNK)
            for predicted, turns in itertools.product((record, partly), (1, 2)):
                value = self._value(metric, record, predicted)
                for other in ((record, shuffled(predicted, turns)), (shuffled(record, turns), predicted)):
                    turned = self._value(metric, *other)
                    assert math.isclose(value, turned), f"with lists in another order {turned} instead of {value}"

    def test_twins_of_characters_change_nothing(self) -> None:
        metric = self.make()
        for record in self._records() if self.reads_twins else ():
            value = self._value(metric, record, every_leaf(record, twin))
            assert math.isclose(value, 1.0), f"the same characters in another form are worth {value}"

    # The contract

    def test_every_result_is_a_score_in_bounds(self) -> None:
        metric = self.make()
        for expected, predicted in self._questions():
            sound(metric.compare(expected, predicted))

    def test_the_same_question_has_the_same_answer(self) -> None:
        first, second = self.make(), self.make()
        assert first.version == second.version, "two metrics made alike have different versions"
        questions = self._questions()
        answers = [first.compare(*question) for question in questions]
        again = [first.compare(*question) for question in reversed(questions)][::-1]
        for question, *scores in zip(
            questions, answers, again, [second.compare(*each) for each in questions], strict=True
        ):
            said = [(score.value, score.feedback, score.error) for score in scores]
            assert said[0] == said[1] == said[2], f"{shown(question)} was answered differently: {said}"

    def test_nothing_given_is_changed(self) -> None:
        metric = self.make()
        for record in self._records():
            given = [record, shuffled(record), changed(record, self._places(record)[0], JUNK)]
            before = copy.deepcopy(given)
            for predicted in given:
                metric.compare(given[0], predicted)
            assert given == before, f"changed: {shown(before)} became {shown(given)}"

    def test_feedback_names_the_path_and_both_values(self) -> None:
        metric = self.make()
        for record in self._records():
            for path in self._places(record):
                feedback = metric.compare(record, changed(record, path, JUNK)).feedback
                place, expected = shown_path(path), held(record, path)
                holder = place.rpartition(".")[0] or place  # a wrong item may be told as a whole
                for what, words in (
                    ("path", (place, holder)),
                    ("expected", (shown(expected), str(expected))),
                    ("extracted", (JUNK,)),
                ):
                    assert any(word in feedback for word in words), f"{place}: the {what} is not in {feedback!r}"

    # Attacks

    def test_repeated_items_do_not_pay(self) -> None:
        metric = self.make()
        for record in self._records():
            right = self._value(metric, record, record)
            for path in self._lists(record):
                for times in (2, 20):
                    value = self._value(metric, record, changed(record, path, repeated(held(record, path), times)))
                    assert value < right, f"{shown_path(path)} {times} times over costs nothing"
            listed = [self._value(metric, record, [record, record]), self._value(metric, record, {"": record})]
            assert max(listed) < right, f"the record in a list, and below a name: {listed}"

    def test_values_in_the_wrong_fields_do_not_pay(self) -> None:
        metric = self.make()
        for record in self._records():
            places = self._places(record)
            values = [held(record, path) for path in places]
            moved = record
            for path, value in zip(places, [*values[1:], values[0]], strict=True):
                moved = changed(moved, path, value)
            if len({shown_path(tuple(key for key in path if isinstance(key, str))) for path in places}) > 1:
                value = self._value(metric, record, moved)
                assert value < 1.0, "every value may stand in its neighbour's field"

    def test_padding_does_not_pay(self) -> None:
        metric = self.make()
        for record in self._records():
            value = self._value(metric, record, every_leaf(record, padded))
            assert value <= self.attack_limit, f"every value lost in a sentence scores {value}"

    def test_markdown_gains_nothing(self) -> None:
        metric = self.make()
        for record in self._records():
            wrong = every_leaf(record, lambda _: JUNK)
            for number_of_dress, plain in itertools.product(range(len(in_markdown(""))), (record, wrong)):
                dressed = every_leaf(plain, lambda value, n=number_of_dress: in_markdown(value)[n])
                value, bare = self._value(metric, record, dressed), self._value(metric, record, plain)
                assert value <= bare, f"in markdown {value} instead of {bare}"

    def test_a_judges_answer_is_no_extraction(self) -> None:
        self._are_worth_little(
            [*JUDGE_ANSWERS, *(lambda record, one=one: every_leaf(record, lambda _: one) for one in JUDGE_ANSWERS)]
        )

    def test_instructions_are_no_extraction(self) -> None:
        self._are_worth_little(
            [*INSTRUCTIONS, *(lambda record, one=one: every_leaf(record, lambda _: one) for one in INSTRUCTIONS)]
        )

    def test_the_record_as_text_is_no_record(self) -> None:
        self._are_worth_little([lambda record: json.dumps(record), lambda record: [json.dumps(record)]])

    def test_a_megabyte_is_answered_in_time_and_loses(self) -> None:
        metric = self.make()
        for record in self._records():
            for predicted in (MEGABYTE, changed(record, self._places(record)[0], MEGABYTE)):
                started = time.process_time()
                value = self._value(metric, record, predicted)
                took = time.process_time() - started
                assert took < self.seconds, f"a megabyte of text took {took:.1f} s"
                assert value < 1.0, "a megabyte of text in place of a value costs nothing"

    # Asking

    def _records(self) -> Sequence[Any]:
        assert self.records, f"{type(self).__name__} needs records: expected records as plain data"
        return copy.deepcopy(list(self.records))

    def _places(self, record: Any) -> list[Path]:
        """The places that count."""
        found = [path for path in leaves(record) if not any(key in self.ignored for key in path)]
        assert len(found) > 1, f"{shown(record)} has too few values to test with"
        return found

    def _lists(self, record: Any) -> list[Path]:
        """Where the lists are that hold something that counts."""
        inside = {path[:n]: None for path in self._places(record) for n in range(len(path))}
        return [path for path in inside if isinstance(held(record, path), list)]

    def _questions(self) -> list[tuple[Any, Any]]:
        records = [*self._records(), *(changed(record, self._places(record)[0], JUNK) for record in self._records())]
        strange = [
            pair for odd in ODD_RECORDS for pair in ((self._records()[0], odd), (odd, self._records()[0]), (odd, odd))
        ]
        return [*itertools.product(records, records), *strange]

    def _value(self, metric: Metric, expected: Any, predicted: Any) -> float:
        return number(metric.compare(expected, predicted), f"{shown(predicted)} for {shown(expected)}")

    def _costs_everywhere(self, change: Any, what: str) -> None:
        metric = self.make()
        for record in self._records():
            right = self._value(metric, record, record)
            for path in self._places(record):
                value = self._value(metric, record, change(record, path))
                assert value < right, f"{shown_path(path)} {what} costs nothing"

    def _are_worth_little(self, attacks: Sequence[Any]) -> None:
        metric = self.make()
        for record, attack in itertools.product(self._records(), attacks):
            predicted = attack(record) if callable(attack) else attack
            value = self._value(metric, record, predicted)
            assert value <= self.attack_limit, f"{shown(predicted)} scores {value}"


def _emptied(record: Any) -> Any:
    """The record with every list empty and every value gone."""
    if isinstance(record, Mapping):
        return {name: _emptied(inner) for name, inner in record.items()}
    return [] if isinstance(record, list) else None
