"""A store that fails is told once, counted every time, and never stops anything."""

from pathlib import Path

import pytest

from harness.tracking import delivery
from harness.tracking.delivery import Delivery
from harness.tracking.store import default_location, tracking_location


def failing() -> None:
    raise ValueError("the disk is full")


def test_the_result_of_a_write_comes_back(tmp_path: Path) -> None:
    problems: list[str] = []
    carrier = Delivery(default_location(tmp_path), problems.append)
    assert carrier.attempt("a run", lambda: 7) == 7
    assert (carrier.failures, problems) == (0, [])


def test_only_the_first_failure_is_told(tmp_path: Path) -> None:
    problems: list[str] = []
    carrier = Delivery(default_location(tmp_path), problems.append)
    assert carrier.attempt("metrics", failing) is None
    assert carrier.attempt("tags", failing) is None
    assert carrier.failures == 2
    assert problems == [
        "MLflow at mlruns/mlflow.db did not take metrics: the disk is full; "
        "the run goes on and its folder keeps every result"
    ]


def test_stopping_is_not_swallowed(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Delivery(default_location(tmp_path), print).attempt("metrics", interrupt)


def test_a_server_that_is_away_is_left_alone_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = False
    now = 0.0

    def server_answers(uri: str, seconds: float) -> bool:
        asked.append(uri)
        return answers

    monkeypatch.setattr(delivery, "server_answers", server_answers)
    location = tracking_location(tmp_path, {"MLFLOW_TRACKING_URI": "http://mlflow.example"})
    problems: list[str] = []
    carrier = Delivery(location, problems.append, clock=lambda: now)

    assert carrier.attempt("metrics", lambda: 1) is None
    assert carrier.attempt("metrics", lambda: 1) is None
    assert (len(asked), carrier.failures, len(problems)) == (1, 2, 1)
    assert "the server does not answer" in problems[0]

    now, answers = 31.0, True
    assert carrier.attempt("metrics", lambda: 1) == 1
    assert (len(asked), carrier.failures) == (2, 2)
