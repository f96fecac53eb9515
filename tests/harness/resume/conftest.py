"""Real runs as processes of their own, against one server that answers every kind of question and counts them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.models.loopback import LoopbackServer, Received

EXPERIMENT = """\
name: resume
program: {{programs.schema:SchemaExtraction: {{model: "schema.py:Invoice"}}}}
data:
  path: invoices.jsonl
  split: {{train: 8, validation: 6, test: 8, seed: 0}}
models:
  task: {{model: openai/scripted, api_base: "{api_base}", response_schema: true}}
adapter: json
optimizer: {optimizer}
"""
SCHEMA = "from pydantic import BaseModel\n\n\nclass Invoice(BaseModel):\n    vendor: str\n    total: float\n"
ROWS = 22


class KnowingModel:
    """Answers invoices, rightly or wrongly by what the whole prompt hashes to, and any other schema with new words.

    Every reply is a function of the request alone, so that two processes that ask the same hear the same.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.kill_at: int | None = None
        self.victim: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> str:
        with self._lock:
            self.requests += 1
            if self.kill_at is not None and self.requests >= self.kill_at and self.victim is not None:
                self.victim.send_signal(signal.SIGKILL)
                self.kill_at = None
        body = received.body
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        wanted = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        question = re.findall(r"Bill no\. \d+ of (\w+) Ltd, (\d+) EUR", json.dumps(body["messages"][-1]))
        if question and "vendor" in json.dumps(wanted):
            vendor, total = question[-1]
            record = {"vendor": f"{vendor} Ltd", "total": float(total)}
            if int(digest, 16) % 3 == 0:
                record = {"vendor": "unknown", "total": 0.0}
            return json.dumps(record if "vendor" in wanted.get("properties", {}) else {"record": record})
        return json.dumps(_filled(wanted, wanted, digest))


def _filled(schema: dict[str, Any], root: dict[str, Any], digest: str) -> Any:
    if "$ref" in schema:
        return _filled(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root, digest)
    if "enum" in schema:
        return schema["enum"][int(digest, 16) % len(schema["enum"])]
    if "anyOf" in schema:
        return _filled(schema["anyOf"][0], root, digest)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {name: _filled(part, root, digest + name) for name, part in fields.items()}
        case "array":
            return [_filled(schema.get("items", {}), root, digest)]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
    return f"Read the vendor and the total with care, variant {digest[:8]}."


@dataclass
class Workshop:
    """Starts `harness run` in folders of their own.

    Attributes:
        model: what the server says, and how often it was asked.
        api_base: the server.
    """

    root: Path
    database: Path
    model: KnowingModel
    api_base: str
    made: list[Path] = field(default_factory=list)

    def folder(self, name: str, optimizer: dict[str, Any]) -> Path:
        """A working folder with the experiment and an empty MLflow store."""
        folder = self.root / name
        (folder / "mlruns").mkdir(parents=True)
        shutil.copy(self.database, folder / "mlruns" / "mlflow.db")
        text = EXPERIMENT.format(api_base=self.api_base, optimizer=json.dumps(optimizer))
        (folder / "experiment.yaml").write_text(text)
        (folder / "schema.py").write_text(SCHEMA)
        rows = [
            {
                "id": f"inv-{n:02}",
                "text": f"Bill no. {n * 7919} of {chr(65 + n)}{chr(97 + n * 7 % 26)}x Ltd, {n + 10} EUR to pay",
                "expected": {"vendor": f"{chr(65 + n)}{chr(97 + n * 7 % 26)}x Ltd", "total": n + 10},
            }
            for n in range(ROWS)
        ]
        (folder / "invoices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    def run(self, folder: Path, *, kill_at: int | None = None, options: tuple[str, ...] = ()) -> tuple[int, Any]:
        """(exit code, the JSON document or None) of one `harness run`, killed at that request of the server's."""
        environ = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        command = [sys.executable, "-m", "harness", "run", "experiment.yaml", "--json", *options]
        with subprocess.Popen(
            command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            self.model.victim = process
            self.model.kill_at = None if kill_at is None else self.model.requests + kill_at
            out, err = process.communicate(timeout=300)
        self.model.victim = None
        if process.returncode not in (0, 3, -signal.SIGKILL):
            raise AssertionError(err.decode())
        return process.returncode, json.loads(out) if out.strip() else None


@pytest.fixture
def workshop(tmp_path: Path, migrated: Path) -> Iterator[Workshop]:
    model = KnowingModel()
    with LoopbackServer(model) as server:
        yield Workshop(tmp_path, migrated, model, server.api_base)
