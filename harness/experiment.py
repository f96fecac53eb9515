"""One experiment, from file to verdict.

    baseline on test -> compile on train and validation -> tuned on test -> comparison -> report and bundle

Baseline and tuned go through the same code on the same held-out examples. Whatever stops a run, its calls are in
the answer store and the same command goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import inspect
import json
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import dspy

from harness import bundle
from harness.assembly import PROGRAMS, Experiment
from harness.comparison import compare, compare_audits
from harness.errors import RunStopped, StopReason, UsageError
from harness.evaluation import evaluate
from harness.models.prompt import prompt_text
from harness.models.roles import Endpoints
from harness.optimizers.catalogue import compile_program
from harness.optimizers.compiled import Compiled, Job
from harness.planning import check_budget, optimizer_calls
from harness.progress import Progress, SilentProgress
from harness.results import Evaluation, ExperimentResult
from harness.run_folder import Fingerprint, RunFolder
from harness.session import Session, open_session
from harness.tracking.report import render_report
from harness.tracking.run import TrackedRun
from harness.tracking.run_tree import log_experiment
from harness.tracking.tracker import Tracker
from metrics.score import Metric
from programs.contract import predictors_of

BUNDLE, BUNDLE_BASELINE = "bundle", "bundle-baseline"
_PROBES = 3
"""Test examples on which an exported program must send the very same prompts."""
_PACKAGES = ("dspy", "mlflow", "optuna", "dspy-judge-harness")


def run(
    experiment: Experiment,
    *,
    force: bool = False,
    progress: Progress | None = None,
    endpoints: Endpoints | None = None,
) -> ExperimentResult:
    """Tune the program and say with an interval whether it got better on held-out examples.

    Works in the current folder: `mlruns/` holds the answers, the MLflow store and the run's own folder.

    Args:
        experiment: from `load_experiment`.
        force: run a finished experiment again, with fresh answers.
        progress: told of every finished example; silent when None.
        endpoints: where models come from; None makes them from the experiment's file.

    Returns:
        The result; that of the earlier run when nothing changed since and `force` is False.

    Raises:
        UsageError: a missing key or weights, a budget too small for a verdict.
        HarnessError: MLflow's store is not there, or the program raises on every example.
        RunStopped: a model is gone, the metric raised, the budget is spent, Ctrl-C; what is finished is kept.
    """
    progress = progress or SilentProgress()
    check_budget(experiment)
    replicate = time.time_ns() if force else 0
    with open_session(experiment, progress, endpoints=endpoints, replicate=replicate) as session:
        folder = RunFolder(experiment.name, fingerprint(experiment, session))
        finished = None if force else folder.result()
        if finished is not None and folder.state().get("status") == "finished":
            return replace(finished, replayed=True)
        tracker = Tracker.open(Path())
        tracked = _tracked_run(tracker, experiment, folder, fresh=force)
        folder.write_state("running", tracked.run_id)
        folder.write_json("splits.json", experiment.splits.to_document())
        for split, size in experiment.splits.sizes.items():
            tracked.dataset(f"{experiment.name} {split} ({size})", experiment.data_digest[:32], split)
        try:
            result = _measure_and_tune(experiment, session, folder, tracked.run_id, progress)
            _keep(folder, result, tracked)
        except KeyboardInterrupt:
            stopped = session.ledger.stop(RunStopped(StopReason.INTERRUPT, "interrupted"))
            _abandon(folder, tracked, stopped)
            raise RunStopped(stopped.reason, stopped.message) from None
        except BaseException as error:
            _abandon(folder, tracked, error)
            raise
    return result


def fingerprint(experiment: Experiment, session: Session) -> Fingerprint:
    """Everything that could change the result, by name."""
    return Fingerprint.of(
        {
            "program": _program_components(experiment),
            "adapter": experiment.adapter,
            "data": experiment.data_digest,
            "splits": experiment.splits.to_document(),
            "metric": _metric_components(experiment.metric),
            "audit": {name: _metric_components(audit) for name, audit in experiment.audits.items()},
            "optimizer": {experiment.optimizer.name: experiment.arguments.model_dump(mode="json")},
            "models": {
                role: {
                    "endpoint": lm.engine.provider.endpoint,
                    "temperature": experiment.models[role].temperature,
                    "max_tokens": experiment.models[role].output_limit,
                    "response_schema": experiment.models[role].response_schema,
                }
                for role, lm in session.lms.items()
            },
            "versions": versions(),
        }
    )


def _metric_components(metric: Metric) -> dict[str, Any]:
    own = type(metric).__module__.partition(".")[0] == "metrics"
    return {"version": metric.version, "source": None if own else _source(metric)}


def _source(thing: object) -> str | None:
    """A digest of the text of a user's class, whose version nobody raises for every edit; None when it has no text."""
    try:
        return hashlib.sha256(inspect.getsource(type(thing)).encode()).hexdigest()
    except (OSError, TypeError):
        return None


