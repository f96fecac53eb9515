"""The evaluator a JSON Schema suggests."""

from typing import Literal

import pytest
from pydantic import BaseModel

from metrics.record.paths import parse
from metrics.record.schema import suggested


class Amount(BaseModel):
    value: float | None = None
    unit: Literal["g", "mL"] | None = None


class Step(BaseModel):
    number: int
    action: str
    done: bool = False
    amounts: list[Amount] = []
    after: "list[Step]" = []


class Recipe(BaseModel):
    method: Literal["sol-gel"]
    notes: str | None
    mixed: str | float
    steps: list[Step]
    tags: list[str]
    settings: dict[str, float]
    point: tuple[float, str]
    anything: dict


SCHEMA = Recipe.model_json_schema()


@pytest.mark.parametrize(
    ("path", "alias"),
    [
        ("method", "exact"),
        ("notes", "levenshtein"),
        ("mixed", None),
        ("steps[*].number", "numeric"),
        ("steps[*].action", "levenshtein"),
        ("steps[*].done", "exact"),
        ("steps[*].amounts[*].value", "numeric"),
        ("steps[*].amounts[*].unit", "exact"),
        ("steps[*].after[*].after[*].action", "levenshtein"),
        ("tags[*]", "levenshtein"),
        ("settings.power", "numeric"),
        ("point[*]", None),
        ("anything.at.all", None),
        ("steps", None),
        ("nowhere", None),
    ],
)
def test_evaluators_of_a_pydantic_schema(path, alias):
    assert suggested(SCHEMA, parse(path)) == alias


@pytest.mark.parametrize(
    ("place", "alias"),
    [
        ({"type": "string", "format": "date"}, "exact"),
        ({"type": "string", "pattern": "^[A-Z]+$"}, "exact"),
        ({"const": 5}, "exact"),
        ({"type": ["number", "null"]}, "numeric"),
        ({"allOf": [{"$ref": "#/$defs/a~1b"}]}, "numeric"),
        ({"$ref": "#/$defs/loop"}, None),
        ({"$ref": "#/$defs/gone/deeper"}, None),
        ({"$ref": "other.json#/x"}, None),
        (True, None),
    ],
)
def test_evaluators_of_a_hand_written_schema(place, alias):
    definitions = {"a/b": {"type": "integer"}, "loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}}

    assert suggested({"properties": {"x": place}, "$defs": definitions}, ("x",)) == alias
