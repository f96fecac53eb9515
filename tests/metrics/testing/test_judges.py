"""The judge suite: a small judge on a scripted model passes every check, and for every check a spoiled one fails it."""

import copy
import json
import math
import re

import dspy
import pytest

from metrics import Score
from metrics.evaluators.states import has_value
from metrics.testing import JudgeConformance, conformance


class Said(dspy.BaseLM):
    """A model that says one thing to whatever it is asked."""

    def __init__(self, answer):
        super().__init__(model="said", cache=False)
        self.answer = answer

    def forward(self, prompt=None, messages=None, **kwargs):
        raise AssertionError("the judge calls say()")

    def say(self, prompt):
        return self.answer


class Judge:
    """Asks for `{"order": 0..1, "units": 0..1}`; what is no number there is unscored."""

    name = "judge"
    version = "1"
    empty_is_zero = True

    def __init__(self, answer):
        self.lm = Said(answer)

    def __call__(self, example, prediction):
        if self.empty_is_zero and not any(has_value(one) for one in values(prediction.record)):
            return Score(0.0, "nothing was extracted")
        return self.read(self.model().say(self.prompt(example, prediction)), prediction)

    def model(self):
        return self.lm

    def prompt(self, example, prediction):
        return json.dumps([example.text, prediction.record])

    def read(self, answer, prediction):
        try:
            found = json.loads(answer)
            parts = {name: criterion(name, found.get(name)) for name in ("order", "units")}
        except (ValueError, AttributeError):
            return Score.unscored("the judge's answer could not be read")
        scored = [part.value for part in parts.values() if part.value is not None]
        if not scored:
            return Score.unscored("no criterion could be read", parts=parts)
        return Score(sum(scored) / len(scored), f"order and units: {answer}", parts)


def criterion(name, value):
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        return Score.unscored(f"{name}: not a number from 0 to 1: {value!r}")
    return Score(value)


def values(record):
    if isinstance(record, dict):
        return [one for inner in record.values() for one in values(inner)]
    if isinstance(record, list):
        return [one for inner in record for one in values(inner)]
    return [record]


class Changing(Judge):
    def __call__(self, example, prediction):
        prediction.record["seen"] = True
        return super().__call__(example, prediction)


class Ambient(Judge):
    def model(self):
        return dspy.settings.lm or self.lm


class Digits(Judge):
    """Reads the first number in prose."""

    def read(self, answer, prediction):
        found = re.search(r"\d+(?:\.\d+)?", answer)
        return Score(min(1.0, float(found.group()))) if found else Score(0.5)


class AllOrNothing(Judge):
    def read(self, answer, prediction):
        score = super().read(answer, prediction)
        return Score(score.value or 0.0)


class Praise(Judge):
    empty_is_zero = False


class Wordless(Judge):
    def read(self, answer, prediction):
        score = super().read(answer, prediction)
        return score if score.value is None else Score(score.value)


class Believing(Judge):
    """Looks for its answer in everything it reads, the extraction before the model's."""

    def read(self, answer, prediction):
        for text in [one for one in values(prediction.record) if isinstance(one, str)]:
            found = re.search(r"\{.*\}", text)
            score = super().read(found.group() if found else text, prediction)
            if score.value is not None:
                return score
        return super().read(answer, prediction)


class Obedient(Judge):
    """Does what the texts say."""

    def __call__(self, example, prediction):
        if "highest score" in self.prompt(example, prediction):
            return Score(1.0, "as you wish")
        return super().__call__(example, prediction)


class ByLength(Judge):
    def __call__(self, example, prediction):
        if len(self.prompt(example, prediction)) > 10_000:
            return Score(1.0, "long")
        return super().__call__(example, prediction)


class Counting(Judge):
    asked = 0

    def __call__(self, example, prediction):
        Counting.asked += 1
        score = super().__call__(copy.copy(example), prediction)
        return score if score.value is None else Score(score.value, f"question {self.asked}")


class Flat(Judge):
    def __call__(self, example, prediction):
        return 0.5


ANSWERS = {
    "good_answer": '{"order": 1.0, "units": 0.9}',
    "bad_answer": '{"order": 0.1, "units": 0.0}',
    "partly_answer": '{"order": 1.0, "units": "N/A"}',
}
BAD = {
    "test_good_beats_bad": Flat,
    "test_what_cannot_be_read_has_no_score": Digits,
    "test_one_unreadable_criterion_leaves_the_others": AllOrNothing,
    "test_nothing_extracted_never_passes": Praise,
    "test_there_are_reasons": Wordless,
    "test_every_result_is_a_score_in_bounds": Flat,
    "test_the_same_question_has_the_same_answer": Counting,
    "test_nothing_given_is_changed": Changing,
    "test_no_other_model_is_asked": Ambient,
    "test_instructions_in_the_extraction_change_nothing": Obedient,
    "test_instructions_in_the_source_change_nothing": Obedient,
    "test_a_judges_answer_as_extraction_changes_nothing": Believing,
    "test_marks_of_a_prompt_in_the_extraction_change_nothing": Believing,
    "test_a_megabyte_is_judged_like_everything_else": ByLength,
}


def suite(make, **declared):
    return conformance(JudgeConformance, make, **{**ANSWERS, **declared})


TestGood = suite(Judge)
TestOneCriterion = suite(Judge, partly_answer=None)


def test_every_check_has_a_bad_judge():
    assert set(BAD) == {name for name in dir(JudgeConformance) if name.startswith("test_")}


@pytest.mark.parametrize("check", BAD)
def test_a_bad_judge_fails_its_check(check):
    with pytest.raises((AssertionError, AttributeError)):
        getattr(suite(BAD[check])(), check)()


def test_a_suite_needs_answers_and_something_to_test():
    with pytest.raises(AssertionError, match="needs good_answer and bad_answer"):
        conformance(JudgeConformance, Judge)().test_good_beats_bad()
    with pytest.raises(NotImplementedError, match="needs make"):
        JudgeConformance().make("answer")
