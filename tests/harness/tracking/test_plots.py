"""Pictures of any result, with any text, without warnings (they are errors here)."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from harness.results import Candidate, Evaluation, ExperimentResult, Row
from harness.tracking.plots import (
    DARK,
    MAX_FIELDS,
    candidates_over_time,
    field_scores,
    paired_by_field,
    paired_scores,
    plot_label,
    png,
    svg,
)
from metrics.score import Score

Make = Callable[..., ExperimentResult]
HOSTILE = ["$\\frac{", "</svg><script>alert(1)</script>", "日本語\x00\x1b[31m\ud800", "$x^2$ ‮abc", "a" * 400, ""]
PLOTS: list[Callable[[Evaluation, Evaluation], Figure]] = [paired_scores, paired_by_field, field_scores]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]


@pytest.mark.parametrize("plot", PLOTS)
def test_pictures_are_the_same_every_time(make_result: Make, plot: Callable[..., Figure]) -> None:
    result = make_result(12)
    first = png(plot(result.baseline, result.tuned))
    assert first.startswith(b"\x89PNG")
    assert png(plot(result.baseline, result.tuned)) == first


@pytest.mark.parametrize("plot", PLOTS)
def test_hostile_names_are_only_drawn(
    make_result: Make, make_row: Callable[..., Row], plot: Callable[..., Figure]
) -> None:
    rows = [make_row(name, dict.fromkeys(HOSTILE, 0.5)) for name in HOSTILE]
    result = make_result(rows=(rows, rows))
    assert png(plot(result.baseline, result.tuned))
    drawing = svg(plot(result.baseline, result.tuned))
    ElementTree.fromstring(drawing)
    assert "script" not in drawing


@pytest.mark.parametrize("plot", PLOTS)
def test_nothing_scored(make_result: Make, make_row: Callable[..., Row], plot: Callable[..., Figure]) -> None:
    rows = [replace(make_row("a", {}), score=Score.unscored("no", parts={"f": Score.unscored("no")}))]
    result = make_result(rows=(rows, rows))
    assert png(plot(result.baseline, result.tuned))
    empty = make_result(rows=([], []))
    assert png(plot(empty.baseline, empty.tuned))


def test_the_paired_plot_counts(make_result: Make, make_row: Callable[..., Row]) -> None:
    before = [make_row(f"e{number}", {"a": 0.5}) for number in range(6)]
    after = [make_row(f"e{number}", {"a": value}) for number, value in enumerate([1, 1, 1, 0.5, 0, 0])]
    result = make_result(rows=(before, after))
    drawn = texts(paired_scores(result.baseline, result.tuned))
    assert "3 better" in drawn
    assert "2 worse" in drawn


def test_thousands_of_examples_stay_small(make_result: Make, make_row: Callable[..., Row]) -> None:
    row = make_row("e", {})
    before = [replace(row, example_id=str(number), score=Score(number % 1000 / 1000)) for number in range(5000)]
    after = [replace(row, example_id=str(number), score=Score(number % 777 / 777)) for number in range(5000)]
    baseline = Evaluation("baseline", "test", before, make_result(rows=([], [])).baseline.total, {}, {})
    tuned = replace(baseline, rows=after)
    assert len(svg(paired_scores(baseline, tuned))) < 1_000_000


def test_colours_follow_the_reader(make_result: Make) -> None:
    result = make_result(6)
    drawing = svg(field_scores(result.baseline, result.tuned))
    body = drawing.partition("</style>")[2]
    assert "prefers-color-scheme:dark" in drawing
    assert not any(colour in body for colour in DARK)
    assert "var(--c" in body


def test_at_most_thirty_fields(make_result: Make, make_row: Callable[..., Row]) -> None:
    rows = [make_row("a", {f"field {number:03d}": 0.5 for number in range(50)})]
    result = make_result(rows=(rows, rows))
    drawn = texts(field_scores(result.baseline, result.tuned))
    assert f"field {MAX_FIELDS - 1:03d}" in drawn
    assert f"field {MAX_FIELDS:03d}" not in drawn


def test_candidates() -> None:
    figure = candidates_over_time([Candidate("a", 0.2, 5), Candidate("b", None, 0), Candidate("c", 0.1, 5)])
    best, tried = figure.axes[0].get_lines()
    assert list(best.get_ydata()) == [0.2, 0.2]  # pyright: ignore[reportArgumentType]
    assert list(tried.get_xdata()) == [1, 3]  # pyright: ignore[reportArgumentType]
    assert "no candidate was scored" in texts(candidates_over_time([Candidate("a", None, 0)]))


def test_labels_fit() -> None:
    assert plot_label("  two\nlines ") == "two lines"
    assert all(len(plot_label(text)) <= 34 for text in HOSTILE)
    assert plot_label("日本") == "??"
