"""What people read at the end of `harness agree`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.decimals import fixed
from harness.terminal import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Document = Mapping[str, Any]

_SHOWN = (("kappa", "kappa"), ("icc2", "ICC2"), ("mae", "error"), ("bias", "bias"))


def card_summary(document: Document) -> list[RenderableType]:
    """The judges beside each other, what has to be said about them, and where the rest is."""
    rows, groups = document["rows"], document["groups"]
    parts: list[RenderableType] = [
        f"{printable(document['name'])}: {rows} extractions of {groups} groups",
        _table(document),
    ]
    live = [(name, card["live"]) for name, card in document["judges"].items() if "live" in card]
    for name, known in live:
        parts += [printable(sentence) for sentence in _live_sentences(name, known)]
    for reason, count in document["dropped"].items():
        parts.append(f"left out: {count} rows, {printable(reason)}")
    for what, count in document["repaired"].items():
        parts.append(f"mended: {printable(what)} ({count})")
    parts += [f"note: {printable(note)}" for note in document["notes"]]
    parts += ["", f"page  {document['page']}", f"run   {document['run_id']}", "", "Look at it:  harness ui"]
    return parts


def _table(document: Document) -> Table:
    """The overall scores; Spearman with its interval, since a terminal is narrow: the page has all of them."""
    from rich.box import HORIZONTALS
    from rich.table import Table

    table = Table(box=HORIZONTALS, pad_edge=True, header_style="")
    table.add_column("overall score", overflow="fold")
    table.add_column("Spearman [95%]", no_wrap=True)
    for _, header in _SHOWN:
        table.add_column(header, no_wrap=True, justify="right")
    table.add_column("spread", justify="right")
    table.add_column("n", justify="right")
    for name, card in document["judges"].items():
        table.add_row(
            *_cells(printable(name), card["overall"]), _number(card["spread_ratio"]), str(card["overall"]["n"])
        )
    for name, key in (("mean of the judges", "mean_of_judges"), ("a second person", "human_ceiling")):
        if document[key] is not None:
            table.add_row(*_cells(name, document[key]), "-", str(document[key]["n"]))
    return table


def _cells(name: str, cell: Document) -> Sequence[str]:
    ends = cell["interval"].get("spearman")
    told = _number(cell["spearman"])
    told = told if ends is None else f"{told} [{_number(ends[0])}, {_number(ends[1])}]"
    return [name, told, *(_number(cell[key]) for key, _ in _SHOWN)]


def _number(value: float | None) -> str:
    return "-" if value is None else fixed(value, 2)


def _live_sentences(name: str, known: Document) -> list[str]:
    told: list[str] = []
    if known["flips"] is not None:
        told.append(
            f"{name}: asked {known['repeats']} times, {known['flips']:.0%} of its single scores changed; the mean has "
            f"a standard deviation of {_number(known['noise_floor'])}"
        )
    battery = known.get("attack_battery")
    if battery:
        rewarded = [attack for attack, found in battery["attacks"].items() if found["gained"]]
        said = ", ".join(rewarded) if rewarded else "none"
        told.append(f"{name}: attacks on {battery['rows']} extractions that it rewards: {said}")
    cost = "unknown" if known["usd"] is None else f"{known['usd']:.4f} USD"
    told.append(
        f"{name}: {known['calls']} calls and {known['replayed']} answers from the store for {known['judgements']} "
        f"judgements, {known['input_tokens']} + {known['output_tokens']} tokens, {cost}"
    )
    return told
