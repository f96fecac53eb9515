"""Rubrics: what a judge is told and what it answers with, in one file with a version.

```yaml
name: invoice
version: 1
instructions: |
  You check data that were extracted from invoices. ...
  {scale}
  {anchors}
  {criteria}
inputs:
  text: {description: the invoice, from: source}
  record: {description: what was extracted, from: extraction}
scale: {low: 1, high: 5, step: 0.5}
anchors: {5: nothing is wrong, 1: nothing is right}
criteria:
  vendor: the vendor's name is the one on the invoice
  items: {description: every item is there, once, weight: 2}
```
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from metrics.nearest import nearest

From = Literal["source", "extraction", "expected", "target"]
"""Where a judge's input comes from: what was extracted from, what was extracted, what should have been, what it is
about. Anything else is the name of a field of the example."""

PLACEHOLDERS = ("scale", "anchors", "criteria")
_PLACEHOLDER = re.compile("|".join(rf"\{{{name}\}}" for name in PLACEHOLDERS))
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RubricInput(_Part):
    """One thing the judge is shown.

    Attributes:
        description: what it is, for the judge.
        origin: see `From`; `from` in a file. None takes the example's field of the input's own name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    description: str
    origin: str | None = Field(None, alias="from")


class RubricCriterion(_Part):
    """What one score is about; a weight of 0 only reports it."""

    description: str
    weight: float = Field(1.0, ge=0.0)


class Scale(_Part):
    """The scores a judge may give: from `low` (worst) to `high` (best), in steps where a step is given."""

    low: float = 1.0
    high: float = 5.0
    step: float | None = Field(None, gt=0.0)

    @model_validator(mode="after")
    def _is_scale(self) -> Scale:
        if not self.low < self.high:
            raise ValueError(f"low is below high, got {self.low:g} and {self.high:g}")
        return self

    def __str__(self) -> str:
        steps = f" in steps of {self.step:g}" if self.step else ""
        return f"{self.low:g} (worst) to {self.high:g} (best){steps}"


class Rubric(_Part):
    """A rubric; made from a file by `load_rubric`.

    Attributes:
        name, version: of the rubric; its `label` also holds a digest of its whole content.
        instructions: what the judge is told. `{scale}`, `{anchors}` and `{criteria}` stand for the rubric's own, each
            replaced once; no other brace means anything.
        inputs: name to description, in the order they are shown.
        scale: of every criterion.
        anchors: what a score means, by score.
        criteria: by name, in the order they are asked.
        lists: lists of texts to answer with, name to description.
        flags: yes-or-no questions to answer, name to description.
        confidence: whether the judge is asked how sure it is.
        empty: what becomes of an extraction that holds nothing: `zero` is the worst score, without a question; `judged`
            leaves it to the judge, where nothing may be the right answer.
    """

    name: str = Field(min_length=1)
    version: int | str = 1
    instructions: str = Field(min_length=1)
    inputs: Mapping[str, RubricInput] = Field(min_length=1)
    scale: Scale = Field(default_factory=lambda: Scale(low=1.0, high=5.0, step=None))
    anchors: Mapping[float, str] = {}
    criteria: Mapping[str, RubricCriterion] = Field(min_length=1)
    lists: Mapping[str, str] = {}
    flags: Mapping[str, str] = {}
    confidence: bool = True
    empty: Literal["zero", "judged"] = "zero"

    @field_validator("inputs", mode="before")
    @classmethod
    def _short_inputs(cls, inputs: Any) -> Any:
        return _in_full(inputs)

    @field_validator("criteria", mode="before")
    @classmethod
    def _short_criteria(cls, criteria: Any) -> Any:
        if isinstance(criteria, list):
            return {name: {"description": ""} for name in criteria}
        return _in_full(criteria)

    @model_validator(mode="after")
    def _fits_together(self) -> Rubric:
        for part in ("inputs", "criteria", "lists", "flags"):
            for name in getattr(self, part):
                if not _NAME.match(name):
                    raise ValueError(f"{part}: a name is letters, digits and _, got {name!r}")
        beyond = [anchor for anchor in self.anchors if not self.scale.low <= anchor <= self.scale.high]
        if beyond:
            raise ValueError(
                f"anchors: {beyond[0]:g} is not on the scale from {self.scale.low:g} to {self.scale.high:g}"
            )
        if not any(criterion.weight for criterion in self.criteria.values()):
            raise ValueError("criteria: every weight is 0, so nothing would be measured")
        return self

    @cached_property
    def digest(self) -> str:
        """Of everything the rubric holds: equal digests ask alike."""
        content = json.dumps(self.model_dump(mode="json", by_alias=True), ensure_ascii=False)  # order is part of it
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    @property
    def label(self) -> str:
        """Name, version and digest."""
        return f"{self.name}@{self.version}-{self.digest}"

    def written(self) -> str:
        """The instructions with scale, anchors and criteria in their places; what has no place follows at the end."""
        texts = {
            "scale": f"Scores go from {self.scale}.",
            "anchors": "\n".join(f"{anchor:g}: {text}" for anchor, text in sorted(self.anchors.items(), reverse=True)),
            "criteria": "\n".join(
                f"- {name}: {one.description}" if one.description else f"- {name}"
                for name, one in self.criteria.items()
            ),
        }
        found = set(_PLACEHOLDER.findall(self.instructions))
        written = _PLACEHOLDER.sub(lambda match: texts[match[0][1:-1]], self.instructions).strip()
        rest = [texts[name] for name in PLACEHOLDERS if f"{{{name}}}" not in found and texts[name]]
        return "\n\n".join([written, *rest])

    def value(self, score: float) -> float:
        """A score as a value from 0 to 1.

        >>> load_rubric("synthesis").value(3.0)
        0.5
        """
        low, high = self.scale.low, self.scale.high
        return min(1.0, max(0.0, (score - low) / (high - low)))

    def on_scale(self, score: float) -> bool:
        """Whether the number is a score of this rubric; one between the steps is."""
        return math.isfinite(score) and self.scale.low <= score <= self.scale.high


