"""One experiment, from file to verdict.

    baseline on test -> compile on train and validation -> tuned on test -> comparison -> report and bundle

Baseline and tuned go through the same code on the same held-out examples. Whatever stops a run, its calls are in
the answer store and the same command goes on. The last measurement is kept back from the budget while tuning, so a
budget that ends the tuning still ends in a verdict.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import dspy

from harness import bundle
from harness.assembly import Experiment
from harness.comparison import compare, compare_audits
from harness.errors import RunStopped, StopReason, UsageError
from harness.evaluation import evaluate
from harness.examples import inputs_digest
from harness.fingerprint import fingerprint, versions
from harness.models.prompt import prompt_text
from harness.models.roles import Endpoints, preflight
from harness.optimizers.catalogue import compile_program
from harness.optimizers.compiled import Compiled, Job
from harness.planning import calls_of_a_test_pass, check_budget, optimizer_calls
from harness.progress import Progress, SilentProgress
from harness.results import Evaluation, ExperimentResult
from harness.run_folder import Fingerprint, RunFolder, finished_folder, repetition_folder
from harness.session import Session, endpoint_digests, open_session
from harness.tracking.report import render_report
from harness.tracking.run import TrackedRun
from harness.tracking.run_tree import log_experiment
from harness.tracking.sentences import failure_notes
from harness.tracking.tracker import Tracker

BUNDLE, BUNDLE_BASELINE = "bundle", "bundle-baseline"
SEEN = "seen_while_tuning"
"""Key in a bundle's report: digests of the inputs that must not be taken for held-out ones later."""
_PROBES = 3
"""Test examples on which an exported program must send the very same prompts."""


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
        force: run a finished experiment again, with fresh answers and in a folder of its own; one that was
            interrupted goes on.
        progress: told of every finished example; silent when None.
        endpoints: where models come from; None makes them from the experiment's file.

    Returns:
        The result; that of the earlier run when nothing changed since and `force` is False. Its `stopped` says
        when the budget ended the run after the baseline: the verdict is on what was done by then, and the same
        command goes on.

    Raises:
        UsageError: a missing key or weights, a budget too small for a verdict.
        HarnessError: MLflow's store is not there, or the program raises on every example.
        RunStopped: a model is gone, the metric raised, the budget was spent on the baseline, Ctrl-C; what is
            finished is kept.
    """
    progress = progress or SilentProgress()
    check_budget(experiment)
    with endpoints or Endpoints() as opened:
        mark = fingerprint(experiment, endpoint_digests(experiment, opened))
        earlier = None if force else finished_folder(experiment.name, mark)
        finished = earlier.result() if earlier else None
        if finished is not None:
            return replace(finished, replayed=True)
        folder = repetition_folder(experiment.name, mark) if force else RunFolder(experiment.name, mark)
        with open_session(experiment, progress, endpoints=opened, replicate=folder.replicate) as session:
            return _run_in(folder, experiment, session, progress)


def _run_in(folder: RunFolder, experiment: Experiment, session: Session, progress: Progress) -> ExperimentResult:
    going_on = folder.state().get("status") not in (None, "finished")
    tracked = _tracked_run(Tracker.open(Path()), experiment, folder)
    folder.write_state("running", tracked.run_id)
    folder.write_json("splits.json", experiment.splits.to_document())
    for split, size in experiment.splits.sizes.items():
        tracked.dataset(f"{experiment.name} {split} ({size})", experiment.data_digest[:32], split)
    try:
        result = _measure_and_tune(experiment, session, folder, tracked.run_id, progress, going_on=going_on)
        _keep(folder, result, tracked)
    except KeyboardInterrupt as interrupt:
        stopped = session.ledger.stop(RunStopped(StopReason.INTERRUPT, str(interrupt) or "interrupted"))
        _abandon(folder, tracked, stopped)
        raise RunStopped(stopped.reason, stopped.message) from None
    except BaseException as error:
        _abandon(folder, tracked, error)
        raise
    return result


def _tracked_run(tracker: Tracker, experiment: Experiment, folder: RunFolder) -> TrackedRun:
    """The MLflow run to write to: the unfinished one of the same folder, else a new one."""
    state = folder.state()
    if state.get("run_id") and state.get("status") != "finished":
        with contextlib.suppress(UsageError):  # it was deleted in MLflow: a new one takes its place
            return tracker.resume_run(state["run_id"])
    return tracker.start_run(experiment.name, folder.path.name, {}, {"fingerprint": folder.fingerprint.digest})


def _measure_and_tune(
    experiment: Experiment, session: Session, folder: RunFolder, run_id: str, progress: Progress, *, going_on: bool
) -> ExperimentResult:
    started = time.monotonic()
    told = preflight({role: lm for role, lm in session.lms.items() if role not in experiment.idle})
    before = _calls(session)
    baseline = _baseline(experiment, session, progress)
    # Answers that had to be asked for twice, and programs that call their model more often than they have predictors.
    session.ledger.hold_back(max(calls_of_a_test_pass(experiment), _calls(session) - before))
    compiled = _compile(experiment, session, folder, progress)
    session.ledger.release()
    tuned = measure_on_test(compiled.program, "tuned", experiment, session, progress, keep_partial=True)
    seed = experiment.splits.seed
    found = compare(baseline, tuned, seed=seed)
    stopped = _stopped(compiled, tuned)
    prompts = _prompts(experiment, compiled.program)
    notes = [*_partial_notes(tuned), *found.notes, *told, *experiment.notes, *compiled.notes]
    notes += _comparison_notes(baseline, tuned, prompts)
    changed = folder.changed_since_last()
    if going_on:
        notes.append("this went on with a run that had not come to its end")
    if changed and not going_on:
        notes.append(f"changed since the last run of this experiment: {', '.join(changed)}")
    result = ExperimentResult(
        run_id=run_id,
        experiment=experiment.name,
        verdict=found.verdict,
        baseline=baseline,
        tuned=tuned,
        delta=found.delta,
        floor=found.floor,
        audit=compare_audits(baseline, tuned, seed=seed),
        candidates=compiled.candidates,
        ledger=session.ledger.usage(),
        prompts=prompts,
        params=params(experiment),
        split_sizes=experiment.splits.sizes,
        notes=notes,
        test_reads=mark_test_read(experiment, session, _reader(folder, stopped, prompts)),
        fingerprint=folder.fingerprint.digest,
        seconds=time.monotonic() - started,
        folder=folder.relative.as_posix(),
        bundle=(folder.relative / BUNDLE).as_posix(),
        stopped=stopped,
    )
    # Report and result first: a bundle that is refused must not cost what was measured.
    folder.write_text("report.html", render_report(result))
    folder.write_result(result)
    _export_bundles(experiment, session, compiled.program, folder, result)
    return result


def _calls(session: Session) -> int:
    """Questions of the task role so far, sent or answered from the store."""
    task = session.ledger.usage().get("task")
    return task.calls + task.cached if task is not None else 0


def _baseline(experiment: Experiment, session: Session, progress: Progress) -> Evaluation:
    try:
        return measure_on_test(experiment.program, "baseline", experiment, session, progress)
    except RunStopped as stopped:
        if stopped.reason is not StopReason.BUDGET:
            raise
        sentence = f"{stopped.message}: it ended while the baseline was measured, so there is nothing to compare yet"
        raise RunStopped(stopped.reason, sentence) from None


def _stopped(compiled: Compiled, tuned: Evaluation) -> str:
    """What the budget ended, in one sentence; empty when it ended nothing."""
    return "; ".join(
        [
            *([f"{compiled.stopped.message}: tuning was stopped there"] if compiled.stopped is not None else []),
            *_partial_notes(tuned),
        ]
    )


def _partial_notes(tuned: Evaluation) -> list[str]:
    done = sum(row.failure != "budget" for row in tuned.rows)
    if done == len(tuned.rows):
        return []
    return [
        f"the budget ended in the last measurement: the verdict rests on the {done} of {len(tuned.rows)} test examples "
        "that were measured"
    ]


def _reader(folder: RunFolder, stopped: str, prompts: Mapping[str, tuple[str, str]]) -> str:
    """Who reads the test split: a stopped run's program is one reader, the one it goes on to is another."""
    return f"{folder.reader} {Fingerprint.of(dict(prompts)).digest}" if stopped else folder.reader


