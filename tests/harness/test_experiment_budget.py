"""A budget that ends before the work does: a verdict on what was done, and the same command goes on."""

import json

import pytest

from harness.assembly import load_experiment
from harness.cli import exit_code
from harness.errors import RunStopped, StopReason, UsageError
from harness.experiment import run
from harness.exporting import export_run
from harness.models.scripted import reply
from harness.optimizers.compiled import Compiled
from harness.planning import CallEstimate
from harness.tracking.tracker import Tracker

PRICED = "models={task: {model: scripted/model, price: {input: 1, output: 1}}}"
"""A dollar per million tokens; every scripted answer says 10 in and 5 out."""


@pytest.fixture
def estimated_low(monkeypatch):
    """Nothing is refused beforehand: a scripted answer says it took fewer tokens than its prompt is long."""
    monkeypatch.setattr("harness.planning.estimated_call", lambda experiment: CallEstimate(1, 0))


def state_of(project, result=None):
    folders = [project / result.folder] if result else list(project.glob("mlruns/runs/*"))
    [folder] = folders
    return json.loads((folder / "run.json").read_text())


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_budget_that_ends_tuning_gives_a_verdict_and_the_same_command_goes_on(project, scripted, concurrency):
    endpoints, provider = scripted(concurrency=concurrency)
    stopped = run(load_experiment("experiment.yaml", ["budget.calls=29"]), endpoints=endpoints)
    assert len(provider.requests) <= 29
    assert stopped.stopped == (
        "the budget of 29 calls is spent, but for the 12 calls of the last measurement: tuning was stopped there"
    )
    assert stopped.verdict == "improved", "k=1 had been measured in full, and the last measurement was kept back"
    assert stopped.tuned.total.n_scored == 12
    assert [candidate.name for candidate in stopped.candidates] == ["k=1"]
    assert state_of(project, stopped)["status"] == "stopped"
    assert Tracker.open(project).find_run(stopped.run_id).status == "KILLED"
    for name in ("report.html", "bundle/manifest.json", "bundle-baseline/manifest.json"):
        assert (project / stopped.folder / name).is_file()
    export_run(stopped.run_id, project / "bundle")

    endpoints, rest = scripted(concurrency=concurrency)
    result = run(load_experiment("experiment.yaml", ["budget.calls=29"]), endpoints=endpoints)
    assert (result.stopped, result.run_id) == ("", stopped.run_id)
    assert len(rest.requests) <= 4
    assert len(result.candidates) == 2
    assert state_of(project, result)["status"] == "finished"
    assert Tracker.open(project).find_run(result.run_id).status == "FINISHED"
    assert result.test_reads == 2


@pytest.mark.usefixtures("estimated_low")
def test_money_that_ends_tuning_still_pays_for_the_last_measurement(project, scripted):
    endpoints, provider = scripted()
    result = run(load_experiment("experiment.yaml", [PRICED, f"budget.usd={29 * 15e-6}"]), endpoints=endpoints)
    assert "USD is spent, but for the 12 calls" in result.stopped
    assert len(provider.requests) == 12 + 5 + 12
    assert result.ledger["task"].usd == pytest.approx(29 * 15e-6)
    assert result.tuned.total.n_total == result.tuned.total.n_scored == 12


@pytest.mark.usefixtures("estimated_low")
def test_a_last_measurement_that_is_cut_short_says_how_many_it_rests_on(project, scripted, answers):
    def script(request):
        dear = len(provider.requests) > 16
        return reply(answers(request), input_tokens=100 if dear else 10, output_tokens=5)

    endpoints, provider = scripted(script)
    overrides = ["budget.tokens=1000", "optimizer={nearest_demos: {k: 1}}"]
    result = run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
    done = result.tuned.total.n_scored
    assert 6 <= done < 12
    assert result.stopped == (
        f"the budget ended in the last measurement: the verdict rests on the {done} of 12 test examples that were "
        "measured"
    )
    assert result.notes[0] == result.stopped
    assert result.delta.n_pairs == done
    assert {row.failure for row in result.tuned.rows if row.score.value is None} == {"budget"}
    assert state_of(project, result)["status"] == "stopped"
    endpoints, rest = scripted()
    finished = run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
    assert (finished.stopped, len(rest.requests)) == ("", 12 - done)


