"""The file of a judge card: which judgements are compared with which people's, and how."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from harness.spec.experiment_file import BudgetSpec, Named, RolesSpec
from harness.spec.overrides import ShortForms
from harness.spec.spec_file import CountFromOne, CountFromZero, Section, SpecFile, load_file


class JudgedDataSpec(Section):
    """Extractions with people's scores; a plain path will do."""

    main_key: ClassVar[str | None] = "path"

    path: str = Field(min_length=1)
    reader: Literal["records", "lemat"] = "records"
    group_by: Annotated[str | None, Field(description="the column that names a row's paper")] = None


class JudgeRolesSpec(RolesSpec):
    """The models of live judges; a card has no task."""

    task: None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class CardSpec(SpecFile):
    """A judge card: recorded evaluations, or a live judge, against people's."""

    name: str = Field("card", pattern=r"^[^\x00-\x1f/\\]{1,100}$")
    data: JudgedDataSpec
    recorded: Annotated[
        Literal["all"] | list[str] | None, Field(description="all recorded judges, or some; absent: all without judge")
    ] = None
    judge: Named | None = Field(None, description="a live judge, as in a metric: {synthesis_judge: {...}}")
    models: JudgeRolesSpec = JudgeRolesSpec()
    repeats: Annotated[CountFromOne, Field(description="times a live judge is asked, for its noise")] = 1
    attacks: bool = Field(True, description="try on a live judge what programs try")
    resamples: CountFromOne = 1000
    seed: CountFromZero = 0
    budget: BudgetSpec = BudgetSpec()

    @model_validator(mode="after")
    def _judge_has_a_model(self) -> Self:
        if self.judge is None and self.models.given():
            raise ValueError("models are for a live judge, and no judge is named")
        return self


_SHORT_FORMS = ShortForms(main_keys={("data",): "path", ("models", "*"): "model"}, named=("judge",))


def load_card_spec(path: str | Path, overrides: Sequence[str] = ()) -> CardSpec:
    """Read and validate a card file.

    Raises:
        UsageError: one line per thing that is wrong, each with its place in the file.
    """
    return load_file(CardSpec, _SHORT_FORMS, path, overrides)
