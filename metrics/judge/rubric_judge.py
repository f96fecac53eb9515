"""RubricJudge: a language model that judges one extraction by a rubric. All judges of this package are one.

    json_schema   a strict schema                       temperatures 0, 0.3, 0.5
    json_object   some JSON, the schema in the prompt   temperatures 0, 0.3, 0.5
    prompt        the prompt alone                      where the other two are refused

until an answer can be read, at most six attempts; a level that the endpoint refuses is left at once, and remembered.

Imports dspy: the package loads this module only when a judge is made.
"""

from __future__ import annotations

import copy
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import BaseModel

from metrics.asking import RoleModel
from metrics.evaluators.lm_call import AnswerAdapter, has_fixed_sampling
from metrics.evaluators.lm_evaluator import NoAnswerError, as_data
from metrics.judge.reading import EVALUATION, answer_schema, evaluation_model, evaluation_of, read_verdict
from metrics.judge.rubric import Rubric, load_rubric
from metrics.judge.verdict import Verdict
from metrics.score import config_version

RETRY_TEMPERATURES = (0.0, 0.3, 0.5)
"""At what temperatures an answer is asked for until one can be read."""
SCHEMA, OBJECT, PROMPT = "json_schema", "json_object", "prompt"

_SAME_ANSWER_AGAIN = frozenset({"refusal", "empty", "invalid"})
"""Kinds of a run's ProgramFailure after which another sample may be readable."""
_ABOUT_FORMAT = re.compile(r"response_format|json_schema|json_object|structured.outputs?|guided", re.IGNORECASE)
_LONGEST_REASON = 300


