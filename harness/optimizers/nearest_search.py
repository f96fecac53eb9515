"""Choosing k for `nearest_demos` on the validation split."""

from __future__ import annotations

from typing import Any

from harness.evaluation import evaluate
from harness.optimizers.compiled import Compiled, Job
from harness.optimizers.nearest import NearestDemos
from harness.results import Candidate


def nearest_demos(job: Job, args: Any) -> Compiled:
    """NearestDemos with the k that scores best on validation; the smaller k among equals.

    One k given means nothing to choose and no call. Unscored examples count as 0 here, as for every optimizer.
    """
    pool = [_demo(example, job) for example in job.labelled]
    ks = sorted({min(k, len(pool)) for k in args.k})
    candidates, best_k, best_score = [], ks[0], -1.0
    for k in ks if len(ks) > 1 else []:
        evaluation = evaluate(
            NearestDemos(job.program, pool, k, job.measure.contract.inputs),
            job.validation,
            name=f"nearest demos, k={k}",
            split="validation",
            measure=job.measure,
            runtime=job.runtime,
            progress=job.progress,
            seed=job.seed,
        )
        score = evaluation.total.lower_bound
        candidates.append(Candidate(f"k={k}", score, evaluation.total.n_total, f"{k} nearest labelled examples"))
        if score > best_score:
            best_k, best_score = k, score
    note = "nearest_demos chooses the demonstrations for each question; prompts are shown for one test example"
    return Compiled(NearestDemos(job.program, pool, best_k, job.measure.contract.inputs), candidates, [note])


def _demo(example: Any, job: Job) -> dict[str, Any]:
    """The labelled example as plain data: id, inputs, the record under the output field."""
    contract = job.measure.contract
    return {
        "id": str(example["id"]),
        **{name: example[name] for name in contract.inputs},
        contract.field: contract.plain(example[contract.field]),
    }
