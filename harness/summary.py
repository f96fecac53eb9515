"""What people read at the end of a command: the JSON documents as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.costs import TOTAL, dollars, fault_words, with_total
from harness.decimals import fixed
from harness.results import RoleUsage
from harness.terminal import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Document = Mapping[str, Any]

_MORE_OR_LESS = "one more for each answer that cannot be read, none for answers in the store"
_COLOURS = {"improved": "green", "worse": "red", "no detectable change": "yellow", "not comparable": "red"}


def run_summary(document: Document) -> list[RenderableType]:
    """The verdict of `harness run`, with everything it rests on and what to do next."""
    return [
        *_verdict(document),
        _scores(document),
        *_caveats(document),
        *_costs(document["ledger"]),
        *_notes(document["notes"]),
        *_next_steps(document),
    ]


def plan_summary(document: Document) -> list[RenderableType]:
    """What `harness check` found: nothing wrong, and what a run would do."""
    splits = ", ".join(f"{name} {size}" for name, size in document["splits"].items())
    ((optimizer, arguments),) = document["optimizer"].items()
    table = _table("", "")
    table.add_row("splits", splits)
    table.add_row("optimizer", _clean(f"{optimizer} {_arguments(arguments)}".strip()))
    table.add_row("metric", _clean(document["metric"]))
    if document["audit"]:
        table.add_row("audit", _clean(", ".join(document["audit"])))
    for role, model in document["roles"].items():
        table.add_row(f"{role} model", _clean(model))
    for role, calls in document["planned_calls"].items():
        table.add_row(f"{role} calls", f"at most {calls:,}; {_MORE_OR_LESS}")
    table.add_row("kept back", f"{document['reserved_calls']:,} of them for the last measurement on test")
    for role, usd in document["estimate"]["usd"].items():
        if usd != 0:
            table.add_row(f"{role} cost", _estimate(usd, document["estimate"]))
    outcome = "this can run" if document["notes"] else "nothing wrong"
    return [f"{_clean(document['experiment'])}: {outcome}", table, *_notes(document["notes"])]


def _estimate(usd: float | None, estimate: Document) -> str:
    tokens = f"{estimate['input_tokens_per_call']:,} + {estimate['output_tokens_per_call']:,} tokens a call"
    amount = "unknown, for no price is known" if usd is None else f"about {dollars(usd)} for all planned calls"
    return f"{amount} ({tokens}: {estimate['how']})"


def evaluation_summary(document: Document) -> list[RenderableType]:
    """The score of `harness evaluate`, in total, by field and by audit metric."""
    table = _table("", "score", "95% interval", "scored")
    _aggregate_row(table, "overall", document)
    for path, aggregate in document["fields"].items():
        _aggregate_row(table, f"  {path}", aggregate)
    for name, aggregate in document["audit"].items():
        _aggregate_row(table, f"audit {name}", aggregate)
    return [
        _clean(f"{document['experiment']}: {document['program']} on {document['split']}"),
        table,
        *_unscored_sentence(document["program"], document),
        *_reads_sentence(document),
        *_costs(document["ledger"]),
        *_notes(document["notes"]),
    ]


def listing_table(rows: Sequence[tuple[str, str]]) -> Table:
    """Names and what they are, one per line."""
    table = _table("", "")
    for name, description in rows:
        table.add_row(_clean(name), _clean(description))
    return table


def counts_summary(document: Document) -> list[str]:
    """A flat document, one `key: value` per line, its notes last."""
    flat = {key: value for key, value in document.items() if value is not None and key != "notes"}
    lines = [f"{key.replace('_', ' ')}: {_clean(str(value))}" for key, value in flat.items()]
    return [*lines, *_notes(document.get("notes", ()))]


def _verdict(document: Document) -> Iterator[RenderableType]:
    from rich.text import Text

    if document["replayed"]:
        yield "Nothing that could change the result has changed: this is the earlier result. --force measures anew."
    told = f"{_clean(document['experiment'])}: {document['verdict']} ({document['reason']})"
    yield Text(told, style=f"bold {_COLOURS[document['verdict']]}")


def _scores(document: Document) -> Table:
    table = _table("on test", "score", "95% interval", "scored")
    _aggregate_row(table, "baseline", document["baseline"])
    _aggregate_row(table, "tuned", document["tuned"])
    _difference_row(table, "difference", document["delta"])
    for name, change in document["audit"].items():
        _aggregate_row(table, f"audit {name}: baseline", change["baseline"])
        _aggregate_row(table, f"audit {name}: tuned", change["tuned"])
        _difference_row(table, f"audit {name}: difference", change["delta"])
    return table


def _caveats(document: Document) -> Iterator[str]:
    delta = document["delta"]
    if delta is not None and delta["smallest_detectable"] is not None:
        yield f"The smallest difference this test could find is about {fixed(delta['smallest_detectable'], 3)}."
    yield from _readable_sentence(document)
    for name in ("baseline", "tuned"):
        yield from _unscored_sentence(name, document[name])
    yield from _reads_sentence(document)


def _readable_sentence(document: Document) -> Iterator[str]:
    sides = {name: document[name] for name in ("baseline", "tuned")}
    if any(side["readable"] < side["n_total"] for side in sides.values()):
        counts = ", ".join(f"{name} {side['readable']} of {side['n_total']}" for name, side in sides.items())
        yield f"Answers that could be read: {counts}."


def _reads_sentence(document: Document) -> Iterator[str]:
    if document["test_reads"] > 1:
        yield f"This test split has been read {document['test_reads']} times; every look makes luck more likely."


def _unscored_sentence(name: str, aggregate: Document) -> Iterator[str]:
    missing = aggregate["n_total"] - aggregate["n_scored"]
    if missing:
        yield f"{name}: {missing} not scored; {fixed(aggregate['lower_bound'], 3)} if each of them counted as 0."


def _next_steps(document: Document) -> Iterator[RenderableType]:
    table = _table("", "")
    run = document["run_id"]
    table.add_row("report", _clean(document["report"]))
    table.add_row("bundle", _clean(document["bundle"]))
    table.add_row("run", _clean(run))
    yield table
    yield "Look at it:  harness ui"
    yield f"Use it:      harness predict {_clean(document['bundle'])} INPUT OUTPUT"
    if document["verdict"] != "improved":
        yield (
            "No gain was shown; the bundle holds the tuned program all the same. The one before: "
            f"harness export {_clean(run)} DIR --candidate baseline"
        )


def _costs(ledger: Document) -> Iterator[RenderableType]:
    """What each role spent, and apart from it what the store answered; then what went wrong on the way."""
    table = _table("role", "calls", "tokens in", "tokens out", "spent", "from the store", "would have cost")
    roles = with_total({role: RoleUsage(**usage) for role, usage in ledger.items()})
    for role, usage in roles.items():
        table.add_row(
            _clean(role),
            f"{usage.calls:,}",
            f"{usage.input_tokens:,}",
            f"{usage.output_tokens:,}",
            dollars(usage.usd),
            f"{usage.cached:,}",
            dollars(usage.replayed_usd) if usage.cached else "-",
        )
    yield table
    for role, usage in roles.items():
        if usage.failures and role != TOTAL:
            yield f"{_clean(role)}: faults on the way: {_clean(fault_words(usage.failures))}"
        if usage.estimated and role != TOTAL:
            yield f"{_clean(role)}: {usage.estimated} answers did not say what they used and count as the average"


def _notes(notes: Sequence[str]) -> Iterator[str]:
    for note in notes:
        yield f"note: {_clean(note)}"


def _aggregate_row(table: Table, name: str, aggregate: Document) -> None:
    score = "-" if aggregate["score"] is None else fixed(aggregate["score"], 3)
    scored = f"{aggregate['n_scored']}/{aggregate['n_total']}"
    table.add_row(_clean(name), score, _interval(aggregate["interval"]), scored)


def _difference_row(table: Table, name: str, delta: Document | None) -> None:
    if delta is None:
        table.add_row(_clean(name), "-", "-", "0 pairs")
        return
    pairs, groups = delta["n_pairs"], delta["n_groups"]
    count = f"{pairs} pairs" + (f" in {groups} groups" if groups != pairs else "")
    table.add_row(_clean(name), fixed(delta["mean"], 3, signed=True), _interval(delta["interval"], True), count)


def _interval(interval: Sequence[float] | None, signed: bool = False) -> str:
    return "-" if interval is None else "[" + ", ".join(fixed(bound, 3, signed=signed) for bound in interval) + "]"


def _arguments(arguments: Document) -> str:
    return ", ".join(f"{name}={value}" for name, value in arguments.items())


def _table(*headers: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(*headers, box=box.SIMPLE, show_header=any(headers), pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    return table


def _clean(text: str) -> str:
    return printable(str(text))
