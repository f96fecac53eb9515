"""The pictures of a card: judge against people, bias by criterion, where the judge is off paper by paper."""

from __future__ import annotations

import math
from collections import Counter

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.agreement.card import Card
from harness.agreement.rows import JudgedRow
from harness.tracking.plots import FAINT, GAIN, INK, LOSS, MUTED, plot_label

MAX_GROUPS = 30
MAX_JUDGES = 6


def judge_against_people(card: Card, name: str) -> Figure:
    """Every row as a point, people's score to the right and the judge's upwards; on the diagonal they agree.

    Rows with the same two scores share a point, whose area grows with their number.
    """
    figure = Figure(figsize=(4.4, 4.3), layout="constrained")
    axes = _axes(figure)
    low, high = card.data.scale
    room = 0.05 * (high - low)
    axes.plot([low, high], [low, high], color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    counts = Counter((round(people, 3), round(judged, 3)) for people, judged in _pairs(card, name))
    for (people, judged), count in counts.items():
        axes.scatter(people, judged, s=26 * math.sqrt(count), color=GAIN if judged >= people else LOSS, alpha=0.75)
    axes.set(xlim=(low - room, high + room), ylim=(low - room, high + room), aspect="equal")
    axes.set_xlabel("people", color=MUTED, fontsize=9)
    axes.set_ylabel(plot_label(name), color=MUTED, fontsize=9, parse_math=False)
    return figure


def bias_by_criterion(card: Card) -> Figure:
    """Mean of judge minus people per criterion with its interval, for at most six judges."""
    criteria = ["overall", *card.data.criteria]
    judges = list(card.judges)[:MAX_JUDGES]
    figure = Figure(figsize=(6.0, 0.9 + 0.16 * len(criteria) * max(2, len(judges))), layout="constrained")
    axes = _axes(figure)
    colours = (GAIN, LOSS, "#7a4fa3", "#a67c00", MUTED, "#0b6e99")
    for position, name in enumerate(judges):
        shift = (position - (len(judges) - 1) / 2) * 0.7 / max(1, len(judges))
        for row, criterion in enumerate(criteria):
            judge = card.judges[name]
            cell = judge.overall if criterion == "overall" else judge.criteria[criterion]
            if cell.bias is None:
                continue
            if "bias" in cell.interval:
                axes.plot(cell.interval["bias"], [row + shift] * 2, color=colours[position], linewidth=1.4)
            axes.plot([cell.bias], [row + shift], "o", color=colours[position], markersize=4)
        axes.plot([], [], "o", color=colours[position], markersize=5, label=plot_label(name, 24))
    axes.axvline(0.0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(criteria)), [plot_label(criterion) for criterion in criteria])
    axes.set_ylim(len(criteria) - 0.4, -0.6)
    axes.set_xlabel("judge minus people, with its 95% interval", color=MUTED, fontsize=9)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, fontsize=7, labelcolor=INK)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    return figure


def residuals_by_group(card: Card, name: str) -> Figure:
    """Judge minus people of every row, group by group, the most overrated group first, at most thirty groups."""
    groups: dict[str, list[float]] = {}
    for row in card.data.rows:
        pair = _pair(row, name)
        if pair is not None:
            groups.setdefault(row.group, []).append(pair[1] - pair[0])
    ordered = sorted(groups.items(), key=lambda item: -math.fsum(item[1]) / len(item[1]))[:MAX_GROUPS]
    figure = Figure(figsize=(5.4, 0.9 + 0.24 * max(2, len(ordered))), layout="constrained")
    axes = _axes(figure)
    for position, (_, residuals) in enumerate(ordered):
        axes.plot(residuals, [position] * len(residuals), "o", color=MUTED, markersize=4, alpha=0.6)
        axes.plot([math.fsum(residuals) / len(residuals)], [position], "D", color=GAIN, markersize=5)
    axes.axvline(0.0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(ordered)), [plot_label(group, 24) for group, _ in ordered], parse_math=False)
    axes.set_ylim(max(1, len(ordered)) - 0.5, -0.5)
    axes.set_xlabel(
        f"{plot_label(name, 24)} minus people; diamonds are means", color=MUTED, fontsize=9, parse_math=False
    )
    return figure


def _axes(figure: Figure) -> Axes:
    axes = figure.add_subplot()
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=MUTED, labelsize=8, length=3)
    axes.set_axisbelow(True)
    return axes


def _pairs(card: Card, name: str) -> list[tuple[float, float]]:
    return [pair for row in card.data.rows if (pair := _pair(row, name)) is not None]


def _pair(row: JudgedRow, name: str) -> tuple[float, float] | None:
    rated = row.judges.get(name)
    people = row.people.mean
    judged = None if rated is None else rated.whole
    return None if people is None or judged is None else (people, judged)
