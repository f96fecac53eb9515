"""A winner within the metric's noise is not taken; a metric that agrees with itself costs nothing."""

import random

import pytest

from harness.errors import StopReason
from harness.optimizers.catalogue import CATALOGUE
from metrics.score import Score

SMALL = {
    "bootstrap_random_search": {"num_candidate_programs": 4},
    "gepa": {"max_metric_calls": 60},
    "miprov2": {"num_candidates": 4, "num_trials": 12},
    "nearest_demos": {"k": [1, 2, 3]},
    "simba": {"num_candidates": 3, "max_steps": 2, "bsize": 4},
}
SAYS = "Name the label of the sample."


@pytest.mark.parametrize("name", sorted(SMALL))
@pytest.mark.parametrize("seed", [1, 2])
def test_luck_is_not_taken_for_a_gain(job, scripts, compiled, name, seed):
    draw = random.Random(seed)
    made = job(
        scripts.right_when(lambda *_: True),
        prompt=scripts.says(SAYS, "Which label?", "Say what it is."),
        metric=scripts.Exact(lambda *_: Score(draw.random())),
        validation=range(10, 20),
    )
    result = compiled(made, name, **SMALL[name])
    assert result.program.predictors()[0].demos == []
    assert _same(result.program, made.job.program)
    best = max(result.candidates, key=lambda candidate: candidate.score)
    if best is not result.candidates[0] or name == "nearest_demos":
        assert any("lies within the metric's noise" in note and "left as it was" in note for note in result.notes)


def _same(program, baseline):
    return (
        type(program) is type(baseline)
        and program.extract.signature.instructions == baseline.extract.signature.instructions
    )


def test_a_gain_that_is_larger_than_the_noise_is_kept(job, scripts, compiled):
    draw = random.Random(0)

    def noisy(expected, got):
        return Score(min(1.0, 0.1 * draw.random() + 0.8 * (expected == got)))

    made = job(scripts.right_when(scripts.has_demos), metric=scripts.Exact(noisy), validation=range(10, 22))
    result = compiled(made, "bootstrap_random_search", **SMALL["bootstrap_random_search"])
    assert result.program.extract.demos
    assert any("scored anew, the best candidate still gains +0.8" in note for note in result.notes)


def test_too_few_examples_cannot_show_a_gain_of_a_noisy_metric(job, scripts, compiled):
    draw = random.Random(0)
    made = job(
        scripts.right_when(scripts.has_demos),
        metric=scripts.Exact(lambda expected, got: Score(0.1 * draw.random() + 0.8 * (expected == got))),
    )
    result = compiled(made, "bootstrap_random_search", **SMALL["bootstrap_random_search"])
    assert result.program.extract.demos == []
    assert any("over too few independent examples" in note for note in result.notes)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_metric_that_agrees_with_itself_costs_no_call(job, scripts, compiled, name, monkeypatch):
    def calls():
        made = job(scripts.right_when(scripts.has_demos), prompt=scripts.says(SAYS))
        result = compiled(made, name, **SMALL[name])
        assert not any("noise" in note for note in result.notes)
        return len(made.provider.requests), len(made.prompt.requests)

    with_the_look = calls()
    monkeypatch.setattr("harness.optimizers.catalogue.above_noise", lambda job, compiled: compiled)
    assert with_the_look == calls()


def test_the_same_score_whatever_is_tried_is_no_signal(job, scripts, compiled):
    made = job(scripts.right_when(lambda *_: True), metric=scripts.Exact(lambda *_: Score(0.5)))
    result = compiled(made, "bootstrap_random_search", **SMALL["bootstrap_random_search"])
    assert any(note.startswith("no signal: every one of 4 validation examples scores 0.50") for note in result.notes)


def test_a_program_that_is_right_already_has_hardly_anything_to_learn(job, scripts, compiled):
    made = job(scripts.right_when(lambda _, number: number != 10), validation=range(10, 30))
    result = compiled(made, "bootstrap_random_search", num_candidate_programs=1)
    assert any("gets 19 of 20 validation examples perfectly right" in note for note in result.notes)


def test_where_something_was_learned_there_was_a_signal(job, scripts, compiled):
    result = compiled(job(scripts.right_when(scripts.has_demos)), "bootstrap_random_search", num_candidate_programs=1)
    assert not any("no signal" in note for note in result.notes)


def test_a_budget_that_ends_the_look_at_the_noise_is_told(job, scripts, compiled):
    draw = random.Random(0)
    settings = {
        "metric": scripts.Exact(lambda *_: Score(draw.random())),
        "validation": range(10, 20),
    }
    whole = job(scripts.right_when(lambda *_: True), **settings)
    compiled(whole, "nearest_demos", k=[1, 2])
    searched = 2 * 10
    assert whole.ledger.usage()["task"].calls == searched + 10  # the baseline, to be compared with
    short = job(scripts.right_when(lambda *_: True), max_calls=searched + 5, **settings)
    result = compiled(short, "nearest_demos", k=[1, 2])
    assert result.stopped.reason is StopReason.BUDGET
    assert len(result.candidates) == 2


def test_every_optimizer_that_chooses_is_looked_at():
    assert set(SMALL) == set(CATALOGUE) - {"none", "labeled_few_shot", "bootstrap_few_shot"}
