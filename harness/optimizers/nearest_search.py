"""Choosing k for `nearest_demos` on the validation split."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from harness.optimizers.compiled import Arguments, Compiled, Job
from harness.optimizers.nearest import NearestDemos
from harness.optimizers.tuning import on_validation


class NearestDemosArguments(Arguments):
    """For each question the `k` most similar labelled examples; with several k, the best on validation."""

    k: tuple[Annotated[int, Field(ge=1, le=64, strict=True)], ...] = Field((2, 4, 6), min_length=1)


def nearest_demos(job: Job, args: NearestDemosArguments) -> Compiled:
    """NearestDemos with the k that scores best on validation; the smaller k among equals.

    One k given means nothing to choose and no call. Unscored examples count as 0 here, as for every optimizer.
    """
    pool = [_demo(example, job) for example in job.labelled]
    ks = sorted({min(k, len(pool)) for k in args.k})
    job.recorder.notes.append(
        "nearest_demos chooses the demonstrations for each question; prompts are shown for one test example"
    )
    for k in ks if len(ks) > 1 else []:
        program = NearestDemos(job.program, pool, k, job.measure.contract.inputs)
        total = on_validation(job, program, f"nearest demos, k={k}").total
        job.recorder.measured(program, total.lower_bound, total.n_total, f"k={k}", f"{k} nearest labelled examples")
    best = job.recorder.best or NearestDemos(job.program, pool, ks[0], job.measure.contract.inputs)
    return Compiled(best, job.recorder.candidates())


def nearest_calls(args: NearestDemosArguments, _train: int, validation: int, _predictors: int) -> dict[str, int]:
    """One pass over validation per k; none when there is one."""
    different = len(set(args.k))
    return {"task": different * validation if different > 1 else 0}


def _demo(example: Any, job: Job) -> dict[str, Any]:
    """The labelled example as plain data: id, inputs, the record under the output field."""
    contract = job.measure.contract
    return {
        "id": str(example["id"]),
        **{name: example[name] for name in contract.inputs},
        contract.field: contract.plain(example[contract.field]),
    }
