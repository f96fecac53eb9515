"""MIPROv2: proposals are checked before they are paid for, small spaces are tried out, nothing of Optuna's leaks."""

import inspect

import optuna
import pytest
from dspy import lm15
from dspy.teleprompt import MIPROv2

from harness.models.scripted import reply
from harness.optimizers.mipro import MiproArguments, extent, miprov2_calls
from harness.optimizers.mipro_search import CheckedMIPROv2

GOOD = "Give the label of the sample, nothing else."


def instructions(result):
    return result.program.extract.signature.instructions


def test_a_space_of_two_is_tried_out_however_many_trials_are_asked_for(job, scripts, compiled):
    made = job(scripts.right_when(lambda asked, _: GOOD in asked), prompt=scripts.says(GOOD))
    result = compiled(made, "miprov2", num_candidates=2, num_trials=30, max_bootstrapped_demos=0, max_labeled_demos=0)
    assert [(candidate.name, candidate.score) for candidate in result.candidates] == [
        ("as it is", 0.0),
        ("trial 1", 1.0),
    ]
    assert instructions(result) == GOOD
    assert result.candidates[1].description == "0 demos, other instructions"


@pytest.mark.parametrize("trials", [3, 12, 40])
def test_minibatches_on_a_space_that_is_soon_measured_in_full_are_no_crash(job, scripts, compiled, trials):
    made = job(scripts.right_when(lambda asked, _: GOOD in asked), prompt=scripts.says(GOOD), validation=range(10, 70))
    result = compiled(
        made,
        "miprov2",
        num_candidates=2,
        num_trials=trials,
        max_bootstrapped_demos=0,
        max_labeled_demos=0,
        minibatch_size=5,
        minibatch_full_eval_steps=1,
    )
    assert {candidate.n for candidate in result.candidates} == {5, 60}
    assert instructions(result) == GOOD


def test_a_space_larger_than_the_trials_is_searched(job, scripts, compiled):
    made = job(
        scripts.right_when(scripts.has_demos), prompt=scripts.says(GOOD, "Name it.", "Say which it is."), train=range(8)
    )
    result = compiled(made, "miprov2", num_candidates=4, num_trials=5)
    assert len(result.candidates) == 6
    assert result.program.extract.demos


def test_minibatches_are_for_large_validation_splits_only():
    asked = MiproArguments(num_candidates=4, num_trials=8, minibatch=True, minibatch_size=5)
    assert not extent(asked, 50, 1, with_demos=True).minibatch
    assert extent(asked, 51, 1, with_demos=True).minibatch
    assert not extent(asked.model_copy(update={"minibatch": False}), 500, 1, with_demos=True).minibatch


@pytest.mark.parametrize("auto", ["light", "medium", "heavy"])
@pytest.mark.parametrize("predictors", [1, 2, 3])
@pytest.mark.parametrize("with_demos", [True, False])
@pytest.mark.parametrize("validation", [20, 2000])
def test_auto_means_what_it_means_to_dspy(auto, predictors, with_demos, validation):
    class Program:
        def predictors(self):
            return [None] * predictors

    theirs = MIPROv2(metric=len, prompt_model=object(), task_model=object(), auto=auto)
    theirs._set_random_seeds(0)
    trials, valset, minibatch, instruct, demos = theirs._set_hyperparams_from_run_mode(
        Program(), None, True, not with_demos, list(range(validation)), None, None
    )
    ours = extent(MiproArguments(auto=auto), validation, predictors, with_demos=with_demos)
    assert (ours.trials, ours.validation, ours.minibatch) == (trials, len(valset), minibatch)
    assert (ours.instructions, ours.demo_sets) == (instruct, demos)


def test_a_large_validation_split_is_sampled_once_and_every_full_measurement_is_of_the_same_examples(
    job, scripts, compiled
):
    made = job(scripts.right_when(lambda asked, _: GOOD in asked), prompt=scripts.says(GOOD), validation=range(10, 130))
    result = compiled(made, "miprov2", auto="light", max_bootstrapped_demos=0, max_labeled_demos=0)
    assert {candidate.n for candidate in result.candidates} == {35, 100}
    assert (result.candidates[0].name, result.candidates[0].n) == ("as it is", 100)
    calls = miprov2_calls(MiproArguments(auto="light"), 6, 120, 1)
    assert len(made.provider.requests) <= calls["task"] + calls["teacher"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "empty"),
        ("Error code: 401 - Incorrect API key provided", "an error text"),
        ("I'm sorry, but I can't help with that.", "a refusal"),
        ("Given the fields `text`, produce the fields `label`.", "unchanged"),
    ],
)
def test_a_proposal_that_cannot_be_used_is_never_tried(job, scripts, compiled, said, why):
    made = job(scripts.right_when(lambda asked, _: False), prompt=scripts.says(said))
    result = compiled(made, "miprov2", num_candidates=4, num_trials=9, max_bootstrapped_demos=0, max_labeled_demos=0)
    assert [candidate.name for candidate in result.candidates] == ["as it is"]
    assert instructions(result) == instructions_of(made)
    assert any(f"0 of 3 proposed instructions could be used (rejected: 3 {why})" in note for note in result.notes)
    assert any(note.startswith("stalled: no proposed instruction could be used") for note in result.notes)


def instructions_of(made):
    return made.job.program.extract.signature.instructions


