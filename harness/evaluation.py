"""The evaluation loop: every example once, in order, nothing resubmitted, nothing swallowed.

DSPy's own Evaluate resubmits slow examples after two minutes (a second paid call) and turns every exception
into a score, so programs are measured here. What has no answer has no score: see `harness.failures`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from harness.errors import HarnessError, RunStopped, StopReason
from harness.failures import INVALID, Failure, failure_of, first_line
from harness.fields import parts_of
from harness.models.calls import Calls, calls_of_this_context
from harness.models.ledger import Ledger
from harness.progress import Progress
from harness.results import Evaluation, Row
from harness.scoring import Scoring
from harness.side_by_side import side_by_side
from metrics.score import Score
from metrics.statistics import Aggregate, aggregate
from programs.contract import OutputContract, RecordError

_BUGS_BEFORE_GIVING_UP = 3
"""A program that raises a plain Python error on this many examples, and has answered none, is broken."""
UNSCORED_BEFORE_STOPPING = 5
"""A metric that could score none of the first so many answers (or of all, where there are fewer) stops the run."""
UNSCORED_AT_MOST = 0.5
"""Share of the answers that the metric may leave unscored; beyond it a mean says more about the judge than about the
program, and the run stops."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a program needs around its calls: the task model, the prompt adapter, how many threads, and the stop.

    Attributes:
        lm: the task role's LM.
        adapter: decides the prompt's bytes.
        threads: examples in flight at once; a local model takes one.
        stop: makes the ledger refuse every later call.
        ledger: asked after every example whether a call was refused, which a program's own code may have swallowed.
    """

    lm: dspy.LM
    adapter: dspy.Adapter
    threads: int
    stop: Callable[[RunStopped], object]
    ledger: Ledger | None = None

    def context(self) -> AbstractContextManager[None]:
        """The DSPy settings every program call of a run is made under; DSPy's own history stays off."""
        return dspy.context(lm=self.lm, adapter=self.adapter, trace=[], disable_history=True)


@dataclass(frozen=True, slots=True)
class Measure:
    """What is measured: the metric, the audit metrics, and how a prediction is read."""

    scoring: Scoring
    audits: Mapping[str, Scoring]
    contract: OutputContract


def evaluate(
    program: dspy.Module,
    examples: Sequence[dspy.Example],
    *,
    name: str,
    split: str,
    measure: Measure,
    runtime: Runtime,
    progress: Progress,
    seed: int = 0,
    keep_partial: bool = False,
    replicate: int = 0,
) -> Evaluation:
    """Run `program` on every example and score it.

    Args:
        program: any DSPy module that takes the examples' inputs.
        examples: with `id`, `group`, `expected` and the inputs marked.
        name: what the evaluation is called in reports ("baseline", "tuned").
        split: the split the examples come from.
        measure: metric, audits and output contract.
        runtime: model, adapter and threads.
        progress: told of every finished example.
        seed: of the intervals' bootstrap.
        keep_partial: when the budget is spent, give what was measured; the other examples are rows of failure
            "budget".
        replicate: passed to the metrics; another number asks a judge anew.

    Raises:
        RunStopped: the metric raised or scores nothing, a model is gone, a budget is spent, Ctrl-C.
        HarnessError: the program itself is broken: it raises on every example.
    """
    rows: list[Row | None] = [None] * len(examples)
    arrived: list[Row] = []
    bugs: list[BaseException] = []
    is_silent = True
    try:
        with progress.phase(f"{name} on {split}", len(examples)) as phase:
            work = partial(_measure_one, program, measure=measure, runtime=runtime, replicate=replicate)
            with closing(side_by_side(work, examples, threads=runtime.threads, stop=runtime.stop)) as outcomes:
                for index, (row, bug) in outcomes:
                    rows[index] = row
                    arrived.append(row)
                    phase.advance()
                    if bug is not None:
                        bugs.append(bug)
                    _refuse_broken_program(bugs, arrived, len(examples))
                    is_silent = is_silent and row.failure is not None
                    if is_silent:
                        _refuse_silent_metric(arrived, len(examples), measure, runtime)
    except RunStopped as stopped:
        if not keep_partial or stopped.reason is not StopReason.BUDGET:
            raise
        not_measured = Failure("budget", None, f"not measured: {stopped.message}")
        done = [
            row if row is not None else _row(example, _failed(example, not_measured, measure), not_measured)
            for row, example in zip(rows, examples, strict=True)
        ]
    else:
        done = [row for row in rows if row is not None]
    _refuse_silent_metric(done, 0, measure, runtime)
    # What was never asked says nothing about the program, so the numbers are those of what was measured.
    measured = [row for row in done if row.failure != "budget"]
    groups = [row.group for row in measured]
    return Evaluation(
        name,
        split,
        done,
        aggregate([row.score.value for row in measured], groups, seed=seed),
        aggregate_fields(measured, seed=seed),
        {
            audit: aggregate([_value(row.audit.get(audit)) for row in measured], groups, seed=seed)
            for audit in measure.audits
        },
    )


def aggregate_fields(rows: Sequence[Row], *, seed: int = 0) -> dict[str, Aggregate]:
    """Each part of the Scores at any depth (`parts_of`: a field path, a criterion) over the rows that have it.

    A field absent on both sides of an example is not counted there, so n_total differs between fields.
    """
    parts = [(parts_of(row.score), row.group) for row in rows]
    fields: dict[str, Aggregate] = {}
    for name in dict.fromkeys(name for held, _ in parts for name in held):
        having = [(held[name].value, group) for held, group in parts if name in held]
        fields[name] = aggregate([value for value, _ in having], [group for _, group in having], seed=seed)
    return fields


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value


