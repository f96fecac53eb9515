"""The examples worth looking at: the worst ones, the biggest changes, and what failed and why."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.fields import parts_of, worst_fields
from harness.results import Evaluation, Row
from harness.tracking.names import plain_json, shortened
from harness.tracking.plots import score_pairs
from harness.tracking.record_differences import Difference, record_differences
from metrics.statistics import Aggregate

SHOWN = 5
_MAX_RECORD_LINES = 400
_MAX_TEXT = 20_000
_LONGEST_SAID = 300
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One line of a record as JSON; `differs` when the other record has no such line there."""

    text: str
    differs: bool


@dataclass(frozen=True, slots=True)
class RecordView:
    """A record to read: its lines, how many are left out, or why there is none."""

    title: str
    lines: tuple[RecordLine, ...]
    omitted: int = 0
    missing: str = ""


@dataclass(frozen=True, slots=True)
class ExampleView:
    """One example with both answers."""

    example_id: str
    group: str | None
    before: float | None
    after: float | None
    differences: tuple[Difference, ...]
    failures: tuple[tuple[str, str], ...]
    records: tuple[RecordView, ...]
    inputs: tuple[tuple[str, str], ...]
    feedback: str


@dataclass(frozen=True, slots=True)
class FieldExample:
    """One example of a field that went badly: its score there, and what the metric said about it."""

    example_id: str
    score: float | None
    said: str


@dataclass(frozen=True, slots=True)
class FieldExamples:
    """A field that went badly over the tuned program's examples, with the worst of them."""

    path: str
    total: Aggregate
    examples: tuple[FieldExample, ...]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many examples got better, stayed, got worse, and how many have no score on one side."""

    better: int
    same: int
    worse: int
    unpaired: int


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Examples that failed in the same way."""

    program: str
    side: str
    kind: str | None
    cause: str
    count: int
    example_ids: tuple[str, ...]


def count_outcomes(baseline: Evaluation, tuned: Evaluation) -> Outcomes:
    """Count the examples by the sign of their change."""
    changes = [_change(pair) for pair in score_pairs(baseline, tuned)]
    known = [change for change in changes if change is not None]
    better, worse = sum(change > _SAME for change in known), sum(change < -_SAME for change in known)
    return Outcomes(better, len(known) - better - worse, worse, len(changes) - len(known))


def worst_examples(baseline: Evaluation, tuned: Evaluation) -> list[ExampleView]:
    """The tuned program's lowest scores, lowest first; perfect and unscored examples are not among them."""
    pairs = [
        pair for pair in score_pairs(baseline, tuned) if pair[1].score.value is not None and pair[1].score.value < 1
    ]
    pairs.sort(key=lambda pair: pair[1].score.value or 0.0)
    return [_view(*pair) for pair in pairs[:SHOWN]]


def worst_by_field(tuned: Evaluation) -> list[FieldExamples]:
    """The fields with the lowest means, each with its worst examples and the metric's words about them."""
    return [
        FieldExamples(
            field.path,
            field.total,
            tuple(
                FieldExample(row.example_id, part.value, _said_about(field.path, row.score.feedback, part.feedback))
                for row in field.rows
                for part in [parts_of(row.score)[field.path]]
            ),
        )
        for field in worst_fields(tuned)
    ]


def biggest_changes(baseline: Evaluation, tuned: Evaluation) -> tuple[list[ExampleView], list[ExampleView]]:
    """The examples that gained most and those that lost most, biggest first."""
    changes = [(_change(pair) or 0.0, pair) for pair in score_pairs(baseline, tuned)]
    gains = sorted((each for each in changes if each[0] > _SAME), key=lambda each: -each[0])
    losses = sorted((each for each in changes if each[0] < -_SAME), key=lambda each: each[0])
    return [_view(*pair) for _, pair in gains[:SHOWN]], [_view(*pair) for _, pair in losses[:SHOWN]]


