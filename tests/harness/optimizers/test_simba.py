"""SIMBA: its candidates are chosen on validation, its rules are checked, what a program cannot answer counts 0."""

import pytest

from harness.errors import UsageError
from harness.optimizers.catalogue import CATALOGUE, find_optimizer
from metrics.score import Score

SMALL = {"num_candidates": 2, "max_steps": 2, "bsize": 3}
RULE = "Where a sample has a number, the label has it too."


def test_the_best_on_validation_is_taken(job, scripts, compiled):
    made = job(
        scripts.right_when(lambda asked, number: number % 2 or scripts.has_demos(asked, number)),
        prompt=scripts.says(RULE),
    )
    result = compiled(made, "simba", **SMALL)
    assert result.candidates[0].name == "as it is"
    assert {candidate.n for candidate in result.candidates} == {4}
    assert max(candidate.score for candidate in result.candidates) == 1.0
    assert result.program.extract.demos
    assert all("on training examples" in candidate.description for candidate in result.candidates[1:])


def test_candidates_that_only_did_well_in_training_are_not_taken(job, scripts, compiled):
    made = job(
        scripts.right_when(
            lambda asked, number: number % 2 if number >= 10 else number % 2 or scripts.has_demos(asked, number)
        ),
        prompt=scripts.says(RULE),
    )
    result = compiled(made, "simba", **SMALL)
    assert max(candidate.score for candidate in result.candidates) == 0.5
    assert result.program.extract.demos == []


@pytest.mark.parametrize("said", ["", "Error code: 429 - Rate limit reached", "I'm sorry, I can't do that."])
def test_advice_that_is_none_is_not_appended(job, scripts, compiled, said):
    made = job(scripts.right_when(lambda _, number: number % 2), prompt=scripts.says(said))
    result = compiled(made, "simba", **SMALL, max_demos=0)
    assert result.program.extract.signature.instructions == made.job.program.extract.signature.instructions
    assert all("other instructions" not in candidate.description for candidate in result.candidates)


def test_good_advice_is_appended_and_counted(job, scripts, compiled):
    drawn = {}

    def varies(asked, number):
        drawn[number] = drawn.get(number, 0) + 1
        return RULE in asked or drawn[number] % 2

    made = job(scripts.right_when(varies), prompt=scripts.says(RULE), train=range(8))
    result = compiled(made, "simba", num_candidates=3, max_steps=2, bsize=8, max_demos=0)
    assert any("rules for extract" in note and "could be used" in note for note in result.notes)
    assert any("other instructions" in candidate.description for candidate in result.candidates)


def test_an_answer_that_cannot_be_read_counts_0_and_is_counted(job, scripts, compiled):
    right = scripts.right_when(lambda *_: True)
    made = job(
        lambda request: "no JSON" if "sample-2" in request.messages[-1].text else right(request),
        prompt=scripts.says(RULE),
        train=range(3),
    )
    result = compiled(made, "simba", **SMALL)
    assert any("the program had given no record" in note for note in result.notes)


def test_more_examples_per_step_than_there_are_is_said_before_anything_is_spent(job, scripts, compiled):
    entry, arguments = find_optimizer("simba", {"bsize": 32}, "a file")
    assert entry.problem(arguments, 20, 10) == "bsize is 32, but there are only 20 training examples"
    made = job(scripts.right_when(lambda *_: True))
    with pytest.raises(UsageError, match="simba: bsize is 32, but there are only 6 training examples"):
        compiled(made, "simba", bsize=32)
    assert made.provider.requests == []
    assert CATALOGUE["simba"].problem(CATALOGUE["simba"].arguments(), 20, 10) is None


def test_the_teacher_is_left_as_it_was(job, scripts, compiled):
    from dataclasses import replace

    made = job(scripts.right_when(lambda *_: True), prompt=scripts.says(RULE))
    made.job = replace(made.job, teacher=made.job.runtime.lm.copy())
    before = dict(made.job.teacher.kwargs)
    compiled(made, "simba", **SMALL)
    assert made.job.teacher.kwargs == before


def test_scores_that_are_no_python_float_are_none_to_simba(job, scripts, compiled):
    import numpy

    made = job(
        scripts.right_when(lambda *_: True),
        prompt=scripts.says(RULE),
        metric=scripts.Exact(lambda *_: Score(float(numpy.float32(0.5)))),
    )
    assert {candidate.score for candidate in compiled(made, "simba", **SMALL).candidates} == {0.5}