def versions() -> dict[str, str]:
    """Versions of what decides a result."""
    return {name: importlib.metadata.version(name) for name in _PACKAGES}


def _program_components(experiment: Experiment) -> dict[str, Any]:
    return {
        "class": experiment.program_reference["class"],
        "arguments": json.loads(json.dumps(dict(experiment.program_reference["arguments"]), default=str)),
        "source": None if experiment.program_reference["class"] in PROGRAMS else _source(experiment.program),
        "schema": experiment.contract.schema,
        "predictors": {
            name: {
                "instructions": predictor.signature.instructions,
                "fields": {
                    field: str((info.json_schema_extra or {}).get("desc", ""))
                    for field, info in predictor.signature.fields.items()
                },
            }
            for name, predictor in predictors_of(experiment.program)
        },
    }


def _tracked_run(tracker: Tracker, experiment: Experiment, folder: RunFolder, *, fresh: bool) -> TrackedRun:
    """The MLflow run to write to: the unfinished one of the same fingerprint, else a new one."""
    state = folder.state()
    if state.get("run_id") and state.get("status") != "finished" and not fresh:
        with contextlib.suppress(UsageError):  # it was deleted in MLflow: a new one takes its place
            return tracker.resume_run(state["run_id"])
    return tracker.start_run(experiment.name, folder.path.name, {}, {"fingerprint": folder.fingerprint.digest})


def _measure_and_tune(
    experiment: Experiment, session: Session, folder: RunFolder, run_id: str, progress: Progress
) -> ExperimentResult:
    started = time.monotonic()
    baseline = measure_on_test(experiment.program, "baseline", experiment, session, progress)
    compiled = _compile(experiment, session, folder, progress)
    tuned = measure_on_test(compiled.program, "tuned", experiment, session, progress)
    seed = experiment.splits.seed
    delta, verdict = compare(baseline, tuned, seed=seed)
    notes = [*experiment.notes, *compiled.notes]
    prompts = _prompts(experiment, compiled.program)
    if all(before == after for before, after in prompts.values()):
        notes.append("tuning changed no prompt: baseline and tuned are the same program")
    notes += [note for evaluation in (baseline, tuned) for note in _failure_notes(evaluation)]
    changed = folder.changed_since_last()
    if changed:
        notes.append(f"changed since the last run of this experiment: {', '.join(changed)}")
    result = ExperimentResult(
        run_id=run_id,
        experiment=experiment.name,
        verdict=verdict,
        baseline=baseline,
        tuned=tuned,
        delta=delta,
        audit=compare_audits(baseline, tuned, seed=seed),
        candidates=compiled.candidates,
        ledger=session.ledger.usage(),
        prompts=prompts,
        params=params(experiment),
        split_sizes=experiment.splits.sizes,
        notes=notes,
        test_reads=mark_test_read(experiment, session, folder.fingerprint.digest),
        fingerprint=folder.fingerprint.digest,
        seconds=time.monotonic() - started,
        folder=folder.relative.as_posix(),
        bundle=(folder.relative / BUNDLE).as_posix(),
    )
    # Report and result first: a bundle that is refused must not cost what was measured.
    folder.write_text("report.html", render_report(result))
    folder.write_result(result)
    _export_bundles(experiment, session, compiled.program, folder, result)
    return result


def mark_test_read(experiment: Experiment, session: Session, reader: str) -> int:
    """Note that the test split was read by `reader`; how many different readers it has had, this one included.

    The more often one split decides, the more its noise is selected for.
    """
    split = Fingerprint.of({"test": experiment.splits.to_document()["test"], "data": experiment.data_digest}).digest
    session.store.mark_read(split, reader)
    return session.store.times_read(split)


def measure_on_test(
    program: dspy.Module, name: str, experiment: Experiment, session: Session, progress: Progress
) -> Evaluation:
    """One program on the test split: baseline, tuned and `harness evaluate` all come through here."""
    return evaluate(
        program,
        experiment.examples["test"],
        name=name,
        split="test",
        measure=session.measure,
        runtime=session.runtime,
        progress=progress,
        seed=experiment.splits.seed,
    )


