"""What GEPA's engine asks of a program: run it on a few examples, say what was wrong, propose a better instruction.

`dspy.GEPA` brings an adapter of its own. It measures with `dspy.Evaluate`, which sends slow examples a second time and
leaves its threads calling models after a stop; and it does not let the reflecting model see answers that could not be
read, or tells it to follow a form that the program's prompt does not have. So the engine is given this one.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar, cast

import dspy
from dspy.adapters.types.base_type import Type
from dspy.teleprompt.gepa import InstructionProposer
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError
from gepa.core.adapter import EvaluationBatch, GEPAAdapter

from harness.evaluation import Runtime
from harness.models.faults import program_failure
from harness.models.prompt import prompt_adapter
from harness.optimizers.feedback import AsFeedback, clipped, failure_text, unreadable_answer
from harness.optimizers.proposals import CUT, EMPTY, ERROR_TEXT, REFUSAL, Proposals, cleaned, unusable
from harness.side_by_side import side_by_side
from programs.json_record import plain_data

LOG = logging.getLogger("dspy.harness.gepa")
"""Below DSPy's own logger, so that it goes where the optimizers' output goes."""
LONGEST_VALUE = 8_000
"""Characters of an input or output that the reflecting model is shown: a few papers must fit into one request."""
UNREADABLE = "unreadable"
NOTHING_SEEN = "nothing to reflect on"
ABOVE_ZERO = 1e-9
"""What the engine is told for 0: it draws a common ancestor with scores as weights, and fails when all are 0."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PredictorCall:
    """One call of one predictor: what it was given, and what it gave back or how it failed."""

    predictor: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any] | None
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class Answer:
    """One example answered by one candidate: score in 0..1, feedback in words, and the predictors' calls."""

    prediction: Any
    score: float
    feedback: str
    calls: Sequence[PredictorCall]


class _Witness(BaseCallback):
    """Notes the calls of a program's predictors, failed ones too, which DSPy's trace leaves out."""

    def __init__(self, program: dspy.Module) -> None:
        self._names = {id(predictor): name for name, predictor in program.named_predictors()}
        self._open: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self.calls: list[PredictorCall] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        name = self._names.get(id(instance))
        if name is not None:
            known = instance.signature.input_fields
            given = inputs.get("kwargs", inputs)
            self._open[call_id] = name, {key: value for key, value in given.items() if key in known}

    def on_module_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        if call_id in self._open:
            name, inputs = self._open.pop(call_id)
            said = None if outputs is None else dict(outputs.items())
            self.calls.append(PredictorCall(name, inputs, said, exception))