def test_a_prompt_model_that_fails_is_counted_and_not_asked_for_ever(job, scripts, compiled):
    made = job(scripts.right_when(lambda *_: False), prompt=lambda _: reply("no JSON at all"))
    result = compiled(made, "miprov2", num_candidates=20, num_trials=2, max_bootstrapped_demos=0, max_labeled_demos=0)
    assert any("questions to the prompt model had no usable answer" in note for note in result.notes)
    assert "the data could not be summarised, so instructions were proposed without a summary" in result.notes
    assert any("0 of 5 proposed instructions could be used" in note for note in result.notes)
    assert instructions(result) == instructions_of(made)


def test_demos_are_searched_even_where_no_instruction_can_be_used(job, scripts, compiled):
    made = job(scripts.right_when(scripts.has_demos), prompt=scripts.says(""))
    result = compiled(made, "miprov2", num_candidates=4, num_trials=9)
    assert result.program.extract.demos
    assert instructions(result) == instructions_of(made)


def test_labelled_demos_alone_can_be_searched(job, scripts, compiled):
    made = job(scripts.right_when(scripts.has_demos), prompt=scripts.says(GOOD))
    result = compiled(made, "miprov2", num_candidates=6, num_trials=9, max_bootstrapped_demos=0, max_labeled_demos=2)
    assert 1 <= len(result.program.extract.demos) <= 2


def test_the_prompt_model_writes_and_the_task_model_answers(job, scripts, compiled):
    made = job(scripts.right_when(scripts.has_demos), prompt=scripts.says(GOOD))
    compiled(made, "miprov2", num_candidates=3, num_trials=3)
    assert all("sample-" in request.messages[-1].text for request in made.provider.requests)
    usage = made.ledger.usage()
    assert usage["prompt"].calls == len(made.prompt.requests) > 0
    assert usage["task"].calls == len(made.provider.requests)


def test_a_prompt_model_that_refuses_the_key_stops_the_run(job, scripts, compiled):
    from harness.errors import RunStopped

    made = job(scripts.right_when(scripts.has_demos), prompt=lambda _: lm15.AuthError("no such key"))
    with pytest.raises(RunStopped, match="no such key"):
        compiled(made, "miprov2")


def test_the_verbosity_of_optuna_is_left_as_it_was(job, scripts, compiled):
    before = optuna.logging.get_verbosity()
    try:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        compiled(
            job(scripts.right_when(scripts.has_demos), prompt=scripts.says(GOOD)),
            "miprov2",
            num_candidates=2,
            num_trials=1,
        )
        assert optuna.logging.get_verbosity() == optuna.logging.ERROR
    finally:
        optuna.logging.set_verbosity(before)


@pytest.mark.parametrize(
    "method",
    ["_bootstrap_fewshot_examples", "_propose_instructions", "_optimize_prompt_parameters", "_perform_full_evaluation"],
)
def test_what_is_overridden_has_the_parameters_of_the_installed_release(method):
    ours, theirs = (inspect.signature(getattr(made, method)).parameters for made in (CheckedMIPROv2, MIPROv2))
    assert list(ours) == list(theirs)


def test_every_predictor_gets_instructions_and_demos_of_its_own(job, scripts, compiled):
    from dataclasses import replace

    import dspy

    from harness.evaluation import Measure
    from harness.scoring import Scoring
    from programs.contract import output_contract

    class Twice(dspy.Module):
        output_field = "label"

        def __init__(self):
            super().__init__()
            self.draft = dspy.Predict("text -> draft")
            self.extract = dspy.Predict("text, draft -> label")

        def forward(self, text):
            return self.extract(text=text, draft=self.draft(text=text).draft)

    def answers(request):
        asked = "".join(message.text for message in request.messages)
        number = asked.rsplit("sample-", 1)[1].split()[0]
        right = GOOD in (request.system or "") and "draft ##" in request.messages[-1].text
        return f'{{"draft": "d{number}", "label": "{"L" + number if right else "wrong"}"}}'

    made = job(answers, prompt=scripts.says(GOOD))
    program = Twice()
    contract = output_contract(program)
    scoring = Scoring(scripts.Exact(), contract, made.ledger.stop)
    made.job = replace(made.job, program=program, measure=Measure(scoring, {}, contract))
    result = compiled(made, "miprov2", num_candidates=2, num_trials=20, max_bootstrapped_demos=0, max_labeled_demos=0)
    assert len(result.candidates) == 4  # two instructions for each of two predictors
    assert result.program.extract.signature.instructions == GOOD
    assert result.program.draft.signature.instructions == program.draft.signature.instructions
    assert len(made.provider.requests) <= 2 * 4 * 4 * 2


def test_a_process_that_imports_optuna_while_tuning_can_still_read_its_log(tmp_path):
    import subprocess
    import sys

    program = (
        "import io, logging, sys\n"
        "from contextlib import redirect_stderr\n"
        "from harness.optimizers.mipro import _optuna_as_it_was\n"
        "with _optuna_as_it_was(), open(sys.argv[1], 'w') as log, redirect_stderr(log):\n"
        "    import optuna\n"
        "    optuna.logging.set_verbosity(optuna.logging.WARNING)\n"
        "optuna.logging.get_logger('optuna.test').info('still told')\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "log")], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, "still told" in answer.stderr) == (0, True), answer.stderr
    assert "Logging error" not in answer.stderr
