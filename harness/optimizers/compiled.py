"""What an optimizer is given and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dspy
from pydantic import BaseModel, ConfigDict

from harness.errors import RunStopped
from harness.evaluation import Measure, Runtime
from harness.optimizers.recorder import Recorder
from harness.progress import Progress
from harness.results import Candidate


class Arguments(BaseModel):
    """Arguments of an optimizer; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Job:
    """One compilation.

    Attributes:
        program: the program to tune; never changed.
        train: examples to learn from.
        labelled: those of `train` whose record fits the schema, with the output field filled: usable as demos.
        validation: examples to choose candidates on; never the test split.
        measure: metric and contract.
        runtime: model, adapter, threads.
        teacher: the LM that makes demos, or None for the task's own.
        seed: of everything random.
        progress: told of every metric call.
        log: where what DSPy prints goes.
        planned: upper bound of metric calls, for the progress bar.
        prompt: the LM that writes instructions, or None for the teacher's, else the task's own.
        recorder: keeps what was measured on validation; `compile_program` sets it.
    """

    program: dspy.Module
    train: Sequence[dspy.Example]
    labelled: Sequence[dspy.Example]
    validation: Sequence[dspy.Example]
    measure: Measure
    runtime: Runtime
    teacher: dspy.LM | None
    seed: int
    progress: Progress
    log: Path
    planned: int
    prompt: dspy.LM | None = None
    recorder: Recorder = field(default_factory=Recorder)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A tuned program, the candidates that were tried (in that order) and what a reader must know.

    `stopped` is set when the budget ended the search: the program is then the best one that had been measured on
    all of validation by that time, or the program as it was.
    """

    program: dspy.Module
    candidates: Sequence[Candidate] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    stopped: RunStopped | None = None
