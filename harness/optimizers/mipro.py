"""MIPROv2: instructions written by a prompt model and bootstrapped demos, searched together on validation.

DSPy's optimizer does the search (`mipro_search`), changed where it loses money or results:

* a proposed instruction is checked before any trial is paid for it (`proposals`), and failures of the prompt model
  are counted instead of passed over;
* a space no larger than the number of trials is tried out completely instead of sampled with repeats;
* minibatches are used only where validation is large, and running out of untried combinations is no crash;
* validation is drawn here, so that every full measurement is of the same examples.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from dspy.teleprompt.mipro_optimizer_v2 import AUTO_RUN_SETTINGS, MIN_MINIBATCH_SIZE, _import_optuna
from pydantic import Field, model_validator

from harness.optimizers.compiled import Arguments, Compiled, Job
from harness.optimizers.dspy_optimizers import bootstrapping
from harness.optimizers.mipro_search import CheckedMIPROv2
from harness.optimizers.tuning import NEVER, labelled_limit, prompt_model, teacher_settings, trainset

_CALLS_PER_PROPOSAL = 3
_SUMMARY_CALLS = 11
_AMOUNTS = ("auto", "num_candidates", "num_trials")


class MiproArguments(Arguments):
    """`auto` decides how much is tried, or `num_candidates` and `num_trials` do; both demo limits at 0 tune
    instructions only. Without any of the three, `auto` is light."""

    auto: Literal["light", "medium", "heavy"] | None = None
    num_candidates: int | None = Field(None, ge=1, le=200)
    num_trials: int | None = Field(None, ge=1, le=1000)
    max_bootstrapped_demos: int = Field(4, ge=0)
    max_labeled_demos: int = Field(4, ge=0)
    metric_threshold: float = Field(0.8, ge=0, le=1)
    minibatch: bool = True
    minibatch_size: int = Field(35, ge=1)
    minibatch_full_eval_steps: int = Field(5, ge=1)
    init_temperature: float = Field(1.0, ge=0, le=2)
    view_data_batch_size: int = Field(10, ge=1)
    program_aware_proposer: bool = True
    data_aware_proposer: bool = True
    tip_aware_proposer: bool = True
    fewshot_aware_proposer: bool = True

    @model_validator(mode="after")
    def _one_way_to_say_how_much(self) -> MiproArguments:
        if self.auto is not None and (self.num_candidates is not None or self.num_trials is not None):
            raise ValueError("give either auto, or num_candidates and num_trials")
        if self.num_trials is not None and self.num_candidates is None:
            raise ValueError("num_trials needs num_candidates beside it")
        return self

    @model_validator(mode="before")
    @classmethod
    def _light_unless_said(cls, given: Any) -> Any:
        said = isinstance(given, dict) and any(given.get(name) is not None for name in _AMOUNTS)
        return given if said or not isinstance(given, dict) else {**given, "auto": "light"}


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is tried: instructions and demo sets per predictor, trials, validation examples, minibatches."""

    instructions: int
    demo_sets: int
    trials: int
    validation: int
    minibatch: bool


def extent(args: MiproArguments, validation: int, predictors: int, *, with_demos: bool) -> Extent:
    """What DSPy's own rules make of the arguments.

    Args:
        args: the arguments.
        validation: how many validation examples there are.
        predictors: of the program.
        with_demos: False when only instructions are tuned.

    >>> extent(MiproArguments(), 20, 1, with_demos=True)
    Extent(instructions=3, demo_sets=6, trials=10, validation=20, minibatch=False)
    """
    if args.num_candidates is not None:
        n, most = args.num_candidates, validation
        instructions = n
    else:
        auto = AUTO_RUN_SETTINGS[args.auto or "light"]
        n, most = auto["n"], auto["val_size"]
        instructions = n // 2 if with_demos else n
    variables = predictors * (2 if with_demos else 1)
    trials = args.num_trials or max(1, int(max(2 * variables * math.log2(n), 1.5 * n)))
    measured = min(validation, most)
    # DSPy's limit, and a minibatch that is nearly everything saves nothing.
    minibatch = args.minibatch and measured > max(MIN_MINIBATCH_SIZE, args.minibatch_size)
    return Extent(instructions, n, trials, measured, minibatch)


def miprov2(job: Job, args: MiproArguments) -> Compiled:
    """DSPy's MIPROv2 with checked proposals; the best full measurement wins, the program itself among equals."""
    labelled = labelled_limit(job, args)
    sizes = extent(
        args,
        len(job.validation),
        max(1, len(job.program.predictors())),
        with_demos=bool(args.max_bootstrapped_demos or labelled),
    )
    chosen = sorted(random.Random(job.seed).sample(range(len(job.validation)), sizes.validation))
    job.recorder.compare_on([job.validation[index] for index in chosen])
    job.recorder.naming = lambda number: "as it is" if number == 0 else f"trial {number}"
    with _optuna_as_it_was(), bootstrapping(job, args.metric_threshold) as metric:
        optimizer = CheckedMIPROv2(
            job,
            metric=metric,
            prompt_model=prompt_model(job),
            task_model=job.runtime.lm,
            teacher_settings=teacher_settings(job),
            max_bootstrapped_demos=args.max_bootstrapped_demos,
            max_labeled_demos=labelled,
            auto=None,
            num_candidates=sizes.demo_sets,
            num_threads=job.runtime.threads,
            max_errors=NEVER,
            seed=job.seed,
            init_temperature=args.init_temperature,
            track_stats=False,
        )
        optimizer.num_instruct_candidates = sizes.instructions
        try:
            program = optimizer.compile(
                job.program,
                trainset=trainset(job),
                valset=job.recorder.examples,
                num_trials=sizes.trials,
                minibatch=sizes.minibatch,
                minibatch_size=args.minibatch_size,
                minibatch_full_eval_steps=args.minibatch_full_eval_steps,
                view_data_batch_size=args.view_data_batch_size,
                program_aware_proposer=args.program_aware_proposer,
                data_aware_proposer=args.data_aware_proposer,
                tip_aware_proposer=args.tip_aware_proposer,
                fewshot_aware_proposer=args.fewshot_aware_proposer,
            )
        finally:
            job.recorder.notes.extend(optimizer.notes())
    return Compiled(job.recorder.best or program, job.recorder.candidates())


def miprov2_calls(args: MiproArguments, train: int, validation: int, predictors: int) -> dict[str, int]:
    """Upper bounds, whether demos turn out to be possible or not."""
    both = [extent(args, validation, predictors, with_demos=with_demos) for with_demos in (True, False)]
    trials = max(sizes.trials for sizes in both)
    measured, minibatch = both[0].validation, both[0].minibatch
    each = args.minibatch_size if minibatch else measured
    full = 1 + (trials // args.minibatch_full_eval_steps + 2 if minibatch else 0)
    proposals = max(sizes.instructions for sizes in both) - 1
    return {
        "task": trials * each + full * measured,
        "teacher": both[0].demo_sets * train,
        "prompt": _SUMMARY_CALLS + _CALLS_PER_PROPOSAL * proposals * predictors if proposals else 0,
    }


@contextmanager
def _optuna_as_it_was() -> Iterator[None]:
    """MIPROv2 lowers Optuna's verbosity for the whole process.

    It imports Optuna as well, and Optuna logs for ever to what stderr is at that moment: so before it is redirected.
    """
    logging_of_optuna = _import_optuna().logging
    before = logging_of_optuna.get_verbosity()
    try:
        yield
    finally:
        logging_of_optuna.set_verbosity(before)
