"""The live parts of one run: store, ledger, role models, scoring. Opened after everything is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from harness.assembly import Experiment
from harness.evaluation import Measure, Runtime
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, RoleLM, build_role_lm
from harness.models.store import STORE, AnswerStore
from harness.progress import Progress
from harness.scoring import Scoring


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
        UsageError: a missing key or weights, a store that cannot be opened.
    """
    budget = experiment.spec.budget
    with endpoints or Endpoints() as opened:
        store = AnswerStore(STORE)
        try:
            ledger = Ledger(budget.calls, budget.usd, budget.minutes)
            lms = {
                role: build_role_lm(
                    role,
                    config,
                    endpoints=opened,
                    store=store,
                    ledger=ledger,
                    seed=experiment.splits.seed,
                    replicate=replicate,
                    bounds=experiment.bounds if config.is_local else None,
                    base_dir=experiment.spec.folder,
                )
                for role, config in experiment.models.items()
            }
            progress.watch(ledger.usage)
            threads = lms["task"].engine.provider.concurrency
            runtime = Runtime(lms["task"], experiment.dspy_adapter(), threads, ledger.stop)
            yield Session(store, ledger, lms, runtime, _measure(experiment, ledger))
        finally:
            store.close()


def _measure(experiment: Experiment, ledger: Ledger) -> Measure:
    contract = experiment.contract
    return Measure(
        Scoring(experiment.metric, contract, ledger.stop),
        {name: Scoring(audit, contract, ledger.stop) for name, audit in experiment.audits.items()},
        contract,
    )
