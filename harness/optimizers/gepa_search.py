"""GEPA: a model reads what was wrong with a few answers and rewrites the instruction; what helps is kept.

The search is the `gepa` engine's, as `dspy.GEPA` runs it. Around it here: a budget of metric calls that is never
overrun, proposals that are checked before they cost anything, an end when nothing usable is proposed any more, and
nothing on disk: a run that was killed is asked again and answered from the store up to where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any, Literal, cast

import dspy
from dspy.teleprompt.gepa.gepa import AUTO_RUN_SETTINGS
from gepa.api import optimize
from gepa.core.callbacks import EvaluationSkippedEvent, ProposalStartEvent, ValsetEvaluatedEvent
from gepa.core.state import GEPAState
from pydantic import Field, model_validator

from harness.errors import UsageError
from harness.optimizers.compiled import Arguments, Compiled, Job
from harness.optimizers.feedback import AsFeedback
from harness.optimizers.gepa_adapter import ABOVE_ZERO, LOG, ProgramAdapter
from harness.optimizers.proposals import Proposals
from harness.optimizers.tuning import prompt_model, tuning

STALLED_AFTER = 5
"""Proposals in a row that could not be used, after which the search ends."""
_MERGE_SAMPLE = 5
"""Validation examples on which the engine tries a merged candidate first."""
_FEW_USABLE = 0.5
_ENOUGH_PROPOSALS = 4


class GepaArguments(Arguments):
    """At most one of `auto`, `max_metric_calls` and `max_full_evals` is the budget; without any it is auto: light.

    A metric call is one answer of the program that is scored; `max_full_evals` counts train and validation together.
    """

    auto: Literal["light", "medium", "heavy"] | None = None
    max_metric_calls: int | None = Field(None, ge=1)
    max_full_evals: int | None = Field(None, ge=1)
    reflection_minibatch_size: int = Field(3, ge=1)
    candidate_selection_strategy: Literal["pareto", "current_best"] = "pareto"
    component_selector: Literal["round_robin", "all"] = "round_robin"
    use_merge: bool = True
    max_merge_invocations: int = Field(5, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _one_budget(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        budgets = [name for name in ("auto", "max_metric_calls", "max_full_evals") if given.get(name) is not None]
        if len(budgets) > 1:
            raise ValueError(f"one budget only: {' and '.join(budgets)} exclude each other")
        return given if budgets else {**given, "auto": "light"}


def metric_budget(args: GepaArguments, train: int, validation: int, predictors: int) -> int:
    """Metric calls the arguments allow, by DSPy's own formulas.

    >>> metric_budget(GepaArguments(max_full_evals=3), train=10, validation=4, predictors=1)
    42
    """
    if args.max_metric_calls is not None:
        return args.max_metric_calls
    if args.max_full_evals is not None:
        return args.max_full_evals * (train + validation)
    candidates = AUTO_RUN_SETTINGS[args.auto or "light"]["n"]
    formula = cast(Any, dspy.GEPA).auto_budget
    nothing = None  # the formula reads nothing of its object
    return formula(nothing, num_preds=max(1, predictors), num_candidates=candidates, valset_size=validation)


def gepa_problem(args: GepaArguments, train: int, validation: int) -> str | None:
    """Half a sentence when the budget cannot even pay for trying one proposal; None when it can.

    >>> gepa_problem(GepaArguments(max_metric_calls=8), train=10, validation=6)
    'max_metric_calls of 8 pays for no proposal: at least 18 are needed, 6 to measure the program on validation,
    2 x 3 to try a proposal on a minibatch and 6 to measure it on validation'
    """
    budget, size = metric_budget(args, train, validation, predictors=1), _minibatch(args, train)
    least = 2 * validation + 2 * size
    if budget >= least:
        return None
    given = f"max_metric_calls of {budget}"
    if args.max_metric_calls is None:
        name = "auto" if args.auto is not None else "max_full_evals"
        given = f"{name} of {getattr(args, name)} ({budget} metric calls)"
    return (
        f"{given} pays for no proposal: at least {least} are needed, {validation} to measure the program on "
        f"validation, 2 x {size} to try a proposal on a minibatch and {validation} to measure it on validation"
    )


def gepa_calls(args: GepaArguments, train: int, validation: int, predictors: int) -> dict[str, int]:
    """Upper bounds: runs of the program by the task's model, and requests for an instruction.

    Every round costs at least one minibatch, and is begun only when it can be paid to its end. A reply that cannot be
    read is asked for once more.

    >>> gepa_calls(GepaArguments(max_metric_calls=60), train=10, validation=4, predictors=1)
    {'task': 60, 'prompt': 32}
    """
    budget, size = metric_budget(args, train, validation, predictors), _minibatch(args, train)
    rounds = max(0, (budget - 2 * validation - 2 * size) // size + 1)
    proposals = rounds * (predictors if args.component_selector == "all" else 1)
    return {"task": budget, "prompt": 2 * proposals}


def gepa(job: Job, args: GepaArguments) -> Compiled:
    """The program with the instructions that score best on validation, the first found among equals.

    Raises:
        UsageError: the budget cannot pay for one proposal, or the program has no predictor that may be tuned.
        RunStopped: the metric raised, a model is gone, a budget is spent, Ctrl-C.
    """
    problem = gepa_problem(args, len(job.train), len(job.validation))
    if problem is not None:
        raise UsageError(f"gepa: {problem}")
    predictors = job.program.named_predictors()
    if not predictors:
        raise UsageError("gepa: the program has no predictor whose instructions may be changed")
    budget = metric_budget(args, len(job.train), len(job.validation), len(predictors))
    with tuning(job, lambda told: AsFeedback(job.measure.scoring, told)) as metric:
        proposals = Proposals(
            [name for _, predictor in predictors for name in cast(Any, predictor).signature.fields],
            [cast(Any, predictor).signature.instructions for _, predictor in predictors],
            hidden=_texts(job.validation),
            shown=_texts(job.train),
        )
        lm = prompt_model(job)
        adapter = ProgramAdapter(
            job.program, runtime=job.runtime, metric=metric, lm=lm, proposals=proposals, seed=job.seed
        )
        watch = _Watch(job, args, adapter, proposals, budget)
        try:
            _run_engine(job, args, adapter, watch)
        finally:
            job.recorder.notes.extend(watch.notes(metric))
        if adapter.broken is not None:
            raise adapter.broken
    return Compiled(job.recorder.best or job.program, job.recorder.candidates())


def _run_engine(job: Job, args: GepaArguments, adapter: ProgramAdapter, watch: _Watch) -> None:
    """Without a folder (it would pickle its state there), without trackers, with our own end."""
    optimize(
        seed_candidate=adapter.seed_candidate,
        trainset=list(job.train),
        valset=list(job.validation),
        adapter=adapter,
        candidate_selection_strategy=args.candidate_selection_strategy,
        module_selector=args.component_selector,
        reflection_minibatch_size=_minibatch(args, len(job.train)),
        perfect_score=1.0,
        skip_perfect_score=True,
        use_merge=args.use_merge,
        max_merge_invocations=args.max_merge_invocations,
        stop_callbacks=watch,
        callbacks=[cast(Any, watch)],  # of all events it has methods for three
        logger=_EngineLog(),
        run_dir=None,
        use_wandb=False,
        use_mlflow=False,
        display_progress_bar=False,
        raise_on_exception=True,
        seed=job.seed,
    )


class _EngineLog:
    def log(self, message: str) -> None:
        """Into the optimizer's log."""
        LOG.info("%s", message)


