"""What a run produces, as plain data: rows, evaluations, candidates, the verdict, the result.

Nothing here computes a score or talks to a model; the numbers come from `metrics.statistics` and
`harness.comparison`. Reports, the command line and `--json` read these classes and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.fields import WorstField, parts_of, worst_fields
from metrics.score import Score
from metrics.statistics import FEWEST_GROUPS, Aggregate, PairedDifference

FailureSide = Literal["unreadable", "endpoint", "program", "judge", "budget"]
"""Whose failure it is that an example has no score; `harness.failures` says what each means."""
Verdict = Literal["improved", "no detectable change", "worse", "not comparable"]


@dataclass(frozen=True, slots=True)
class Row:
    """One example, one prediction, one Score.

    Attributes:
        example_id: the record's id.
        group: the value of the grouping column, or None when examples stand alone.
        inputs: what the program was given, by input name.
        expected: the record to reach, as plain JSON data.
        predicted: the record the program produced, as plain JSON data; None when it failed.
        score: the metric's Score. An error in the program scores 0 by declared policy; every other failure is
            unscored.
        audit: Scores of the audit metrics, by name; reported, never optimised.
        failure: whose failure it is, if any.
        failure_kind: its name among `errors.FAILURE_KINDS`, where it has one ("cut", "invalid").
        error: the failure in one sentence.
        cached: True when every call behind this row was answered from the store.
        seconds: wall time of program and metric together.
    """

    example_id: str
    group: str | None
    inputs: Mapping[str, Any]
    expected: Any
    predicted: Any | None
    score: Score
    audit: Mapping[str, Score] = field(default_factory=dict)
    failure: FailureSide | None = None
    error: str | None = None
    cached: bool = False
    seconds: float = 0.0
    failure_kind: str | None = None


@dataclass(frozen=True, slots=True)
class FailureCount:
    """The examples of one evaluation that failed under one name, and the first of them.

    Attributes:
        failure, kind: as in the rows.
        count: how many.
        example_id, sentence: of the first.
    """

    failure: FailureSide
    kind: str | None
    count: int
    example_id: str
    sentence: str

    def to_document(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "failure": self.failure,
            "kind": self.kind,
            "count": self.count,
            "first": {"id": self.example_id, "error": self.sentence},
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One program measured on one split.

    `fields` aggregates every part of the Scores by its name in `parts_of`: field paths and lists of a record metric,
    criteria of a judge, parts of a composite.
    """

    name: str
    split: str
    rows: Sequence[Row]
    total: Aggregate
    fields: Mapping[str, Aggregate]
    audit: Mapping[str, Aggregate]

    @property
    def readable(self) -> int:
        """Examples whose answer could be read, whether or not the metric could score it."""
        return sum(row.failure in (None, "judge") for row in self.rows)

    @property
    def failures(self) -> list[FailureCount]:
        """What failed, by name, in the order of the first of each."""
        failed: dict[tuple[FailureSide, str | None], list[Row]] = {}
        for row in self.rows:
            if row.failure is not None:
                failed.setdefault((row.failure, row.failure_kind), []).append(row)
        return [
            FailureCount(side, kind, len(rows), rows[0].example_id, rows[0].error or rows[0].score.error or "")
            for (side, kind), rows in failed.items()
        ]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One program an optimizer tried: its name, its validation score and how many examples that rests on."""

    name: str
    score: float | None
    n: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class RoleUsage:
    """What one role spent in this run, and apart from it what the store answered.

    Attributes:
        calls: requests sent; one that was refused or failed counts.
        cached: answers nothing was sent for; they cost nothing now.
        input_tokens, output_tokens: of the answers that were sent for.
        usd: what those cost; None while a price is unknown.
        failures: what went wrong with attempts and answers, by name ("rate_limit", "cut"); most are cured by a
            retry, so this is no count of failed examples.
        replayed_input_tokens, replayed_output_tokens: of the answers from the store, when they were paid.
        replayed_usd: what the answers from the store cost when they were paid; None when that is unknown.
        estimated: answers that did not say what they used; `usd` holds the role's average for each of them.
    """

    calls: int
    cached: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    failures: Mapping[str, int] = field(default_factory=dict)
    replayed_input_tokens: int = 0
    replayed_output_tokens: int = 0
    replayed_usd: float | None = None
    estimated: int = 0


@dataclass(frozen=True, slots=True)
class AuditChange:
    """One audit metric on baseline and tuned, and its paired difference."""

    baseline: Aggregate
    tuned: Aggregate
    delta: PairedDifference | None


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """Everything `harness run` found out; `to_document` is the `--json` document.

    Attributes:
        run_id: the MLflow parent run.
        experiment: the experiment's name.
        verdict: improved / no detectable change / worse, from the paired intervals on test; "not comparable"
            when no example was scored on both sides.
        delta: the paired difference over the examples scored on both sides.
        floor: the same with every answer that could not be read counted as 0 (`harness.comparison`).
        prompts: predictor name -> (prompt text before, after), the messages as they are sent.
        notes: sentences a reader must know (bounds put on the schema, records that do not fit, roles shared).
        test_reads: how often this test split has been read, this run included.
        folder: the run's folder, relative to the working folder; holds result.json, report.html, splits.json.
        bundle: the exported program's folder, relative to the working folder.
        replayed: True when this is the result of an earlier run of the same experiment, read back.
        stopped: what ended the run before its end, when the verdict rests on what was done by then; empty otherwise.
    """

    run_id: str
    experiment: str
    verdict: Verdict
    baseline: Evaluation
    tuned: Evaluation
    delta: PairedDifference | None
    audit: Mapping[str, AuditChange]
    candidates: Sequence[Candidate]
    ledger: Mapping[str, RoleUsage]
    prompts: Mapping[str, tuple[str, str]]
    params: Mapping[str, str]
    split_sizes: Mapping[str, int]
    notes: Sequence[str]
    test_reads: int
    fingerprint: str
    seconds: float
    folder: str
    bundle: str
    replayed: bool = False
    stopped: str = ""
    floor: PairedDifference | None = None

    @property
    def reason(self) -> str:
        """Why the verdict is what it is."""
        return verdict_reason(self.verdict, self.delta, self.floor)

    def to_document(self) -> dict[str, Any]:
        """The one JSON document of `harness run --json`; all scores in 0..1, intervals are 95%."""
        return {
            "run_id": self.run_id,
            "experiment": self.experiment,
            "verdict": self.verdict,
            "reason": self.reason,
            "baseline": side_document(self.baseline),
            "tuned": side_document(self.tuned),
            "worst_fields": [worst_field_document(field) for field in worst_fields(self.tuned)],
            "delta": difference_document(self.delta),
            "floor": difference_document(self.floor),
            "audit": {
                name: {
                    "baseline": aggregate_document(change.baseline),
                    "tuned": aggregate_document(change.tuned),
                    "delta": difference_document(change.delta),
                }
                for name, change in self.audit.items()
            },
            "ledger": {role: usage_document(usage) for role, usage in self.ledger.items()},
            "bundle": self.bundle,
            "report": f"{self.folder}/report.html",
            "splits": dict(self.split_sizes),
            "test_reads": self.test_reads,
            "fingerprint": self.fingerprint,
            "seconds": round(self.seconds, 1),
            "notes": list(self.notes),
            "replayed": self.replayed,
            "stopped": self.stopped or None,
        }


def verdict_reason(verdict: Verdict, delta: PairedDifference | None, floor: PairedDifference | None = None) -> str:
    """Why a verdict is what it is, in half a sentence; the same on the terminal, in JSON and in the report.

    Args:
        verdict: what was found.
        delta: over the examples scored on both sides.
        floor: with unreadable answers counted as 0; None when that is the same.

    >>> verdict_reason("no detectable change", PairedDifference(0.3, (0.1, 0.5), None, 4, 4))
    '4 independent test examples are too few for a verdict: at least 6 are needed'
    """
    counted = "with every unreadable answer counted as 0, "
    if verdict == "worse" and not lies_below_zero(delta):
        return f"{counted}the whole 95% interval of the difference lies below zero"
    if delta is None:
        return "no example was scored for both programs"
    if delta.interval is None:
        return "too few independent examples were scored for an interval"
    if delta.n_groups < FEWEST_GROUPS:
        return (
            f"{delta.n_groups} independent test examples are too few for a verdict: at least {FEWEST_GROUPS} are needed"
        )
    if verdict == "improved":
        return "the whole 95% interval of the difference lies above zero"
    if verdict == "worse":
        return "the whole 95% interval of the difference lies below zero"
    if lies_above_zero(delta):
        if lies_above_zero(floor):
            return "what could be read got better, but half the answers that could be read before no longer can"
        return f"what could be read got better, but {counted}the 95% interval of the difference includes zero"
    if delta.n_changed is not None and delta.n_changed < FEWEST_GROUPS:
        return (
            f"{delta.n_changed} of {delta.n_groups} independent examples changed at all; chance alone explains fewer "
            f"than {FEWEST_GROUPS}"
        )
    return "the 95% interval of the difference includes zero"


_ROUNDING = 1e-9
"""A bound this near zero is zero: one example in twenty that differs must not decide a verdict by rounding."""


def lies_above_zero(difference: PairedDifference | None) -> bool:
    """Whether a difference is shown to be a gain: the whole interval above zero, on enough independent examples."""
    interval = _shown(difference)
    return interval is not None and interval[0] > _ROUNDING


def lies_below_zero(difference: PairedDifference | None) -> bool:
    """Whether a difference is shown to be a loss."""
    interval = _shown(difference)
    return interval is not None and interval[1] < -_ROUNDING


def _shown(difference: PairedDifference | None) -> tuple[float, float] | None:
    return difference.interval if difference is not None and difference.n_groups >= FEWEST_GROUPS else None


def side_document(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation's total as JSON data, with how many answers could be read and what failed."""
    return {
        **aggregate_document(evaluation.total),
        "readable": evaluation.readable,
        "failures": [each.to_document() for each in evaluation.failures],
    }


