"""A working folder with an empty MLflow store, and an invoice experiment on a scripted model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.models.roles import Endpoints
from harness.models.scripted import ScriptedProvider, request_text
from harness.tracking.store import default_location, prepare

EXPERIMENT = """\
program: {programs.schema:SchemaExtraction: {model: "schema.py:Invoice"}}
data:
  path: invoices.jsonl
  split: {train: 8, validation: 4, test: 12, seed: 0}
models: {task: scripted/model}
adapter: compact
optimizer: {nearest_demos: {k: [1, 2]}}
"""
SCHEMA = """\
from pydantic import BaseModel


class Invoice(BaseModel):
    vendor: str
    total: float | None = None
"""


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh SQLite store; migrating takes seconds, so tests copy it."""
    location = default_location(tmp_path_factory.mktemp("migrated"))
    prepare(location)
    assert location.database_file is not None
    return location.database_file


@pytest.fixture
def workplace(tmp_path: Path, migrated: Path) -> Path:
    """A folder with an empty store."""
    database = tmp_path / "mlruns" / "mlflow.db"
    database.parent.mkdir()
    shutil.copy(migrated, database)
    return tmp_path


def invoice_row(number: int) -> dict:
    return {
        "id": f"inv-{number:02}",
        "text": f"Bill no. {number * 7919} of {VENDORS[number % 26]}, {number + 10} EUR to pay",
        "expected": {"vendor": VENDORS[number % 26], "total": number + 10},
    }


VENDORS = [f"{chr(65 + n)}{chr(97 + (n * 7) % 26)}{chr(97 + (n * 11) % 26)} Ltd" for n in range(26)]


def answers_with_demos(request) -> str:
    """Right when the prompt shows a demo, empty-handed when it does not: a model that demos help."""
    text = request_text(request)
    question = text.rsplit("Bill no. ", 1)[1]
    if text.count("Bill no. ") == 1:
        return json.dumps({"vendor": "unknown", "total": None})
    vendor, rest = question.split(" of ", 1)[1].split(", ", 1)
    return json.dumps({"vendor": vendor, "total": float(rest.split()[0])})


@pytest.fixture
def project(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The experiment's file, schema and 24 invoices, in the current folder."""
    (workplace / "experiment.yaml").write_text(EXPERIMENT)
    (workplace / "schema.py").write_text(SCHEMA)
    rows = [json.dumps(invoice_row(number)) for number in range(24)]
    (workplace / "invoices.jsonl").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(workplace)
    return workplace


@pytest.fixture
def scripted() -> Callable[..., tuple[Endpoints, ScriptedProvider]]:
    """Endpoints on a script, `answers_with_demos` unless another is given, and the provider behind them."""

    def make(script=answers_with_demos, concurrency: int = 1):
        provider = ScriptedProvider(script, concurrency=concurrency)
        return Endpoints(environ={}, providers={provider.model: provider}), provider

    return make


@pytest.fixture
def answers() -> Callable:
    """The script itself, for tests that wrap it."""
    return answers_with_demos
