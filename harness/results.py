"""What a run produces, as plain data: rows, evaluations, candidates, the verdict, the result.

Nothing here computes a score or talks to a model; the numbers come from `metrics.statistics` and
`harness.comparison`. Reports, the command line and `--json` read these classes and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from metrics.score import Score
from metrics.statistics import FEWEST_GROUPS, Aggregate, PairedDifference

FailureKind = Literal["program", "judge"]
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
        score: the metric's Score. A program failure scores 0 by declared policy; a judge failure is unscored.
        audit: Scores of the audit metrics, by name; reported, never optimised.
        failure: which side failed, if any.
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
    failure: FailureKind | None = None
    error: str | None = None
    cached: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One program measured on one split.

    `fields` aggregates every leaf part of the Scores (field paths of a record metric, criteria of a judge).
    """

    name: str
    split: str
    rows: Sequence[Row]
    total: Aggregate
    fields: Mapping[str, Aggregate]
    audit: Mapping[str, Aggregate]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One program an optimizer tried: its name, its validation score and how many examples that rests on."""

    name: str
    score: float | None
    n: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class RoleUsage:
    """What one role spent in this run. `usd` is None while the price is unknown; a replayed call costs nothing."""

    calls: int
    cached: int
    input_tokens: int
    output_tokens: int
    usd: float | None


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
        verdict: improved / no detectable change / worse, from the paired interval on test; "not comparable"
            when no example was scored on both sides.
        prompts: predictor name -> (prompt text before, after), the messages as they are sent.
        notes: sentences a reader must know (bounds put on the schema, records that do not fit, roles shared).
        test_reads: how often this test split has been read, this run included.
        folder: the run's folder, relative to the working folder; holds result.json, report.html, splits.json.
        bundle: the exported program's folder, relative to the working folder.
        replayed: True when this is the result of an earlier run of the same experiment, read back.
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

    @property
    def reason(self) -> str:
        """Why the verdict is what it is."""
        return verdict_reason(self.verdict, self.delta)

    def to_document(self) -> dict[str, Any]:
        """The one JSON document of `harness run --json`; all scores in 0..1, intervals are 95%."""
        return {
            "run_id": self.run_id,
            "experiment": self.experiment,
            "verdict": self.verdict,
            "reason": self.reason,
            "baseline": aggregate_document(self.baseline.total),
            "tuned": aggregate_document(self.tuned.total),
            "delta": difference_document(self.delta),
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
        }


def verdict_reason(verdict: Verdict, delta: PairedDifference | None) -> str:
    """Why a verdict is what it is, in half a sentence; the same on the terminal, in JSON and in the report.

    >>> verdict_reason("no detectable change", PairedDifference(0.3, (0.1, 0.5), None, 4, 4))
    '4 independent test examples are too few for a verdict: at least 6 are needed'
    """
    if delta is None:
        return "no example was scored for both programs"
    if delta.interval is None:
        return "too few independent examples were scored for an interval"
    if delta.n_groups < FEWEST_GROUPS:
        return (
            f"{delta.n_groups} independent test examples are too few for a verdict: at least {FEWEST_GROUPS} are needed"
        )
    return {
        "improved": "the whole 95% interval of the difference lies above zero",
        "worse": "the whole 95% interval of the difference lies below zero",
    }.get(verdict, "the 95% interval of the difference includes zero")


def aggregate_document(total: Aggregate) -> dict[str, Any]:
    """An Aggregate as JSON data."""
    return {
        "score": total.score,
        "n_scored": total.n_scored,
        "n_total": total.n_total,
        "lower_bound": total.lower_bound,
        "interval": list(total.interval) if total.interval else None,
    }


def usage_document(usage: RoleUsage) -> dict[str, Any]:
    """A RoleUsage as JSON data."""
    return {
        "calls": usage.calls,
        "cached": usage.cached,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
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
    }
