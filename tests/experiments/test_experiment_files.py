"""The experiments of this repository: each says how it is run, and is in order."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness import load_experiment
from harness.spec import load_card_spec, load_spec

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
FILES = sorted(EXPERIMENTS.glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_the_first_line_is_the_command_that_runs_it(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert re.fullmatch(rf"# ([A-Z_]+=\S+ )?harness (run|agree) experiments/{path.name}", first)


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_its_keys_are_known(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_DATA", "data")
    is_card = "harness agree" in path.read_text(encoding="utf-8").splitlines()[0]
    assert (load_card_spec if is_card else load_spec)(path).name == path.stem


def test_every_quickstart_record_can_be_a_demonstration() -> None:
    experiment = load_experiment(EXPERIMENTS / "quickstart.yaml")
    assert len(experiment.labelled) == experiment.splits.sizes["train"]
    assert not [note for note in experiment.notes if "do not fit" in note]


@pytest.mark.skipif(not os.environ.get("HARNESS_DATA"), reason="HARNESS_DATA, the folder of corpora, is not set")
def test_most_olivetti_records_can_be_demonstrations() -> None:
    experiment = load_experiment(EXPERIMENTS / "olivetti.yaml")
    assert len(experiment.labelled) > experiment.splits.sizes["train"] / 2
