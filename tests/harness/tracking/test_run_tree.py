"""A whole result in a real store: what MLflow's pages need is where they look for it."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from harness.results import Candidate, ExperimentResult, RoleUsage, Row
from harness.tracking.run_tree import experiment_metrics, field_rows, log_evaluation, log_experiment, prompts_text
from harness.tracking.tracker import Tracker
from metrics.score import Score

Make = Callable[..., ExperimentResult]


def write_run_folder(workplace: Path, result: ExperimentResult) -> None:
    bundle = workplace / result.bundle
    bundle.mkdir(parents=True)
    (bundle / "program.json").write_text("{}")
    (workplace / result.folder / "report.html").write_text("<p>report</p>")
    (workplace / result.folder / "splits.json").write_text("{}")


def log(tracker: Tracker, result: ExperimentResult, workplace: Path) -> dict[str, Run]:
    run = tracker.start_run(result.experiment, "seed 0")
    log_experiment(run, result, workplace)
    log_experiment(run, result, workplace)
    run.finish()
    client = MlflowClient(tracking_uri=tracker.location.uri)
    return {found.info.run_name or "": found for found in client.search_runs([run.experiment_id])}


def files(tracker: Tracker, run: Run) -> set[str]:
    client = MlflowClient(tracking_uri=tracker.location.uri)
    return {file.path for file in client.list_artifacts(run.info.run_id)}


def test_the_tree(tracker: Tracker, workplace: Path, make_result: Make) -> None:
    result = make_result(12)
    write_run_folder(workplace, result)
    runs = log(tracker, result, workplace)
    assert tracker.failures == 0
    assert sorted(runs) == ["baseline", "compile", "seed 0", "tuned"]
    parent = runs.pop("seed 0")
    assert {run.data.tags["mlflow.parentRunId"] for run in runs.values()} == {parent.info.run_id}
    assert {run.data.tags["stage"] for run in runs.values()} == {"baseline", "compile", "tuned"}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert parent.data.tags["verdict"] == runs["tuned"].data.tags["verdict"] == "improved"
    assert parent.data.tags["fingerprint"] == result.fingerprint
    assert parent.data.params["optimizer"] == "bootstrap_random_search"
    assert files(tracker, parent) == {
        "report.html", "splits.json", "bundle", "fields.json", "examples.json", "prompts.txt",
        "paired_scores.png", "paired_by_field.png", "field_scores.png", "candidates.png",
    }  # fmt: skip
    assert files(tracker, runs["tuned"]) == files(tracker, runs["baseline"]) == {"examples.json", "prompts.txt"}
    assert files(tracker, runs["compile"]) == {"candidates.json"}


def test_figures_are_pictures_the_worst_first(tracker: Tracker, workplace: Path, make_result: Make) -> None:
    result = make_result(12)
    figure = {"name_to_coordinates": {"a": [[1, 2], [2, 3]]}}
    rows = [replace(row, expected=figure) for row in result.tuned.rows]
    rows[3] = replace(rows[3], expected={"no": "figure"})
    rows[5] = replace(rows[5], example_id="the worst/of all", score=Score.unscored("nothing to read"), predicted=None)
    runs = log(tracker, replace(result, tuned=replace(result.tuned, rows=rows)), workplace)
    client = MlflowClient(tracking_uri=tracker.location.uri)

    pictures = [file.path for file in client.list_artifacts(runs["seed 0"].info.run_id, "figures")]
    assert len(pictures) == 11
    assert sorted(pictures)[0] == "figures/01-the_worst_of_all.png"
    assert len(client.list_artifacts(runs["tuned"].info.run_id, "figures")) == 11
    assert client.list_artifacts(runs["baseline"].info.run_id, "figures") == []


def test_the_numbers(tracker: Tracker, workplace: Path, make_result: Make) -> None:
    result = make_result(12)
    runs = log(tracker, result, workplace)
    parent, tuned, baseline = (runs[name].data.metrics for name in ("seed 0", "tuned", "baseline"))
    for name in (
        "test/score",
        "test/lower_bound",
        "test/n_scored",
        "test/n_total",
        "test/interval_low",
        "test/interval_high",
    ):
        assert parent[name] == tuned[name]
        assert name in baseline
    assert result.baseline.total.score is not None
    assert baseline["test/score"] == pytest.approx(result.baseline.total.score, abs=1e-6)
    assert (baseline["test/n_scored"], baseline["test/n_total"]) == (10, 12)
    assert parent["test/score_baseline"] == baseline["test/score"]
    assert result.delta is not None
    assert parent["delta/mean"] == pytest.approx(result.delta.mean, abs=1e-6)
    assert parent["delta/low"] < parent["delta/mean"] < parent["delta/high"]
    assert "delta/smallest_detectable" not in parent, "so few papers can show no difference"
    assert parent["test/field/steps.conditions.temperature"] == tuned["test/field/steps.conditions.temperature"]
    assert parent["audit/grounded"] == tuned["audit/grounded"]
    assert parent["audit/grounded_baseline"] == baseline["audit/grounded"]
    assert parent["cost/task/calls"] == 412
    assert parent["cost/judge/output_tokens"] == 9031
    assert parent["cost/task/usd"] == 0
    assert parent["cost/task/replayed_usd"] == 0.12
    assert parent["cost/task/replayed_input_tokens"] == 9000
    assert parent["cost/task/failures/rate_limit"] == 3
    assert "cost/judge/usd" not in parent
    assert "cost/usd" not in parent
    assert parent["test_reads"] == 3


def test_candidates_are_steps(tracker: Tracker, workplace: Path, make_result: Make) -> None:
    runs = log(tracker, make_result(6), workplace)
    client = MlflowClient(tracking_uri=tracker.location.uri)
    compiled = runs["compile"].info.run_id
    scores = {(each.step, each.value) for each in client.get_metric_history(compiled, "validation/score")}
    assert scores == {(0, 0.41), (1, 0.55), (3, 0.52), (4, 0.63)}
    best = {(each.step, each.value) for each in client.get_metric_history(compiled, "validation/best")}
    assert best == {(0, 0.41), (1, 0.55), (2, 0.55), (3, 0.55), (4, 0.63)}


def test_the_table_of_examples(
    tracker: Tracker, make_row: Callable[..., Row], make_result: Make, tmp_path: Path
) -> None:
    hostile = make_row("<script>alert(1)</script>", {"a": 0.5})
    unscored = replace(
        make_row("b", {"a": 0.5}), score=Score.unscored("no number"), failure="judge", error=None, group=None
    )
    failed = replace(
        make_row("c", {"a": 0.0}), predicted=None, failure="unreadable", failure_kind="cut", error="at \x00 \ud800"
    )
    result = make_result(rows=([hostile, unscored, failed], [hostile, unscored, failed]))
    run = tracker.start_run("synthesis", "evaluate")
    log_evaluation(run, result.tuned)
    table = json.loads((tracker.download(run.run_id, "examples.json", tmp_path)).read_text(encoding="utf-8"))
    assert table["columns"] == ["id", "predicted", "score", "expected", "feedback", "group", "failure"]
    rows = [dict(zip(table["columns"], values, strict=True)) for values in table["data"]]
    assert [row["id"] for row in rows] == ["<script>alert(1)</script>", "b", "c"]
    assert [row["score"] for row in rows] == [0.5, None, 0.0]
    assert json.loads(rows[0]["expected"])["target_compound"] == "BaTiO3"
    assert rows[1]["failure"] == "judge: no number"
    assert rows[2]["predicted"] is None
    assert rows[2]["failure"] == "unreadable (cut): at � �"
    assert tracker.failures == 0


def test_nothing_scored_and_nothing_compared(
    tracker: Tracker, workplace: Path, make_row: Callable[..., Row], make_result: Make
) -> None:
    rows = [replace(make_row(f"e{number}", {}), score=Score.unscored("no"), failure="judge") for number in range(3)]
    result = make_result(
        rows=(rows, rows), delta=None, verdict="not comparable", candidates=[], ledger={}, prompts={}, audit={}
    )
    runs = log(tracker, result, workplace)
    metrics = runs["seed 0"].data.metrics
    assert metrics["test/n_scored"] == 0
    assert "test/score" not in metrics
    assert "delta/mean" not in metrics
    assert files(tracker, runs["seed 0"]) == {
        "examples.json",
        "fields.json",
        "paired_scores.png",
    }
    assert files(tracker, runs["tuned"]) == {"examples.json"}
    assert tracker.failures == 0


def test_a_known_price_is_summed(make_result: Make) -> None:
    ledger = {"task": RoleUsage(1, 0, 1, 1, 0.25), "judge": RoleUsage(1, 0, 1, 1, 0.5)}
    metrics = experiment_metrics(make_result(6, ledger=ledger))
    assert metrics["cost/usd"] == 0.75
    assert all(value is None or math.isfinite(value) for value in metrics.values())


def test_fields_that_only_one_side_has(make_result: Make, make_row: Callable[..., Row]) -> None:
    result = make_result(rows=([make_row("x", {"a": 0.5})], [make_row("x", {"b": 1.0})]))
    first, second = field_rows(result.baseline, result.tuned)
    assert (first["field"], first["baseline"], first["tuned"], first["change"]) == ("a", 0.5, None, None)
    assert (second["field"], second["baseline scored"], second["tuned scored"]) == ("b", 0, 1)


def test_prompts_in_one_text() -> None:
    assert prompts_text({"a": "one", "b": "two"}) == "=== a ===\none\n\n=== b ===\ntwo\n"


def test_candidates_without_a_score(make_result: Make, tracker: Tracker, workplace: Path) -> None:
    runs = log(tracker, make_result(6, candidates=[Candidate("seed 0", None, 0)]), workplace)
    assert runs["compile"].data.metrics == {}