def load_rubric(source: str | Path | Mapping[str, Any] | Rubric) -> Rubric:
    """A rubric from a YAML file, from the name of a built-in one ("synthesis", "linking"), or from its content.

    Raises:
        ValueError: the file is not there or not a rubric; one sentence with file and field.

    >>> load_rubric("synthesis").label.startswith("synthesis@1-")
    True
    >>> load_rubric({"name": "x", "criterias": {}})
    Traceback (most recent call last):
    ValueError: rubric x: unknown key 'criterias', did you mean 'criteria'?
    """
    if isinstance(source, Rubric):
        return source
    if isinstance(source, Mapping):
        return _checked(source, f"rubric {source.get('name', '')}".rstrip())
    path = Path(source)
    if path.suffix not in (".yaml", ".yml"):
        return _built_in(str(source))
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"rubric {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"rubric {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, Mapping):
        raise ValueError(f"rubric {path}: a rubric is a mapping, got {type(content).__name__}")
    return _checked(content, f"rubric {path}")


def built_in_rubrics() -> list[str]:
    """The names of the rubrics that come with the package."""
    return sorted(path.stem for path in (Path(__file__).parent / "rubrics").glob("*.yaml"))


def _built_in(name: str) -> Rubric:
    known = built_in_rubrics()
    if name not in known:
        raise ValueError(f"there is no rubric {name!r}, {nearest(name, known)}; a file of your own ends in .yaml")
    return load_rubric(Path(__file__).parent / "rubrics" / f"{name}.yaml")


def _in_full(parts: Any) -> Any:
    """Each part in its long form: a text alone is its description."""
    if not isinstance(parts, Mapping):
        return parts
    return {name: {"description": part} if isinstance(part, str) else part for name, part in parts.items()}


def _checked(content: Mapping[str, Any], where: str) -> Rubric:
    try:
        return Rubric.model_validate(dict(content))
    except ValidationError as error:
        # A misspelt key is also a missing one: the misspelling is what helps.
        problem = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        place = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = (
                Rubric.model_fields if len(problem["loc"]) == 1 else ("description", "from", "weight", "low", "high")
            )
            raise ValueError(f"{where}: unknown key {place!r}, {nearest(str(problem['loc'][-1]), known)}") from None
        message = problem["msg"].removeprefix("Value error, ")
        raise ValueError(f"{where}: {f'{place}: ' if place else ''}{message[0].lower()}{message[1:]}") from None
