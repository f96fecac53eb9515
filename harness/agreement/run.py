"""`harness agree`: a card file to the card, its page and its MLflow run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.agreement import live
from harness.agreement.card import Card, make_card
from harness.agreement.page import card_page
from harness.agreement.plots import bias_by_criterion, judge_against_people, residuals_by_group
from harness.agreement.readers import READERS
from harness.agreement.rows import CardData
from harness.assembly import model_configs
from harness.errors import RunStopped, StopReason, UsageError, nearest
from harness.experiment import ending
from harness.judge_choice import JUDGES, judge_metric
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, build_role_lm, preflight
from harness.progress import Progress, SilentProgress
from harness.results import usage_document
from harness.session import open_store
from harness.spec.card_file import CardSpec
from harness.tracking.names import file_name
from harness.tracking.plots import png
from harness.tracking.tracker import Tracker
from metrics.agreement import STATISTICS
from metrics.judge.metric import JudgeMetric

FOLDER = Path("mlruns") / "cards"


def agree(spec: CardSpec, *, progress: Progress | None = None, endpoints: Endpoints | None = None) -> dict[str, Any]:
    """Make the card a file asks for.

    Args:
        spec: the file.
        progress: told of every judged row.
        endpoints: where models come from; None makes them from the file.

    Returns:
        The `--json` document; see `Card.to_document`. Also `run_id`, `page` and `ledger`.

    Raises:
        UsageError: the file or its data cannot be used.
        RunStopped: a model is gone, or a budget is spent.
    """
    data = READERS[spec.data.reader](spec.resolve(spec.data.path), spec.data.group_by)
    if not data.rows:
        raise UsageError(f"{spec.where('data')}: no row is left to compare; left out: {dict(data.dropped)}")
    recorded = _recorded(spec, data)
    tracked = Tracker.open(Path()).start_run(spec.name, "card", _params(spec), {"kind": "card"})
    try:
        known: dict[str, dict[str, Any]] = {}
        usage: dict[str, Any] = {}
        if spec.judge is not None:
            name = spec.judge.name
            data, known[name], usage = _judged(spec, data, progress or SilentProgress(), endpoints)
            recorded = [*recorded, name]
        card = make_card(spec.name, data, recorded, resamples=spec.resamples, seed=spec.seed, live=known)
        page = _write(card)
        _log(tracked, card, page)
    except BaseException as error:
        tracked.finish(ending(error))
        raise
    tracked.finish("finished")
    return {**card.to_document(), "run_id": tracked.run_id, "page": str(page), "ledger": usage}


def _recorded(spec: CardSpec, data: CardData) -> list[str]:
    wanted = ("all" if spec.judge is None else []) if spec.recorded is None else spec.recorded
    if wanted == "all":
        wanted = data.judges
    for name in wanted:
        if name not in data.judges:
            raise UsageError(f"{spec.where('recorded')}: no judge {name!r} is recorded; {nearest(name, data.judges)}")
    if not wanted and spec.judge is None:
        raise UsageError(f"{spec.where('data')}: it holds no judge's scores, and no live judge is named: judge: ...")
    return list(wanted)


def _judged(
    spec: CardSpec, data: CardData, progress: Progress, endpoints: Endpoints | None
) -> tuple[CardData, dict[str, Any], dict[str, Any]]:
    """The rows with the live judge's evaluations, what is known of it beyond them, and what it cost."""
    metric = _metric(spec)
    _check_criteria(metric, data, spec)
    budget = spec.budget
    with endpoints or Endpoints() as opened:
        store = open_store()
        ledger = Ledger(budget.calls, budget.usd, budget.minutes, max_tokens=budget.tokens)
        try:
            lms = {
                role: build_role_lm(
                    role, config, endpoints=opened, store=store, ledger=ledger, seed=spec.seed, base_dir=spec.folder
                )
                for role, config in model_configs(spec, []).items()
            }
            progress.watch(ledger.usage)
            preflight(lms)
            bound = metric.bind(lms)
            threads = min(lm.engine.provider.concurrency for lm in lms.values())
            judged = live.judge_rows(
                bound, data.rows, repeats=spec.repeats, threads=threads, ledger=ledger, progress=progress
            )
            _refuse_silent(judged, bound)
            known = live.noise(judged, bound) | _cost(ledger.usage(), len(data.rows) * spec.repeats)
            if spec.attacks:
                known["attack_battery"] = live.attack(bound, judged, threads=threads, ledger=ledger)
            spent = ledger.usage()
        finally:
            store.close()
    rows = live.with_judge(judged, spec.judge.name if spec.judge else "", bound)
    return replace(data, rows=rows), known, {role: usage_document(usage) for role, usage in spent.items()}


