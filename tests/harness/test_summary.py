"""What people read: the verdict in words, every mean with its count, unknown prices unknown."""

import io

import pytest
from rich.console import Console

from harness.summary import counts_summary, evaluation_summary, listing_table, plan_summary, run_summary


def aggregate(score=0.5, n_scored=30, n_total=30, lower_bound=0.5, interval=(0.4, 0.6), readable=None):
    return {
        "score": score,
        "n_scored": n_scored,
        "n_total": n_total,
        "lower_bound": lower_bound,
        "interval": list(interval) if interval else None,
        "readable": n_total if readable is None else readable,
    }


def difference(mean=0.2, interval=(0.1, 0.3), smallest_detectable=0.15, n_pairs=30, n_groups=30):
    return {
        "mean": mean,
        "interval": list(interval) if interval else None,
        "smallest_detectable": smallest_detectable,
        "n_pairs": n_pairs,
        "n_groups": n_groups,
    }


def usage(calls=60, cached=4, tokens=(1234, 567), usd=0.0123, replayed_usd=0.002, estimated=0, **failures):
    return {
        "calls": calls,
        "cached": cached,
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "usd": usd,
        "estimated": estimated,
        "replayed_input_tokens": 80,
        "replayed_output_tokens": 20,
        "replayed_usd": replayed_usd,
        "failures": failures,
    }


def result(**changes):
    return {
        "run_id": "abc123",
        "experiment": "invoices",
        "verdict": "improved",
        "baseline": aggregate(0.5),
        "tuned": aggregate(0.7, interval=(0.62, 0.78)),
        "delta": difference(),
        "audit": {},
        "ledger": {"task": usage()},
        "bundle": "mlruns/runs/x/bundle",
        "report": "mlruns/runs/x/report.html",
        "splits": {"train": 10, "validation": 5, "test": 30},
        "test_reads": 1,
        "fingerprint": "f" * 64,
        "seconds": 12.5,
        "notes": [],
        "reason": "the whole 95% interval of the difference lies above zero",
        "replayed": False,
        **changes,
    }


def shown(parts, width=100):
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str))
    return console.file.getvalue()


def rows(text):
    return [line.split() for line in text.splitlines() if line.strip()]


# --- run -------------------------------------------------------------------------------------------------------


def test_a_run_shows_verdict_scores_costs_and_what_to_do_next():
    text = shown(run_summary(result(notes=["models.judge is declared, but nothing calls it"])))
    lines = rows(text)
    assert text.startswith("invoices: improved (the whole 95% interval of the difference lies above zero)")
    assert ["baseline", "0.500", "[0.400,", "0.600]", "30/30"] in lines
    assert ["tuned", "0.700", "[0.620,", "0.780]", "30/30"] in lines
    assert ["difference", "+0.200", "[+0.100,", "+0.300]", "30", "pairs"] in lines
    assert "The smallest difference this test could find is about 0.150." in text
    assert ["task", "60", "1,234", "567", "$0.012", "4", "$0.0020"] in lines
    assert "note: models.judge is declared, but nothing calls it" in text
    assert ["report", "mlruns/runs/x/report.html"] in lines
    assert ["bundle", "mlruns/runs/x/bundle"] in lines
    assert "Look at it:  harness ui\n" in text
    assert "Use it:      harness predict mlruns/runs/x/bundle INPUT OUTPUT\n" in text
    assert "--candidate baseline" not in text
    assert "has been read" not in text


def test_an_earlier_result_is_called_one():
    assert shown(run_summary(result(replayed=True))).startswith("Nothing that could change the result has changed")
    assert "earlier result" not in shown(run_summary(result()))


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ("no detectable change", "the 95% interval of the difference includes zero"),
        ("worse", "the whole 95% interval of the difference lies below zero"),
        ("not comparable", "no example was scored for both programs"),
    ],
)
def test_without_a_gain_the_way_back_is_shown(verdict, reason):
    text = shown(run_summary(result(verdict=verdict, reason=reason)))
    assert text.startswith(f"invoices: {verdict} ({reason})")
    assert "harness export abc123 DIR --candidate baseline" in text


def test_nothing_comparable_has_dashes_not_numbers():
    nothing = aggregate(None, 0, 30, 0.0, None)
    text = shown(run_summary(result(verdict="not comparable", baseline=nothing, tuned=nothing, delta=None)))
    assert ["baseline", "-", "-", "0/30"] in rows(text)
    assert ["difference", "-", "-", "0", "pairs"] in rows(text)
    assert "smallest difference" not in text


def test_too_few_examples_for_an_interval_are_said():
    delta = difference(interval=None, smallest_detectable=None, n_pairs=1, n_groups=1)
    reason = "too few independent examples were scored for an interval"
    text = shown(run_summary(result(verdict="no detectable change", reason=reason, delta=delta)))
    assert f"({reason})" in text
    assert ["difference", "+0.200", "-", "1", "pairs"] in rows(text)


def test_what_was_not_scored_is_said_with_the_lower_bound():
    text = shown(run_summary(result(tuned=aggregate(0.7, 27, 30, 0.63))))
    assert "tuned: 3 not scored; 0.630 if each of them counted as 0." in text
    assert "27/30" in text
    assert "baseline:" not in text


def test_how_many_answers_could_be_read_is_said_of_both_sides():
    text = shown(run_summary(result(tuned=aggregate(0.7, 27, 30, 0.63, readable=28))))
    assert "Answers that could be read: baseline 30 of 30, tuned 28 of 30." in text
    assert "could be read" not in shown(run_summary(result()))


