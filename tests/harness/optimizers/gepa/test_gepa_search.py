"""GEPA on scripted models finds what helps, keeps its budget, and gives the same program twice."""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import dspy
import pytest
from pydantic import ValidationError

from harness.errors import RunStopped, StopReason, UsageError
from harness.models.ledger import Ledger
from harness.models.scripted import request_text
from harness.optimizers import gepa_search
from harness.optimizers.catalogue import Optimizer, compile_program
from harness.optimizers.gepa_search import GepaArguments, gepa, gepa_calls, gepa_problem, metric_budget
from harness.optimizers.recorder import Recorder
from metrics.score import Score

ENTRY = Optimizer("gepa", "", GepaArguments, gepa, gepa_calls, problem=gepa_problem)


def instruction_of(program):
    return program.extract.signature.instructions


def used(made):
    """(metric calls, budget) as the notes tell them."""
    note = next(note for note in made.job.recorder.notes if "metric calls were used" in note)
    calls, budget = re.match(r"(\d+) of (\d+) metric calls", note).groups()
    return int(calls), int(budget)


def test_the_instruction_that_scores_best_on_validation_is_found_and_every_candidate_is_told(bench, capsys):
    made = bench()
    result = gepa(made.job, GepaArguments(max_metric_calls=80))
    rules = {int(rule) for rule in re.findall(r"rule (\d)", instruction_of(result.program))}
    assert rules == {0, 1, 2, 3}
    assert [(one.name, one.score, one.n) for one in result.candidates] == [
        ("as given", 0.0, 4), ("candidate 1", 0.25, 4), ("candidate 2", 0.5, 4),
        ("candidate 3", 0.75, 4), ("candidate 4", 1.0, 4),
    ]  # fmt: skip
    assert result.candidates[2].description == "from candidate 1; instructions of extract rewritten"
    assert "every validation example scores 1.0: no candidate can do better" in made.job.recorder.notes
    assert "instructions were written by models.prompt (scripted/writer)" in made.job.recorder.notes
    assert instruction_of(made.job.program) == "Give the label of the `text`."
    assert capsys.readouterr() == ("", "")
    assert "Proposed new text" in made.job.log.read_text()


