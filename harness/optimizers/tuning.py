"""What every optimizer's compilation stands on: log, progress, model settings, data, and measuring on validation."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import dspy

from harness.errors import RunStopped, StopReason
from harness.evaluation import evaluate
from harness.optimizers.adapters import MetricAdapter
from harness.optimizers.compiled import Job
from harness.results import Evaluation

NEVER = 10**9
"""DSPy stops an optimizer after this many errors with a bare Exception. Failing programs score 0 here and broken
metrics stop the run by themselves, so DSPy's own counter must not end it."""

M = TypeVar("M", bound=MetricAdapter)


@contextmanager
def tuning(job: Job, make_metric: Callable[[Callable[[], None]], M]) -> Iterator[M]:
    """The surroundings of a compilation; gives the metric made with what is to be told of every metric call.

    When the budget ends it, DSPy's threads are waited for before log and progress are closed. What the metric
    counted goes to the recorder's notes in any case.
    """
    with job.progress.phase("tuning", job.planned) as phase, into_log(job.log), job.runtime.context():
        metric = make_metric(phase.advance)
        try:
            yield metric
        except RunStopped as stopped:
            if stopped.reason is StopReason.BUDGET:
                job.recorder.close(stopped)
            raise
        finally:
            job.recorder.notes.extend(metric.notes())


@contextmanager
def into_log(log: Path) -> Iterator[None]:
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


def trainset(job: Job) -> list[dspy.Example]:
    """Records that fit the schema; where none does, all of them, and labelled demos are off."""
    return shuffled(job.labelled or job.train, job.seed)


def labelled_limit(job: Job, args: Any) -> int:
    """`max_labeled_demos`, or 0 where no record can be shown."""
    return args.max_labeled_demos if job.labelled else 0


def shuffled(examples: Sequence[dspy.Example], seed: int) -> list[dspy.Example]:
    """DSPy's optimizers draw with seeds of their own; the order they draw from carries ours."""
    order = list(examples)
    random.Random(seed).shuffle(order)
    return order


def teacher_settings(job: Job) -> dict[str, Any]:
    """DSPy's form of the teacher; a copy of the LM, since some optimizers write into it."""
    return {"lm": job.teacher.copy()} if job.teacher is not None else {}


def prompt_model(job: Job) -> dspy.LM:
    """The LM that writes instructions: the role `prompt`, else the teacher, else the task's own."""
    return job.prompt or job.teacher or job.runtime.lm


def on_validation(job: Job, program: dspy.Module, name: str, *, replicate: int = 0) -> Evaluation:
    """A candidate measured on the examples candidates are compared on; audits are not asked, nothing is chosen by them.

    Raises:
        RunStopped: the metric raised, a model is gone, a budget is spent.
    """
    return evaluate(
        program,
        job.recorder.examples,
        name=name,
        split="validation",
        measure=replace(job.measure, audits={}),
        runtime=job.runtime,
        progress=job.progress,
        seed=job.seed,
        replicate=replicate,
    )
