"""DSPy's demo optimizers, run with our metric adapters, our seeds and their output kept in a log."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import dspy
from dspy.teleprompt import BootstrapFewShot, BootstrapFewShotWithRandomSearch, LabeledFewShot

from harness.optimizers.adapters import AsBootstrap
from harness.optimizers.compiled import Compiled, Job
from harness.results import Candidate

_NEVER = 10**9
"""DSPy stops an optimizer after this many errors with a bare Exception. Failing programs score 0 here and broken
metrics stop the run by themselves, so DSPy's own counter must not end it."""


def labeled_few_shot(job: Job, args: Any) -> Compiled:
    """DSPy's LabeledFewShot on a seeded order of the labelled examples."""
    program = LabeledFewShot(k=args.k).compile(job.program, trainset=_shuffled(job.labelled, job.seed))
    return Compiled(program)


def bootstrap_few_shot(job: Job, args: Any) -> Compiled:
    """DSPy's BootstrapFewShot."""
    with _metric(job, args) as metric:
        optimizer = BootstrapFewShot(
            metric=metric,
            teacher_settings=_teacher(job),
            max_bootstrapped_demos=args.max_bootstrapped_demos,
            max_labeled_demos=_labelled_limit(job, args),
            max_rounds=args.max_rounds,
            max_errors=_NEVER,
        )
        program = optimizer.compile(job.program, trainset=_trainset(job))
    return Compiled(program, (), _notes(job, metric))


def bootstrap_random_search(job: Job, args: Any) -> Compiled:
    """DSPy's BootstrapFewShotWithRandomSearch; every candidate is measured on the validation split."""
    with _metric(job, args) as metric:
        optimizer = BootstrapFewShotWithRandomSearch(
            metric=metric,
            teacher_settings=_teacher(job),
            max_bootstrapped_demos=args.max_bootstrapped_demos,
            max_labeled_demos=_labelled_limit(job, args),
            max_rounds=args.max_rounds,
            num_candidate_programs=args.num_candidate_programs,
            num_threads=job.runtime.threads,
            max_errors=_NEVER,
        )
        program = optimizer.compile(job.program, trainset=_trainset(job), valset=list(job.validation))
    by_seed = sorted(program.candidate_programs, key=lambda candidate: candidate["seed"])
    candidates = [
        Candidate(
            _CANDIDATE_NAMES.get(candidate["seed"], f"random {candidate['seed']}"),
            candidate["score"] / 100,
            len(candidate["subscores"]),
            f"{sum(len(predictor.demos) for predictor in candidate['program'].predictors())} demos",
        )
        for candidate in by_seed
    ]
    return Compiled(program, candidates, _notes(job, metric))


_CANDIDATE_NAMES = {-3: "no demos", -2: "labelled demos", -1: "bootstrapped in order"}


def _trainset(job: Job) -> list[dspy.Example]:
    """Records that fit the schema; where none does, all of them, and labelled demos are off."""
    return _shuffled(job.labelled or job.train, job.seed)


def _labelled_limit(job: Job, args: Any) -> int:
    return args.max_labeled_demos if job.labelled else 0


def _shuffled(examples: Sequence[dspy.Example], seed: int) -> list[dspy.Example]:
    """DSPy's optimizers always draw with seed 0; the order they draw from carries our seed."""
    shuffled = list(examples)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def _teacher(job: Job) -> dict[str, Any]:
    return {"lm": job.teacher} if job.teacher is not None else {}


def _notes(job: Job, metric: AsBootstrap) -> list[str]:
    notes = []
    if metric.unscored:
        notes.append(f"{metric.unscored} of {metric.calls} metric calls while tuning gave no score and counted as 0")
    if metric.tried:
        notes.append(f"{metric.reached} of {metric.tried} answers on training examples reached metric_threshold")
    if not job.labelled:
        notes.append("no training record fits the schema, so labelled demos are off")
    return notes


@contextmanager
def _metric(job: Job, args: Any) -> Iterator[AsBootstrap]:
    with job.progress.phase("tuning", job.planned) as phase, _into_log(job.log), job.runtime.context():
        yield AsBootstrap(job.measure.scoring, args.metric_threshold, phase.advance)


@contextmanager
def _into_log(log: Path) -> Iterator[None]:
    """Send what DSPy prints, logs and draws as progress bars to a file: stdout belongs to `--json`."""
    logger = logging.getLogger("dspy")
    handlers, propagate = logger.handlers[:], logger.propagate
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as stream:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.handlers, logger.propagate = [handler], False
        try:
            with redirect_stdout(stream), redirect_stderr(stream):
                yield
        finally:
            logger.handlers, logger.propagate = handlers, propagate