def _measure_one(
    program: dspy.Module, example: dspy.Example, *, measure: Measure, runtime: Runtime, replicate: int
) -> tuple[Row, BaseException | None]:
    started = time.perf_counter()
    with calls_of_this_context() as calls:
        refused_before = runtime.ledger.refusals if runtime.ledger else 0
        prediction, failure, bug = _predict(program, example, runtime)
        _refuse_swallowed_stop(calls, runtime, refused_before)
        predicted = None
        if failure is None:
            predicted, failure, bug = _read(prediction, measure.contract)
        if failure is None:
            scores = _Scores(
                measure.scoring.score(example, prediction, replicate),
                {name: scoring.score(example, prediction, replicate) for name, scoring in measure.audits.items()},
            )
            if scores.score.error is not None:
                failure = Failure("judge", None, scores.score.error)
        else:
            scores = _failed(example, failure, measure)
    row = _row(example, scores, failure)
    seconds = time.perf_counter() - started
    return replace(row, predicted=predicted, cached=calls.fresh == 0, seconds=seconds), bug


def _refuse_swallowed_stop(calls: Calls, runtime: Runtime, refused_before: int) -> None:
    """Raise the stop that the program met and kept to itself, by a bare `except` or in a thread of its own.

    Raises:
        RunStopped: what the program returned is no answer of its model.
    """
    if calls.stopped is not None:
        raise calls.stopped
    if runtime.ledger is None:
        return
    runtime.ledger.check()
    # In a plain thread the calls belong to no context: then any refusal meanwhile may have been this example's.
    if not calls and runtime.ledger.refusals > refused_before:
        raise RunStopped(StopReason.BUDGET, "the budget is spent")


@dataclass(frozen=True, slots=True)
class _Scores:
    score: Score
    audit: Mapping[str, Score]


def _failed(example: dspy.Example, failure: Failure, measure: Measure) -> _Scores:
    audit = {name: scoring.failed(example, failure) for name, scoring in measure.audits.items()}
    return _Scores(measure.scoring.failed(example, failure), audit)


def _row(example: dspy.Example, scores: _Scores, failure: Failure | None) -> Row:
    return Row(
        example_id=str(example["id"]),
        group=example["group"],
        inputs=dict(example.inputs()),
        expected=example["expected"],
        predicted=None,
        score=scores.score,
        audit=scores.audit,
        failure=failure.side if failure else None,
        failure_kind=failure.kind if failure else None,
        error=failure.sentence if failure else None,
    )


def _predict(
    program: dspy.Module, example: dspy.Example, runtime: Runtime
) -> tuple[Any | None, Failure | None, BaseException | None]:
    """(prediction, failure, bug): exactly one of the first two is set."""
    try:
        with runtime.context():
            return program(**example.inputs()), None, None
    except Exception as error:  # noqa: BLE001  # whatever a user's program raises belongs to this one example
        failure = failure_of(error)
        return None, failure, error if failure.side == "program" else None


def _read(prediction: Any, contract: OutputContract) -> tuple[Any | None, Failure | None, BaseException | None]:
    """(plain record, failure, bug) of what the program returned."""
    try:
        value = contract.result(prediction)
    except RecordError as error:  # what the program returned is not what it declared
        return None, Failure("program", None, str(error)), error
    try:
        return contract.plain(value), None, None
    except RecordError as error:  # the model said something no record can hold
        return None, Failure("unreadable", INVALID, str(error)), None


def failure_sentence(error: BaseException) -> tuple[str, bool]:
    """What went wrong in one sentence, and whether there is no readable answer (as against a bug in the program)."""
    failure = failure_of(error)
    return failure.sentence, failure.side != "program"


def _refuse_silent_metric(rows: Sequence[Row], total: int, measure: Measure, runtime: Runtime) -> None:
    """Stop when the metric scores nothing: from the start, or (`total` is 0) over all that was measured."""
    asked = [row for row in rows if row.failure in (None, "judge")]
    silent = [row for row in asked if row.failure == "judge"]
    if total:
        gives_up = len(silent) == len(asked) >= min(UNSCORED_BEFORE_STOPPING, total)
    else:
        gives_up = len(silent) > UNSCORED_AT_MOST * len(asked)
    if gives_up:
        stopped = RunStopped(
            StopReason.JUDGE,
            f"the metric {measure.scoring.metric.name!r} could not score {len(silent)} of {len(asked)} answers; on "
            f"{silent[0].example_id!r}: {silent[0].error}",
        )
        runtime.stop(stopped)
        raise stopped


def _refuse_broken_program(bugs: Sequence[BaseException], rows: Sequence[Row], total: int) -> None:
    """Stop early when the program itself is broken: every example so far raised a plain Python error."""
    if len(bugs) == len(rows) and len(bugs) >= min(_BUGS_BEFORE_GIVING_UP, total):
        where = _last_frame(bugs[0])
        raise HarnessError(
            f"the program raises on every example; on {rows[0].example_id!r}{where}: "
            f"{type(bugs[0]).__name__}: {first_line(bugs[0])}"
        ) from bugs[0]


def _last_frame(error: BaseException) -> str:
    """The innermost line that is not a library's: where a user's program went wrong, not where dspy noticed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return f" (in {own[-1].name}, {Path(own[-1].filename).name} line {own[-1].lineno})" if own else ""