def _compile(experiment: Experiment, session: Session, folder: RunFolder, progress: Progress) -> Compiled:
    job = Job(
        program=experiment.program,
        train=experiment.examples["train"],
        labelled=experiment.labelled,
        validation=experiment.examples["validation"],
        measure=session.measure,
        runtime=session.runtime,
        teacher=session.lms.get("teacher"),
        seed=experiment.splits.seed,
        progress=progress,
        log=folder.path / "optimizer.log",
        planned=sum(optimizer_calls(experiment)),
    )
    return compile_program(experiment.optimizer, experiment.arguments, job)


def _export_bundles(
    experiment: Experiment, session: Session, tuned: dspy.Module, folder: RunFolder, result: ExperimentResult
) -> None:
    """Write the tuned program, and the baseline beside it, as bundles."""
    endpoints = [config.api_base for config in experiment.models.values() if config.api_base]
    secrets = [secret for lm in session.lms.values() for secret in lm.engine.provider.secrets]
    for name, program in ((BUNDLE_BASELINE, experiment.program), (BUNDLE, tuned)):
        bundle.export(
            folder.path / name,
            program=program,
            contract=experiment.contract,
            adapter_name=experiment.adapter,
            model_settings=model_settings(experiment),
            report={**result.to_document(), "candidate": "tuned" if name == BUNDLE else "baseline"},
            program_reference=experiment.program_reference,
            probes=[dict(example.inputs()) for example in experiment.examples["test"][:_PROBES]],
            forbidden=[*endpoints, *secrets],
            overwrite=True,
        )


def _failure_notes(evaluation: Evaluation) -> list[str]:
    """How many answers failed, and the commonest reason."""
    failed = [row for row in evaluation.rows if row.failure == "program"]
    if not failed:
        return []
    reason, times = Counter(row.error for row in failed).most_common(1)[0]
    return [
        f"{evaluation.name}: {len(failed)} of {len(evaluation.rows)} answers failed and score 0; "
        f"{times} of them with: {reason}"
    ]


def model_settings(experiment: Experiment) -> dict[str, Any]:
    """What a bundle says of the task model: name and sampling, no endpoint and no key."""
    task = experiment.models["task"]
    settings = {"model": task.model, "temperature": task.temperature, "max_tokens": task.output_limit}
    if experiment.bounds is not None and task.is_local:
        settings["bounds"] = asdict(experiment.bounds)
    return {**settings, "own_endpoint": task.api_base is not None}


def _prompts(experiment: Experiment, tuned: dspy.Module) -> dict[str, tuple[str, str]]:
    """Each predictor's messages before and after, on the first test example."""
    inputs = dict(experiment.examples["test"][0].inputs())
    adapter = experiment.dspy_adapter()
    before = prompt_text(experiment.program, adapter, inputs)
    after = prompt_text(tuned, adapter, inputs)
    return {name: (before.get(name, ""), after.get(name, "")) for name in {**before, **after}}


def params(experiment: Experiment) -> dict[str, str]:
    """Short, searchable parameters of the MLflow run."""
    arguments = experiment.arguments.model_dump(mode="json")
    return {
        "program": experiment.program_reference["class"],
        "optimizer": experiment.optimizer.name,
        **{f"optimizer.{name}": str(value) for name, value in arguments.items()},
        "adapter": experiment.adapter,
        "metric": f"{experiment.metric.name}@{experiment.metric.version}",
        **{f"models.{role}": config.model for role, config in experiment.models.items()},
        **{f"models.{role}.max_tokens": str(config.output_limit) for role, config in experiment.models.items()},
        **{f"models.{role}.temperature": str(config.temperature) for role, config in experiment.models.items()},
        "data.file": Path(experiment.spec.data.path).name,
        **{f"split.{name}": str(size) for name, size in experiment.splits.sizes.items()},
        "seed": str(experiment.splits.seed),
        "data": experiment.data_digest[:12],
        **{f"versions.{name}": version for name, version in versions().items()},
    }


def _keep(folder: RunFolder, result: ExperimentResult, tracked: TrackedRun) -> None:
    """Into MLflow, last: the run's folder holds everything by now, so a store that is away loses nothing."""
    log_experiment(tracked, result, Path())
    tracked.finish("finished")
    folder.write_state("finished", tracked.run_id)


def _abandon(folder: RunFolder, tracked: TrackedRun, error: BaseException) -> None:
    interrupted = isinstance(error, RunStopped) and error.reason in (StopReason.INTERRUPT, StopReason.BUDGET)
    with contextlib.suppress(OSError):  # a full disk is the reason already being told
        folder.write_state("stopped", tracked.run_id)
    tracked.finish("killed" if interrupted else "failed")