def test_nothing_is_written_but_the_log(bench, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    made = bench()
    gepa(made.job, GepaArguments(max_metric_calls=60))
    assert list(elsewhere.iterdir()) == []
    assert list(made.job.log.parent.iterdir()) == [made.job.log]
    assert {path.name.split("-")[0] for path in Path(tmp_path).iterdir()} >= {"elsewhere", "run"}


@pytest.mark.parametrize("budget", [14, 15, 23, 40, 60])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_budget_of_metric_calls_is_kept_and_counted_as_it_is(bench, monkeypatch, budget, threads):
    results = []
    optimize = gepa_search.optimize
    monkeypatch.setattr(gepa_search, "optimize", lambda **given: results.append(optimize(**given)))
    made = bench(threads=threads)
    gepa(made.job, GepaArguments(max_metric_calls=budget))
    calls, told = used(made)
    assert told == budget
    assert calls == results[0].total_metric_calls <= budget
    assert made.metric.applied <= calls, "an answer that was scored before is not scored again"
    assert len(made.told) >= 1


def test_one_answer_is_scored_once_however_often_it_is_asked_about(bench):
    seen = []
    made = bench()
    score = made.metric.judge
    made.metric.judge = lambda expected, got: seen.append((expected, got)) or score(expected, got)
    gepa(made.job, GepaArguments(max_metric_calls=60))
    assert len(seen) == len(set(seen)) == made.metric.applied


def test_a_budget_that_pays_for_no_proposal_is_refused_before_anything_is_spent(bench):
    made = bench()
    with pytest.raises(UsageError, match=r"max_metric_calls of 13 pays for no proposal: at least 14 are needed, 4 to"):
        gepa(made.job, GepaArguments(max_metric_calls=13))
    assert made.answered == []
    assert gepa_problem(GepaArguments(max_metric_calls=14), 8, 4) is None
    assert "max_full_evals of 1 (12 metric calls)" in gepa_problem(GepaArguments(max_full_evals=1), 8, 4)


def test_arguments_are_those_of_dspy_with_its_defaults():
    installed = inspect.signature(dspy.GEPA.__init__).parameters
    for name, field in GepaArguments.model_fields.items():
        assert installed[name].default == field.default, name
    assert GepaArguments().auto == "light"
    with pytest.raises(ValidationError, match="auto and max_metric_calls exclude each other"):
        GepaArguments(auto="light", max_metric_calls=3)


@pytest.mark.parametrize("auto", ["light", "medium", "heavy"])
@pytest.mark.parametrize("predictors", [1, 3])
def test_auto_is_the_installed_formula(auto, predictors):
    installed = dspy.GEPA(metric=lambda a, b, c, d, e: 0, auto=auto, reflection_lm=dspy.utils.DummyLM([]))
    candidates = {"light": 6, "medium": 12, "heavy": 18}[auto]
    expected = installed.auto_budget(num_preds=predictors, num_candidates=candidates, valset_size=30)
    assert metric_budget(GepaArguments(auto=auto), 10, 30, predictors) == expected


@pytest.mark.parametrize("budget", [14, 30, 60])
@pytest.mark.parametrize("selector", ["round_robin", "all"])
def test_planned_calls_are_upper_bounds(bench, budget, selector):
    made = bench(lambda request: "no JSON at all", temperature=1.0)
    arguments = GepaArguments(max_metric_calls=budget, component_selector=selector)
    gepa(made.job, arguments)
    planned = gepa_calls(arguments, 8, 4, 1)
    assert len(made.answered) <= planned["task"]
    assert 1 <= len(made.told) <= planned["prompt"]


@pytest.mark.parametrize("value", [0.0, 0.25])
def test_poor_scores_are_reflected_on(bench, value):
    made = bench(metric=None)
    made.metric.judge = lambda expected, got: Score(value, f"expected {expected}, got {got}")
    gepa(made.job, GepaArguments(max_metric_calls=40))
    assert made.told


def test_a_metric_that_raises_stops_the_run_at_the_first_example(bench):
    made = bench()

    def broken(expected, got):
        raise KeyError("no such column")

    made.metric.judge = broken
    with pytest.raises(RunStopped, match="no such column") as stopped:
        gepa(made.job, GepaArguments(max_metric_calls=40))
    assert stopped.value.reason is StopReason.METRIC
    assert len(made.answered) == 1
    assert made.told == []


@pytest.mark.parametrize("calls", [3, 12, 20, 33])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_budget_that_ends_it_gives_the_best_so_far(bench, calls, threads):
    made = bench(ledger=Ledger(max_calls=calls), threads=threads)
    result = compile_program(ENTRY, GepaArguments(max_metric_calls=80), made.job)
    assert result.stopped is not None
    assert result.stopped.reason is StopReason.BUDGET
    assert len(made.answered) + len(made.told) == calls
    best = max((one.score for one in result.candidates), default=0.0)
    rules = len(re.findall("rule", instruction_of(result.program)))
    assert rules == best * 4
    assert any("metric calls were used" in note for note in result.notes)
    assert made.ledger.stopped is None


@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_seed_gives_the_same_program(bench, threads):
    instructions = {
        instruction_of(gepa(bench(threads=count).job, GepaArguments(max_metric_calls=50)).program)
        for count in (1, threads, threads)
    }
    assert len(instructions) == 1


def test_a_run_that_was_stopped_goes_on_from_the_store(bench):
    arguments = GepaArguments(max_metric_calls=60)
    whole = bench()
    expected = instruction_of(gepa(whole.job, arguments).program)
    first = bench(store="shared", ledger=Ledger(max_calls=20))
    compile_program(ENTRY, arguments, first.job)
    again = bench(store="shared")
    assert instruction_of(gepa(again.job, arguments).program) == expected
    sent = [len(made.answered) + len(made.told) for made in (whole, first, again)]
    assert sent[1] + sent[2] == sent[0]


def test_without_a_prompt_model_the_teacher_writes_and_without_a_teacher_the_task_model(bench):
    made = bench(role="teacher")
    gepa(made.job, GepaArguments(max_metric_calls=14))
    assert made.told
    assert made.job.recorder.notes[0].startswith("instructions were written by models.teacher (scripted/writer), since")
    made = bench(answer=lambda request: '{"label": "x", "new_instruction": "Give the label of `text`, again."}')
    job = replace(made.job, prompt=None, recorder=Recorder(made.job.program, made.job.validation))
    gepa(job, GepaArguments(max_metric_calls=14))
    assert made.told == []
    assert job.recorder.notes[0].startswith("instructions were written by the task's own model (scripted/model), since")


def test_a_model_that_samples_is_asked_anew_and_one_at_temperature_zero_is_not(bench):
    def says_nothing(request):
        return '{"new_instruction": ""}'

    sampled, greedy = bench(says_nothing, train=range(2), temperature=1.0), bench(says_nothing, train=range(2))
    for made in (sampled, greedy):
        gepa(made.job, GepaArguments(max_metric_calls=60))
    assert len(sampled.told) == 5
    assert len(greedy.told) == len({request_text(request) for request in greedy.told}) < 5
