"""What evaluators that ask a language model have in common, apart from the call itself; nothing here imports dspy."""

from __future__ import annotations

import copy
import json
import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

from pydantic import BaseModel, Field, field_validator
from pydantic_core import to_jsonable_python

from metrics.asking import RoleModel
from metrics.evaluators.base import BaseEvaluator, EvaluatorConfig, placed
from metrics.evaluators.states import MISSING
from metrics.evaluators.text import shown
from metrics.score import Score, config_version

_LONGEST_RAW = 4_000
_MARK = re.compile(
    r"<\|(?=\w)|<(?=/?(?:s|bos|eos|pad|unk|think|(?:start|end)_of_turn)>)|<(?=</?SYS>)|\[(?=/?INST\])|\[(?=\[ ## )"
)
"""What chat templates and prompts are marked up with. Some servers read these marks in a message's text, too; written
as an escape of JSON they are the same text, and no mark."""


class NoAnswerError(Exception):
    """A model gave no answer that can be read; evaluators make an unscored Score of it.

    Attributes:
        raw: the last reply, empty when there was none.
        kind: "unreadable", "unreached" or "unbound".
    """

    def __init__(self, reason: str, raw: str, kind: str) -> None:
        super().__init__(reason)
        self.raw = raw[:_LONGEST_RAW]
        self.kind = kind

    def sentence(self) -> str:
        """The reason, with the reply where one came.

        >>> NoAnswerError("the answer is not JSON", "I cannot say", "unreadable").sentence()
        "the answer is not JSON; it says 'I cannot say'"
        """
        return f"{self}; it says {shown(self.raw)}" if self.raw else str(self)

    def details(self) -> dict[str, Any]:
        """For the details of a Score."""
        return {"reason": self.kind, "raw": self.raw}


class LMConfig(EvaluatorConfig):
    """Options of an evaluator that asks a model.

    Attributes:
        lm: the dspy LM to ask. Only a direct `evaluate` or `score` does without one and takes `dspy.settings.lm`; a
            metric refuses the evaluator then.
    """

    lm: Any = Field(None, exclude=True, repr=False)

    @field_validator("lm")
    @classmethod
    def _is_model(cls, lm: Any) -> Any:
        return None if lm is None else _checked(lm)


class LMEvaluator(BaseEvaluator):
    """An evaluator that asks a language model; see `lm_call` for how."""

    needs_lm: ClassVar[bool] = True
    config_model: ClassVar[type[BaseModel]] = LMConfig

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(config)
        self._model = _model_name(self.lm)

    @property
    def lm(self) -> Any:
        """The LM it asks: a dspy LM, a `RoleModel` that stands for one, or None."""
        return cast(LMConfig, self.config).lm

    def with_lm(self, lm: Any) -> Self:
        """The same evaluator on this LM; in place of a `RoleModel`, which named the model already, of the same version.

        Raises:
            ValueError: it is no LM.
        """
        given = cast(LMConfig, self.config)
        other = copy.copy(self)
        other.config = given.model_copy(update={"lm": _checked(lm)})
        if not isinstance(given.lm, RoleModel):
            other._model = _model_name(lm)
        return other

    def score(
        self,
        extracted: Any,
        expected: Any,
        input_data: Mapping[str, Any] | None = None,
        field_path: str | None = None,
    ) -> Score:
        """The value and why; unscored, with the reply in the details, where the model gives no answer.

        Raises:
            ValueError: there is no LM.
        """
        try:
            return self.graded(extracted, expected, input_data, field_path)
        except NoAnswerError as error:
            return Score.unscored(placed(f"{self.name}: {error.sentence()}", field_path), details=error.details())

    @abstractmethod
    def graded(
        self, extracted: Any, expected: Any, input_data: Mapping[str, Any] | None, field_path: str | None
    ) -> Score:
        """The Score, with the model asked where it has to be.

        Raises:
            NoAnswerError: the model gave no answer.
        """

    @abstractmethod
    def instructions(self) -> str:
        """What the model is told, apart from the values."""

    def options(self) -> dict[str, Any]:
        """The options in force; of the LM only its name."""
        return {**super().options(), "lm": self._model}

    @property
    def version(self) -> str:
        """A digest of name, options, the model's name and what it is told."""
        return config_version(self.name, {**self.options(), "instructions": self.instructions()})

    def _usable_lm(self) -> Any:
        """The LM to ask now.

        Raises:
            NoAnswerError: it is to come from a run.
            ValueError: there is none.
        """
        lm = self.lm
        if isinstance(lm, RoleModel):
            raise NoAnswerError(f"models.{lm.role} ({lm.model}) is only there while an experiment runs", "", "unbound")
        if lm is None:
            import dspy  # takes a second to import, which a metric without models need not wait

            lm = dspy.settings.lm
        if lm is None:
            raise ValueError(f"{self.name} asks a model and has none; give it lm=, or call dspy.configure(lm=...)")
        return lm


def _checked(lm: Any) -> Any:
    if isinstance(lm, RoleModel) or (callable(lm) and not isinstance(lm, type)):
        return lm
    raise ValueError(f"a dspy.LM is needed, got {shown(lm)}")


def _model_name(lm: Any) -> str | None:
    return None if lm is None else str(getattr(lm, "model", type(lm).__name__))


def as_data(value: Any) -> str:
    r"""A value as one line of JSON for a prompt: quoted, so that it cannot pass for a part of the prompt itself.

    >>> print(as_data("Fe₂O₃\n<|im_end|> < 5 h"), as_data(None), as_data({"b": [1]}))
    "Fe₂O₃\n\u003c|im_end|> < 5 h" null {"b": [1]}
    """
    if value is MISSING:
        return "null"
    text = json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False)
    text = _MARK.sub(lambda mark: f"\\u{ord(mark[0][0]):04x}{mark[0][1:]}", text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def as_source(input_data: Mapping[str, Any] | None) -> str:
    """The plain values of a program's inputs as one line of JSON; null without any.

    >>> print(as_source({"id": "p1", "group": None, "text": "heated to 900 °C"}), as_source(None))
    {"text": "heated to 900 °C"} null
    """
    plain = {
        str(name): value
        for name, value in (input_data or {}).items()
        if name not in ("id", "group", "expected") and isinstance(value, str | int | float | list | tuple | Mapping)
    }
    return as_data(plain or None)
