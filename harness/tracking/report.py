"""`report.html`: one page that says what a run found out, in the order a person asks.

The page brings everything along: no script, no address outside, pictures inside. Papers and models are hostile
here: every text passes jinja2's escaping, and characters that change how the rest is read are made visible.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from harness.costs import dollars, fault_words, with_total
from harness.results import ExperimentResult
from harness.tracking import sentences
from harness.tracking.plots import MAX_FIELDS, candidates_over_time, field_scores, paired_scores, svg
from harness.tracking.prompt_diff import Block, diff
from harness.tracking.report_examples import (
    FailureGroup,
    biggest_changes,
    count_outcomes,
    failure_groups,
    worst_by_field,
    worst_examples,
)
from metrics.statistics import Aggregate

VERSION_PARAM = "versions."
"""Params whose name begins so are shown as versions, not as settings."""

_CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the page may load: nothing. A text that got past the escaping could still not run or call anywhere."""

_VERDICT_TONE = {"improved": "gain", "worse": "loss"}
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PromptView:
    """One predictor's prompt before and after."""

    name: str
    changed: bool
    blocks: list[Block]
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FieldView:
    """One field on both sides."""

    path: str
    baseline: Aggregate | None
    tuned: Aggregate | None

    @property
    def change(self) -> float | None:
        """Difference of the two means, None while one is missing."""
        before = self.baseline.score if self.baseline else None
        after = self.tuned.score if self.tuned else None
        return None if before is None or after is None else after - before


@dataclass(frozen=True, slots=True)
class IntervalView:
    """The paired difference drawn on a line from `-reach` to `reach`; positions are percent of its width."""

    low: float
    high: float
    mean: float
    reach: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing as a data address, and what it shows in words."""

    address: str
    words: str


def render_report(result: ExperimentResult) -> str:
    """The report of one run as a self-contained HTML page, to be written as UTF-8."""
    environment = Environment(
        loader=PackageLoader("harness.tracking"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    environment.filters |= _filters()
    template = environment.get_template("report.html.j2")
    return template.render(result=result, policy=_CONTENT_POLICY, **_sections(result))


def visible(value: Any) -> Any:
    """Text with control, direction-changing and unpaired characters replaced by what they are.

    >>> visible("a\\x00b\\u202ec")
    'a⟨U+0000⟩b⟨U+202E⟩c'
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n")
    return _INVISIBLE.sub(lambda found: f"⟨U+{ord(found.group()):04X}⟩", text)


def _sections(result: ExperimentResult) -> dict[str, Any]:
    versions, settings = _params(result.params)
    gains, losses = biggest_changes(result.baseline, result.tuned)
    return {
        "verdict_sentence": sentences.verdict_sentence(result),
        "power_sentence": sentences.power_sentence(result.delta),
        "reads_sentence": sentences.reads_sentence(result.test_reads),
        "tone": _VERDICT_TONE.get(result.verdict, "flat"),
        "interval_view": _interval_view(result),
        "outcomes": count_outcomes(result.baseline, result.tuned),
        "paired_picture": _paired_picture(result),
        "field_picture": _field_picture(result),
        "candidate_picture": _candidate_picture(result),
        "fields": _fields(result),
        "max_fields": MAX_FIELDS,
        "worst_fields": worst_by_field(result.tuned),
        "prompts": _prompts(result.prompts),
        "worst": worst_examples(result.baseline, result.tuned),
        "gains": gains,
        "losses": losses,
        "failures": _failures(result),
        "failure_counts": _failure_counts(result),
        "settings": settings,
        "versions": versions,
        "chosen": _best_candidate(result),
        "costs": with_total(result.ledger),
    }


def _filters() -> dict[str, Callable[..., Any]]:
    return {
        "score": sentences.score,
        "interval": sentences.interval,
        "difference": sentences.difference,
        "scored": sentences.scored,
        "money": dollars,
        "faults": fault_words,
        "duration": sentences.duration,
        "signed": lambda value: sentences.change(0.0, value),
        "pieces": lambda path: re.findall(r"[^._\[]*[._\[]?", path),
        "tone": lambda value: "flat" if not value else "gain" if value > 0 else "loss",
    }


def _interval_view(result: ExperimentResult) -> IntervalView | None:
    delta = result.delta
    if delta is None or delta.interval is None:
        return None
    reach = max(0.1, *(abs(bound) * 1.15 for bound in (*delta.interval, delta.mean)))

    def position(value: float) -> float:
        return round(50 + 50 * value / reach, 2)

    low, high = delta.interval
    return IntervalView(position(low), position(high), position(delta.mean), sentences.score(reach))


def _paired_picture(result: ExperimentResult) -> Picture:
    pairs = result.delta.n_pairs if result.delta else 0
    words = f"Baseline against tuned score of {sentences.counted(pairs, 'example')}; points above the line are better."
    return Picture(_address(paired_scores(result.baseline, result.tuned)), words)


def _field_picture(result: ExperimentResult) -> Picture | None:
    if not result.baseline.fields and not result.tuned.fields:
        return None
    words = "Mean score and interval of every field for both programs; the table below holds the same numbers."
    return Picture(_address(field_scores(result.baseline, result.tuned)), words)


def _candidate_picture(result: ExperimentResult) -> Picture | None:
    if len(result.candidates) < 2:
        return None
    words = "Validation score of every candidate in the order they were tried; the table below holds the same numbers."
    return Picture(_address(candidates_over_time(result.candidates)), words)


def _address(figure: Figure) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg(figure).encode()).decode()


def _fields(result: ExperimentResult) -> list[FieldView]:
    before, after = result.baseline.fields, result.tuned.fields
    return [FieldView(path, before.get(path), after.get(path)) for path in dict.fromkeys([*before, *after])]


def _prompts(prompts: Mapping[str, tuple[str, str]]) -> list[PromptView]:
    return [
        PromptView(name, before != after, diff(before, after), before, after)
        for name, (before, after) in prompts.items()
    ]


def _failures(result: ExperimentResult) -> list[FailureGroup]:
    return [*failure_groups(result.tuned), *failure_groups(result.baseline)]


def _failure_counts(result: ExperimentResult) -> list[str]:
    """One sentence per program that failed somewhere."""
    sides = ((side, sentences.failure_words(side.failures, len(side.rows))) for side in (result.baseline, result.tuned))
    return [f"{side.name}: {words}" for side, words in sides if words]


def _params(params: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    versions = {
        name.removeprefix(VERSION_PARAM): text for name, text in params.items() if name.startswith(VERSION_PARAM)
    }
    return versions, {name: text for name, text in params.items() if not name.startswith(VERSION_PARAM)}


def _best_candidate(result: ExperimentResult) -> int | None:
    """The position of the first candidate with the best validation score."""
    scores = [(each.score, -position) for position, each in enumerate(result.candidates) if each.score is not None]
    return -max(scores)[1] if scores else None
