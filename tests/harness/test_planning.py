"""What a run would do and cost: upper bounds of calls exactly, money by a stated estimate."""

import json

import pytest

from harness.assembly import load_experiment
from harness.planning import HOW_ESTIMATED, calls_of_a_test_pass, check_budget, estimated_call, plan

PRICED = "models={task: {model: scripted/model, price: {input: 1, output: 10}}}"


@pytest.fixture
def planned(project):
    return lambda *overrides: plan(load_experiment("experiment.yaml", list(overrides)))


def test_calls_are_bounded_by_role_and_the_last_measurement_is_kept_back(planned):
    document = json.loads(json.dumps(planned().to_document()))
    assert document["planned_calls"] == {"task": 12 + 2 * 4 + 12}
    assert document["reserved_calls"] == 12
    assert document["notes"] == []


def test_a_call_is_estimated_from_prompts_and_records(project):
    call = estimated_call(load_experiment("experiment.yaml"))
    assert call.input_tokens > 20
    assert 5 <= call.output_tokens <= 15
    assert call.tokens == call.input_tokens + call.output_tokens


def test_money_is_estimated_where_a_price_is_known(planned):
    estimate = planned(PRICED).to_document()["estimate"]
    per_call = (estimate["input_tokens_per_call"] + 10 * estimate["output_tokens_per_call"]) / 1e6
    assert estimate["usd"]["task"] == pytest.approx(32 * per_call)
    assert estimate["how"] == HOW_ESTIMATED
    assert planned().to_document()["estimate"]["usd"] == {"task": None}


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (24, "budget.calls leaves no calls for tuning, which may ask for 8; where they end"),
        (25, "budget.calls leaves 1 call for tuning, which may ask for 8; where they end"),
        (31, "budget.calls leaves 7 calls for tuning, which may ask for 8; where they end"),
        (32, None),
    ],
)
def test_a_limit_that_cuts_tuning_short_is_told_beforehand(planned, calls, words):
    notes = planned(f"budget.calls={calls}").notes
    assert len(notes) == (words is not None)
    assert all(note.startswith(words) for note in notes)


def test_a_budget_that_just_pays_for_a_verdict_is_taken(project):
    experiment = load_experiment("experiment.yaml")
    needed = 2 * calls_of_a_test_pass(experiment) * estimated_call(experiment).tokens
    check_budget(load_experiment("experiment.yaml", [f"budget.tokens={needed}", "budget.calls=24", "budget.usd=0"]))
    check_budget(load_experiment("experiment.yaml", [PRICED, "budget.usd=0.1", "budget.minutes=0.01"]))
