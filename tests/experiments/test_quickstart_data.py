"""The quickstart's examples keep the rules that their schema file states."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rapidfuzz import fuzz

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (EXPERIMENTS / "data" / "quickstart.jsonl").read_text(encoding="utf-8").splitlines()
]

TEMPERATURE = re.compile(r"\d[\d.]* ?(?:°C|C|degC|deg C|degrees Celsius|K|kelvin)")
DURATION = re.compile(
    r"(?:\d[\d.]*|one|two|three|four|five|six|twelve|eighteen) (?:h|hours?|min|minutes?|days?)", re.IGNORECASE
)

FORM_WORDS = {"powder", "powders", "film", "films", "nanoparticles", "nanosheets", "rods", "needles", "pellets"}


def synthesis_model() -> Any:
    spec = importlib.util.spec_from_file_location("quickstart_schema_under_test", EXPERIMENTS / "quickstart_schema.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Synthesis


@pytest.fixture(params=ROWS, ids=[row["id"] for row in ROWS])
def row(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def test_expected_record_fits_the_schema_and_comes_back_unchanged(row: dict[str, Any]) -> None:
    assert synthesis_model().model_validate(row["expected"]).model_dump() == row["expected"]


def test_every_expected_string_is_written_in_the_text(row: dict[str, Any]) -> None:
    expected = row["expected"]
    numbers = [value for value in (expected["temperature"], expected["duration"]) if value is not None]
    for value in [expected["target"], *expected["precursors"], *numbers]:
        assert re.search(rf"(?<!\w){re.escape(value)}(?!\w)", row["text"]), value


def test_every_expected_number_has_its_unit(row: dict[str, Any]) -> None:
    for form, value in ((TEMPERATURE, row["expected"]["temperature"]), (DURATION, row["expected"]["duration"])):
        assert value is None or form.fullmatch(value), value


def test_a_missing_number_has_a_reason_in_the_text(row: dict[str, Any]) -> None:
    expected, text = row["expected"], row["text"]
    if expected["duration"] is None and expected["temperature"] is not None:
        assert "overnight" in text or "without any hold" in text
    if expected["temperature"] is None and expected["duration"] is not None:
        assert "between" in text, "a duration without a temperature belongs to a range"


def test_text_is_short_and_the_record_is_modest(row: dict[str, Any]) -> None:
    assert 20 <= len(row["text"].split()) <= 60
    precursors = row["expected"]["precursors"]
    assert 1 <= len(precursors) <= 4
    assert len(set(precursors)) == len(precursors)
    assert not FORM_WORDS & set(row["expected"]["target"].lower().split())


def test_there_are_64_rows_with_their_own_ids() -> None:
    assert [row["id"] for row in ROWS] == [f"qs-{number:02d}" for number in range(1, 65)]
    assert {frozenset(row) for row in ROWS} == {frozenset({"id", "text", "expected"})}


def test_methods_are_balanced() -> None:
    counts = Counter(row["expected"]["method"] for row in ROWS)
    assert len(counts) == 6
    assert max(counts.values()) - min(counts.values()) <= 1


def test_no_two_texts_are_nearly_the_same() -> None:
    worst = max(itertools.combinations(ROWS, 2), key=lambda pair: fuzz.ratio(pair[0]["text"], pair[1]["text"]))
    assert fuzz.ratio(worst[0]["text"], worst[1]["text"]) < 80, [row["id"] for row in worst]


def test_missing_values_and_both_temperature_units_occur() -> None:
    expected = [row["expected"] for row in ROWS]
    assert sum(record["temperature"] is None for record in expected) >= 8
    assert sum(record["duration"] is None and record["temperature"] is not None for record in expected) >= 3
    assert sum(str(record["temperature"]).endswith((" K", "kelvin")) for record in expected) >= 10
    units = {str(record["duration"]).split()[-1].rstrip("s") for record in expected if record["duration"]}
    assert units == {"h", "hour", "min", "day"}
