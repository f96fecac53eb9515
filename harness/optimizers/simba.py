"""SIMBA: rules and demos from examples on which a program's answers vary, chosen on validation.

DSPy's SIMBA picks its winner by minibatches of training examples and by training examples it has seen. Here its
candidates are measured once more, on validation, and the best is taken, or the program as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dspy
from dspy.teleprompt import SIMBA
from dspy.teleprompt.simba_utils import append_a_demo, append_a_rule
from pydantic import Field

from harness.errors import HarnessError, UsageError
from harness.optimizers.adapters import AsFloat
from harness.optimizers.compiled import Arguments, Compiled, Job
from harness.optimizers.prompt_calls import PromptCalls
from harness.optimizers.proposals import Proposals, cleaned, unusable
from harness.optimizers.recorder import program_key
from harness.optimizers.tuning import on_validation, prompt_model, shuffled, teacher_settings, tuning

STALLED = 5
"""Unusable rules in a row after which the prompt model is not asked again."""
_DSPY_BSIZE = 32
_AS_IT_IS = "as it is"


class SimbaArguments(Arguments):
    """`max_steps` minibatches of `bsize` training examples, each with `num_candidates` samples per example and as many
    new programs. `bsize` is 32 or, with fewer training examples, all of them."""

    bsize: int | None = Field(None, ge=1)
    num_candidates: int = Field(6, ge=2, le=100)
    max_steps: int = Field(8, ge=1, le=1000)
    max_demos: int = Field(4, ge=0)
    demo_input_field_maxlen: int = Field(100_000, ge=1)
    temperature_for_sampling: float = Field(0.2, gt=0)
    temperature_for_candidates: float = Field(0.2, gt=0)


def simba(job: Job, args: SimbaArguments) -> Compiled:
    """DSPy's SIMBA, its candidates compared on validation.

    Raises:
        UsageError: `bsize` is larger than the training split; `simba_problem` says so beforehand.
    """
    problem = simba_problem(args, len(job.train), len(job.validation))
    if problem:
        raise UsageError(f"simba: {problem}")
    with tuning(job, lambda told: AsFloat(job.measure.scoring, told)) as metric:
        optimizer = SIMBA(
            metric=metric,
            bsize=_bsize(args, len(job.train)),
            num_candidates=args.num_candidates,
            max_steps=args.max_steps,
            max_demos=args.max_demos,
            prompt_model=prompt_model(job),
            teacher_settings=teacher_settings(job) or None,
            demo_input_field_maxlen=args.demo_input_field_maxlen,
            num_threads=job.runtime.threads,
            temperature_for_sampling=args.temperature_for_sampling,
            temperature_for_candidates=args.temperature_for_candidates,
        )
        rules = _CheckedRules(job)
        optimizer.strategies = [rules.append_a_rule]
        if args.max_demos:
            optimizer.strategies.insert(0, append_a_demo(args.demo_input_field_maxlen))
        try:
            found: Any = optimizer.compile(job.program, trainset=shuffled(job.train, job.seed), seed=job.seed)
        finally:
            job.recorder.notes.extend(rules.notes())
    by_training: list[tuple[dspy.Module, str]] = [
        (candidate["program"], f"{candidate['score']:.3f} on training examples")
        for candidate in found.candidate_programs
    ]
    return _best_on_validation(job, by_training)


def _best_on_validation(job: Job, candidates: list[tuple[dspy.Module, str]]) -> Compiled:
    """The program as it was and each different candidate, measured alike."""
    seen: set[str] = set()
    for program, said in [(job.program, ""), *candidates]:
        key = program_key(program)
        if key in seen:
            continue
        name = f"candidate {len(seen)}" if seen else _AS_IT_IS
        seen.add(key)
        description = ", ".join(part for part in (job.recorder.describe(program), said) if part)
        try:
            total = on_validation(job, program, name).total
        except HarnessError:  # it raises on every example; only the program itself may end the run by that
            if name == _AS_IT_IS:
                raise
            job.recorder.measured(program, 0.0, len(job.recorder.examples), name, f"{description}, raises everywhere")
        else:
            job.recorder.measured(program, total.lower_bound, total.n_total, name, description)
    return Compiled(job.recorder.best or job.program, job.recorder.candidates())


def simba_calls(args: SimbaArguments, train: int, validation: int, _predictors: int) -> dict[str, int]:
    """Samples and candidates of every step, the final passes over training and validation; a rule per example."""
    programs = args.num_candidates + 1
    bsize = _bsize(args, train)
    sampled = args.max_steps * bsize
    return {
        "task": sampled * (args.num_candidates + programs) + programs * train + (programs + 1) * validation,
        "teacher": sampled,
        "prompt": sampled,
    }


def simba_problem(args: SimbaArguments, train: int, _validation: int) -> str | None:
    """Why SIMBA cannot run on splits of these sizes.

    >>> simba_problem(SimbaArguments(bsize=32), 20, 10)
    'bsize is 32, but there are only 20 training examples'
    >>> simba_problem(SimbaArguments(), 20, 10)
    """
    if args.bsize is not None and args.bsize > train:
        return f"bsize is {args.bsize}, but there are only {train} training examples"
    return None


def _bsize(args: SimbaArguments, train: int) -> int:
    return args.bsize or min(_DSPY_BSIZE, train)


class _CheckedRules:
    """DSPy's strategy that appends advice to instructions, with every changed instruction checked.

    Args:
        job: what is tuned.
    """

    def __init__(self, job: Job) -> None:
        inputs = job.measure.contract.inputs
        self._asked = PromptCalls()
        self._hidden = [str(example[name]) for example in job.validation for name in inputs if name in example]
        self._shown = [str(example[name]) for example in job.train for name in inputs if name in example]
        self._proposals: dict[str, Proposals] = {}

    @property
    def append_a_rule(self) -> Callable[..., bool]:
        """The strategy, in the form SIMBA calls: a function, whose name it logs."""

        def append_a_checked_rule(bucket: Any, system: Any, **settings: Any) -> bool:
            return self._append(bucket, system, settings)

        return append_a_checked_rule

    def notes(self) -> list[str]:
        """What became of the rules, and how often the prompt model gave nothing."""
        notes = self._asked.notes()
        counts = {name: proposals.counts for name, proposals in self._proposals.items()}
        notes += [f"rules for {name}: {count}" for name, count in counts.items() if count.proposed]
        if self._stalled():
            notes.append(f"stalled: {STALLED} rules in a row could not be used, so no more were asked for")
        return notes

    def _append(self, bucket: Any, system: Any, settings: dict[str, Any]) -> bool:
        if self._stalled():
            return False
        before = {name: predictor.signature for name, predictor in system.named_predictors()}
        failed = self._asked.failed
        try:
            with dspy.context(callbacks=[*dspy.settings.callbacks, self._asked]):
                appended = append_a_rule(bucket, system, **settings)
        except Exception as error:
            reason = getattr(error, "kind", "unreadable") if self._asked.failed > failed else "nothing to compare"
            for name, signature in before.items():
                self._checks(name, signature).reject(reason)
            raise
        for name, predictor in system.named_predictors():
            own = before[name]
            if predictor.signature.instructions == own.instructions:
                continue
            checks, ruled = self._checks(name, own), cleaned(predictor.signature.instructions)
            reason = unusable(ruled.removeprefix(own.instructions))  # an error text is one at the end, too
            if reason is not None:
                checks.reject(reason)
            else:
                reason = checks.check(own.instructions, ruled)
            predictor.signature = own if reason is not None else predictor.signature.with_instructions(ruled)
        return appended

    def _checks(self, name: str, signature: Any) -> Proposals:
        if name not in self._proposals:
            self._proposals[name] = Proposals(signature.fields, hidden=self._hidden, shown=self._shown)
        return self._proposals[name]

    def _stalled(self) -> bool:
        return bool(self._proposals) and all(checks.stalled(STALLED) for checks in self._proposals.values())