def mark_test_read(experiment: Experiment, session: Session, reader: str) -> int:
    """Note that the test split was read by `reader`; how many different readers it has had, this one included.

    The more often one split decides, the more its noise is selected for.
    """
    split = Fingerprint.of({"test": experiment.splits.to_document()["test"], "data": experiment.data_digest}).digest
    session.store.mark_read(split, reader)
    return session.store.times_read(split)


def measure_on_test(
    program: dspy.Module,
    name: str,
    experiment: Experiment,
    session: Session,
    progress: Progress,
    *,
    keep_partial: bool = False,
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
        keep_partial=keep_partial,
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
        planned=sum(calls for role, calls in optimizer_calls(experiment).items() if role != "prompt"),
        prompt=session.lms.get("prompt"),
    )
    return compile_program(experiment.optimizer, experiment.arguments, job)


def _export_bundles(
    experiment: Experiment, session: Session, tuned: dspy.Module, folder: RunFolder, result: ExperimentResult
) -> None:
    """Write the tuned program, and the baseline beside it, as bundles; notes that say where a server is stay here."""
    own = [config for config in experiment.models.values() if config.api_base]
    endpoints = [config.api_base for config in own if config.api_base]
    notes = [note for note in result.notes if not any(config.host in note for config in own)]
    seen = [inputs_digest(each) for split in ("train", "validation") for each in experiment.examples[split]]
    secrets = [secret for lm in session.lms.values() for secret in lm.engine.provider.secrets]
    for name, program in ((BUNDLE_BASELINE, experiment.program), (BUNDLE, tuned)):
        bundle.export(
            folder.path / name,
            program=program,
            contract=experiment.contract,
            adapter_name=experiment.adapter,
            model_settings=model_settings(experiment),
            report={
                **result.to_document(),
                "notes": notes,
                "candidate": "tuned" if name == BUNDLE else "baseline",
                SEEN: seen if name == BUNDLE else [],
            },
            program_reference=experiment.program_reference,
            probes=[dict(example.inputs()) for example in experiment.examples["test"][:_PROBES]],
            forbidden=[*endpoints, *secrets],
            overwrite=True,
        )


def _comparison_notes(baseline: Evaluation, tuned: Evaluation, prompts: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """What a reader of the two scores must know: nothing changed, answers missing, and why."""
    if all(before == after for before, after in prompts.values()):
        yield "tuning changed no prompt: baseline and tuned are the same program"
    for evaluation in (baseline, tuned):
        yield from failure_notes(evaluation)


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
    arguments = experiment.arguments.model_dump(mode="json", exclude_none=True)
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
    tracked.finish("killed" if result.stopped else "finished")
    folder.write_state("stopped" if result.stopped else "finished", tracked.run_id)


def _abandon(folder: RunFolder, tracked: TrackedRun, error: BaseException) -> None:
    with contextlib.suppress(OSError):  # a full disk is the reason already being told
        folder.write_state("stopped", tracked.run_id)
    tracked.finish(ending(error))


def ending(error: BaseException) -> Literal["killed", "failed"]:
    """How MLflow marks a run that `error` ended: killed when a person or a limit did it."""
    asked_for = isinstance(error, RunStopped) and error.reason in (StopReason.INTERRUPT, StopReason.BUDGET)
    return "killed" if asked_for or isinstance(error, KeyboardInterrupt) else "failed"