class ProgramAdapter(GEPAAdapter[dspy.Example, Answer, Any]):
    """A program for GEPA's engine: measured example by example, and its instructions proposed anew.

    A candidate maps the number of a predictor to its instruction. Numbers, because the engine walks over a set of
    these names, and a set of texts is in another order in every process.

    Args:
        program: the program to tune; never changed.
        runtime: model, prompt adapter, threads.
        metric: gives score and feedback.
        lm: writes instructions.
        proposals: what they have to pass.
        seed: of the choice between several calls of one predictor.

    Attributes:
        broken: an error in the proposing that is no answer of a model: a bug, to be raised by whoever runs the engine.
    """

    def __init__(
        self,
        program: dspy.Module,
        *,
        runtime: Runtime,
        metric: AsFeedback,
        lm: dspy.LM,
        proposals: Proposals,
        seed: int,
    ) -> None:
        self.predictors = [name for name, _ in program.named_predictors()]
        self.broken: Exception | None = None
        self._program = program
        self._runtime = runtime
        self._metric = metric
        self._lm = lm
        self._proposals = proposals
        self._random = random.Random(seed)
        self._asked = 0

    @property
    def seed_candidate(self) -> dict[str, str]:
        """The program's own instructions."""
        instructions = [predictor.signature.instructions for predictor in _predictors(self._program)]
        return cast("dict[str, str]", dict(enumerate(instructions)))

    def build(self, candidate: Mapping[str, str]) -> dspy.Module:
        """A copy of the program with a candidate's instructions."""
        program = self._program.deepcopy()
        for predictor, instruction in zip(_predictors(program), candidate.values(), strict=True):
            predictor.signature = predictor.signature.with_instructions(instruction)
        return program

    def evaluate(
        self, batch: list[dspy.Example], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Answer, Any]:
        """Answer and score every example once. An answer that cannot be used scores 0, and its feedback says why.

        Raises:
            RunStopped: the metric raised, a model is gone, a budget is spent, Ctrl-C.
        """
        program = self.build(candidate)
        answers = self._each(lambda example: self._answer(program, example), batch)
        return EvaluationBatch(
            outputs=[answer.prediction for answer in answers],
            scores=[max(answer.score, ABOVE_ZERO) for answer in answers],
            trajectories=answers if capture_traces else None,
            num_metric_calls=len(batch),
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Answer, Any],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Per predictor and example: inputs, outputs, feedback. A failed call of it is shown rather than another."""
        dataset: dict[str, list[dict[str, Any]]] = {}
        for component in components_to_update:
            name = self._name(component)
            for answer in eval_batch.trajectories or []:
                calls = [call for call in answer.calls if call.predictor == name]
                if calls:
                    failed = [call for call in calls if call.error is not None]
                    chosen = failed[0] if failed else self._random.choice(calls)
                    dataset.setdefault(component, []).append(_record(chosen, answer.feedback))
        return dataset

    def propose_new_texts(  # pyright: ignore[reportIncompatibleVariableOverride]  # declared there as an optional attribute
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """A new instruction per predictor; those that cannot be used are left out and counted.

        Raises:
            RunStopped: a model is gone, a budget is spent, Ctrl-C.
        """
        texts: dict[str, str] = {}
        for component in components_to_update:
            records = reflective_dataset.get(component)
            if records:
                text = self._proposed(self._name(component), candidate[component], records)
                if text is not None:
                    texts[component] = text
            else:
                self._proposals.reject(NOTHING_SEEN)
        return texts

    def _name(self, component: str) -> str:
        return self.predictors[cast(int, component)]

    def _answer(self, program: dspy.Module, example: dspy.Example) -> Answer:
        witness = _Witness(program)
        prediction = None
        try:
            with self._runtime.context(), dspy.context(callbacks=[*dspy.settings.callbacks, witness]):
                prediction = program(**example.inputs())
        except Exception as error:  # noqa: BLE001  # whatever a user's program raises belongs to this one example
            told = self._metric.failed(error)
        else:
            told = self._metric(example, prediction)
        return Answer(prediction, told.score, told.feedback, witness.calls)

    def _each(self, function: Callable[[dspy.Example], T], examples: Sequence[dspy.Example]) -> list[T]:
        """`function` of every example, in their order; whatever ends it, no call is in flight afterwards."""
        answers = side_by_side(function, examples, threads=self._runtime.threads, stop=self._runtime.stop)
        return [answer for _, answer in sorted(answers, key=itemgetter(0))]

    def _proposed(self, name: str, current: str, records: Sequence[Mapping[str, Any]]) -> str | None:
        with self._noting_failures(name):
            text = self._ask(current, records)
            reason = self._proposals.check(current, text)
            if reason is None:
                return text
            LOG.info("proposal for %s rejected, %s: %s", name, reason, text)
        return None

    def _ask(self, current: str, records: Sequence[Mapping[str, Any]]) -> str:
        self._asked += 1
        # A number of its own draws a fresh sample where the same question was asked before, and the same one in a
        # rerun. A model at temperature 0 has nothing to draw.
        lm = self._lm if self._lm.kwargs.get("temperature") == 0 else self._lm.copy(rollout_id=self._asked)
        names = ", ".join(f"`{name}`" for name in self._proposals.names_to_keep(current))
        proposer = InstructionProposer(
            additional_instructions=f"The new instruction must name these fields as they are written here: {names}"
            if names
            else None,
            adapter=prompt_adapter("json"),  # DSPy's own completes an answer that was cut
        )
        propose = proposer.propose
        # The proposer's own validation raises what looks like a bug when a text holds half a character.
        cast("Any", proposer).propose = lambda **asked: _cleaned(propose(**asked))
        with dspy.context(lm=lm, trace=[], disable_history=True):
            return proposer({"it": current}, {"it": records}, ["it"])["it"]

    @contextmanager
    def _noting_failures(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  # the engine would swallow it and pay for the same question again
            reason = _why_no_text(error)
            if reason is None:
                self.broken = error
            else:
                self._proposals.reject(reason)
                LOG.info("proposal for %s rejected, %s: %s", name, reason, error)


def _predictors(program: dspy.Module) -> list[Any]:
    return [predictor for _, predictor in program.named_predictors()]


def _cleaned(said: Any) -> dspy.Prediction:
    return dspy.Prediction(new_instruction=cleaned(said.new_instruction))


def _why_no_text(error: Exception) -> str | None:
    """The reason for rejecting a reply that gave no text; None for what is no failure of the model."""
    answer = unreadable_answer(error)
    if answer is not None:
        reason = unusable(answer)
        return reason if reason in (CUT, REFUSAL, ERROR_TEXT) else UNREADABLE
    failure = program_failure(error)
    if failure is not None:
        return failure.kind
    if isinstance(error, AdapterParseError):
        return UNREADABLE
    return EMPTY if isinstance(error, ValueError) and "empty" in str(error) else None


def _record(call: PredictorCall, feedback: str) -> dict[str, Any]:
    outputs = "no usable output" if call.outputs is None else {k: _shown(v) for k, v in call.outputs.items()}
    if call.error is not None and call.error.args and "could not be used" not in feedback:
        # The program went on after it, so the program's feedback does not speak of it.
        feedback = f"{failure_text(call.error)}\n{feedback}"
    return {
        "Inputs": {name: _shown(value) for name, value in call.inputs.items()},
        "Generated Outputs": outputs,
        "Feedback": feedback,
    }


def _shown(value: Any) -> Any:
    """A value as the reflecting model sees it: plain data, long ones without their middle, pictures named only."""
    if isinstance(value, Type):
        return f"({type(value).__name__}, not shown)"
    plain = plain_data(value, fallback=str)
    if isinstance(plain, str):
        return clipped(plain, LONGEST_VALUE)
    text = json.dumps(plain, ensure_ascii=False, default=str)
    return plain if len(text) <= LONGEST_VALUE else clipped(text, LONGEST_VALUE)
