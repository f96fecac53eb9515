"""BaseEvaluator: one extracted value against the expected one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from metrics.evaluators.states import MISSING, State, state_of
from metrics.evaluators.text import shown, similarity_matrix, trimmed
from metrics.nearest import nearest
from metrics.score import Score, UnscoredError, config_version

_FLOOR = 0.01
"""An evaluator that has not been asked yet is never taken to say 0."""


class EvaluatorConfig(BaseModel):
    """The options of an evaluator; its own class adds them. Unknown options are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class BaseEvaluator:
    """One extracted value against the expected one, 0..1.

    A subclass sets `alias` (its name in files) and `config_model` (its options, with their defaults), and defines
    either `score`, or only the established `evaluate(...) -> float`. It keeps no state between calls and is safe
    to share between threads.

    Args:
        config: the options, by name.

    Raises:
        ValueError: an unknown option (the nearest one is named) or a wrong value.

    >>> class SameLength(BaseEvaluator):
    ...     def evaluate(self, extracted, expected, input_data=None, field_path=None):
    ...         return float(len(extracted) == len(expected))
    >>> SameLength().score("ab", "cd").value
    1.0
    """

    alias: ClassVar[str] = ""
    config_model: ClassVar[type[BaseModel]] = EvaluatorConfig
    needs_lm: ClassVar[bool] = False
    """Whether it asks a language model, which it holds as `lm` and takes by `with_lm`; a metric refuses it without."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.score is BaseEvaluator.score and cls.evaluate is BaseEvaluator.evaluate:
            raise TypeError(f"{cls.__name__} defines neither score nor evaluate")

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = _validated(self.name, self.config_model, config)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options()})"

    @property
    def name(self) -> str:
        """The alias, or the class's own name where it has none."""
        return self.alias or f"{type(self).__module__}.{type(self).__qualname__}"

    @property
    def siblings(self) -> tuple[str, ...]:
        """Names of the fields beside a value that are needed to judge it: a record metric hands over `WithSiblings`."""
        return ()

    @property
    def version(self) -> str:
        """A digest of name and options: equal versions score alike."""
        return config_version(self.name, self.options())

    def options(self) -> dict[str, Any]:
        """The options in force, defaults included; what is secret (`exclude=True` in the model) is left out.

        A subclass with a constructor of its own may keep any mapping in `config`, or nothing.
        """
        config = getattr(self, "config", None)
        return config.model_dump() if isinstance(config, BaseModel) else dict(config or {})

    def score(
        self,
        extracted: Any,
        expected: Any,
        input_data: Mapping[str, Any] | None = None,
        field_path: str | None = None,
    ) -> Score:
        """The value and why.

        Args:
            extracted: what the program produced.
            expected: what it should have produced.
            input_data: the program's inputs, where the caller has them.
            field_path: where in the record, for the feedback.
        """
        try:
            number = self.evaluate(extracted, expected, input_data, field_path)
        except UnscoredError as error:
            return Score.unscored(placed(str(error), field_path))
        return Score.measured(number, compared(extracted, expected, field_path))

    def evaluate(
        self,
        extracted: Any,
        expected: Any,
        input_data: Mapping[str, Any] | None = None,
        field_path: str | None = None,
    ) -> float:
        """The bare number.

        Raises:
            UnscoredError: there is none; the message says why.
        """
        return self.score(extracted, expected, input_data, field_path).as_float()

    def prepared(self) -> Self:
        """The evaluator to score with, when all it needs besides Python (weights, an address) was found.

        A run asks for it once, before it calls any model; without a run it need not be asked for.

        Raises:
            ValueError, ImportError: something is not there; one sentence that says how to get it.
        """
        return self

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        """How alike every extracted value (row) is to every expected one (column), to match the items of lists.

        Matching asks for all pairs, so an evaluator that is slow or costs money must not be asked here. This
        default takes the likeness of the texts, never quite 0; the matched pairs are then scored by `score`, once
        each. An evaluator that is quick returns its own values, with NaN where there is none.
        """
        rows, columns = ([trimmed(_as_text(value)) for value in side] for side in (extracted, expected))
        return _FLOOR + (1.0 - _FLOOR) * similarity_matrix(rows, columns)


class ValueEvaluator(BaseEvaluator):
    """An evaluator that compares two values and nothing else; the table in `states` decides where one is absent."""

    def score(
        self,
        extracted: Any,
        expected: Any,
        input_data: Mapping[str, Any] | None = None,
        field_path: str | None = None,
    ) -> Score:
        states = state_of(extracted), state_of(expected)
        if states == (State.VALUE, State.VALUE):
            value, note = self.compare(extracted, expected)
        else:
            value, note = float(states[0] is states[1]), ""
        if value is None:
            return Score.unscored(placed(note, field_path))
        return Score(value, compared(extracted, expected, field_path, note))

    @abstractmethod
    def compare(self, extracted: Any, expected: Any) -> tuple[float | None, str]:
        """The value of two present values and a remark for the feedback; None and the reason where there is none."""


def compared(extracted: Any, expected: Any, field_path: str | None, note: str = "") -> str:
    """The sentence of a comparison.

    >>> compared(90, 900, "conditions.temperature")
    'conditions.temperature: expected 900, got 90'
    >>> compared(MISSING, "N2", None)
    "expected 'N2', got nothing"
    """
    wanted, got = ("nothing" if value is MISSING else shown(value) for value in (expected, extracted))
    return placed(f"expected {wanted}, got {got}", field_path) + (f" ({note})" if note else "")


def placed(sentence: str, field_path: str | None) -> str:
    """A sentence about a place of the record, where one is known.

    >>> placed("expected 900, got 90", "conditions.temperature")
    'conditions.temperature: expected 900, got 90'
    """
    return f"{field_path}: {sentence}" if field_path else sentence


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _validated(owner: str, model: type[BaseModel], config: Mapping[str, Any] | None) -> BaseModel:
    if config is None:
        config = {}
    if not isinstance(config, Mapping):
        raise ValueError(f"{owner}: options are a mapping of names to values, got {config!r}")
    for option in config:
        if option not in model.model_fields:
            raise ValueError(f"{owner}: unknown option {option!r}, {nearest(str(option), model.model_fields)}")
    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place, problem = ".".join(str(part) for part in first["loc"]), first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{owner}: {place or 'options'}: {problem[0].lower()}{problem[1:]}") from None
