"""Every kind of field a model can have, and the four states a field can be in."""

import datetime
from enum import Enum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from metrics import RecordMetric, StringCheckEvaluator
from metrics.evaluators import MISSING


class Phase(Enum):
    SOLID = "solid"
    LIQUID = "liquid"


class Heat(BaseModel):
    kind: Literal["heat"] = "heat"
    temperature: float


class Mix(BaseModel):
    kind: Literal["mix"] = "mix"
    speed: int | str | None = None


class Range(BaseModel):
    low: float
    high: float


class Recipe(BaseModel):
    target: str
    phase: Phase | None = None
    amount: float | str | Range | None = None
    made: datetime.date | None = None
    properties: dict[str, float] = {}
    by_sample: dict[str, Range] = {}
    steps: list[Annotated[Heat | Mix, Field(discriminator="kind")]] = []
    either: list[int] | str | None = None
    grid: list[list[float]] = []
    dry: bool | None = None


FULL = Recipe(
    target="LiCoO2",
    phase=Phase.SOLID,
    amount=Range(low=1, high=2),
    made=datetime.date(2024, 1, 2),
    properties={"density": 5.1, "gap": 2.0},
    by_sample={"S1": Range(low=0, high=1)},
    steps=[Heat(temperature=900), Mix(speed="fast"), Mix(speed=300)],
    either=[1, 2],
    grid=[[1, 2], [3, 4]],
    dry=False,
)
METRICS = [RecordMetric(), RecordMetric(schema=Recipe)]


@pytest.fixture(params=METRICS, ids=["by type", "by schema"])
def metric(request):
    return request.param


def test_models_and_their_data_in_any_mixture_are_right(metric):
    forms = [FULL, FULL.model_dump(), FULL.model_dump(mode="json"), FULL.model_dump(exclude_none=True)]

    for expected in forms:
        for predicted in forms:
            assert metric.compare(expected, predicted).value == 1.0


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"target": "NaCl"}, "target"),
        ({"phase": Phase.LIQUID}, "phase"),
        ({"amount": Range(low=1, high=3)}, "amount.high"),
        ({"amount": 1.0}, "amount.low"),
        ({"amount": "some"}, "amount"),
        ({"made": datetime.date(2024, 1, 3)}, "made"),
        ({"properties": {"density": 5.1, "gap": 3.0}}, "properties.gap"),
        ({"properties": {"density": 5.1, "gap": 2.0, "mass": 1.0}}, "properties.mass"),
        ({"properties": {"density": 5.1}}, "properties.gap"),
        ({"by_sample": {"S2": Range(low=0, high=1)}}, "by_sample.S2.low"),
        ({"steps": [Heat(temperature=90), Mix(speed="fast"), Mix(speed=300)]}, "steps[*].temperature"),
        ({"steps": [Heat(temperature=900), Mix(speed="fast"), Mix(speed=30)]}, "steps[*].speed"),
        ({"steps": [Heat(temperature=900), Mix(speed="fast")]}, "steps[*].kind"),
        ({"either": "1, 2"}, "either"),
        ({"either": [1]}, "either[*]"),
        ({"grid": [[1, 2], [3, 5]]}, "grid[*][*]"),
        ({"dry": True}, "dry"),
        ({"dry": None}, "dry"),
    ],
)
def test_one_wrong_field_of_any_kind_costs_at_its_place(metric, change, place):
    score = metric.compare(FULL, FULL.model_copy(update=change))

    assert 0.5 < score.value < 1.0
    assert score.parts[place].value < 1.0


def test_choices_are_right_or_wrong_by_schema_and_dates_too():
    score = RecordMetric(schema=Recipe).compare(
        {"phase": "solid", "made": "2024-01-02"}, {"phase": "solids", "made": "2024-01-03"}
    )

    assert score.value == 0.0


# The four states

STATES = [MISSING, None, "", "x"]
NAMES = ["missing", "null", "empty", "value"]
ASKED_DIRECTLY = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize("expected", range(4), ids=NAMES)
@pytest.mark.parametrize("extracted", range(4), ids=NAMES)
def test_the_states_of_a_value_and_of_a_field(expected, extracted):
    asked = StringCheckEvaluator().evaluate(STATES[extracted], STATES[expected])
    records = [{} if state is MISSING else {"a": state} for state in (STATES[expected], STATES[extracted])]
    score = RecordMetric({"a": "exact"}).compare(*records)

    assert asked == ASKED_DIRECTLY[expected][extracted]
    counted = NAMES[expected] == "value" or NAMES[extracted] == "value"
    assert score.details["n_fields"] == counted
    assert score.value == (1.0 if expected == extracted or not counted else 0.0)


@pytest.mark.parametrize("nothing", [None, "", "  ", [], {}, [None], [""], {"b": None}, [[], {}]])
def test_everything_that_holds_nothing_is_nothing(nothing):
    assert RecordMetric().compare({"a": nothing}, {}).details["n_fields"] == 0
    assert RecordMetric().compare({"a": nothing, "c": 1}, {"c": 1}).value == 1.0
    assert RecordMetric().compare({"a": "x"}, {"a": nothing}).value == 0.0


@pytest.mark.parametrize("value", [0, 0.0, False, "0", "None", "null", "nan"])
def test_zero_false_and_words_for_nothing_are_values(value):
    assert RecordMetric().compare({"a": value}, {"a": value}).details["n_fields"] == 1
    assert RecordMetric().compare({"a": value}, {}).value == 0.0
    assert RecordMetric().compare({}, {"a": value}).value == 0.0
