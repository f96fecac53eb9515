"""The live parts of one run: store, ledger, role models, scoring. Opened after everything is checked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from harness.assembly import Experiment
from harness.errors import UsageError
from harness.evaluation import Measure, Runtime
from harness.foreign import foreign_code
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, RoleLM, build_role_lm
from harness.models.schema_bounds import SchemaBounds
from harness.models.store import STORE, AnswerStore
from harness.planning import price_of
from harness.progress import Progress
from harness.scoring import Scoring
from metrics.asking import bound
from metrics.score import Metric

STORE_BYTES = "HARNESS_STORE_BYTES"
"""Environment variable: how large the answer store may become, in bytes."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a run calls and books on.

    Attributes:
        store: every complete answer, once.
        ledger: calls, tokens and money per role; the stop.
        lms: the LM of each declared role.
        runtime: the task model with its prompt adapter and threads.
        measure: metric, audits, output contract.
    """

    store: AnswerStore
    ledger: Ledger
    lms: Mapping[str, RoleLM]
    runtime: Runtime
    measure: Measure


@contextmanager
def open_session(
    experiment: Experiment, progress: Progress, *, endpoints: Endpoints | None = None, replicate: int = 0
) -> Iterator[Session]:
    """Open the store and the models of an experiment, in the working folder.

    Args:
        experiment: what `assemble` made.
        progress: shows calls and cost.
        endpoints: where models come from; tests hand in scripted ones.
        replicate: another number sends every request anew (`--force`).

    Raises:
        UsageError: a missing key or weights, something a metric needs, a store that cannot be opened, a size of it that
            is no number.
    """
    budget = experiment.spec.budget
    with endpoints or Endpoints() as opened:
        store = open_store()
        try:
            free = all(price_of(config) == (0.0, 0.0) for config in experiment.models.values())
            max_usd = None if free else budget.usd  # no amount of calls of free models exceeds any budget in USD
            ledger = Ledger(budget.calls, max_usd, budget.minutes, max_tokens=budget.tokens)
            lms = {
                role: build_role_lm(
                    role,
                    config,
                    endpoints=opened,
                    store=store,
                    ledger=ledger,
                    seed=experiment.splits.seed,
                    replicate=replicate,
                    bounds=_bounds(experiment, config),
                    base_dir=experiment.spec.folder,
                )
                for role, config in experiment.models.items()
            }
            progress.watch(ledger.usage)
            threads = lms["task"].engine.provider.concurrency
            runtime = Runtime(lms["task"], experiment.dspy_adapter(), threads, ledger.stop, ledger)
            yield Session(store, ledger, lms, runtime, _measure(experiment, lms, ledger))
        finally:
            store.close()


def open_store() -> AnswerStore:
    """The answer store of the working folder, with the size that `HARNESS_STORE_BYTES` allows it.

    Raises:
        UsageError: the variable holds no number of bytes; the store cannot be opened.
    """
    given = os.environ.get(STORE_BYTES)
    if given is None:
        return AnswerStore(STORE)
    if not re.fullmatch(r"[0-9]{1,18}", given.strip()) or int(given) == 0:
        raise UsageError(
            f"the environment variable {STORE_BYTES} must be a number of bytes from 1 upwards, such as 4294967296, "
            f"not {given[:40]!r}"
        )
    return AnswerStore(STORE, limit_bytes=int(given))


def endpoint_digests(experiment: Experiment, endpoints: Endpoints) -> dict[str, str]:
    """Role -> digest of all that decides its model's answers; nothing is loaded and nothing called.

    Raises:
        UsageError: a missing key or weights.
    """
    return {
        role: endpoints.find(
            role, config, bounds=_bounds(experiment, config), base_dir=experiment.spec.folder
        ).provider.endpoint
        for role, config in experiment.models.items()
    }


def _bounds(experiment: Experiment, config: ModelConfig) -> SchemaBounds | None:
    return experiment.bounds if config.is_local else None


def _measure(experiment: Experiment, lms: Mapping[str, RoleLM], ledger: Ledger) -> Measure:
    contract, where = experiment.contract, experiment.spec.where
    return Measure(
        Scoring(_bound(experiment.metric, lms, where("metric")), contract, ledger.stop),
        {
            name: Scoring(_bound(audit, lms, where("audit", name)), contract, ledger.stop)
            for name, audit in experiment.audits.items()
        },
        contract,
    )


def _bound(metric: Metric, lms: Mapping[str, RoleLM], where: str) -> Metric:
    """The metric with the models it asks and all else it needs, before the first of them is called."""
    try:
        with foreign_code(f"{where}: metric {metric.name} cannot be made ready"):
            return bound(metric, lms)
    except UsageError as error:
        if isinstance(error.__cause__, ImportError):  # a library or weights of an extra: the sentence is complete
            raise UsageError(f"{where}: metric {metric.name}: {error.__cause__}") from error
        raise