def failure_groups(evaluation: Evaluation) -> list[FailureGroup]:
    """Failures with the same cause together, the most frequent first."""
    groups: dict[tuple[str, str | None, str], list[Row]] = {}
    for row in evaluation.rows:
        if row.failure is not None:
            cause = row.error or row.score.error or "no reason was given"
            groups.setdefault((row.failure, row.failure_kind, _pattern(cause)), []).append(row)
    found = [
        FailureGroup(
            evaluation.name,
            side,
            kind,
            rows[0].error or rows[0].score.error or "no reason was given",
            len(rows),
            tuple(row.example_id for row in rows[:SHOWN]),
        )
        for (side, kind, _), rows in groups.items()
    ]
    return sorted(found, key=lambda group: -group.count)


def record_view(title: str, record: Any, other: Any, missing: str = "") -> RecordView:
    """`record` as JSON lines, those that differ from `other` marked.

    >>> view = record_view("tuned", {"a": 1, "b": 2}, {"a": 1, "b": 3})
    >>> [line.text for line in view.lines if line.differs]
    ['  "b": 2']
    """
    if record is None:
        return RecordView(title, (), missing=missing or "none")
    lines = plain_json(record).splitlines()
    others = [] if other is None else plain_json(other).splitlines()
    shown, omitted = lines[:_MAX_RECORD_LINES], max(0, len(lines) - _MAX_RECORD_LINES)
    differing = _differing(shown, others) if other is not None else set()
    return RecordView(
        title, tuple(RecordLine(text, position in differing) for position, text in enumerate(shown)), omitted
    )


def _differing(lines: list[str], others: list[str]) -> set[int]:
    """Positions of lines without a counterpart; a comma at the end is no difference."""
    matcher = difflib.SequenceMatcher(
        None, [line.rstrip(",") for line in lines], [line.rstrip(",") for line in others], autojunk=False
    )
    matched: Iterable[int] = (
        position for block in matcher.get_matching_blocks() for position in range(block.a, block.a + block.size)
    )
    return set(range(len(lines))) - set(matched)


def _view(before: Row, after: Row) -> ExampleView:
    return ExampleView(
        example_id=after.example_id,
        group=after.group,
        before=before.score.value,
        after=after.score.value,
        differences=tuple(record_differences(after.expected, before.predicted, after.predicted)),
        failures=tuple(
            (name, each.error or "no prediction")
            for name, each in (("baseline", before), ("tuned program", after))
            if each.failure is not None or each.predicted is None
        ),
        records=(
            record_view("expected", after.expected, None),
            record_view("baseline", before.predicted, after.expected, before.error or "no prediction"),
            record_view("tuned", after.predicted, after.expected, after.error or "no prediction"),
        ),
        inputs=tuple((name, _capped(plain_json(value))) for name, value in after.inputs.items()),
        feedback=_capped(after.score.feedback),
    )


def _said_about(path: str, feedback: str, otherwise: str) -> str:
    """The first line of the feedback about this place or one that holds it; else the part's own words."""
    place = path.rpartition("/")[2]
    about = [(re.sub(r"\[\d+\]", "[*]", line.partition(":")[0]), line) for line in feedback.splitlines()]
    own = (line for said, line in about if said == place)
    around = (line for said, line in about if said and place.startswith((f"{said}.", f"{said}[")))
    return shortened(next(own, None) or next(around, None) or otherwise, _LONGEST_SAID)


def _change(pair: tuple[Row, Row]) -> float | None:
    before, after = pair[0].score.value, pair[1].score.value
    return None if before is None or after is None else after - before


def _pattern(cause: str) -> str:
    """A cause without what differs from example to example: numbers and quoted parts."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "…", cause.splitlines()[0])
    return re.sub(r"\d+", "0", text)[:200]


def _capped(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}\n… {len(text) - _MAX_TEXT:,} more characters"
