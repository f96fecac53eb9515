"""Every metric of the package that compares records through the record suite; a new one is one line."""

from typing import Literal

from pydantic import BaseModel

from metrics import CompositeMetric, LinkingMetric, RecordMetric, ScaledMetric
from metrics.testing import RecordMetricConformance, conformance


class Conditions(BaseModel):
    temperature: float | None = None
    unit: Literal["C", "K"] | None = None


class Step(BaseModel):
    action: str
    conditions: Conditions | None = None
    materials: list[dict[str, str | float]] = []


class Recipe(BaseModel):
    target: str
    method: Literal["solid-state", "sol-gel"] | None = None
    dry: bool | None = None
    notes: str | None = None
    steps: list[Step] = []
    tags: list[str] = []
    grid: list[list[float]] = []
    by_sample: dict[str, float] = {}


RECORDS = [
    {
        "target": "LiCoO2",
        "method": "solid-state",
        "dry": True,
        "notes": None,
        "steps": [
            {"action": "mix", "conditions": {"temperature": 25, "unit": "C"}, "materials": [{"name": "Li2CO3"}]},
            {"action": "calcine", "conditions": {"temperature": 900, "unit": "C"}, "materials": []},
            {"action": "grind", "materials": [{"name": "LiCoO2 (coarse)", "amount": 2.5}, {"name": "ZrO2 balls"}]},
        ],
        "tags": ["battery", "oxide"],
    },
    {"target": "x-ray µm-sized powder", "grid": [[1, 2], [3, 4.5]], "by_sample": {"S1": 1.5, "S2": 0}},
    {"steps": [{"action": "mix"}, {"action": "mix"}, {"action": "heat"}], "tags": ["a"]},
]
ORDERED = {"steps": {"ordered": True}, "tags": {"ordered": True}, "steps[*].materials": {"ordered": True}}


def suite(make, records=RECORDS, **declared):
    return conformance(RecordMetricConformance, make, records=records, **declared)


def weighted():
    return CompositeMetric(
        {"all": RecordMetric(), "target": RecordMetric(include=["target", "steps"])}, {"all": 3, "target": 0.5}
    )


TestByType = suite(RecordMetric)
TestBySchema = suite(lambda: RecordMetric(schema=Recipe))
TestOrdered = suite(
    lambda: RecordMetric(ORDERED | {"grid": {"ordered": True}, "grid[*]": {"ordered": True}}), ordered=True
)
TestWeights = suite(lambda: RecordMetric({"target": {"exact": {}, "weight": 5}}, include=["$"]))
TestExcluded = suite(lambda: RecordMetric(exclude=["dry", "steps[*].conditions"]), ignored=["dry", "conditions"])
TestNamedFields = suite(
    lambda: RecordMetric({"target": "levenshtein", "steps[*].action": "exact", "steps[*].materials[*].name": "exact"}),
    RECORDS[:1],
    ignored=["method", "dry", "conditions", "amount", "tags"],
)
TestComposite = suite(weighted)
TestScaled = suite(lambda: ScaledMetric(RecordMetric()), test_feedback_names_the_path_and_both_values=None)
LINKS = {
    "mappings": [
        {"plot_index": 0, "mappings": [{"series_name": "S1", "material_name": "Pd/ZrO2"}]},
        {"plot_index": 1, "mappings": [{"series_name": "run 2", "material_name": "Ni/ZrO2"}]},
    ]
}
TestLinks = suite(  # a link said twice counts once, and feedback names links, not paths
    LinkingMetric,
    [LINKS],
    test_repeated_items_do_not_pay=None,
    test_feedback_names_the_path_and_both_values=None,
)
