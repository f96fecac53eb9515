"""The evaluation loop: every example once, in order, nothing resubmitted, nothing swallowed.

DSPy's own Evaluate resubmits slow examples after two minutes (a second paid call) and turns every exception
into a score, so programs are measured here.
"""

from __future__ import annotations

import contextvars
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from harness.errors import HarnessError, RunStopped, StopReason
from harness.models.calls import calls_of_this_context
from harness.models.faults import program_failure
from harness.progress import Progress
from harness.results import Evaluation, Row
from harness.scoring import Scoring
from metrics.score import Score
from metrics.statistics import Aggregate, aggregate
from programs.contract import OutputContract, RecordError

_BUGS_BEFORE_GIVING_UP = 3
"""A program that raises a plain Python error on this many examples, and has answered none, is broken."""


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

    Raises:
        RunStopped: the metric raised, a model is gone, a budget is spent, Ctrl-C.
        HarnessError: the program itself is broken: it raises on every example.
    """
    rows: list[Row | None] = [None] * len(examples)
    bugs: list[BaseException] = []
    with progress.phase(f"{name} on {split}", len(examples)) as phase:
        for index, row, bug in _outcomes(program, examples, measure, runtime):
            rows[index] = row
            phase.advance()
            if bug is not None:
                bugs.append(bug)
            _refuse_broken_program(bugs, [row for row in rows if row is not None], len(examples))
    done = [row for row in rows if row is not None]
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
    """Each part of the Scores (a field path, a criterion) over the rows that have it.

    A field absent on both sides of an example is not counted there, so n_total differs between fields.
    """
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row.score.parts))
    fields: dict[str, Aggregate] = {}
    for name in names:
        having = [row for row in rows if name in row.score.parts]
        fields[name] = aggregate(
            [row.score.parts[name].value for row in having], [row.group for row in having], seed=seed
        )
    return fields


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value


def _outcomes(
    program: dspy.Module, examples: Sequence[dspy.Example], measure: Measure, runtime: Runtime
) -> Iterator[tuple[int, Row, BaseException | None]]:
    """(index, row, program bug) in the order of completion; one thread runs in the caller's thread."""
    if runtime.threads == 1:
        for index, example in enumerate(examples):
            yield index, *_measure_one(program, example, measure, runtime)
        return
    with _Pool(runtime) as pool:
        waiting: dict[Future[tuple[Row, BaseException | None]], int] = {
            pool.submit(contextvars.copy_context().run, _measure_one, program, example, measure, runtime): index
            for index, example in enumerate(examples)
        }
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                index = waiting.pop(future)
                yield index, *future.result()


class _Pool:
    """A thread pool that, when anything stops the loop, refuses further model calls and drops what is queued."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._executor = ThreadPoolExecutor(max_workers=runtime.threads, thread_name_prefix="evaluate")

    def __enter__(self) -> ThreadPoolExecutor:
        return self._executor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None:
            stopped = error if isinstance(error, RunStopped) else RunStopped(StopReason.INTERRUPT, "interrupted")
            self._runtime.stop(stopped)
        self._executor.shutdown(wait=True, cancel_futures=error is not None)


def _measure_one(
    program: dspy.Module, example: dspy.Example, measure: Measure, runtime: Runtime
) -> tuple[Row, BaseException | None]:
    started = time.perf_counter()
    with calls_of_this_context() as calls:
        prediction, error, bug = _predict(program, example, runtime)
        predicted, score, audit = None, None, {}
        if error is None:
            predicted, error, bug = _read(prediction, measure.contract)
        if error is None:
            score = measure.scoring.score(example, prediction)
            audit = {name: scoring.score(example, prediction) for name, scoring in measure.audits.items()}
        else:
            score = measure.scoring.failed(example, error)
            audit = {name: scoring.failed(example, error) for name, scoring in measure.audits.items()}
    failure = "program" if error is not None else ("judge" if score.value is None else None)
    return (
        Row(
            example_id=str(example["id"]),
            group=example["group"],
            inputs=dict(example.inputs()),
            expected=example["expected"],
            predicted=predicted,
            score=score,
            audit=audit,
            failure=failure,
            error=error if error is not None else score.error,
            cached=calls.fresh == 0,
            seconds=time.perf_counter() - started,
        ),
        bug,
    )


def _predict(
    program: dspy.Module, example: dspy.Example, runtime: Runtime
) -> tuple[Any | None, str | None, BaseException | None]:
    """(prediction, failure sentence, bug): exactly one of the first two is set."""
    try:
        with runtime.context():
            return program(**example.inputs()), None, None
    except Exception as error:  # noqa: BLE001  # whatever a user's program raises belongs to this one example
        sentence, unreadable = failure_sentence(error)
        return None, sentence, None if unreadable else error


def _read(prediction: Any, contract: OutputContract) -> tuple[Any | None, str | None, BaseException | None]:
    """(plain record, failure sentence, bug) of what the program returned."""
    try:
        value = contract.result(prediction)
    except RecordError as error:  # what the program returned is not what it declared
        return None, str(error), error
    try:
        return contract.plain(value), None, None
    except RecordError as error:  # the model said something no record can hold
        return None, str(error), None


def failure_sentence(error: BaseException) -> tuple[str, bool]:
    """What went wrong in one sentence, and whether it is an unreadable answer (as against a bug in the program)."""
    failure = program_failure(error)
    if failure is not None:
        return str(failure), True
    if isinstance(error, AdapterParseError):
        return f"the answer could not be read: {_first_line(error)}", True
    return f"{type(error).__name__}: {_first_line(error)}", False


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"


def _refuse_broken_program(bugs: Sequence[BaseException], rows: Sequence[Row], total: int) -> None:
    """Stop early when the program itself is broken: every example so far raised a plain Python error."""
    if len(bugs) == len(rows) and len(bugs) >= min(_BUGS_BEFORE_GIVING_UP, total):
        where = _last_frame(bugs[0])
        raise HarnessError(
            f"the program raises on every example; on {rows[0].example_id!r}{where}: "
            f"{type(bugs[0]).__name__}: {_first_line(bugs[0])}"
        ) from bugs[0]


def _last_frame(error: BaseException) -> str:
    """The innermost line that is not a library's: where a user's program went wrong, not where dspy noticed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return f" (in {own[-1].name}, {Path(own[-1].filename).name} line {own[-1].lineno})" if own else ""