class _Watch:
    """Ends the search in time, and keeps what was measured. The engine calls it and gives it its events."""

    def __init__(
        self, job: Job, args: GepaArguments, adapter: ProgramAdapter, proposals: Proposals, budget: int
    ) -> None:
        self._job = job
        self._adapter = adapter
        self._proposals = proposals
        self._budget = budget
        self._size = _minibatch(args, len(job.train))
        self._may_merge = args.use_merge and args.max_merge_invocations > 0 and len(adapter.predictors) > 1
        self._perfect = 0
        self._accepted = 0
        self._best = 0.0
        self._ending = ""

    def __call__(self, gepa_state: GEPAState) -> bool:
        """Whether to stop: asked before every round of the engine."""
        if self._adapter.broken is not None:
            return True
        used = gepa_state.total_num_evals
        if self._proposals.stalled(STALLED_AFTER):
            reasons = ", ".join(f"{times} {name}" for name, times in self._proposals.rejected_in_a_row.items())
            self._ending = (
                f"stalled: {STALLED_AFTER} proposals in a row could not be used: {reasons}; "
                f"{self._budget - used} of {self._budget} metric calls were not spent"
            )
            return True
        if self._best >= 1.0:
            self._ending = "every validation example scores 1.0: no candidate can do better"
            return True
        if self._perfect >= 2 * -(-len(self._job.train) // self._size):
            self._ending = "training examples of every minibatch score 1.0: there is nothing left to reflect on"
            return True
        return used + self._dearest_round(gepa_state) > self._budget

    def _dearest_round(self, state: GEPAState) -> int:
        """Metric calls of a round whose candidate is taken: a trial, and all of validation."""
        merges = self._may_merge and len(state.program_candidates) > 2
        return max(2 * self._size, _MERGE_SAMPLE if merges else 0) + len(self._job.validation)

    def on_evaluation_skipped(self, event: EvaluationSkippedEvent) -> None:
        """A minibatch the parent has no fault on."""
        self._perfect += event["reason"] == "all_scores_perfect"

    def on_proposal_start(self, event: ProposalStartEvent) -> None:
        """A minibatch with faults."""
        self._perfect = 0

    def on_valset_evaluated(self, event: ValsetEvaluatedEvent) -> None:
        """A candidate was measured on all of validation."""
        number, candidate = event["candidate_idx"], event["candidate"]
        scores = [score if score > ABOVE_ZERO else 0.0 for score in event["scores_by_val_id"].values()]
        score = fmean(scores)
        self._accepted += number > 0
        self._best = max(self._best, score)
        self._job.recorder.measured(
            self._adapter.build(candidate),
            score,
            len(scores),
            f"candidate {number}" if number else "as given",
            self._description(candidate, [parent for parent in event["parent_ids"] if parent is not None]),
        )

    def _description(self, candidate: Mapping[str, str], parents: list[int]) -> str:
        before = self._adapter.seed_candidate
        changed = [
            name
            for name, old, new in zip(self._adapter.predictors, before.values(), candidate.values(), strict=True)
            if old != new
        ]
        if not changed:
            return "the instructions as given"
        origin = " and ".join("the one given" if parent == 0 else f"candidate {parent}" for parent in parents)
        return f"from {origin}; instructions of {', '.join(changed)} rewritten"

    def notes(self, metric: AsFeedback) -> list[str]:
        """Who wrote, what was spent, what came of it, and why it ended early."""
        counts = self._proposals.counts
        notes = [
            f"instructions were written by {_writer(self._job)}",
            f"{metric.calls} of {self._budget} metric calls were used; {counts}; {self._accepted} of them did better "
            "where tried first and went on to all of validation",
        ]
        if self._ending:
            notes.append(self._ending)
        if counts.proposed >= _ENOUGH_PROPOSALS and counts.usable < _FEW_USABLE * counts.proposed:
            notes.append("fewer than half of the proposals could be used: a stronger model for models.prompt may help")
        return notes


def _writer(job: Job) -> str:
    name = prompt_model(job).model.partition("@")[0]
    if job.prompt is not None:
        return f"models.prompt ({name})"
    if job.teacher is not None:
        return f"models.teacher ({name}), since models.prompt is not declared"
    return f"the task's own model ({name}), since neither models.prompt nor models.teacher is declared"


def _minibatch(args: GepaArguments, train: int) -> int:
    """More than all training examples would only repeat some."""
    return max(1, min(args.reflection_minibatch_size, train))


def _texts(examples: Any) -> list[str]:
    return [value for example in examples for value in dict(example.inputs()).values() if isinstance(value, str)]