@pytest.mark.usefixtures("estimated_low")
def test_a_budget_spent_on_the_baseline_is_a_sentence_and_everything_kept(project, scripted):
    endpoints, provider = scripted()
    with pytest.raises(RunStopped) as stopped:
        run(load_experiment("experiment.yaml", ["budget.tokens=100"]), endpoints=endpoints)
    assert (stopped.value.reason, stopped.value.exit_code) == (StopReason.BUDGET, 3)
    assert stopped.value.message == (
        "the budget of 100 tokens is spent: it ended while the baseline was measured, so there is nothing to "
        "compare yet"
    )
    assert len(provider.requests) == 6
    assert state_of(project)["status"] == "stopped"
    endpoints, rest = scripted()
    assert run(load_experiment("experiment.yaml"), endpoints=endpoints).verdict == "improved"
    assert len(rest.requests) == 32 - 6


def test_whatever_an_optimizer_had_by_then_is_what_the_verdict_is_on(project, scripted, monkeypatch):
    stop = RunStopped(StopReason.BUDGET, "the budget of 30 calls is spent")
    monkeypatch.setattr(
        "harness.experiment.compile_program", lambda entry, arguments, job: Compiled(job.program, stopped=stop)
    )
    endpoints, provider = scripted()
    result = run(load_experiment("experiment.yaml", ["budget.calls=30"]), endpoints=endpoints)
    assert result.stopped == "the budget of 30 calls is spent: tuning was stopped there"
    assert (result.verdict, len(provider.requests)) == ("no detectable change", 12)


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_shows_the_verdict_and_exits_with_3(project, scripted, monkeypatch, capsys, as_json):
    endpoints, _ = scripted()
    monkeypatch.setattr("harness.experiment.Endpoints", lambda: endpoints)
    code = exit_code(["run", "experiment.yaml", "--set", "budget.calls=29", *(["--json"] if as_json else [])])
    out, err = capsys.readouterr()
    assert code == 3
    assert "tuning was stopped there" in (json.loads(out)["stopped"] if as_json else err)
    assert "the same command continues" in err


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["budget.calls=23"], "23 calls do not pay for measuring baseline and tuned on 12 test examples, which takes "
         "24; raise budget.calls or make data.split.test smaller"),
        (["budget.tokens=500"], "500 tokens do not pay for .* which takes about .* calls of about .* raise budget"),
        ([PRICED, "budget.usd=0.0005"], r"0\.0005 USD does not pay for .* which takes about \$0\.00.* raise budget"),
    ],
)  # fmt: skip
def test_a_budget_that_cannot_pay_for_a_verdict_is_refused(project, scripted, overrides, words):
    endpoints, provider = scripted()
    with pytest.raises(UsageError, match=words):
        run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
    assert provider.requests == []


def test_what_the_store_answers_costs_nothing_now_and_tells_what_it_cost_then(project, scripted):
    paid, replayed = (
        run(load_experiment("experiment.yaml", [PRICED, "optimizer=none", f"name={name}"]), endpoints=scripted()[0])
        for name in ("first", "second")
    )
    first, second = paid.ledger["task"], replayed.ledger["task"]
    assert (first.calls, second.calls) == (12, 0)
    assert (first.usd, second.usd) == (pytest.approx(12 * 15e-6), 0.0)
    assert first.replayed_usd == pytest.approx(first.usd), "tuned asked what the baseline had asked"
    assert second.replayed_usd == pytest.approx(2 * first.usd)
    assert (second.replayed_input_tokens, second.replayed_output_tokens) == (240, 120)
