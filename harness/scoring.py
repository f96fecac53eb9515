"""A metric applied once per (example, prediction, replicate), and the classes of failure kept apart.

* There is no answer that could be read, or none at all: unscored, and counted. A zero would be made up.
* The program raised an error of its own: it scores 0, by declared policy (`PROGRAM_FAILURE_SCORE`).
* The metric raised: a bug; the run stops at the first one, and no model is called again.
* The judge could not be reached or read: the metric itself returns an unscored Score, which is counted.

Scores are kept in memory for the run. Across runs nothing is lost by that: a deterministic metric costs
microseconds, and a judge's calls are replayed from the answer store.
"""

from __future__ import annotations

import copy
import json
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import RunStopped, StopReason
from harness.failures import Failure
from harness.foreign import told
from metrics.asking import replicated
from metrics.score import Metric, Score
from programs.contract import OutputContract

PROGRAM_FAILURE_SCORE = 0.0
"""What a program that raised an error of its own scores. A zero is honest here: its code gave the user no record."""


class Scoring:
    """One metric, remembered: equal questions get the identical Score, so a judge cannot contradict itself.

    Args:
        metric: the metric to apply.
        contract: how a program's output becomes plain JSON data.
        stop: told of the RunStopped when the metric raises, before it is raised here (`Ledger.stop`).
    """

    def __init__(self, metric: Metric, contract: OutputContract, stop: Callable[[RunStopped], object]) -> None:
        self.metric = metric
        self._contract = contract
        self._stop = stop
        self._scores: dict[tuple[str, str, int], Score] = {}
        self._lock = threading.Lock()

    def score(self, example: Any, prediction: Any, replicate: int = 0) -> Score:
        """The Score of `prediction` (a dspy.Prediction) for `example`; computed at most once per replicate.

        Raises:
            RunStopped: the metric raised or returned something that is not a Score.
        """
        key = (str(example["id"]), self._canonical(prediction), replicate)
        with self._lock:
            known = self._scores.get(key)
        if known is not None:
            return known
        score = self._apply(example, prediction, replicate)
        with self._lock:
            return self._scores.setdefault(key, score)

    def failed(self, example: Any, failure: Failure) -> Score:
        """The Score of an example without an answer: 0 where the program itself raised, else unscored.

        A metric that compares records without a source names the parts, so that reports can count each of them as
        missed or unscored; for any other the Score has no parts.
        """
        details = {"failure": failure.side, "kind": failure.kind}
        try:
            parts = self.metric.compare(copy.deepcopy(example["expected"]), None).parts
        except Exception:  # noqa: BLE001  # it needs a source or an answer; the parts are for show
            parts = {}
        if failure.side == "program":
            return Score(PROGRAM_FAILURE_SCORE, f"the program failed: {failure.sentence}", parts, details=details)
        return _unscored(failure.sentence, parts, details)

    def _canonical(self, prediction: Any) -> str:
        value = self._contract.plain(self._contract.result(prediction))
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)

    def _apply(self, example: Any, prediction: Any, replicate: int) -> Score:
        try:
            metric = replicated(self.metric, replicate)
            # Copies: a metric that changes what it is given would change the test of the next program or metric.
            score = metric(copy.deepcopy(example), copy.deepcopy(prediction))
        except (KeyboardInterrupt, RunStopped):
            raise
        except BaseException as error:  # whatever a metric raises is its bug, never a score
            raise self._stopped(example, told(error), traceback.format_exc()) from error
        if not isinstance(score, Score):
            raise self._stopped(example, f"it returned {type(score).__name__}, not a metrics.Score", "")
        return score

    def _stopped(self, example: Any, cause: str, detail: str) -> RunStopped:
        stopped = RunStopped(
            StopReason.METRIC, f"the metric {self.metric.name!r} failed on example {example['id']!r}: {cause}", detail
        )
        self._stop(stopped)
        return stopped


def _unscored(sentence: str, parts: Mapping[str, Score], details: Mapping[str, Any]) -> Score:
    """The same parts at every depth, none of them with a value."""
    inner = {name: _unscored(sentence, part.parts, {}) for name, part in parts.items()}
    return Score.unscored(sentence, parts=inner, details=details)
