"""One entry per optimizer: its arguments, what it will cost, and how it is compiled.

DSPy's optimizers keep DSPy's argument names; the ones left out are decided by the run (metric, threads, teacher).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_origin

import dspy
from pydantic import ValidationError

from harness.errors import RunStopped, StopReason, UsageError, nearest
from harness.optimizers import dspy_optimizers, gepa_search, mipro, nearest_search, simba
from harness.optimizers.compiled import Arguments, Compiled, Job
from harness.optimizers.noise import above_noise
from harness.optimizers.recorder import Recorder
from programs.contract import predictors_of


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One entry of the catalogue.

    Attributes:
        name: what a file calls it.
        summary: one line for `harness list optimizers`.
        arguments: its arguments with their defaults.
        compile: does the work.
        calls: upper bounds by role, from (arguments, size of train, size of validation, predictors): runs of the
            program by "task" and by "teacher", single requests by "prompt".
        problem: why it cannot run with (arguments, size of train, size of validation), or None.
        needs_labelled_demos: True when it can do nothing without records that fit the schema.
    """

    name: str
    summary: str
    arguments: type[Arguments]
    compile: Callable[[Job, Any], Compiled]
    calls: Callable[[Any, int, int, int], Mapping[str, int]] = lambda *_: {}
    problem: Callable[[Any, int, int], str | None] = lambda *_: None
    needs_labelled_demos: bool = False


CATALOGUE: Mapping[str, Optimizer] = {
    entry.name: entry
    for entry in (
        Optimizer(
            "none",
            "no tuning: the program as it is, measured twice",
            Arguments,
            lambda job, _: Compiled(job.program),
        ),
        Optimizer(
            "labeled_few_shot",
            "k random labelled examples as demos",
            dspy_optimizers.LabeledFewShotArguments,
            dspy_optimizers.labeled_few_shot,
            needs_labelled_demos=True,
        ),
        Optimizer(
            "bootstrap_few_shot",
            "demos the teacher got right on training examples",
            dspy_optimizers.BootstrapFewShotArguments,
            dspy_optimizers.bootstrap_few_shot,
            lambda args, train, *_: {"teacher": train * args.max_rounds},
        ),
        Optimizer(
            "bootstrap_random_search",
            "several bootstrapped demo sets, the best on validation",
            dspy_optimizers.BootstrapRandomSearchArguments,
            dspy_optimizers.bootstrap_random_search,
            dspy_optimizers.random_search_calls,
        ),
        Optimizer(
            "nearest_demos",
            "for each question the most similar labelled examples; k chosen on validation",
            nearest_search.NearestDemosArguments,
            nearest_search.nearest_demos,
            nearest_search.nearest_calls,
            needs_labelled_demos=True,
        ),
        Optimizer(
            "gepa",
            "instructions rewritten from the metric's feedback, the best on validation",
            gepa_search.GepaArguments,
            gepa_search.gepa,
            gepa_search.gepa_calls,
            gepa_search.gepa_problem,
        ),
        Optimizer(
            "miprov2",
            "instructions a prompt model writes and bootstrapped demos, searched together on validation",
            mipro.MiproArguments,
            mipro.miprov2,
            mipro.miprov2_calls,
        ),
        Optimizer(
            "simba",
            "rules and demos from examples whose answers vary, the best on validation",
            simba.SimbaArguments,
            simba.simba,
            simba.simba_calls,
            simba.simba_problem,
        ),
    )
}


def find_optimizer(name: str, arguments: Mapping[str, Any], where: str) -> tuple[Optimizer, Arguments]:
    """The entry and its validated arguments.

    Raises:
        UsageError: an unknown optimizer or argument (with the nearest name) or a value out of range, with `where`.
    """
    entry = CATALOGUE.get(name)
    if entry is None:
        raise UsageError(f"{where}: there is no optimizer {name!r}; {nearest(name, CATALOGUE)}")
    try:
        return entry, entry.arguments(**_as_lists(entry.arguments, arguments))
    except ValidationError as invalid:
        error = invalid.errors()[0]
        if not error["loc"]:  # about several arguments together
            raise UsageError(f"{where}: {name}: {error['msg'].removeprefix('Value error, ')}") from None
        field = str(error["loc"][0])
        if error["type"] == "extra_forbidden":
            known = entry.arguments.model_fields
            hint = nearest(field, known) if known else "it takes no arguments"
            raise UsageError(f"{where}: {name} has no argument {field!r}; {hint}") from None
        got = error.get("input")
        raise UsageError(f"{where}: {name}.{field}: {error['msg']}, got {got!r}") from None


def _as_lists(model: type[Arguments], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`k: 4` is `k: [4]` where a list is expected."""
    return {
        name: [value]
        if isinstance(value, int)
        and name in model.model_fields
        and get_origin(model.model_fields[name].annotation) is tuple
        else value
        for name, value in arguments.items()
    }


def compile_program(entry: Optimizer, arguments: Arguments, job: Job) -> Compiled:
    """Compile and give back a plain program: nothing hung on it, demos with their signature's fields only.

    A winner whose gain on validation lies within the metric's noise is not taken. A budget that ends the search gives
    the best program measured by then, with `stopped` set.

    Raises:
        RunStopped: the metric raised, a model is gone, Ctrl-C.
    """
    recorder = Recorder(job.program, job.validation)
    job = replace(job, recorder=recorder)
    compiled = Compiled(job.program)
    try:
        with dspy.context(callbacks=[*dspy.settings.callbacks, recorder]):
            compiled = entry.compile(job, arguments)
        recorder.close()
        compiled = above_noise(job, compiled)
    except RunStopped as stopped:
        if stopped.reason is not StopReason.BUDGET:
            raise
        recorder.close(stopped)
        compiled = _stopped(job, compiled, stopped)
    notes = [*recorder.notes, *compiled.notes]
    if recorder.unusable:
        notes.append(f"{recorder.unusable} answers of candidates on validation could not be read and counted as 0")
    compiled = replace(compiled, notes=notes)
    strip(compiled.program)
    return compiled


def _stopped(job: Job, compiled: Compiled, stopped: RunStopped) -> Compiled:
    """What there is when the budget ends the search, or the look at the metric's noise after it."""
    best = job.recorder.best
    program = compiled.program if compiled.candidates else best or job.program
    taken = "the program is left as it was" if best is None else "the best program measured by then is taken"
    note = f"tuning ended early, {stopped.message}: {taken}"
    return Compiled(program, job.recorder.candidates(), [*compiled.notes, note], stopped)


def strip(program: dspy.Module) -> None:
    """Remove what optimizers attach to a program: candidate lists, and demo columns that no prompt shows."""
    for name in ("candidate_programs", "trial_logs", "detailed_results", "mb_candidate_programs", "simba_idx"):
        if name in vars(program):
            delattr(program, name)
    for _, predictor in predictors_of(program):
        fields = set(predictor.signature.fields)
        predictor.demos = [
            dspy.Example({name: value for name, value in demo.items() if name in fields}) for demo in predictor.demos
        ]
