"""Every candidate that was measured on validation, kept at the moment it was measured.

DSPy's optimizers tell what they tried when they return, so one that is stopped tells nothing. The recorder listens to
every `dspy.Evaluate` instead: whatever ends a search, the best program measured so far is known.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from harness.errors import RunStopped, StopReason
from harness.results import Candidate
from programs.contract import predictors_of


@dataclass(frozen=True, slots=True)
class Tried:
    """One measurement of one candidate.

    Attributes:
        program: a copy, which stays what was measured.
        score: mean over `n` examples, 0..1; what could not be scored counts as 0.
        n: how many validation examples.
        full: all examples candidates are compared on, rather than a minibatch of them.
        key: equal for programs that send equal prompts.
        name, description: for the report.
    """

    program: dspy.Module
    score: float
    n: int
    full: bool
    key: str
    name: str
    description: str


class Recorder(BaseCallback):
    """Listens to evaluations on validation, and counts the calls in progress. Safe under threads.

    Attached by adding it to `settings.callbacks`, so that it follows DSPy into its threads.

    Args:
        baseline: the program before tuning.
        validation: the examples candidates are compared on.

    Attributes:
        examples: the examples candidates are compared on.
        naming: the name of the candidate with this number, counted from 0 in the order of measuring.
        notes: sentences a reader must know even when the search is stopped.
        unusable: answers of candidates that could not be read and counted as 0.
    """

    def __init__(self, baseline: dspy.Module | None = None, validation: Sequence[dspy.Example] = ()) -> None:
        self.examples = list(validation)
        self.naming: Callable[[int], str] = lambda number: f"candidate {number + 1}"
        self.notes: list[str] = []
        self.unusable = 0
        self._baseline = program_key(baseline) if baseline is not None else ""
        self._instructions = _instructions(baseline) if baseline is not None else {}
        self._changed = threading.Condition()
        self._measuring: dict[str, tuple[dspy.Module, int]] = {}
        self._tried: list[Tried] = []
        self._running: set[str] = set()
        self._closed: RunStopped | None = None

    def compare_on(self, examples: Sequence[dspy.Example]) -> None:
        """Candidates are compared on these examples only; to be called before the first is measured."""
        self.examples = list(examples)

    def measured(self, program: dspy.Module, score: float, n: int, name: str = "", description: str = "") -> None:
        """Keep a candidate that was not measured by `dspy.Evaluate`."""
        with self._changed:
            number = len(self._tried)
            self._tried.append(
                Tried(
                    program,
                    score,
                    n,
                    n == len(self.examples),
                    program_key(program),
                    name or self.naming(number),
                    description or self.describe(program),
                )
            )

    @property
    def tried(self) -> list[Tried]:
        """Every measurement, in order."""
        with self._changed:
            return list(self._tried)

    @property
    def best(self) -> dspy.Module | None:
        """The program of the best full measurement so far, the first among equals; None before the first."""
        full = [tried for tried in self.tried if tried.full]
        return max(full, key=lambda tried: tried.score).program if full else None

    @property
    def knows_baseline(self) -> bool:
        """Whether the program before tuning was measured in full, so that measuring it again calls no model."""
        return any(tried.full and tried.key == self._baseline for tried in self.tried)

    def describe(self, program: dspy.Module) -> str:
        """How many demos a program's predictors hold together, and whether they were given other instructions."""
        demos = sum(len(predictor.demos) for _, predictor in predictors_of(program))
        other = ", other instructions" if _instructions(program) != self._instructions else ""
        return f"{demos} demo{'' if demos == 1 else 's'}{other}"

    def is_baseline(self, program: dspy.Module) -> bool:
        """Whether a program sends what the program before tuning sends."""
        return program_key(program) == self._baseline

    def candidates(self) -> list[Candidate]:
        """What was tried, for the report, in order."""
        return [Candidate(tried.name, tried.score, tried.n, tried.description) for tried in self.tried]

    def close(self, stopped: RunStopped | None = None) -> None:
        """Refuse further calls of this search and wait for those in progress.

        DSPy leaves queued examples to its threads when something is raised; they must not spend what is left for the
        final measurement.
        """
        with self._changed:
            self._closed = self._closed or stopped or RunStopped(StopReason.BUDGET, "tuning has ended")
            while self._running:
                self._changed.wait()

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Keep a copy of the candidate when it is measured on validation."""
        examples = inputs.get("devset") or instance.devset
        known = {str(example["id"]) for example in self.examples}
        if not known.issuperset(str(example.get("id")) for example in examples):
            return
        program = inputs["program"].deepcopy()
        with self._changed:
            self._measuring[call_id] = program, len(examples)

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Keep its score; a measurement that was broken off is none."""
        with self._changed:
            program, n = self._measuring.pop(call_id, (None, 0))
        if program is None:
            return
        if outputs is None:
            if isinstance(exception, Exception):
                self.notes.append(f"measuring a candidate broke off and counted as 0: {exception}")
            return
        with self._changed:
            self.unusable += sum(not prediction for _, prediction, _ in outputs.results)
        self.measured(program, fmean(_number(score) for *_, score in outputs.results), n)

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """A program or a part of it starts."""
        self._enter(call_id)

    def on_module_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """It ended."""
        self._leave(call_id)

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """A call starts."""
        self._enter(call_id)

    def on_lm_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """It ended."""
        self._leave(call_id)

    def _enter(self, call_id: str) -> None:
        with self._changed:
            if self._closed is not None:
                # Not an Exception, which DSPy would only log: nothing of this search may start any more.
                raise RunStopped(self._closed.reason, self._closed.message)
            self._running.add(call_id)

    def _leave(self, call_id: str) -> None:
        with self._changed:
            self._running.discard(call_id)
            self._changed.notify_all()


def program_key(program: dspy.Module) -> str:
    """Equal for programs of one class whose predictors hold the same instructions, fields and demos."""
    own = program.dump_bundle() if hasattr(program, "dump_bundle") else None
    predictors = [
        [
            name,
            predictor.signature.instructions,
            [(field, str(info.json_schema_extra)) for field, info in predictor.signature.fields.items()],
            [dict(demo) for demo in predictor.demos],
        ]
        for name, predictor in predictors_of(program)
    ]
    return json.dumps([type(program).__qualname__, own, predictors], sort_keys=True, default=str)


def _instructions(program: dspy.Module) -> dict[str, str]:
    return {name: predictor.signature.instructions for name, predictor in predictors_of(program)}


def _number(score: Any) -> float:
    """A metric's return as a number; some optimizers are told a Prediction with a score."""
    return float(getattr(score, "score", score))
