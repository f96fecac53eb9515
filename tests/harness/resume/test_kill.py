"""kill -9 anywhere, the same command again: no paid answer is asked for twice and the same program comes out."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

OPTIMIZERS = {
    "bootstrap_random_search": {"num_candidate_programs": 3, "metric_threshold": 0.9},
    "miprov2": {"num_candidates": 3, "num_trials": 5, "metric_threshold": 0.9},
    "gepa": {"max_metric_calls": 60},
    "simba": {"bsize": 4, "num_candidates": 2, "max_steps": 2},
}
KILLS = 3
IN_FLIGHT = 8


def _program(folder: Path, document: dict) -> bytes:
    return (folder / document["bundle"] / "program.json").read_bytes()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_killed_run_goes_on_where_it_was(workshop, optimizer):
    arguments = {optimizer: OPTIMIZERS[optimizer]}
    whole = workshop.folder("whole", arguments)
    code, undisturbed = workshop.run(whole)
    uninterrupted = workshop.model.requests
    assert code == 0
    assert uninterrupted > 20

    workshop.model.requests = 0
    killed = workshop.folder("killed", arguments)
    draw = random.Random(optimizer)
    for _ in range(KILLS):
        left = uninterrupted - workshop.model.requests
        code, _document = workshop.run(killed, kill_at=draw.randint(1, max(1, left // 2)))
        assert code == -signal.SIGKILL
    code, resumed = workshop.run(killed)

    assert code == 0
    assert workshop.model.requests <= uninterrupted + KILLS * IN_FLIGHT
    assert _program(killed, resumed) == _program(whole, undisturbed)
    assert resumed["verdict"] == undisturbed["verdict"]
    assert resumed["delta"] == undisturbed["delta"]