class RubricJudge(dspy.Module):
    """A language model that judges by a rubric: one score per criterion, with its reason.

    Called with the rubric's inputs as texts by name, it gives the typed evaluation; `verdict` gives the same with what
    became of each criterion. Everything it is shown is quoted as JSON, so nothing in a paper passes for a part of the
    prompt. Its predictor is an attribute, `evaluate`, so a judge can itself be tuned.

    Args:
        rubric: a Rubric, the path of its file, or the name of a built-in one.
        lm: the dspy LM that judges; only a direct call does without and takes `dspy.settings.lm`. It is never changed.
        enable_reasoning_traces: the judge reasons in a field of its own before it answers.
        confidence_threshold: 0 to 1; an evaluation whose confidence (low 0.3, medium 0.6, high 0.9) is below is
            unreliable.
        retry_temperatures: see RETRY_TEMPERATURES.
        signature: another signature, with the rubric's inputs and the output `evaluation`.

    Raises:
        ValueError: something that does not fit together; one sentence.

    >>> judge = RubricJudge("synthesis")
    >>> [name for name, _ in judge.named_predictors()]
    ['evaluate']
    """

    def __init__(
        self,
        rubric: Rubric | str | Path | Mapping[str, Any],
        lm: Any = None,
        enable_reasoning_traces: bool = False,
        confidence_threshold: float = 0.7,
        retry_temperatures: Sequence[float] | None = None,
        signature: Any = None,
    ) -> None:
        super().__init__()
        self.rubric = load_rubric(rubric)
        self.lm = _checked(lm)
        self.enable_reasoning_traces = enable_reasoning_traces
        if not 0.0 <= confidence_threshold <= 1.0:
            raise ValueError(f"confidence_threshold is from 0 to 1, got {confidence_threshold!r}")
        self.confidence_threshold = confidence_threshold
        self.retry_temperatures = tuple(RETRY_TEMPERATURES if retry_temperatures is None else retry_temperatures)
        if not self.retry_temperatures or any(not 0.0 <= each <= 2.0 for each in self.retry_temperatures):
            raise ValueError(f"retry_temperatures are numbers from 0 to 2, at least one, got {retry_temperatures!r}")
        signature = self.signature() if signature is None else signature
        _refuse_other_inputs(signature, self.rubric)
        self.evaluate = (dspy.ChainOfThought if enable_reasoning_traces else dspy.Predict)(signature)
        self._format = answer_schema(self.rubric, reasons_first=enable_reasoning_traces)
        self._model = _model_name(self.lm)
        self._known = _KnownLevels()

    def signature(self) -> Any:
        """The signature the rubric makes."""
        return judge_signature(self.rubric, self.evaluation_type())

    def evaluation_type(self) -> type[BaseModel]:
        """The class of the evaluations it gives."""
        return evaluation_model(self.rubric)

    def forward(self, **inputs: str) -> Any:
        """The evaluation of one extraction.

        Raises:
            NoAnswerError: the error of the last attempt, when none gave an answer that can be read.
        """
        return evaluation_of(self.verdict(inputs), self.evaluation_type())

    def verdict(
        self, inputs: Mapping[str, str], *, sample: int = 0, replicate: int = 0, temperature: float | None = None
    ) -> Verdict:
        """The verdict on one extraction.

        Args:
            inputs: the rubric's inputs as texts.
            sample: the number of one of several answers to the same question, from 0.
            replicate: the number of a whole repeated measurement, from 0.
            temperature: of the first attempt; None takes the first of `retry_temperatures`. Later ones are no colder.

        Raises:
            NoAnswerError: no answer could be had or read; `kind` says which.
        """
        lm = self._usable_lm()
        if replicate and hasattr(lm, "replicated"):  # at temperature 0, too, a run's LM can ask the same anew
            lm = lm.replicated(replicate)
        shown = {name: _text(inputs, name) for name in self.rubric.inputs}
        last: NoAnswerError | None = None
        attempts = 0
        for level in self._known.levels(lm):
            for step, warmth in enumerate(self._temperatures(lm, temperature)):
                if attempts == 2 * len(self.retry_temperatures):
                    break
                attempts += 1
                config = _config(warmth, _rollout(sample, replicate, step))
                try:
                    found = self._asked(lm, level, config, shown)
                except _NotReadError as error:
                    last = error
                    continue
                except _FormatRefusedError as error:
                    last = error
                    self._known.refused(lm, level)
                    break
                return replace(found, level=level, temperature=warmth, attempts=attempts)
        assert last is not None
        raise NoAnswerError(f"{last} ({attempts} attempts)" if attempts > 1 else str(last), last.raw, last.kind)

    def _asked(self, lm: Any, level: str, config: Mapping[str, Any], shown: Mapping[str, str]) -> Verdict:
        """One attempt."""
        adapter = _JudgeAdapter(self._format, self.rubric, level, self.evaluation_type())
        try:
            with dspy.context(lm=lm, adapter=adapter):
                self.evaluate(config=dict(config), **shown)
        except AdapterParseError as error:  # an empty reply never reaches the adapter's own reading
            fault, raw = adapter.fault or "the answer is empty", adapter.raw or str(error.lm_response)
            raise _NotReadError(fault, raw, "unreadable") from error
        except Exception as error:
            if not adapter.is_waiting:
                raise
            kind = getattr(error, "kind", None)
            what = f"the model gave no answer: {' '.join(str(error).split())[:_LONGEST_REASON] or type(error).__name__}"
            if level != PROMPT and _ABOUT_FORMAT.search(str(error)):
                raise _FormatRefusedError(what, "", "unreached") from error
            if kind in _SAME_ANSWER_AGAIN:
                raise _NotReadError(what, "", "unreadable") from error
            raise NoAnswerError(what, "", "unreadable" if kind == "cut" else "unreached") from error
        answer = adapter.answer
        assert answer is not None
        return replace(answer.value, raw=answer.raw, repairs=tuple(answer.repaired))

    def with_lm(self, lm: Any) -> Self:
        """The same judge on this LM; in place of a `RoleModel`, which named the model already, of the same version."""
        other = copy.copy(self)
        other.lm = _checked(lm)
        if not isinstance(self.lm, RoleModel):
            other._model = _model_name(lm)
        return other

    @property
    def version(self) -> str:
        """A digest of everything a verdict depends on: rubric, prompt, demos, model, temperatures."""
        predictors = {
            name: [
                str(getattr(predictor.signature, "instructions", "")),
                json.dumps(predictor.demos, default=str, sort_keys=True),
            ]
            for name, predictor in self.named_predictors()
        }
        return config_version(
            "judge",
            {
                "rubric": self.rubric.label,
                "predictors": predictors,
                "reasons_first": self.enable_reasoning_traces,
                "temperatures": list(self.retry_temperatures),
                "model": self._model,
            },
        )

    def _temperatures(self, lm: Any, first: float | None) -> list[float | None]:
        if has_fixed_sampling(lm):
            return [None] * len(self.retry_temperatures)
        if first is None:
            return list(self.retry_temperatures)
        return [max(first, each) for each in self.retry_temperatures]

    def _usable_lm(self) -> Any:
        lm = self.lm
        if isinstance(lm, RoleModel):
            raise NoAnswerError(f"models.{lm.role} ({lm.model}) is only there while an experiment runs", "", "unbound")
        lm = dspy.settings.lm if lm is None else lm
        if lm is None:
            raise ValueError("a judge needs a model: give it lm=, or call dspy.configure(lm=...)")
        settings = getattr(lm, "kwargs", {})
        if any(settings.get(key) is not None for key in ("response_format", "extra_body")):
            lm = copy.copy(lm)  # the caller's own stays as it is
            lm.kwargs = {key: value for key, value in settings.items() if key not in ("response_format", "extra_body")}
        return lm


