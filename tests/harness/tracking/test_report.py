"""The report: everything a reader asks for, nothing a paper could use against them."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from harness.comparison import compare
from harness.results import AuditChange, Candidate, ExperimentResult, Row
from harness.tracking.report import render_report, visible
from metrics.score import Score

Make = Callable[..., ExperimentResult]
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><script>alert(2)</script>",
    "</title><img src=x onerror=alert(3)>",
    '" onmouseover="alert(4)',
    "' onfocus='alert(5)",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(6)",
    "<!--",
    "\x00\x1b[31m\x07\u202eevil\ud800",
]
BLOCKS = {"td", "th", "dt", "dd", "li", "p", "h1", "h2", "h3", "h4", "pre", "span", "summary"}
VOID = {"meta", "img", "br", "wbr", "line", "link"}


class Page(HTMLParser):
    """Tags, attributes and texts of a page; refuses one whose tags do not match."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += " " if tag in BLOCKS else ""

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def words(page: str) -> str:
    return " ".join(Page(page).text.split())


def hostile_result(make_result: Make, make_row: Callable[..., Row], text: str) -> ExperimentResult:
    def row(number: int, value: float) -> Row:
        return replace(
            make_row(f"{text}{number}", {text: value}),
            group=text,
            inputs={text: text},
            expected={text: [text]},
            predicted={text: [text, text + "!"]},
            score=Score(value, text, {text: Score(value, text)}),
            failure="program" if number == 2 else None,
            error=text,
        )

    result = make_result(rows=([row(n, 0.2) for n in range(3)], [row(n, [0.9, 0.1, 0.2][n]) for n in range(3)]))
    return replace(
        result,
        experiment=text,
        audit={text: AuditChange(result.baseline.total, result.tuned.total, result.delta)},
        candidates=[Candidate(text, 0.5, 3, text), Candidate(text, 0.6, 3, text)],
        ledger={text: next(iter(result.ledger.values()))},
        prompts={text: (text, f"{text}\nmore {text}")},
        params={text: text, f"versions.{text}": text, "long": text * 100},
        split_sizes={text: 3},
        notes=[text],
        run_id=text,
        fingerprint=text,
        folder=text,
        bundle=text,
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text(make_result: Make, make_row: Callable[..., Row], text: str) -> None:
    html = render_report(hostile_result(make_result, make_row, text))
    html.encode("utf-8")
    page = Page(html)
    assert page.named("script") == []
    assert {name for _, attributes in page.tags for name in attributes if name.startswith("on")} == set()
    assert all((attributes["src"] or "").startswith("data:image/svg+xml;base64,") for attributes in page.named("img"))
    assert all((attributes["href"] or "").startswith("#") for attributes in page.named("a"))
    assert text.replace("\x00", "⟨U+0000⟩")[:4] in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", html)


def test_the_page_needs_nothing_from_outside(make_result: Make) -> None:
    html = render_report(make_result())
    page = Page(html)
    (policy,) = [each["content"] for each in page.named("meta") if each.get("http-equiv")]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert "http://" not in html
    assert "https://" not in html
    assert "url(" not in html
    assert page.named("link") == []


def test_the_verdict_comes_first(make_result: Make) -> None:
    result = make_result()
    text = words(render_report(result))
    low, high = result.delta.interval
    scores = f"Tuned scores 0.53, baseline 0.37: +0.15 [{low:.2f}, {high:.2f}]"
    verdict = text.index(f"{scores} on 28 held-out examples from 10 groups.")
    assert verdict < text.index("Example by example")
    assert "28 of 30 scored; 0.35 with the unscored as zero" in text
    assert "read 3 times" in text
    assert "finds a true difference of 0.09 or more" in text
    assert "2 of 40 training records do not fit the schema" in text
    assert "26 better" in text
    assert "2 not compared" in text


def test_everything_a_reader_asks_for(make_result: Make) -> None:
    text = words(render_report(make_result()))
    for expected in (
        "steps[*].conditions.temperature",
        "grounded",
        "Answer with the names as they are written in the text.",
        "check unchanged",
        "10 unchanged lines",
        "Biggest gains",
        "barium titanate",
        "The tuned program failed: the answer stops at 512 tokens",
        "judge answered 'score 5' instead of a number",
        "paper-05, paper-06",
        "seed 4 (best)",
        "stopped: every answer was cut",
        "task 412 182,400 20,311 $0 38 $0.12 3 rate_limit, 1 cut",
        "judge 60 70,200 9,031 unknown 0 - -",
        "all 472 252,600 29,342 unknown 38 $0.12 3 rate_limit, 1 cut",
        "train 40 validation 20 test 30",
        "bootstrap_random_search",
        "dspy 3.4.1",
        "9f2c4e0ab1",
        "5 min 12 s",
        "harness ui # then open run 0123456789abcdef0123456789abcdef",
        'program = load("mlruns/runs/materials-synthesis/0123456789ab/bundle")',
    ):
        assert expected in text


def test_the_page_is_accessible(make_result: Make) -> None:
    page = Page(render_report(make_result()))
    assert all(attributes.get("alt") for attributes in page.named("img"))
    assert all(attributes.get("scope") in ("col", "row") for attributes in page.named("th"))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [(attributes["href"] or "")[1:] for attributes in page.named("a")]
    assert set(targets) <= set(ids)
    labels = [attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes]
    assert set(labels) <= set(ids)


def test_long_texts_are_folded(make_result: Make, make_row: Callable[..., Row]) -> None:
    row = replace(
        make_row("a", {"f": 0.5}),
        inputs={"text": "x" * 50_000},
        expected={f"k{number}": number for number in range(600)},
        score=Score(0.5, "because " * 500),
    )
    html = render_report(make_result(rows=([row], [replace(row, score=Score(0.9, "because " * 500))])))
    text = words(html)
    assert "… 30,000 more characters" in text
    assert "All 4,000 characters" in text
    assert "590 more values differ" in text or "more values differ" in text
    assert "… 202 more lines" in text
    assert len(html) < 600_000


def test_a_run_that_found_nothing(make_result: Make, make_row: Callable[..., Row]) -> None:
    rows = [replace(make_row("a", {}), score=Score.unscored("no number"), failure="judge", error=None)]
    result = make_result(
        rows=(rows, rows), delta=None, verdict="not comparable", candidates=[], ledger={}, prompts={}, params={},
        notes=[], audit={}, test_reads=1,
    )  # fmt: skip
    text = words(render_report(result))
    assert "no example was scored on both sides, so they cannot be compared" in text
    assert "first time this test split was read" in text
    assert "No model was called" in text
    assert "--candidate baseline" in text
    assert "judge answered" not in text
    assert "no number" in text


def test_no_change_and_no_failure(make_result: Make, make_row: Callable[..., Row]) -> None:
    rows = [make_row(f"e{number}", {"f": 1.0}) for number in range(4)]
    rows = [replace(row, predicted=row.expected) for row in rows]
    text = words(render_report(make_result(rows=(rows, rows), verdict="no detectable change")))
    assert "None: every example got a readable answer and a score from both programs." in text
    assert "Biggest gains None." in text
    assert "Lowest scores after tuning None." in text


def test_both_right_but_scored_differently(make_result: Make, make_row: Callable[..., Row]) -> None:
    before = replace(make_row("a", {"f": 0.4}), predicted={"x": 1}, expected={"x": 1})
    after = replace(make_row("a", {"f": 0.9}), predicted={"x": 1}, expected={"x": 1})
    assert "Both answers hold the expected values." in words(render_report(make_result(rows=([before], [after]))))


def test_what_could_not_be_read_is_counted_by_name_on_both_sides(
    make_result: Make, make_row: Callable[..., Row]
) -> None:
    good = [make_row(f"e{number}", {"f": 0.5}) for number in range(8)]
    lost = Score.unscored("cut")
    tuned = [
        replace(row, predicted=None, score=lost, failure="unreadable", failure_kind=kind, error=f"it was {kind} at {n}")
        for n, (row, kind) in enumerate(zip(good[:3], ("cut", "invalid", "cut"), strict=True))
    ] + good[3:]
    result = make_result(rows=(good, tuned))
    found = compare(result.baseline, result.tuned)
    result = replace(result, verdict=found.verdict, delta=found.delta, floor=found.floor)
    text = words(render_report(result))
    assert "5 of 8 readable" in text
    assert "8 of 8 readable" not in text
    assert "tuned: 3 of 8 unreadable: 2 cut, 1 invalid" in text
    assert "it was cut at 0 unreadable (cut) tuned 2 e0, e2" in text
    assert "it was invalid at 1 unreadable (invalid) tuned 1 e1" in text
    assert "with the unreadable as zero" in text
    assert "The tuned program failed: it was" not in text, "there is no score to rank it by"


def test_nothing_comparable_may_still_be_worse(make_result: Make, make_row: Callable[..., Row]) -> None:
    good = [make_row(f"e{number}", {"f": 0.5}) for number in range(8)]
    tuned = [replace(row, score=Score.unscored("cut"), failure="unreadable", failure_kind="cut") for row in good]
    result = make_result(rows=(good, tuned))
    found = compare(result.baseline, result.tuned)
    text = words(render_report(replace(result, verdict=found.verdict, delta=found.delta, floor=found.floor)))
    assert "no example was scored on both sides. Worse: with every unreadable answer counted as 0" in text


def test_failures_with_one_cause_are_one_line(make_result: Make, make_row: Callable[..., Row]) -> None:
    rows = [
        replace(
            make_row(f"e{number}", {"f": 0.0}), failure="program", error=f"stops at {number} tokens, near 'x{number}'"
        )
        for number in range(40)
    ]
    text = words(render_report(make_result(rows=(rows, rows))))
    assert text.count("stops at 0 tokens, near 'x0' program") == 2
    assert "40 e0, e1, e2, e3, e4, …" in text


def test_visible_leaves_ordinary_text_alone() -> None:
    assert visible("line\r\nline\ttab é 日本") == "line\nline\ttab é 日本"
    assert visible(3) == 3


def test_a_report_does_not_wait_for_mlflow() -> None:
    code = "import sys, harness.tracking.report; print(sorted({'mlflow', 'dspy', 'optuna'} & set(sys.modules)))"
    root = Path(__file__).parents[3]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
