"""DSPy's demo optimizers, run with our metric adapters, our seeds and their output kept in a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dspy
from dspy.teleprompt import BootstrapFewShot, BootstrapFewShotWithRandomSearch, LabeledFewShot
from pydantic import Field

from harness.optimizers.adapters import AsBootstrap
from harness.optimizers.compiled import Arguments, Compiled, Job
from harness.optimizers.tuning import NEVER, labelled_limit, shuffled, teacher_settings, trainset, tuning


class LabeledFewShotArguments(Arguments):
    """`k` labelled examples, drawn at random, are the demos of every call."""

    k: int = Field(4, ge=1, le=64)


class BootstrapFewShotArguments(Arguments):
    """Demos made by the teacher on training examples, kept when the metric reaches `metric_threshold`."""

    metric_threshold: float = Field(0.8, ge=0, le=1)
    max_bootstrapped_demos: int = Field(4, ge=1)
    max_labeled_demos: int = Field(4, ge=0)
    max_rounds: int = Field(1, ge=1)


class BootstrapRandomSearchArguments(BootstrapFewShotArguments):
    """`num_candidate_programs` random bootstrapped sets, and the three fixed ones, compared on validation."""

    num_candidate_programs: int = Field(6, ge=1, le=200)


def labeled_few_shot(job: Job, args: LabeledFewShotArguments) -> Compiled:
    """DSPy's LabeledFewShot on a seeded order of the labelled examples."""
    program = LabeledFewShot(k=args.k).compile(job.program, trainset=shuffled(job.labelled, job.seed))
    return Compiled(program)


def bootstrap_few_shot(job: Job, args: BootstrapFewShotArguments) -> Compiled:
    """DSPy's BootstrapFewShot."""
    with bootstrapping(job, args.metric_threshold) as metric:
        optimizer = BootstrapFewShot(
            metric=metric,
            teacher_settings=teacher_settings(job),
            max_bootstrapped_demos=args.max_bootstrapped_demos,
            max_labeled_demos=labelled_limit(job, args),
            max_rounds=args.max_rounds,
            max_errors=NEVER,
        )
        return Compiled(optimizer.compile(job.program, trainset=trainset(job)))


def bootstrap_random_search(job: Job, args: BootstrapRandomSearchArguments) -> Compiled:
    """DSPy's BootstrapFewShotWithRandomSearch; every candidate is measured on the validation split."""
    fixed = ("no demos", "labelled demos", "bootstrapped in order")
    job.recorder.naming = lambda number: fixed[number] if number < len(fixed) else f"random {number - len(fixed)}"
    with bootstrapping(job, args.metric_threshold) as metric:
        optimizer = BootstrapFewShotWithRandomSearch(
            metric=metric,
            teacher_settings=teacher_settings(job),
            max_bootstrapped_demos=args.max_bootstrapped_demos,
            max_labeled_demos=labelled_limit(job, args),
            max_rounds=args.max_rounds,
            num_candidate_programs=args.num_candidate_programs,
            num_threads=job.runtime.threads,
            max_errors=NEVER,
        )
        program: dspy.Module = optimizer.compile(job.program, trainset=trainset(job), valset=list(job.validation))
    return Compiled(job.recorder.best or program, job.recorder.candidates())


def random_search_calls(
    args: BootstrapRandomSearchArguments, train: int, validation: int, _predictors: int
) -> dict[str, int]:
    """Every candidate on all of validation; every bootstrapped one on all of train at most."""
    return {
        "task": (args.num_candidate_programs + 3) * validation,
        "teacher": (args.num_candidate_programs + 1) * train * args.max_rounds,
    }


@contextmanager
def bootstrapping(job: Job, threshold: float) -> Iterator[AsBootstrap]:
    """`tuning` with a metric that decides what becomes a demo; says so where no labelled one can be shown."""
    if not job.labelled:
        job.recorder.notes.append("no training record fits the schema, so labelled demos are off")
    with tuning(job, lambda told: AsBootstrap(job.measure.scoring, threshold, told)) as metric:
        yield metric
