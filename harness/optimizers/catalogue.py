"""One entry per optimizer: its arguments, what it will cost, and how it is compiled.

DSPy's optimizers keep DSPy's argument names; the ones left out are decided by the run (metric, threads, teacher).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_origin

import dspy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UsageError, nearest
from harness.optimizers import dspy_optimizers, nearest_search
from harness.optimizers.compiled import Compiled, Job
from programs.contract import predictors_of


class Arguments(BaseModel):
    """Arguments of an optimizer; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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


class NearestDemosArguments(Arguments):
    """For each question the `k` most similar labelled examples; with several k, the best on validation."""

    k: tuple[Annotated[int, Field(ge=1, le=64, strict=True)], ...] = Field((2, 4, 6), min_length=1)


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One entry of the catalogue.

    Attributes:
        name: what a file calls it.
        summary: one line for `harness list optimizers`.
        arguments: its arguments with their defaults.
        compile: does the work.
        calls: upper bound of program calls as (by the task role, by the teacher), from
            (arguments, size of train, size of validation).
        needs_labelled_demos: True when it can do nothing without records that fit the schema.
    """

    name: str
    summary: str
    arguments: type[Arguments]
    compile: Callable[[Job, Any], Compiled]
    calls: Callable[[Any, int, int], tuple[int, int]]
    needs_labelled_demos: bool = False


def _random_search_calls(args: BootstrapRandomSearchArguments, train: int, validation: int) -> tuple[int, int]:
    searched = args.num_candidate_programs + 3
    return searched * validation, (args.num_candidate_programs + 1) * train * args.max_rounds


CATALOGUE: Mapping[str, Optimizer] = {
    entry.name: entry
    for entry in (
        Optimizer(
            "none",
            "no tuning: the program as it is, measured twice",
            Arguments,
            lambda job, _: Compiled(job.program),
            lambda *_: (0, 0),
        ),
        Optimizer(
            "labeled_few_shot",
            "k random labelled examples as demos",
            LabeledFewShotArguments,
            dspy_optimizers.labeled_few_shot,
            lambda *_: (0, 0),
            needs_labelled_demos=True,
        ),
        Optimizer(
            "bootstrap_few_shot",
            "demos the teacher got right on training examples",
            BootstrapFewShotArguments,
            dspy_optimizers.bootstrap_few_shot,
            lambda args, train, _: (0, train * args.max_rounds),
        ),
        Optimizer(
            "bootstrap_random_search",
            "several bootstrapped demo sets, the best on validation",
            BootstrapRandomSearchArguments,
            dspy_optimizers.bootstrap_random_search,
            _random_search_calls,
        ),
        Optimizer(
            "nearest_demos",
            "for each question the most similar labelled examples; k chosen on validation",
            NearestDemosArguments,
            nearest_search.nearest_demos,
            lambda args, _, validation: (len(set(args.k)) * validation if len(set(args.k)) > 1 else 0, 0),
            needs_labelled_demos=True,
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

    Raises:
        RunStopped: the metric raised, a model is gone, a budget is spent, Ctrl-C.
    """
    compiled = entry.compile(job, arguments)
    strip(compiled.program)
    return compiled


def strip(program: dspy.Module) -> None:
    """Remove what optimizers attach to a program: candidate lists, and demo columns that no prompt shows."""
    for name in ("candidate_programs", "trial_logs", "detailed_results"):
        if name in vars(program):
            delattr(program, name)
    for _, predictor in predictors_of(program):
        fields = set(predictor.signature.fields)
        predictor.demos = [
            dspy.Example({name: value for name, value in demo.items() if name in fields}) for demo in predictor.demos
        ]