def _metric(spec: CardSpec) -> JudgeMetric:
    assert spec.judge is not None
    where = f"{spec.where('judge')}: judge {spec.judge.name}"
    if spec.judge.name not in JUDGES:
        raise UsageError(f"{where}: there is no judge of this name; {nearest(spec.judge.name, JUDGES)}")

    def no_gate(_: Any) -> Any:
        raise UsageError(f"{where}: a card measures the judge itself; leave gate out")

    metric = judge_metric(
        spec.judge.name, spec.judge.arguments, spec, where, output_field=None, source=None, gate=no_gate
    )
    assert isinstance(metric, JudgeMetric)
    return metric


def _check_criteria(metric: JudgeMetric, data: CardData, spec: CardSpec) -> None:
    criteria = list(metric.rubric.criteria)
    if not set(criteria) & set(data.criteria) and data.criteria != ["overall"]:
        raise UsageError(
            f"{spec.where('judge')}: the judge scores {', '.join(criteria)}; people scored {', '.join(data.criteria)}"
        )


def _refuse_silent(judged: list[live.Judged], metric: JudgeMetric) -> None:
    silent = [one.scores[0] for one in judged if one.scores[0].value is None]
    if judged and len(silent) == len(judged):
        raise RunStopped(
            StopReason.JUDGE, f"{metric.name} scored none of {len(judged)} rows; the first: {silent[0].error}"
        )


def _cost(spent: Mapping[str, Any], judgements: int) -> dict[str, Any]:
    fresh = [usage for usage in spent.values() if usage.calls]
    paid = [usage.usd for usage in fresh]
    return {
        "judgements": judgements,
        "calls": sum(usage.calls for usage in spent.values()),
        "replayed": sum(usage.cached for usage in spent.values()),
        "input_tokens": sum(usage.input_tokens + usage.replayed_input_tokens for usage in spent.values()),
        "output_tokens": sum(usage.output_tokens + usage.replayed_output_tokens for usage in spent.values()),
        "usd": None if any(usd is None for usd in paid) else sum(usd for usd in paid if usd is not None),
    }


def _params(spec: CardSpec) -> dict[str, Any]:
    return {
        "data": spec.data.path,
        "reader": spec.data.reader,
        "resamples": spec.resamples,
        "repeats": spec.repeats,
        **({} if spec.judge is None else {"judge": spec.judge.name, "judge.arguments": spec.judge.arguments}),
        **{f"models.{role}": model.model for role, model in spec.models.given().items()},
    }


def _write(card: Card) -> Path:
    folder = FOLDER / file_name(card.name)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "card.html"
    page.write_text(card_page(card), encoding="utf-8")
    return page


def _log(tracked: Any, card: Card, page: Path) -> None:
    for name, judge in card.judges.items():
        for statistic in STATISTICS:
            low, high = judge.overall.interval.get(statistic, (None, None))
            tracked.metrics(
                {
                    f"{name}/{statistic}": getattr(judge.overall, statistic),
                    f"{name}/{statistic}_low": low,
                    f"{name}/{statistic}_high": high,
                }
            )
        tracked.metrics({f"{name}/spread_ratio": judge.spread_ratio, f"{name}/unreadable": judge.unreadable})
        tracked.figure(png(judge_against_people(card, name)), f"{file_name(name)}_against_people.png")
        tracked.figure(png(residuals_by_group(card, name)), f"{file_name(name)}_by_group.png")
    tracked.figure(png(bias_by_criterion(card)), "bias_by_criterion.png")
    tracked.table(agreement_rows(card), "agreement.json")
    tracked.file(page)


def agreement_rows(card: Card) -> list[dict[str, Any]]:
    """One row per judge and criterion, for MLflow's table."""
    rows = []
    for name, judge in card.judges.items():
        for criterion, cell in {"overall": judge.overall, **judge.criteria}.items():
            row: dict[str, Any] = {"judge": name, "criterion": criterion, "n": cell.n, "groups": cell.groups}
            for statistic in STATISTICS:
                row[statistic] = getattr(cell, statistic)
                row[f"{statistic} low"], row[f"{statistic} high"] = cell.interval.get(statistic, (None, None))
            rows.append(row)
    return rows