class _NotReadError(NoAnswerError):
    """This reply cannot be read; another one may be."""


class _FormatRefusedError(NoAnswerError):
    """The endpoint does not take the form it was asked for."""


class _JudgeAdapter(AnswerAdapter[Verdict]):
    """One attempt: the inputs quoted, the form of the level asked for, the verdict read."""

    def __init__(self, schema: dict[str, Any], rubric: Rubric, level: str, model: type[BaseModel]) -> None:
        strict = {"type": "json_schema", "json_schema": {"name": EVALUATION, "schema": schema, "strict": True}}
        super().__init__(
            {SCHEMA: strict, OBJECT: {"type": "json_object"}}.get(level, {}), lambda found: read_verdict(found, rubric)
        )
        self._inputs = frozenset(rubric.inputs)
        self._model = model

    def format(self, signature: Any, demos: list[dict[str, Any]], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages, everything that is judged quoted as JSON: in a demo as in the question."""
        return super().format(signature, [self._quoted(demo) for demo in demos], self._quoted(inputs))

    def fields_of(self, signature: Any, found: dict[str, Any], value: Verdict) -> dict[str, Any]:
        """The typed evaluation, and the reasoning before it where one was asked for."""
        evaluation = evaluation_of(value, self._model)
        return {
            name: evaluation if name == EVALUATION else str(found.get(name) or "") for name in signature.output_fields
        }

    def _quoted(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _quoted(value) if name in self._inputs else value for name, value in values.items()}

    def _prepare_response_format(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any) -> None:
        # Of a server's own model dspy's table knows nothing; the answer to the request will tell.
        if self._response_format:
            lm_kwargs["response_format"] = self._response_format


def _quoted(text: Any) -> str:
    """A text as one line of JSON; one that is a JSON object or list already is not quoted a second time."""
    if isinstance(text, str) and text.lstrip()[:1] in ("{", "["):
        try:
            return as_data(json.loads(text))
        except (ValueError, RecursionError):
            pass
    return as_data(text)


class _KnownLevels:
    """Which endpoints refuse which form; shared by the copies of a judge. Safe under threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refused: set[tuple[str, str, str]] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> _KnownLevels:
        return self

    def levels(self, lm: Any) -> Iterator[str]:
        """The levels to try in turn; what is refused meanwhile counts at once."""
        # A run's own LM has asked its endpoint beforehand.
        is_known = getattr(lm, "role", None) is not None
        takes_any = not is_known or "response_format" in lm.supported_params
        if takes_any and (not is_known or lm.supports_response_schema) and not self._is_refused(lm, SCHEMA):
            yield SCHEMA
        if takes_any and not self._is_refused(lm, OBJECT):
            yield OBJECT
        if not takes_any or self._is_refused(lm, OBJECT):
            yield PROMPT

    def refused(self, lm: Any, level: str) -> None:
        """The endpoint does not take this form."""
        with self._lock:
            self._refused.add((*_endpoint(lm), level))

    def _is_refused(self, lm: Any, level: str) -> bool:
        with self._lock:
            return (*_endpoint(lm), level) in self._refused


def judge_signature(rubric: Rubric, evaluation: type[BaseModel], name: str = "Judge", **changes: str | None) -> Any:
    """A signature with the rubric's inputs and the output `evaluation`.

    Args:
        rubric: descriptions and instructions.
        evaluation: the class of the answer.
        name: of the class.
        changes: other instructions (`instructions`) and descriptions (`<field>_description`); None keeps the rubric's.

    Raises:
        ValueError: an empty text.
    """

    def text(key: str, default: str) -> str:
        given = changes.get(key)
        if given is not None and not given.strip():
            raise ValueError(f"{key} is empty; leave it out for the rubric's own")
        return default if given is None else given

    fields: dict[str, Any] = {
        field: (str, dspy.InputField(desc=text(f"{field}_description", one.description)))
        for field, one in rubric.inputs.items()
    }
    described = text(
        f"{EVALUATION}_description", "reasoning, one score with its reason per criterion, and the rest of the form"
    )
    fields[EVALUATION] = (evaluation, dspy.OutputField(desc=described))
    return dspy.make_signature(fields, text("instructions", rubric.written()), name)


def _refuse_other_inputs(signature: Any, rubric: Rubric) -> None:
    if set(signature.input_fields) != set(rubric.inputs) or EVALUATION not in signature.output_fields:
        raise ValueError(
            f"the signature has the rubric's inputs ({', '.join(rubric.inputs)}) and the output {EVALUATION}, got "
            f"{', '.join(signature.input_fields)} -> {', '.join(signature.output_fields)}"
        )


def _config(temperature: float | None, rollout: int | None) -> dict[str, Any]:
    # At temperature 0 there is nothing to draw, and dspy says so.
    given = {"temperature": temperature, "rollout_id": None if temperature == 0 else rollout}
    return {key: value for key, value in given.items() if value is not None}


def _rollout(sample: int, replicate: int, attempt: int) -> int | None:
    """A number of its own for every answer that must be asked anew; None for the first of all."""
    number = (replicate * 1000 + sample) * 10 + attempt
    return number or None


def _endpoint(lm: Any) -> tuple[str, str]:
    return str(getattr(lm, "model", "")), str(getattr(lm, "kwargs", {}).get("api_base") or getattr(lm, "api_base", ""))


def _text(inputs: Mapping[str, Any], name: str) -> str:
    if name not in inputs:
        raise ValueError(f"the judge is to be given {name}; there are: {', '.join(inputs) or 'none'}")
    value = inputs[name]
    if not isinstance(value, str):
        raise ValueError(f"the judge's {name} is text, got {type(value).__name__}")
    return value


def _checked(lm: Any) -> Any:
    if lm is None or isinstance(lm, RoleModel) or (callable(lm) and not isinstance(lm, type)):
        return lm
    raise ValueError(f"a judge's lm is a dspy.LM, got {type(lm).__name__}")


def _model_name(lm: Any) -> str | None:
    return None if lm is None else str(getattr(lm, "model", type(lm).__name__))
