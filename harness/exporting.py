"""`harness export`: the bundle of a finished run, copied to a folder of the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from harness.bundle.folder import read_folder, write_folder
from harness.errors import UsageError
from harness.experiment import BUNDLE, BUNDLE_BASELINE
from harness.run_folder import find_run_folder
from harness.tracking.tracker import Tracker

BUNDLES = {"tuned": BUNDLE, "baseline": BUNDLE_BASELINE}


def export_run(reference: str, folder: Path, candidate: Literal["tuned", "baseline"] = "tuned") -> Path:
    """Copy a run's exported program to `folder`.

    Args:
        reference: an MLflow run id, a unique beginning of one, or an experiment's name (its latest finished run).
        folder: must not exist, or be empty.
        candidate: the tuned program, or the one before tuning.

    Raises:
        UsageError: no such run, a run without a bundle in this working folder, a bundle that was changed since, or a
            folder with something in it.
        HarnessError: the disk is full.
    """
    run = Tracker.open(Path()).find_run(reference, {"kind": "experiment"})
    source = find_run_folder(run.parent or run.run_id)
    bundle = source / BUNDLES[candidate] if source is not None else None
    if bundle is None or not (bundle / "manifest.json").is_file():
        raise UsageError(
            f"run {run.run_id} ({run.experiment}, {run.status.lower()}) has no bundle under mlruns/runs; "
            "export from the folder the run was made in, once it is finished"
        )
    files, _ = read_folder(bundle)
    write_folder(folder, files)
    return folder


def origin(bundle: Path) -> str:
    """Which program of which run a bundle holds, and what the run said of it."""
    report = json.loads((bundle / "report.json").read_text(encoding="utf-8"))
    return (
        f"the {report['candidate']} program of run {report['run_id']}, experiment {report['experiment']} "
        f"({report['verdict']})"
    )
