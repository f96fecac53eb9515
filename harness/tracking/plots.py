"""The pictures of a run: who won on which example, on which field, and how the candidates went.

Figures are made without pyplot, which keeps state for the whole process. `png` serves MLflow's pages; `svg` serves
the report, where the colours follow the reader's light or dark setting.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ticker import MaxNLocator

from harness.fields import parts_of
from harness.results import Candidate, Evaluation, Row
from metrics.statistics import Aggregate

INK, MUTED, FAINT, GAIN, LOSS = "#1d232b", "#5d6874", "#d5dbe1", "#0b7a5b", "#b5471c"
DARK = {INK: "#e8ebef", MUTED: "#9aa5b1", FAINT: "#39424d", GAIN: "#4cc9a0", LOSS: "#f0905f"}
"""What each colour becomes for readers who ask for a dark page."""

MAX_FIELDS = 30
MAX_PANELS = 12
_FONT = FontProperties(family="DejaVu Sans")
_LABEL_LENGTH = 34
_LIMITS = (-0.06, 1.06)
_MANY = 1000
"""From here on points share a place when they agree to two decimals: a drawing holds at most some thousands."""


def paired_scores(baseline: Evaluation, tuned: Evaluation) -> Figure:
    """Every example as a point, baseline to the right and tuned upwards: above the diagonal, tuned is better.

    Examples with the same two scores share a point, whose area grows with their number.
    """
    figure = Figure(figsize=(4.6, 4.5), layout="constrained")
    axes = figure.add_subplot()
    _style(axes)
    _scatter(axes, _totals(baseline, tuned), size=46)
    axes.set_xlabel("baseline score", color=MUTED, fontsize=9)
    axes.set_ylabel("tuned score", color=MUTED, fontsize=9)
    return figure


def paired_by_field(baseline: Evaluation, tuned: Evaluation) -> Figure:
    """One small paired plot per field, for at most twelve fields."""
    fields = _fields(baseline, tuned)[:MAX_PANELS]
    columns = min(3, max(1, len(fields)))
    lines = max(1, -(-len(fields) // columns))
    figure = Figure(figsize=(2.3 * columns + 0.2, 2.5 * lines), layout="constrained")
    for position, field in enumerate(fields):
        axes = figure.add_subplot(lines, columns, position + 1)
        _style(axes)
        _scatter(axes, _of_field(baseline, tuned, field), size=24)
        axes.set_title(plot_label(field, 26), color=INK, fontsize=8, fontproperties=_font(8), parse_math=False)
        axes.tick_params(labelsize=6)
    return figure


def field_scores(baseline: Evaluation, tuned: Evaluation) -> Figure:
    """Per field the mean of either program with its interval, for at most thirty fields."""
    fields = _fields(baseline, tuned)[:MAX_FIELDS]
    figure = Figure(figsize=(5.4, 0.9 + 0.44 * max(1, len(fields))), layout="constrained")
    axes = figure.add_subplot()
    _style(axes)
    for position, field in enumerate(fields):
        _interval(axes, baseline.fields.get(field), position - 0.14, MUTED, "o")
        _interval(axes, tuned.fields.get(field), position + 0.14, GAIN, "D")
    axes.set_yticks(
        range(len(fields)), [plot_label(field) for field in fields], fontproperties=_font(8.5), parse_math=False
    )
    axes.set_ylim(max(1, len(fields)) - 0.5, -0.5)
    axes.set_xlim(*_LIMITS)
    axes.set_xlabel("mean score with its 95% interval", color=MUTED, fontsize=9)
    axes.plot([], [], "o", color=MUTED, markersize=5, label="baseline")
    axes.plot([], [], "D", color=GAIN, markersize=5, label="tuned")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=8, labelcolor=INK)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    return figure


def candidates_over_time(candidates: Sequence[Candidate]) -> Figure:
    """Every candidate's validation score in the order they were tried, and the best so far."""
    figure = Figure(figsize=(5.4, 2.8), layout="constrained")
    axes = figure.add_subplot()
    _style(axes)
    scored = [(step, each.score) for step, each in enumerate(candidates, start=1) if each.score is not None]
    best: list[float] = []
    for _, score in scored:
        best.append(max(score, best[-1]) if best else score)
    if scored:
        steps = [step for step, _ in scored]
        axes.step(steps, best, where="post", color=GAIN, linewidth=1.6, label="best so far")
        axes.plot(steps, [score for _, score in scored], "o", color=MUTED, markersize=5, label="candidate")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=8, labelcolor=INK)
    else:
        _nothing(axes, "no candidate was scored")
    axes.set_xlim(0.5, len(candidates) + 0.5)
    axes.set_ylim(*_LIMITS)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    axes.set_xlabel("candidate", color=MUTED, fontsize=9)
    axes.set_ylabel("validation score", color=MUTED, fontsize=9)
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    return figure


