"""The evaluation loop: every example once, in order, nothing resubmitted, nothing swallowed.

DSPy's own Evaluate resubmits slow examples after two minutes (a second paid call) and turns every exception
into a score, so programs are measured here. What has no answer has no score: see `harness.failures`.
"""

from __future__ import annotations

import contextvars
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dspy

from harness.errors import HarnessError, RunStopped, StopReason
from harness.failures import INVALID, Failure, failure_of, first_line
from harness.fields import parts_of
from harness.models.calls import calls_of_this_context
from harness.progress import Progress
from harness.results import Evaluation, Row
from harness.scoring import Scoring
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
    """

    lm: dspy.LM
    adapter: dspy.Adapter
    threads: int
    stop: Callable[[RunStopped], object]

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
    bugs: list[BaseException] = []
    try:
        with progress.phase(f"{name} on {split}", len(examples)) as phase:
            for index, row, bug in _outcomes(program, examples, measure, runtime, replicate):
                rows[index] = row
                phase.advance()
                if bug is not None:
                    bugs.append(bug)
                so_far = [row for row in rows if row is not None]
                _refuse_broken_program(bugs, so_far, len(examples))
                _refuse_silent_metric(so_far, len(examples), measure, runtime)
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
    groups = [row.group for row in done]
    return Evaluation(
        name,
        split,
        done,
        aggregate([row.score.value for row in done], groups, seed=seed),
        aggregate_fields(done, seed=seed),
        {
            audit: aggregate([_value(row.audit.get(audit)) for row in done], groups, seed=seed)
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


def _outcomes(
    program: dspy.Module, examples: Sequence[dspy.Example], measure: Measure, runtime: Runtime, replicate: int
) -> Iterator[tuple[int, Row, BaseException | None]]:
    """(index, row, program bug) in the order of completion; one thread runs in the caller's thread."""
    if runtime.threads == 1:
        for index, example in enumerate(examples):
            yield index, *_measure_one(program, example, measure, runtime, replicate)
        return
    with _Pool(runtime) as pool:
        waiting: dict[Future[tuple[Row, BaseException | None]], int] = {
            pool.submit(
                contextvars.copy_context().run, _measure_one, program, example, measure, runtime, replicate
            ): index
            for index, example in enumerate(examples)
        }
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            # Answers first: a spent budget must not lose what was measured beside it.
            for future in sorted(finished, key=_ended_in_an_error):
                if _budget_is_spent(future):
                    pool.shutdown(wait=True, cancel_futures=True)
                    yield from _measured(waiting)
                index = waiting.pop(future)
                yield index, *future.result()


def _measured(
    waiting: Mapping[Future[tuple[Row, BaseException | None]], int],
) -> Iterator[tuple[int, Row, BaseException | None]]:
    """What ended well among the futures that nobody waits for any longer."""
    for future, index in waiting.items():
        if future.done() and not future.cancelled() and not _ended_in_an_error(future):
            yield index, *future.result()


def _ended_in_an_error(future: Future[Any]) -> bool:
    return future.exception() is not None


def _budget_is_spent(future: Future[Any]) -> bool:
    error = future.exception()
    return isinstance(error, RunStopped) and error.reason is StopReason.BUDGET


class _Pool:
    """A thread pool that, when anything stops the loop, refuses further model calls and drops what is queued.

    A spent budget needs no stop: the ledger refuses by itself, and may hold calls back for a later evaluation.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._executor = ThreadPoolExecutor(max_workers=runtime.threads, thread_name_prefix="evaluate")

    def __enter__(self) -> ThreadPoolExecutor:
        return self._executor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            stopped = error if isinstance(error, RunStopped) else RunStopped(StopReason.INTERRUPT, "interrupted")
            if stopped.reason is not StopReason.BUDGET:
                self._runtime.stop(stopped)
        self._executor.shutdown(wait=True, cancel_futures=error is not None)


def _measure_one(
    program: dspy.Module, example: dspy.Example, measure: Measure, runtime: Runtime, replicate: int
) -> tuple[Row, BaseException | None]:
    started = time.perf_counter()
    with calls_of_this_context() as calls:
        prediction, failure, bug = _predict(program, example, runtime)
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
