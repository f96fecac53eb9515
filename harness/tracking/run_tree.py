"""A whole result as MLflow runs: the experiment's run with baseline, compile and tuned below it.

MLflow's pages decide some of this: runs below a run are folded away and then take no part in comparisons, so what
people compare is on the parent too; only files at the root of the artifacts are shown side by side, so prompts are
`prompts.txt` in every run; a table is compared by its first column and shows its second, so those are the example
and the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.costs import TOTAL, with_total
from harness.results import Candidate, Evaluation, ExperimentResult, RoleUsage, Row
from harness.tracking.figure_plot import figure_picture
from harness.tracking.names import file_name, plain_json
from harness.tracking.plots import candidates_over_time, field_scores, paired_by_field, paired_scores, png
from harness.tracking.run import TrackedRun
from metrics.figure.reading import is_figure
from metrics.statistics import Aggregate, PairedDifference

RUN_FILES = ("report.html", "result.json", "splits.json")
"""Files of a run's folder that are logged beside the report, where they exist."""
FIGURES = 20
"""Pictures of extracted figures per run, the worst ones first: more would take longer to draw than anybody looks."""


def log_experiment(run: TrackedRun, result: ExperimentResult, working_folder: Path) -> None:
    """Write everything an experiment found out. Written again, it replaces what is there.

    Args:
        run: the experiment's run, still open; the children made here are finished, `run` is not.
        result: what was found out.
        working_folder: what the result's `folder` and `bundle` are relative to.
    """
    run.tags({"kind": "experiment", "verdict": result.verdict, "fingerprint": result.fingerprint})
    run.params(result.params)
    run.metrics(experiment_metrics(result))
    run.table(example_rows(result.tuned), "examples.json")
    run.table(field_rows(result.baseline, result.tuned), "fields.json")
    if result.prompts:
        run.text(prompts_text({name: after for name, (_, after) in result.prompts.items()}), "prompts.txt")
    _log_files(run, result, working_folder)
    _log_plots(run, result)
    _log_figures(run, result.tuned)
    _log_children(run, result)


def log_evaluation(run: TrackedRun, evaluation: Evaluation, prompts: Mapping[str, str] | None = None) -> None:
    """Write one program measured on one split: its numbers, its per-example table and its prompts."""
    run.metrics(evaluation_metrics(evaluation))
    run.table(example_rows(evaluation), "examples.json")
    _log_figures(run, evaluation)
    if prompts:
        run.text(prompts_text(prompts), "prompts.txt")


def experiment_metrics(result: ExperimentResult) -> dict[str, float | None]:
    """The numbers of the experiment's run; those of the tuned program under the names its own run uses."""
    metrics = evaluation_metrics(result.tuned)
    metrics[f"{result.baseline.split}/score_baseline"] = result.baseline.total.score
    metrics |= _difference_metrics("delta", result.delta)
    metrics |= _difference_metrics("floor", result.floor)
    for name, change in result.audit.items():
        metrics[f"audit/{name}_baseline"] = change.baseline.score
        metrics |= _difference_metrics(f"audit_delta/{name}", change.delta)
    metrics |= _cost_metrics(result.ledger)
    metrics["test_reads"] = result.test_reads
    metrics["seconds"] = result.seconds
    return metrics


def evaluation_metrics(evaluation: Evaluation) -> dict[str, float | None]:
    """The numbers of one evaluation: `test/score`, `test/field/PATH`, `audit/NAME` and what they rest on."""
    metrics = _aggregate_metrics(evaluation.split, evaluation.total)
    metrics[f"{evaluation.split}/readable"] = evaluation.readable
    for path, total in evaluation.fields.items():
        metrics[f"{evaluation.split}/field/{path}"] = total.score
    for name, total in evaluation.audit.items():
        metrics[f"audit/{name}"] = total.score
    return metrics


def field_rows(baseline: Evaluation, tuned: Evaluation) -> list[dict[str, Any]]:
    """One row per field of either evaluation: both scores with their intervals, and how many examples they rest on."""
    rows: list[dict[str, Any]] = []
    for path in dict.fromkeys([*baseline.fields, *tuned.fields]):
        before, after = baseline.fields.get(path), tuned.fields.get(path)
        rows.append(
            {
                "field": path,
                "change": _change(before, after),
                **_side_columns("baseline", before),
                **_side_columns("tuned", after),
            }
        )
    return rows


def example_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """One row per example, its id and the answer first: MLflow compares tables by those two columns."""
    return [_example_row(row) for row in evaluation.rows]


def prompts_text(prompts: Mapping[str, str]) -> str:
    """The prompts of all predictors in one readable text."""
    return "\n\n".join(f"=== {name} ===\n{text}" for name, text in prompts.items()) + "\n"


def _log_files(run: TrackedRun, result: ExperimentResult, working_folder: Path) -> None:
    for name in RUN_FILES:
        file = working_folder / result.folder / name
        if file.is_file():
            run.file(file)
    bundle = working_folder / result.bundle
    if result.bundle and bundle.is_dir():
        run.folder(bundle, "bundle")


