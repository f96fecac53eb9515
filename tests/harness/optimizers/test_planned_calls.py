"""What an optimizer may ask for is known, by role, before anything is spent; so is what it cannot do."""

import pytest

from harness.assembly import load_experiment
from harness.errors import UsageError
from harness.planning import plan

PROMPT = "models={task: scripted/model, prompt: scripted/prompt}"


def test_questions_to_the_prompt_model_are_planned_for_its_role(project):
    planned = plan(load_experiment("experiment.yaml", ["optimizer={miprov2: {auto: light}}", PROMPT])).calls
    # Eleven for the data, three for each of five instructions.
    assert planned["prompt"] == 26
    # Baseline and tuned on test; ten trials and the program itself on validation; six demo sets on train.
    assert planned["task"] == 2 * 12 + 11 * 4 + 6 * 8


def test_without_a_prompt_role_they_are_the_task_models(project):
    planned = plan(load_experiment("experiment.yaml", ["optimizer=simba"])).calls
    assert set(planned) == {"task"}


@pytest.mark.parametrize(("optimizer", "idle"), [("miprov2", False), ("simba", False), ("bootstrap_few_shot", True)])
def test_a_prompt_role_that_nothing_asks_is_told(project, optimizer, idle):
    notes = load_experiment("experiment.yaml", [f"optimizer={optimizer}", PROMPT]).notes
    assert any("models.prompt is declared, but nothing" in note for note in notes) == idle


def test_more_examples_per_step_than_there_are_to_train_on_are_refused_with_both_numbers(project):
    with pytest.raises(UsageError, match="simba: bsize is 32, but there are only 8 training examples"):
        load_experiment("experiment.yaml", ["optimizer={simba: {bsize: 32}}"])