def png(figure: Figure) -> bytes:
    """The figure on white, 160 dots per inch; the same figure gives the same bytes."""
    canvas = FigureCanvasAgg(figure)
    content = io.BytesIO()
    canvas.print_figure(content, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    return content.getvalue()


def svg(figure: Figure) -> str:
    """The figure as a stand-alone drawing without background, in the reader's light or dark colours.

    Texts become outlines and matplotlib's comments, which repeat them, go: nothing a paper says is in it.
    """
    canvas = FigureCanvasSVG(figure)
    content = io.StringIO()
    canvas.print_figure(content, format="svg", facecolor="none", metadata={"Date": None, "Creator": None})
    drawing = content.getvalue()
    drawing = re.sub("<!--.*?-->", "", drawing[drawing.index("<svg") :], flags=re.DOTALL)
    names = {colour: f"--c{number}" for number, colour in enumerate(DARK)}
    drawing = re.sub("|".join(names), lambda found: f"var({names[found.group()]})", drawing)
    light = ";".join(f"{name}:{colour}" for colour, name in names.items())
    dark = ";".join(f"{name}:{DARK[colour]}" for colour, name in names.items())
    style = f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    return drawing.replace(">", f">{style}", 1)


def plot_label(text: str, length: int = _LABEL_LENGTH) -> str:
    """Text that fits beside a plot: one line, shortened in the middle, characters the font lacks as a question mark.

    >>> plot_label("conditions.temperature")
    'conditions.temperature'
    >>> plot_label("a" * 50, 9)
    'aaaa…aaaa'
    """
    known = _known_characters()
    line = "".join(sign if ord(sign) in known else "?" for sign in " ".join(text.split()))
    if len(line) <= length:
        return line
    half = (length - 1) // 2
    return f"{line[: length - 1 - half]}…{line[-half:]}"


def score_pairs(baseline: Evaluation, tuned: Evaluation) -> list[tuple[Row, Row]]:
    """The rows of the same example on both sides, in the order of the baseline."""
    after = {row.example_id: row for row in tuned.rows}
    return [(row, after[row.example_id]) for row in baseline.rows if row.example_id in after]


def _totals(baseline: Evaluation, tuned: Evaluation) -> list[tuple[float, float]]:
    pairs = ((before.score.value, after.score.value) for before, after in score_pairs(baseline, tuned))
    return [(before, after) for before, after in pairs if before is not None and after is not None]


def _of_field(baseline: Evaluation, tuned: Evaluation, field: str) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for before, after in score_pairs(baseline, tuned):
        parts = parts_of(before.score).get(field), parts_of(after.score).get(field)
        if parts[0] and parts[1] and parts[0].value is not None and parts[1].value is not None:
            points.append((parts[0].value, parts[1].value))
    return points


def _fields(baseline: Evaluation, tuned: Evaluation) -> list[str]:
    return list(dict.fromkeys([*baseline.fields, *tuned.fields]))


def _scatter(axes: Axes, points: Sequence[tuple[float, float]], size: float) -> None:
    axes.set_xlim(*_LIMITS)
    axes.set_ylim(*_LIMITS)
    axes.set_aspect("equal")
    axes.set_xticks([0, 0.5, 1])
    axes.set_yticks([0, 0.5, 1])
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    if not points:
        _nothing(axes, "nothing scored on both sides")
        return
    places = 3 if len(points) <= _MANY else 2
    counts = Counter((round(before, places), round(after, places)) for before, after in points)
    largest = max(counts.values())
    spots = sorted(counts)
    colours = [GAIN if after > before else LOSS if after < before else MUTED for before, after in spots]
    areas = [size * min(counts[spot], 1 + 8 * counts[spot] / largest) for spot in spots]
    axes.scatter(*zip(*spots, strict=True), s=areas, c=colours, alpha=0.6, linewidths=0.8, zorder=2)
    better = sum(after > before for before, after in points)
    worse = sum(after < before for before, after in points)
    font = 9 if size > 30 else 7
    axes.text(0.0, 1.0, f"{better} better", color=GAIN, fontsize=font, va="top", zorder=3)
    axes.text(1.0, 0.0, f"{worse} worse", color=LOSS, fontsize=font, ha="right", zorder=3)


def _interval(axes: Axes, total: Aggregate | None, height: float, colour: str, marker: str) -> None:
    if total is None or total.score is None:
        return
    if total.interval is not None:
        axes.plot(total.interval, [height, height], color=colour, linewidth=1.6, solid_capstyle="round")
    axes.plot([total.score], [height], marker, color=colour, markersize=5)


def _nothing(axes: Axes, why: str) -> None:
    axes.text(0.5, 0.5, why, color=MUTED, fontsize=8, ha="center", va="center", transform=axes.transAxes)


def _style(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=MUTED, labelsize=8, length=3)
    axes.set_axisbelow(True)


def _font(size: float) -> FontProperties:
    font = _FONT.copy()
    font.set_size(size)
    return font


@lru_cache(maxsize=1)
def _known_characters() -> frozenset[int]:
    return frozenset(get_font(findfont(_FONT)).get_charmap())