def aggregate_document(total: Aggregate) -> dict[str, Any]:
    """An Aggregate as JSON data."""
    return {
        "score": total.score,
        "n_scored": total.n_scored,
        "n_total": total.n_total,
        "lower_bound": total.lower_bound,
        "interval": list(total.interval) if total.interval else None,
    }


def worst_field_document(field: WorstField) -> dict[str, Any]:
    """A WorstField as JSON data; of its examples only the ids, because bundles hold this document, too."""
    examples = [{"id": row.example_id, "score": parts_of(row.score)[field.path].value} for row in field.rows]
    return {"field": field.path, **aggregate_document(field.total), "examples": examples}


def usage_document(usage: RoleUsage) -> dict[str, Any]:
    """A RoleUsage as JSON data."""
    return {
        "calls": usage.calls,
        "cached": usage.cached,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
        "estimated": usage.estimated,
        "replayed_input_tokens": usage.replayed_input_tokens,
        "replayed_output_tokens": usage.replayed_output_tokens,
        "replayed_usd": usage.replayed_usd,
        "failures": dict(usage.failures),
    }


def difference_document(delta: PairedDifference | None) -> dict[str, Any] | None:
    """A PairedDifference as JSON data; None when nothing could be paired."""
    if delta is None:
        return None
    return {
        "mean": delta.mean,
        "interval": list(delta.interval) if delta.interval else None,
        "smallest_detectable": delta.smallest_detectable,
        "n_pairs": delta.n_pairs,
        "n_groups": delta.n_groups,
        "n_changed": delta.n_changed,
    }