def test_groups_and_repeated_reading_are_said():
    text = shown(run_summary(result(delta=difference(n_groups=12), test_reads=4)))
    assert "30 pairs in 12 groups" in text
    assert "This test split has been read 4 times; every look makes luck more likely." in text


def test_audit_metrics_stand_beside_the_metric():
    change = {"baseline": aggregate(0.6), "tuned": aggregate(0.5), "delta": difference(-0.1, (-0.2, 0.0))}
    lines = rows(shown(run_summary(result(audit={"grounded": change}))))
    assert ["audit", "grounded:", "tuned", "0.500", "[0.400,", "0.600]", "30/30"] in lines
    assert ["audit", "grounded:", "difference", "-0.100", "[-0.200,", "+0.000]", "30", "pairs"] in lines


def test_an_unknown_price_is_unknown_and_so_is_what_the_store_would_have_cost():
    text = shown(run_summary(result(ledger={"judge": usage(usd=None, replayed_usd=None)})))
    assert ["judge", "60", "1,234", "567", "unknown", "4", "unknown"] in rows(text)
    assert ["judge", "60", "1,234", "567", "unknown", "0", "-"] in rows(
        shown(run_summary(result(ledger={"judge": usage(cached=0, usd=None, replayed_usd=0.0)})))
    )


def test_the_roles_add_up():
    ledger = {"task": usage(usd=0.5), "teacher": usage(1, 0, (10, 5), 0.25), "judge": usage(2, 1, (1, 1), 0.25)}
    assert ["all", "63", "1,245", "573", "$1.00", "5", "$0.0040"] in rows(shown(run_summary(result(ledger=ledger))))
    ledger["judge"] = usage(2, 1, (1, 1), None)
    assert ["all", "63", "1,245", "573", "unknown", "5", "$0.0040"] in rows(shown(run_summary(result(ledger=ledger))))


def test_faults_on_the_way_and_guessed_costs_are_told():
    text = shown(run_summary(result(ledger={"task": usage(rate_limit=1, server_error=2, estimated=3)})))
    assert "task: faults on the way: 2 server_error, 1 rate_limit\n" in text
    assert "task: 3 answers did not say what they used and count as the average\n" in text
    assert "on the way" not in shown(run_summary(result()))


def test_text_from_data_cannot_steer_the_terminal():
    text = shown(run_summary(result(experiment="x\x1b[2J", notes=["[red]no markup[/red] \x1b]0;title\x07"])))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]no markup[/red]" in text


def test_paths_are_never_cut_even_on_a_narrow_terminal():
    folder = "mlruns/runs/" + "x" * 70
    text = shown(run_summary(result(bundle=folder)), width=60)
    assert f"harness predict {folder} INPUT OUTPUT" in text


# --- the other commands ----------------------------------------------------------------------------------------


def test_a_plan_shows_splits_roles_arguments_and_calls():
    document = {
        "experiment": "invoices",
        "splits": {"train": 4, "validation": 2, "test": 4},
        "roles": {"task": "local/smollm2-135m", "teacher": "openai/big"},
        "optimizer": {"bootstrap_few_shot": {"max_rounds": 1, "metric_threshold": 0.8}},
        "metric": "record (0123)",
        "audit": ["grounded"],
        "planned_calls": {"task": 1808, "teacher": 4},
        "reserved_calls": 4,
        "estimate": {
            "input_tokens_per_call": 1200,
            "output_tokens_per_call": 80,
            "usd": {"task": 0.0, "teacher": 0.0051, "prompt": None},
            "how": "one token per 4 characters",
        },
        "notes": ["one record does not fit"],
    }
    text = shown(plan_summary(document), width=200)
    assert text.startswith("invoices: this can run\n")
    for words in (
        "train 4, validation 2, test 4",
        "bootstrap_few_shot max_rounds=1, metric_threshold=0.8",
        "record (0123)",
        "grounded",
        "local/smollm2-135m",
        "openai/big",
        "at most 1,808;",
        "4 of them for the last measurement on test",
        "about $0.0051 for all planned calls (1,200 + 80 tokens a call: one token per 4 characters)",
        "unknown, for no price is known",
        "at most 4;",
        "note: one record does not fit",
    ):
        assert words in text
    assert "task cost" not in text
    assert "audit" not in shown(plan_summary({**document, "audit": [], "optimizer": {"none": {}}}))


def test_an_evaluation_shows_the_total_every_field_and_every_audit():
    document = {
        **aggregate(0.5, 28, 30, 0.467),
        "experiment": "invoices",
        "program": "baseline",
        "split": "test",
        "fields": {"total": aggregate(1.0)},
        "audit": {"grounded": aggregate(0.25)},
        "test_reads": 2,
        "ledger": {"task": usage()},
        "notes": ["a note"],
    }
    text = shown(evaluation_summary(document))
    assert text.startswith("invoices: baseline on test\n")
    assert ["overall", "0.500", "[0.400,", "0.600]", "28/30"] in rows(text)
    assert ["total", "1.000", "[0.400,", "0.600]", "30/30"] in rows(text)
    assert ["audit", "grounded", "0.250", "[0.400,", "0.600]", "30/30"] in rows(text)
    assert "baseline: 2 not scored; 0.467 if each of them counted as 0." in text
    assert "read 2 times" in text
    assert "note: a note" in text


def test_a_listing_has_a_line_each():
    text = shown([listing_table([("exact", "equal or not"), ("numeric", "as numbers")])])
    assert rows(text) == [["exact", "equal", "or", "not"], ["numeric", "as", "numbers"]]


def test_counts_are_one_per_line():
    assert counts_summary({"already_there": 2, "failed": 0, "output": "a\x1b.jsonl", "nothing": None}) == [
        "already there: 2",
        "failed: 0",
        "output: a?.jsonl",
    ]
