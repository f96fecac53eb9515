"""`harness evaluate`: one program, tuned or not, measured on the test split. Nothing is tuned."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.assembly import PROGRAMS, Experiment
from harness.bundle import LoadedProgram, load
from harness.errors import UsageError
from harness.examples import inputs_digest
from harness.experiment import SEEN, ending, mark_test_read, measure_on_test, params
from harness.fields import worst_fields
from harness.fingerprint import fingerprint
from harness.models.prompt import prompt_text
from harness.models.roles import Endpoints, preflight
from harness.progress import Progress, SilentProgress
from harness.results import Evaluation, aggregate_document, side_document, usage_document, worst_field_document
from harness.session import open_session
from harness.tracking.run_tree import log_evaluation
from harness.tracking.sentences import failure_notes
from harness.tracking.tracker import Tracker


def evaluate_program(
    experiment: Experiment,
    *,
    bundle: Path | None = None,
    progress: Progress | None = None,
    endpoints: Endpoints | None = None,
) -> dict[str, Any]:
    """Measure the experiment's program, or a bundle of it, on the test split.

    Args:
        experiment: names data, metric and models.
        bundle: measure this exported program instead of the file's untuned one.
        progress: told of every finished example.
        endpoints: where models come from; None makes them from the experiment's file.

    Returns:
        The `--json` document: run_id, experiment, program, split, score with n and interval, fields, audit, ledger.

    Raises:
        UsageError: the bundle is of another program.
        RunStopped, HarnessError: as `harness.experiment.run`.
    """
    loaded = None if bundle is None else _load(bundle, experiment)
    program = experiment.program if loaded is None else loaded.program
    adapter = experiment.dspy_adapter() if loaded is None else loaded.adapter
    name = "baseline" if bundle is None else bundle.name
    notes = [*experiment.notes, *(loaded.notes if loaded is not None else ())]
    with open_session(experiment, progress or SilentProgress(), endpoints=endpoints) as opened:
        # A bundle brings the prompt form it was tuned with; the file's own is for the file's own program.
        session = replace(opened, runtime=replace(opened.runtime, adapter=adapter))
        tracked = Tracker.open(Path()).start_run(
            experiment.name, f"evaluate {name}", params(experiment), {"kind": "evaluation"}
        )
        try:
            notes = [*_seen_notes(experiment, bundle), *preflight({"task": session.lms["task"]}), *notes]
            evaluation = measure_on_test(program, name, experiment, session, progress or SilentProgress())
        except BaseException as error:
            tracked.finish(ending(error))
            raise
        inputs = dict(experiment.examples["test"][0].inputs())
        log_evaluation(tracked, evaluation, prompt_text(program, adapter, inputs))
        tracked.finish("finished")
        endpoints_used = {role: lm.engine.provider.endpoint for role, lm in session.lms.items()}
        reads = mark_test_read(experiment, session, f"evaluate {name} {fingerprint(experiment, endpoints_used).digest}")
        return {
            **evaluation_document(evaluation),
            "run_id": tracked.run_id,
            "experiment": experiment.name,
            "test_reads": reads,
            "ledger": {role: usage_document(usage) for role, usage in session.ledger.usage().items()},
            "notes": [*notes, *failure_notes(evaluation)],
        }


def evaluation_document(evaluation: Evaluation) -> dict[str, Any]:
    """An Evaluation's numbers as JSON data."""
    return {
        "program": evaluation.name,
        "split": evaluation.split,
        **side_document(evaluation),
        "fields": {path: aggregate_document(total) for path, total in evaluation.fields.items()},
        "worst_fields": [worst_field_document(field) for field in worst_fields(evaluation)],
        "audit": {name: aggregate_document(total) for name, total in evaluation.audit.items()},
    }


def _seen_notes(experiment: Experiment, bundle: Path | None) -> list[str]:
    """Says when a bundle is measured on texts it was tuned on, of which a high score is no merit."""
    if bundle is None:
        return []
    seen = set(json.loads((bundle / "report.json").read_text(encoding="utf-8")).get(SEEN, ()))
    test = experiment.examples["test"]
    known = sum(inputs_digest(example) in seen for example in test)
    if not known:
        return []
    return [
        f"{known} of these {len(test)} test examples were training or validation examples when the bundle was tuned: "
        "the score is no measurement on new texts; use the split the bundle was tuned with"
    ]


def _load(folder: Path, experiment: Experiment) -> LoadedProgram:
    own = experiment.program_reference["class"] not in PROGRAMS
    loaded = load(folder, program=type(experiment.program) if own else None)
    if loaded.contract.field != experiment.contract.field or loaded.contract.schema != experiment.contract.schema:
        raise UsageError(
            f"the bundle {folder} puts out another record than the program of {experiment.spec.path}; "
            "evaluate it with the experiment it came from"
        )
    return loaded
