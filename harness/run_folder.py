"""The folder of one run: what it is about to do, how far it got, what it found.

    mlruns/runs/NAME-FINGERPRINT/
        run.json        fingerprint with its components, MLflow run id, status
        splits.json     ids per split
        result.json     the whole result, once finished
        report.html     the same for people
        bundle/         the tuned program;  bundle-baseline/ the program as it was
        optimizer.log   what DSPy printed

A run is known by its fingerprint, a digest of everything that could change its result. Equal fingerprint and
finished: the result is read back. Equal and not finished: the same command goes on, and the answer store replays
what was paid for. Changed: another folder. A repetition (`--force`) has a folder of its own beside the run's,
`NAME-FINGERPRINT-again1`, so that whatever becomes of it, what was finished before stays what it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.foreign import whole
from harness.results import ExperimentResult

RUNS = Path("mlruns") / "runs"
_AGAIN = "-again"
_RESULT = TypeAdapter(ExperimentResult)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A digest and the named components it was made of, so that a change can be told in words.

    >>> old, new = Fingerprint.of({"data": "a", "seed": 0}), Fingerprint.of({"data": "a", "seed": 1})
    >>> new.difference(old.components)
    ['seed']
    """

    digest: str
    components: Mapping[str, Any]

    @classmethod
    def of(cls, components: Mapping[str, Any]) -> Fingerprint:
        """The fingerprint of plain JSON data."""
        text = json.dumps(components, sort_keys=True, ensure_ascii=False)
        return cls(hashlib.sha256(text.encode()).hexdigest(), components)

    def difference(self, other: Mapping[str, Any]) -> list[str]:
        """Names of the components that differ."""
        names = sorted({*self.components, *other})
        return [name for name in names if self.components.get(name) != other.get(name)]


class RunFolder:
    """One run's folder under the working folder.

    Args:
        name: the experiment's name.
        fingerprint: of everything that could change the result.
        root: the working folder.
        repetition: 0 for the run itself, else the number of a repetition of it.

    Attributes:
        replicate: goes into every request, so that a repetition asks everything anew and goes on with its own
            answers; 0 for the run itself.
        reader: who reads the test split; every repetition looks at it once more.
    """

    def __init__(self, name: str, fingerprint: Fingerprint, root: Path = Path(), *, repetition: int = 0) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._root = root
        again = f"{_AGAIN}{repetition}" if repetition else ""
        self.relative = RUNS / f"{_slug(name)}-{fingerprint.digest[:10]}{again}"
        self.path = root / self.relative
        self.replicate = int(self.state().get("replicate") or time.time_ns()) if repetition else 0
        self.reader = f"{fingerprint.digest} {self.replicate}" if repetition else fingerprint.digest

    @property
    def is_finished(self) -> bool:
        """True when the run came to its end and its result can be read."""
        return self.state().get("status") == "finished" and self.result() is not None

    def result(self) -> ExperimentResult | None:
        """The finished result, or None when there is none that can be read."""
        try:
            return _RESULT.validate_json((self.path / "result.json").read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write_result(self, result: ExperimentResult) -> None:
        """Keep the result; from here on the run counts as finished."""
        # A metric may keep anything in the details of a Score; what JSON does not know is written by its `str`.
        document = _RESULT.dump_python(result, mode="json", fallback=str)
        self.write_json("result.json", document)

    def state(self) -> dict[str, Any]:
        """What `write_state` wrote last; empty when there is nothing."""
        return _read_json(self.path / "run.json")

    def write_state(self, status: str, run_id: str) -> None:
        """Note the MLflow run and how far this run is: running, finished, stopped."""
        self.write_json(
            "run.json",
            {
                "experiment": self.name,
                "run_id": run_id,
                "status": status,
                "replicate": self.replicate,
                "fingerprint": self.fingerprint.digest,
                "components": dict(self.fingerprint.components),
            },
        )

    def write_json(self, name: str, document: Any) -> None:
        """Write a JSON file of this run."""
        write_atomically(self.path / name, json.dumps(document, indent=1, ensure_ascii=False))

    def write_text(self, name: str, text: str) -> None:
        """Write a text file of this run."""
        write_atomically(self.path / name, text)

    def changed_since_last(self) -> list[str]:
        """Component names that differ from the newest other run of this experiment; empty without one."""
        others = [state for folder, state in _states(self._root) if state.get("experiment") == self.name
                  and folder != self.path]  # fmt: skip
        return self.fingerprint.difference(others[-1].get("components", {})) if others else []


def finished_folder(name: str, fingerprint: Fingerprint, root: Path = Path()) -> RunFolder | None:
    """The folder of this very experiment that was finished last, the run itself or a repetition; None without one."""
    folders = [RunFolder(name, fingerprint, root), *_repetitions(name, fingerprint, root)]
    finished = [folder for folder in folders if folder.is_finished]
    return max(finished, key=lambda folder: (folder.path / "run.json").stat().st_mtime, default=None)


def repetition_folder(name: str, fingerprint: Fingerprint, root: Path = Path()) -> RunFolder:
    """The folder a repetition works in: that of the last one when it is not finished, else a new one."""
    earlier = _repetitions(name, fingerprint, root)
    if earlier and not earlier[-1].is_finished:
        return earlier[-1]
    return RunFolder(name, fingerprint, root, repetition=len(earlier) + 1)


def _repetitions(name: str, fingerprint: Fingerprint, root: Path) -> list[RunFolder]:
    found: list[RunFolder] = []
    while (folder := RunFolder(name, fingerprint, root, repetition=len(found) + 1)).state():
        found.append(folder)
    return found


def find_run_folder(run_id: str, root: Path = Path()) -> Path | None:
    """The folder of an MLflow run made in this working folder, or None."""
    return next((folder for folder, state in _states(root) if state.get("run_id") == run_id), None)


def write_atomically(path: Path, text: str) -> None:
    """Write beside and rename, so that a killed process leaves the old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_text(whole(text), encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:  # a full disk names no file by itself
        draft.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def _states(root: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Every run folder with its state, oldest first."""
    files = sorted((root / RUNS).glob("*/run.json"), key=lambda file: file.stat().st_mtime)
    return [(file.parent, _read_json(file)) for file in files]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return {}
    return document if isinstance(document, dict) else {}


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "experiment"
