"""EvaluatorConformance: what every evaluator must hold."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from metrics.evaluators.base import BaseEvaluator
from metrics.evaluators.states import MISSING
from metrics.evaluators.text import shown
from metrics.score import Score, UnscoredError
from metrics.testing.attacks import (
    INSTRUCTIONS,
    JUDGE_ANSWERS,
    MEGABYTE,
    in_another_field,
    in_markdown,
    padded,
    repeated,
)
from metrics.testing.damage import damaged_value, falls
from metrics.testing.suites import Conformance, number, sound

NOTHING: tuple[Any, ...] = (None, MISSING, "", " \t\n", [], {})
"""Everything that holds nothing."""

ODD_VALUES: tuple[Any, ...] = (
    0, -1, 1e300, 10**400, math.inf, math.nan, True, False, "0", "None", "null", "-", "°C", "5 h", "٣", "\ud800",
    "a\x00b", "LiCoO₂", "e\u0301", "🧪" * 50, ["a", None], [[1], {"b": 2}], {"value": 5, "unit": "h"}, b"bytes", object,
)  # fmt: skip
"""Values that no evaluator may choke on."""


class EvaluatorConformance(Conformance):
    """Checks for an evaluator: `make`, and some `examples`.

    Attributes:
        examples: (expected, right, wrong): an extraction that is right, or as right as it gets, and one that is not.
        symmetric: swapping both sides changes nothing.
        order_free: the order of a list's items changes nothing.
        best: what the expected value itself scores.
        attack_limit: the most that text without anything right in it may score.
        odd_values: values that must give a Score or none, never an exception; () where a rule is for one type only.
        seconds: for one comparison with a megabyte of text.

    >>> from metrics import LevenshteinEvaluator
    >>> class TestMine(EvaluatorConformance):
    ...     make = lambda self: LevenshteinEvaluator({"threshold": 0.5})
    ...     examples = [("John Doe", "Jon Doe", "Jane Smith")]
    >>> TestMine().test_damage_never_pays()
    """

    examples: ClassVar[Sequence[tuple[Any, Any, Any]]] = ()
    symmetric: ClassVar[bool] = False
    order_free: ClassVar[bool] = False
    best: ClassVar[float] = 1.0
    attack_limit: ClassVar[float] = 0.5
    odd_values: ClassVar[Sequence[Any]] = ODD_VALUES
    seconds: ClassVar[float] = 5.0

    def make(self) -> BaseEvaluator:
        """The evaluator under test."""
        raise self._needs_make()

    def inputs(self, expected: Any) -> Mapping[str, Any] | None:
        """The inputs of the program, for an evaluator that looks at them."""
        return None

    def damaged(self, expected: Any) -> Sequence[Any]:
        """The expected value made worse and worse."""
        return damaged_value(expected)

    # Right and wrong

    def test_right_beats_wrong(self) -> None:
        evaluator = self.make()
        for expected, right, wrong in self._examples():
            better, worse = (self._value(evaluator, extracted, expected) for extracted in (right, wrong))
            assert better > worse, f"for {shown(expected)}: {shown(right)} {better}, {shown(wrong)} {worse}"

    def test_the_expected_value_is_the_best_there_is(self) -> None:
        evaluator = self.make()
        for expected, right, wrong in self._examples():
            own = self._value(evaluator, copy.deepcopy(expected), expected)
            assert math.isclose(own, self.best), f"{shown(expected)} against itself is {own}, not {self.best}"
            for extracted in (right, wrong):
                assert self._value(evaluator, extracted, expected) <= own, f"{shown(extracted)} beats {shown(expected)}"

    def test_nothing_extracted_is_zero(self) -> None:
        evaluator = self.make()
        for (expected, _, _), nothing in itertools.product(self._examples(), NOTHING):
            value = self._value(evaluator, nothing, expected)
            assert value == 0.0, f"{nothing!r} for {shown(expected)} is {value}"

    def test_damage_never_pays(self) -> None:
        evaluator = self.make()
        for expected, _, _ in self._examples():
            values = [self._value(evaluator, one, expected) for one in (expected, *self.damaged(expected))]
            assert falls(values), f"damage to {shown(expected)} pays: {values}"
            assert values[-1] < values[0], f"damage to {shown(expected)} costs nothing: {values}"

    # The contract

    def test_every_result_is_a_score_in_bounds(self) -> None:
        evaluator = self.make()
        for extracted, expected in self._questions():
            sound(self._ask(evaluator, extracted, expected))

    def test_evaluate_says_what_score_says(self) -> None:
        evaluator = self.make()
        for extracted, expected in self._questions():
            score = self._ask(evaluator, extracted, expected)
            try:
                value = evaluator.evaluate(extracted, expected, self.inputs(expected))
            except UnscoredError:
                value = None
            assert value == score.value, f"evaluate {value}, score {score.value} for {shown(extracted)}"

    def test_the_same_question_has_the_same_answer(self) -> None:
        first, second = self.make(), self.make()
        assert first.version == second.version, "two evaluators made alike have different versions"
        assert isinstance(first.name, str), "the name is text"
        assert first.name, "the name is empty"
        questions = list(self._questions())
        answers = [self._ask(first, *question) for question in questions]
        again = [self._ask(first, *question) for question in reversed(questions)][::-1]
        others = [self._ask(second, *question) for question in questions]
        for question, *scores in zip(questions, answers, again, others, strict=True):
            said = [(score.value, score.feedback) for score in scores]
            assert said[0] == said[1] == said[2], f"{shown(question)} was answered differently: {said}"

    def test_nothing_given_is_changed(self) -> None:
        evaluator = self.make()
        for extracted, expected in self._questions(odd=False):
            given = [extracted, expected, self.inputs(expected)]
            before = copy.deepcopy(given)
            evaluator.score(given[0], given[1], given[2], "a.b")
            evaluator.similarities([given[0]], [given[1]])
            assert given == before, f"changed: {before} became {given}"

    def test_feedback_names_the_path_and_both_values(self) -> None:
        evaluator = self.make()
        for expected, _, wrong in self._examples():
            feedback = self._ask(evaluator, wrong, expected, "steps[3].place").feedback
            for part, words in (
                ("path", ("steps[3].place",)),
                ("expected", _words(expected)),
                ("extracted", _words(wrong)),
            ):
                assert any(word in feedback for word in words), f"the {part} is not in the feedback {feedback!r}"

    def test_likeness_is_a_matrix_in_bounds(self) -> None:
        evaluator = self.make()
        rows = [right for _, right, _ in self._examples()] + [wrong for _, _, wrong in self._examples()]
        columns = [expected for expected, _, _ in self._examples()]
        for extracted, expected in ((rows, columns), (rows, columns[:1]), (rows[:1], columns)):
            matrix = evaluator.similarities(extracted, expected)
            assert matrix.shape == (len(extracted), len(expected)), f"similarities have the shape {matrix.shape}"
            wrong = [
                value for value in matrix.ravel().tolist() if not (math.isnan(value) or -1e-9 <= value <= 1 + 1e-9)
            ]
            assert not wrong, f"similarities out of 0..1: {wrong}"

    # What is declared

    def test_swapping_both_sides_changes_nothing(self) -> None:
        evaluator = self.make()
        for expected, right, wrong in self._examples() if self.symmetric else ():
            for other in (right, wrong):
                there, back = self._value(evaluator, other, expected), self._value(evaluator, expected, other)
                assert math.isclose(there, back), f"{shown(expected)} and {shown(other)}: {there}, swapped {back}"

    def test_the_order_of_items_changes_nothing(self) -> None:
        evaluator = self.make()
        for expected, right, wrong in self._examples() if self.order_free else ():
            assert isinstance(expected, list), f"order_free is for lists, {shown(expected)} is none"
            for extracted in (right, wrong):
                value = self._value(evaluator, extracted, expected)
                for turned in (
                    self._value(evaluator, extracted[::-1], expected),
                    self._value(evaluator, extracted, expected[::-1]),
                ):
                    assert math.isclose(value, turned), f"{shown(extracted)}: {value}, turned round {turned}"

    # Attacks

    def test_repetition_does_not_pay(self) -> None:
        self._lose_to_the_right_one(lambda expected, wrong: [repeated(expected), repeated(wrong), repeated(wrong, 500)])

    def test_padding_does_not_pay(self) -> None:
        self._lose_to_the_right_one(lambda expected, wrong: [padded(expected), padded(wrong)])

    def test_a_value_in_another_field_does_not_pay(self) -> None:
        self._lose_to_the_right_one(lambda expected, wrong: in_another_field(expected))

    def test_markdown_gains_nothing(self) -> None:
        evaluator = self.make()
        for expected, _, wrong in self._examples():
            for plain in (expected, wrong):
                bare = self._value(evaluator, plain, expected)
                for dressed in in_markdown(plain):
                    value = self._value(evaluator, dressed, expected)
                    assert value <= max(bare, self.attack_limit), f"{dressed!r} is {value}, {shown(plain)} {bare}"

    def test_a_judges_answer_is_no_extraction(self) -> None:
        self._are_worth_little(JUDGE_ANSWERS)

    def test_instructions_are_no_extraction(self) -> None:
        self._are_worth_little(INSTRUCTIONS)
        self._lose_to_the_right_one(lambda expected, wrong: [f"{wrong} {text}" for text in INSTRUCTIONS])

    def test_a_megabyte_is_answered_in_time_and_loses(self) -> None:
        evaluator = self.make()
        for expected, _, _ in self._examples()[:1]:
            for extracted in (MEGABYTE, f"{MEGABYTE} {expected}", [MEGABYTE], "9" * 2**20):
                started = time.process_time()
                value = self._value(evaluator, extracted, expected)
                took = time.process_time() - started
                assert took < self.seconds, f"a megabyte of text took {took:.1f} s"
                assert value <= self.attack_limit, f"a megabyte of text scores {value}"

    # Asking

    def _examples(self) -> Sequence[tuple[Any, Any, Any]]:
        assert self.examples, f"{type(self).__name__} needs examples: (expected, right, wrong)"
        return copy.deepcopy(list(self.examples))

    def _questions(self, odd: bool = True) -> Iterator[tuple[Any, Any]]:
        """(extracted, expected) of everything that is asked."""
        known = [value for example in self._examples() for value in example]
        yield from itertools.product(known, known)
        if odd:
            strange = [*NOTHING, *self.odd_values] if self.odd_values else []
            for value, example in itertools.product(strange, self._examples()):
                yield value, example[0]
                yield example[1], value
            yield from ((value, value) for value in strange)

    def _ask(self, evaluator: BaseEvaluator, extracted: Any, expected: Any, path: str | None = None) -> Score:
        return evaluator.score(extracted, expected, self.inputs(expected), path)

    def _value(self, evaluator: BaseEvaluator, extracted: Any, expected: Any) -> float:
        return number(self._ask(evaluator, extracted, expected), f"{shown(extracted)} for {shown(expected)}")

    def _lose_to_the_right_one(self, attacks: Any) -> None:
        evaluator = self.make()
        for expected, right, wrong in self._examples():
            bar = self._value(evaluator, right, expected)
            for attack in attacks(expected, wrong):
                value = self._value(evaluator, attack, expected)
                assert value < bar, f"{shown(attack)} scores {value} for {shown(expected)}, the right one {bar}"

    def _are_worth_little(self, attacks: Sequence[Any]) -> None:
        evaluator = self.make()
        for (expected, _, _), attack in itertools.product(self._examples(), attacks):
            value = self._value(evaluator, attack, expected)
            assert value <= self.attack_limit, f"{shown(attack)} scores {value} for {shown(expected)}"


def _words(value: Any) -> tuple[str, ...]:
    """How a value may stand in a sentence: its representation, or its text, or the beginning of a long one."""
    text = str(value)
    return (shown(value), text, repr(value)) if len(text) <= 60 else (shown(value)[:40], text[:40])
