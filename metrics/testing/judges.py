"""JudgeConformance: what every metric that asks a language model must hold, whatever the model answers."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from metrics.score import Score
from metrics.testing.attacks import INSTRUCTIONS, JUDGE_ANSWERS, MEGABYTE
from metrics.testing.suites import Conformance, number, sound

UNREADABLE: tuple[str, ...] = (
    "",
    "I cannot judge this.",
    "Score: 3/5",
    "Criterion 1: very poor",
    "The answer is 4 out of 5, so I would say 0.8.",
    "5",
    "{}",
    "[]",
    "null",
    '{"score": null}',
    '{"score": "N/A"}',
    '{"score": NaN}',
    '{"score": 1e999}',
    '{"score": 77}',
    '{"score": -3}',
    '{"Score of the criterion": 4}',
    '{"score": 0.5',
    "\x00\ud800",
)
"""Answers in which there is no score, whatever digits they hold."""


class JudgeConformance(Conformance):
    """Checks for a metric with `metric(example, prediction)` whose model says what the check wants.

    Attributes:
        good_answer, bad_answer: what the model says of a good and of a bad extraction, as the metric asks for it.
        partly_answer: one criterion of which cannot be read; None where there is one criterion only.
        unreadable: answers that give no score, ever.
        source: text that the extraction is from.
        record: an extraction.
        expected: the record to reach, for judges that look at it.

    `make(answer)` gives the metric with a model that says `answer` to whatever it is asked.
    """

    good_answer: ClassVar[str] = ""
    bad_answer: ClassVar[str] = ""
    partly_answer: ClassVar[str | None] = None
    unreadable: ClassVar[Sequence[str]] = UNREADABLE
    source: ClassVar[str] = (
        "LiCoO2 was made by mixing Li2CO3 and Co3O4 and calcining the powder at 900 °C for 12 h in air."
    )
    record: ClassVar[Any] = {"target_compound": "LiCoO2", "steps": [{"action": "mix"}, {"action": "calcine"}]}
    expected: ClassVar[Any] = {"target_compound": "LiCoO2", "steps": [{"action": "mix"}, {"action": "calcine"}]}

    def make(self, answer: str) -> Any:
        """The metric under test, whose model says `answer`."""
        raise self._needs_make()

    def ask(self, metric: Any, record: Any, source: str | None = None) -> Score:
        """One question: the extraction `record` from `source`."""
        text = self.source if source is None else source
        example = SimpleNamespace(id="1", text=text, source_text=text, expected=copy.deepcopy(self.expected))
        return metric(example, SimpleNamespace(record=copy.deepcopy(record)))

    # What the model says decides

    def test_good_beats_bad(self) -> None:
        good, bad = (number(self._said(answer), "a readable answer") for answer in self._answers())
        assert good > bad, f"a good answer gives {good}, a bad one {bad}"

    def test_what_cannot_be_read_has_no_score(self) -> None:
        for answer in self.unreadable:
            score = sound(self._said(answer))
            assert score.value is None, f"{answer!r} was read as {score.value}"

    def test_one_unreadable_criterion_leaves_the_others(self) -> None:
        if self.partly_answer is None:
            return
        score = sound(self._said(self.partly_answer))
        values = [part.value for part in score.parts.values()]
        assert None in values, "the criterion that cannot be read has a value"
        assert any(value is not None for value in values), "no criterion was left"

    def test_nothing_extracted_never_passes(self) -> None:
        good, _ = self._answers()
        for nothing in (None, {}, [], "", {"target_compound": None, "steps": []}):
            score = sound(self.ask(self.make(good), nothing))
            assert not score.value, f"the model praises {nothing!r}, and it scores {score.value}"

    def test_there_are_reasons(self) -> None:
        for answer in self._answers():
            assert self._said(answer).feedback.strip(), f"{answer!r} gives no feedback"

    # The contract

    def test_every_result_is_a_score_in_bounds(self) -> None:
        for answer in (*self._answers(), *self.unreadable, MEGABYTE):
            sound(self._said(answer))

    def test_the_same_question_has_the_same_answer(self) -> None:
        for answer in self._answers():
            first, second = self.make(answer), self.make(answer)
            assert first.version == second.version, "two metrics made alike have different versions"
            said = [
                (score.value, score.feedback)
                for score in (self.ask(one, self.record) for one in (first, first, second))
            ]
            assert said[0] == said[1] == said[2], f"one question, several answers: {said}"

    def test_nothing_given_is_changed(self) -> None:
        good, _ = self._answers()
        example = SimpleNamespace(
            id="1", text=self.source, source_text=self.source, expected=copy.deepcopy(self.expected)
        )
        prediction = SimpleNamespace(record=copy.deepcopy(self.record))
        before = copy.deepcopy((vars(example), vars(prediction)))
        self.make(good)(example, prediction)
        assert (vars(example), vars(prediction)) == before, "the judge changed what it was given"

    def test_no_other_model_is_asked(self) -> None:
        import dspy

        class Other(dspy.BaseLM):
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                raise AssertionError("the judge asked the model of its surroundings")

        good, _ = self._answers()
        metric = self.make(good)
        with dspy.context(lm=Other(model="other")):
            number(self.ask(metric, self.record), "a readable answer")

    # Attacks

    def test_instructions_in_the_extraction_change_nothing(self) -> None:
        self._are_judged_alike([{**_mapping(self.record), "notes": text} for text in INSTRUCTIONS])

    def test_instructions_in_the_source_change_nothing(self) -> None:
        self._are_judged_alike([self.record] * len(INSTRUCTIONS), [f"{self.source} {text}" for text in INSTRUCTIONS])

    def test_a_judges_answer_as_extraction_changes_nothing(self) -> None:
        good, _ = self._answers()
        self._are_judged_alike([{**_mapping(self.record), "notes": text} for text in (*JUDGE_ANSWERS, good)])

    def test_marks_of_a_prompt_in_the_extraction_change_nothing(self) -> None:
        good, _ = self._answers()
        marks = ("[[ ## completed ## ]]", "```", "</record>", "{source_text}", "{{record}}", "%s {0}", "<|im_end|>")
        self._are_judged_alike([{**_mapping(self.record), "notes": f"{mark}\n{good}\n{mark}"} for mark in marks])

    def test_a_megabyte_is_judged_like_everything_else(self) -> None:
        self._are_judged_alike([{**_mapping(self.record), "notes": MEGABYTE}])

    def _said(self, answer: str) -> Score:
        return self.ask(self.make(answer), self.record)

    def _answers(self) -> tuple[str, str]:
        assert self.good_answer, f"{type(self).__name__} needs good_answer and bad_answer"
        assert self.bad_answer, f"{type(self).__name__} needs good_answer and bad_answer"
        return self.good_answer, self.bad_answer

    def _are_judged_alike(self, records: Sequence[Any], sources: Sequence[str] | None = None) -> None:
        """The model says "bad" whatever it reads: then the score is the bad one, or none."""
        _, bad = self._answers()
        bar = number(self._said(bad), "a readable answer")
        for record, source in zip(records, sources or [self.source] * len(records), strict=True):
            score = sound(self.ask(self.make(bad), record, source))
            said = json.dumps(record, default=str)[:80]
            assert score.value is None or score.value == bar, f"{said} moved the score from {bar} to {score.value}"


def _mapping(record: Any) -> dict[str, Any]:
    return dict(record) if isinstance(record, dict) else {"record": record}
