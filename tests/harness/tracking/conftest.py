"""One MLflow store for all tests here, and results as a run would produce them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness.results import AuditChange, Candidate, Evaluation, ExperimentResult, RoleUsage, Row
from harness.tracking.tracker import Tracker
from metrics.score import Score
from metrics.statistics import aggregate, paired_difference

FIELDS = ("target_compound", "synthesis_method", "starting_materials[*].name", "steps[*].conditions.temperature")
BEFORE = (
    "system: Extract the synthesis as one JSON object.\n"
    + "\n".join(f"field {number}: copied from the schema, unchanged" for number in range(12))
    + "\nAnswer briefly.\n\nuser: {text}"
)
AFTER = BEFORE.replace("Answer briefly.", "Answer with the names as they are written in the text.") + (
    '\n\nexample\nuser: TiO2 was calcined at 500 °C.\nassistant: {"target_compound": "TiO2"}'
)


@pytest.fixture
def problems() -> list[str]:
    return []


@pytest.fixture
def tracker(workplace: Path, problems: list[str]) -> Tracker:
    return Tracker.open(workplace, on_problem=problems.append)


@pytest.fixture
def make_result() -> Callable[..., ExperimentResult]:
    return result_of_a_run


@pytest.fixture
def make_row() -> Callable[..., Row]:
    return row


def row(example_id: str, parts: dict[str, float], **changes: Any) -> Row:
    """A row whose score is the mean of its parts."""
    scores = {name: Score(value, "" if value == 1 else f"{name}: got another value") for name, value in parts.items()}
    mean = sum(parts.values()) / len(parts) if parts else 0.0
    feedback = "; ".join(score.feedback for score in scores.values() if score.feedback)
    expected = {
        "target_compound": "BaTiO3",
        "synthesis_method": "solid state",
        "starting_materials": [{"name": "BaCO3"}, {"name": "TiO2"}],
        "steps": [{"action": "calcine", "conditions": {"temperature": 900, "temp_unit": "C"}}],
    }
    predicted = {**expected, "target_compound": "BaTiO3" if mean > 0.5 else "barium titanate", "synthesis_method": None}
    made = Row(
        example_id=example_id,
        group=f"10.1000/{int(example_id[-2:]) // 3}" if example_id[-2:].isdigit() else None,
        inputs={"text": f"{example_id}: BaCO3 and TiO2 were ground and calcined at 900 °C for 4 h in air. " * 6},
        expected=expected,
        predicted=predicted,
        score=Score(mean, feedback, scores),
        audit={"grounded": Score(min(1.0, mean + 0.1))},
    )
    return replace(made, **changes)


def evaluation(name: str, rows: list[Row], split: str = "test") -> Evaluation:
    """Rows with their aggregates."""
    groups = [each.group for each in rows]
    fields = {
        field: aggregate([each.score.parts[field].value for each in rows if field in each.score.parts])
        for field in dict.fromkeys(part for each in rows for part in each.score.parts)
    }
    audit = aggregate([each.audit["grounded"].value if "grounded" in each.audit else None for each in rows], groups)
    total = aggregate([each.score.value for each in rows], groups)
    return Evaluation(name, split, rows, total, fields, {"grounded": audit})


def result_of_a_run(
    count: int = 30, rows: tuple[list[Row], list[Row]] | None = None, **changes: Any
) -> ExperimentResult:
    """An improved run on `count` examples, or the result of the given baseline and tuned rows."""
    chance = Random(4)
    before, after = rows or ([], [])
    for number in range(0 if rows else count):
        low = {field: round(chance.betavariate(2, 3), 2) for field in FIELDS}
        high = {field: round(min(1.0, value + chance.choice([0, 0.2, 0.5, -0.1])), 2) for field, value in low.items()}
        before.append(row(f"paper-{number:02d}", low))
        after.append(row(f"paper-{number:02d}", {field: max(0.0, value) for field, value in high.items()}))
    if not rows and count > 6:
        after[3] = replace(
            after[3],
            predicted=None,
            score=Score(0.0, "no record"),
            failure="program",
            error="the answer stops at 512 tokens",
        )
        for spot in (5, 6):
            before[spot] = replace(
                before[spot],
                score=Score.unscored("the judge's answer could not be read"),
                failure="judge",
                error=f"judge answered 'score {spot}' instead of a number",
            )
    baseline, tuned = evaluation("baseline", before), evaluation("tuned", after)
    delta = paired_difference(
        [each.score.value for each in before], [each.score.value for each in after], [each.group for each in before]
    )
    result = ExperimentResult(
        run_id="0123456789abcdef0123456789abcdef",
        experiment="materials-synthesis",
        verdict="improved",
        baseline=baseline,
        tuned=tuned,
        delta=delta,
        audit={"grounded": AuditChange(baseline.audit["grounded"], tuned.audit["grounded"], delta)},
        candidates=[
            Candidate("seed 0", 0.41, 20, "no demonstrations"),
            Candidate("seed 1", 0.55, 20, "4 demonstrations"),
            Candidate("seed 2", None, 0, "stopped: every answer was cut"),
            Candidate("seed 3", 0.52, 20, "4 demonstrations"),
            Candidate("seed 4", 0.63, 20, "2 demonstrations"),
        ],
        ledger={
            "task": RoleUsage(
                412,
                38,
                182_400,
                20_311,
                0.0,
                {"cut": 1, "rate_limit": 3},
                replayed_input_tokens=9_000,
                replayed_output_tokens=800,
                replayed_usd=0.12,
            ),
            "judge": RoleUsage(60, 0, 70_200, 9_031, None),
        },
        prompts={"extract": (BEFORE, AFTER), "check": ("same", "same")},
        params={
            "optimizer": "bootstrap_random_search",
            "seed": "0",
            "models.task": "local/smollm2-135m",
            "versions.dspy": "3.4.1",
        },
        split_sizes={"train": 40, "validation": 20, "test": len(before)},
        notes=["2 of 40 training records do not fit the schema and are never shown as demonstrations."],
        test_reads=3,
        fingerprint="9f2c4e0ab1",
        seconds=312.4,
        folder="mlruns/runs/materials-synthesis/0123456789ab",
        bundle="mlruns/runs/materials-synthesis/0123456789ab/bundle",
    )
    return replace(result, **changes)
