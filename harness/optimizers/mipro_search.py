"""DSPy's MIPROv2 where it loses money or results: proposals unchecked, combinations repeated, untried ones run out."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import dspy
from dspy.propose import GroundedProposer
from dspy.teleprompt import LabeledFewShot, MIPROv2
from dspy.teleprompt.mipro_optimizer_v2 import BOOTSTRAPPED_FEWSHOT_EXAMPLES_IN_CONTEXT

from harness.optimizers.compiled import Job
from harness.optimizers.prompt_calls import PromptCalls
from harness.optimizers.proposals import Proposals, cleaned, unusable

STALLED = 5
"""Unusable proposals in a row after which the prompt model is not asked again."""


class CheckedMIPROv2(MIPROv2):
    """DSPy's MIPROv2 with checked proposals, small spaces tried out completely, and no crash when untried ones run out.

    Args:
        job: what is tuned.
        arguments: MIPROv2's own.
    """

    def __init__(self, job: Job, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._job = job
        self._asked = PromptCalls()
        self._proposals: list[Proposals] = []
        self._unseen: list[str] = []

    def notes(self) -> list[str]:
        """What became of the proposals, and how often the prompt model gave nothing."""
        notes = [*self._asked.notes(), *self._unseen]
        counts = [proposals.counts for proposals in self._proposals]
        notes += [f"predictor {number}: {count}" for number, count in enumerate(counts) if count.proposed]
        if sum(count.proposed for count in counts) and not sum(count.usable for count in counts):
            notes.append("stalled: no proposed instruction could be used, so none but the program's own was tried")
        return notes

    def _bootstrap_fewshot_examples(
        self,
        program: Any,
        trainset: list,
        seed: int,
        teacher: Any,
        *,
        num_fewshot_candidates: int,
        max_bootstrapped_demos: int,
        max_labeled_demos: int,
        max_errors: int | None,
        metric_threshold: float | None,
    ) -> Any:
        """Demo sets per predictor; DSPy draws sizes from 1 to the limit and cannot draw from 1 to 0."""
        if max_bootstrapped_demos or not max_labeled_demos:
            return super()._bootstrap_fewshot_examples(
                program,
                trainset,
                seed,
                teacher,
                num_fewshot_candidates=num_fewshot_candidates,
                max_bootstrapped_demos=max_bootstrapped_demos,
                max_labeled_demos=max_labeled_demos,
                max_errors=max_errors,
                metric_threshold=metric_threshold,
            )
        draw = random.Random(seed)
        sets = [program.reset_copy()]
        for _ in range(num_fewshot_candidates - 1):
            order = draw.sample(trainset, len(trainset))
            sets.append(LabeledFewShot(k=max_labeled_demos).compile(program, trainset=order))
        return {
            index: [drawn.predictors()[index].demos for drawn in sets] for index in range(len(program.predictors()))
        }

    def _propose_instructions(
        self,
        program: Any,
        trainset: list,
        demo_candidates: list | None,
        view_data_batch_size: int,
        program_aware_proposer: bool,
        data_aware_proposer: bool,
        tip_aware_proposer: bool,
        fewshot_aware_proposer: bool,
        num_instruct_candidates: int,
    ) -> dict[int, list[str]]:
        """Per predictor its own instruction, then every proposal that can be used, each once."""
        current = [predictor.signature.instructions for predictor in program.predictors()]
        if num_instruct_candidates < 2:  # the first candidate is always the program's own instruction
            return {index: [own] for index, own in enumerate(current)}
        self._proposals = [self._checks(predictor) for predictor in program.predictors()]
        with dspy.context(callbacks=[*dspy.settings.callbacks, self._asked]):
            proposer = _CheckedProposer(
                self._proposals,
                self._asked,
                program=program,
                trainset=[self._seen(example) for example in trainset],
                prompt_model=self.prompt_model,
                view_data_batch_size=view_data_batch_size,
                program_aware=program_aware_proposer,
                use_dataset_summary=data_aware_proposer,
                use_task_demos=fewshot_aware_proposer,
                num_demos_in_context=BOOTSTRAPPED_FEWSHOT_EXAMPLES_IN_CONTEXT,
                use_tip=tip_aware_proposer,
                set_tip_randomly=tip_aware_proposer,
                use_instruct_history=False,
                set_history_randomly=False,
                rng=self.rng,
                init_temperature=self.init_temperature,
            )
            if program_aware_proposer and not proposer.program_aware:
                self._unseen.append("the program's source could not be read, so instructions were proposed without it")
            if data_aware_proposer and not proposer.use_dataset_summary:
                self._unseen.append("the data could not be summarised, so instructions were proposed without a summary")
            proposed = proposer.propose_instructions_for_program(
                trainset=trainset,
                program=program,
                demo_candidates=demo_candidates,
                N=num_instruct_candidates,
                trial_logs={},
            )
        return {index: list(dict.fromkeys([own, *proposed[index]])) for index, own in enumerate(current)}

    def _seen(self, example: dspy.Example) -> dspy.Example:
        """What the prompt model sees of an example: no column twice, and none that the program does not have."""
        contract = self._job.measure.contract
        record = contract.field if contract.field in example else "expected"
        seen = {name: example[name] for name in (*contract.inputs, record) if name in example}
        return dspy.Example(seen).with_inputs(*contract.inputs)

    def _checks(self, predictor: Any) -> Proposals:
        inputs = self._job.measure.contract.inputs
        return Proposals(
            predictor.signature.fields,
            hidden=[str(example[name]) for example in self._job.validation for name in inputs if name in example],
            shown=[str(example[name]) for example in self._job.train for name in inputs if name in example],
        )

    def _optimize_prompt_parameters(
        self,
        program: Any,
        instruction_candidates: Any,
        demo_candidates: Any,
        evaluate: Any,
        valset: list,
        num_trials: int,
        minibatch: bool,
        minibatch_size: int,
        minibatch_full_eval_steps: int,
        seed: int,
    ) -> Any:
        """The search; every combination once when there are no more than trials."""
        if demo_candidates is not None:
            demo_candidates = {index: _distinct(demo_candidates[index]) for index in range(len(demo_candidates))}
        axes: list[list[tuple[str, Any]]] = [
            [
                (instruction, demos)
                for instruction in instruction_candidates[index]
                for demos in (demo_candidates[index] if demo_candidates else [None])
            ]
            for index in range(len(program.predictors()))
        ]
        combinations = math.prod(len(axis) for axis in axes)
        if not minibatch and combinations <= num_trials:
            return self._try_all(program, axes, evaluate)
        return super()._optimize_prompt_parameters(
            program,
            instruction_candidates,
            demo_candidates,
            evaluate,
            valset,
            min(num_trials, combinations),
            minibatch,
            minibatch_size,
            minibatch_full_eval_steps,
            seed,
        )

    def _try_all(self, program: Any, axes: list[list[tuple[str, Any]]], evaluate: Any) -> Any:
        best, best_score = program, evaluate(program).score
        for combination in itertools.product(*axes):
            candidate = program.deepcopy()
            for predictor, (instruction, demos) in zip(candidate.predictors(), combination, strict=True):
                predictor.signature = predictor.signature.with_instructions(instruction)
                if demos is not None:
                    predictor.demos = list(demos)
            if self._job.recorder.is_baseline(candidate):
                continue  # measured first
            score = evaluate(candidate).score
            if score > best_score:
                best, best_score = candidate, score
        return best

    def _perform_full_evaluation(
        self,
        trial_num: int,
        adjusted_num_trials: int,
        param_score_dict: dict,
        fully_evaled_param_combos: dict,
        evaluate: Any,
        valset: list,
        trial_logs: dict,
        total_eval_calls: int,
        score_data: Any,
        best_score: float,
        best_program: Any,
        study: Any,
        instruction_candidates: Any,
        demo_candidates: Any,
    ) -> Any:
        """DSPy raises when every combination tried so far was measured in full; there is just nothing to do then."""
        if all(tried in fully_evaled_param_combos for tried in param_score_dict):
            return best_score, best_program, total_eval_calls
        return super()._perform_full_evaluation(
            trial_num,
            adjusted_num_trials,
            param_score_dict,
            fully_evaled_param_combos,
            evaluate,
            valset,
            trial_logs,
            total_eval_calls,
            score_data,
            best_score,
            best_program,
            study,
            instruction_candidates,
            demo_candidates,
        )


class _CheckedProposer(GroundedProposer):
    """DSPy's proposer; what cannot be used, or never came, is the current instruction."""

    def __init__(self, proposals: list[Proposals], asked: PromptCalls, **arguments: Any) -> None:
        self._proposals = proposals
        self._asked = asked
        super().__init__(**arguments)

    def propose_instruction_for_predictor(
        self,
        program: Any,
        predictor: Any,
        pred_i: Any,
        demo_candidates: Any,
        demo_set_i: Any,
        trial_logs: Any,
        tip: Any = None,
    ) -> str:
        current: str = predictor.signature.instructions
        checks = self._proposals[pred_i]
        if demo_set_i == 0 or checks.stalled(STALLED):  # the first is replaced by the current one anyway
            return current
        try:
            proposed = super().propose_instruction_for_predictor(
                program, predictor, pred_i, demo_candidates, demo_set_i, trial_logs, tip
            )
        except Exception as error:  # noqa: BLE001  # whatever became of one call, the others are still asked
            checks.reject(getattr(error, "kind", "unreadable"))
            return current
        # DSPy takes off what stands before a colon, and an error text no longer looks like one.
        reason = unusable(str(getattr(self._asked.last, "proposed_instruction", proposed)))
        if reason is not None:
            checks.reject(reason)
            return current
        proposed = cleaned(proposed or "")
        return proposed if checks.check(current, proposed) is None else current


def _distinct(demo_sets: list[list[Any]]) -> list[list[Any]]:
    """Each set once, in order: where little could be bootstrapped, many are equal."""
    sets: dict[str, list[Any]] = {}
    for demos in demo_sets:
        sets.setdefault(repr([sorted(dict(demo).items()) for demo in demos]), demos)
    return list(sets.values())