def _log_plots(run: TrackedRun, result: ExperimentResult) -> None:
    run.figure(png(paired_scores(result.baseline, result.tuned)), "paired_scores.png")
    if result.baseline.fields or result.tuned.fields:
        run.figure(png(field_scores(result.baseline, result.tuned)), "field_scores.png")
        run.figure(png(paired_by_field(result.baseline, result.tuned)), "paired_by_field.png")
    if result.candidates:
        run.figure(png(candidates_over_time(result.candidates)), "candidates.png")


def _log_figures(run: TrackedRun, evaluation: Evaluation) -> None:
    """Where the records are figures: truth and extraction in one plot each, the worst ones."""
    figures = [row for row in evaluation.rows if is_figure(row.expected)]
    worst = sorted(figures, key=lambda row: -1.0 if row.score.value is None else row.score.value)[:FIGURES]
    for rank, row in enumerate(worst, start=1):
        name = f"{rank:02}-{file_name(row.example_id)}.png"
        run.figure(figure_picture(row.expected, row.predicted), f"figures/{name}")


def _log_children(run: TrackedRun, result: ExperimentResult) -> None:
    before = {name: pair[0] for name, pair in result.prompts.items()}
    after = {name: pair[1] for name, pair in result.prompts.items()}
    tags = {"fingerprint": result.fingerprint}

    baseline = run.child("baseline", {**tags, "stage": "baseline"})
    log_evaluation(baseline, result.baseline, before)
    baseline.finish()

    compiled = run.child("compile", {**tags, "stage": "compile"})
    _log_candidates(compiled, result.candidates)
    compiled.finish()

    tuned = run.child("tuned", {**tags, "stage": "tuned", "verdict": result.verdict})
    log_evaluation(tuned, result.tuned, after)
    tuned.finish()


def _log_candidates(run: TrackedRun, candidates: Sequence[Candidate]) -> None:
    best: float | None = None
    rows: list[dict[str, Any]] = []
    for step, candidate in enumerate(candidates):
        if candidate.score is not None:
            best = candidate.score if best is None else max(best, candidate.score)
        run.metrics({"validation/score": candidate.score, "validation/best": best}, step=step)
        rows.append(
            {
                "candidate": candidate.name,
                "description": candidate.description,
                "score": candidate.score,
                "n": candidate.n,
            }
        )
    run.table(rows, "candidates.json")


def _example_row(row: Row) -> dict[str, Any]:
    return {
        "id": row.example_id,
        "predicted": None if row.predicted is None else plain_json(row.predicted),
        "score": row.score.value,
        "expected": plain_json(row.expected),
        "feedback": row.score.feedback,
        "group": row.group,
        "failure": _failure(row),
    }


def _failure(row: Row) -> str | None:
    if row.failure is None:
        return None
    name = row.failure if row.failure_kind is None else f"{row.failure} ({row.failure_kind})"
    return f"{name}: {row.error or row.score.error or ''}"


def _aggregate_metrics(prefix: str, total: Aggregate) -> dict[str, float | None]:
    low, high = total.interval or (None, None)
    return {
        f"{prefix}/score": total.score,
        f"{prefix}/lower_bound": total.lower_bound,
        f"{prefix}/n_scored": total.n_scored,
        f"{prefix}/n_total": total.n_total,
        f"{prefix}/interval_low": low,
        f"{prefix}/interval_high": high,
    }


def _difference_metrics(prefix: str, delta: PairedDifference | None) -> dict[str, float | None]:
    if delta is None:
        return {}
    low, high = delta.interval or (None, None)
    return {
        f"{prefix}/mean": delta.mean,
        f"{prefix}/low": low,
        f"{prefix}/high": high,
        f"{prefix}/smallest_detectable": delta.smallest_detectable,
    }


def _cost_metrics(ledger: Mapping[str, RoleUsage]) -> dict[str, float | None]:
    metrics: dict[str, float | None] = {}
    for role, usage in ledger.items():
        metrics[f"cost/{role}/calls"] = usage.calls
        metrics[f"cost/{role}/cached"] = usage.cached
        metrics[f"cost/{role}/input_tokens"] = usage.input_tokens
        metrics[f"cost/{role}/output_tokens"] = usage.output_tokens
        metrics[f"cost/{role}/usd"] = usage.usd
        metrics[f"cost/{role}/replayed_input_tokens"] = usage.replayed_input_tokens
        metrics[f"cost/{role}/replayed_output_tokens"] = usage.replayed_output_tokens
        metrics[f"cost/{role}/replayed_usd"] = usage.replayed_usd
        for name, times in usage.failures.items():
            metrics[f"cost/{role}/failures/{name}"] = times
    if ledger:
        metrics["cost/usd"] = with_total(ledger).get(TOTAL, next(iter(ledger.values()))).usd
    return metrics


def _change(before: Aggregate | None, after: Aggregate | None) -> float | None:
    if before is None or after is None or before.score is None or after.score is None:
        return None
    return after.score - before.score


def _side_columns(side: str, total: Aggregate | None) -> dict[str, Any]:
    if total is None:
        return {side: None, f"{side} low": None, f"{side} high": None, f"{side} scored": 0}
    low, high = total.interval or (None, None)
    return {side: total.score, f"{side} low": low, f"{side} high": high, f"{side} scored": total.n_scored}
