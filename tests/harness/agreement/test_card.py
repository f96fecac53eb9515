"""The card: what it says of judges whose faults are known, and of the recorded rounds."""

import os
from pathlib import Path

import pytest

from harness.agreement.card import make_card
from harness.agreement.page import card_page
from harness.agreement.readers import read_lemat
from harness.agreement.rows import CardData, JudgedRow, Rated

CRITERIA = ("a", "b")
REFERENCE = {
    "claude-sonnet-4.6": 0.458,
    "gemini-3-flash": 0.488,
    "qwen3.5-397b-a17b": 0.358,
    "deepseek-v3.2": 0.339,
}


def data(judge, people, *, second=None, groups=4):
    """Rows with one judge called `j`; `judge` and `people` are functions of the row's number."""

    def rated(score):
        return Rated(dict.fromkeys(CRITERIA, score), None, {"a": f"says {score}"})

    rows = [
        JudgedRow(
            str(number),
            f"paper {number % groups}",
            Rated(dict.fromkeys(CRITERIA, people(number)), None, {"a": f"person {number}"}),
            {"j": rated(judge(number))},
            None if second is None else rated(second(number)),
        )
        for number in range(40)
    ]
    return CardData(rows, CRITERIA, (1.0, 5.0))


def spread(number):
    return 1.0 + number % 9 / 2


def test_a_perfect_judge():
    card = make_card("c", data(spread, spread), ["j"]).judges["j"]
    assert (card.overall.spearman, card.overall.kappa, card.overall.mae) == (
        pytest.approx(1.0),
        pytest.approx(1.0),
        0.0,
    )
    assert (card.spread_ratio, card.unreadable) == (pytest.approx(1.0), 0.0)
    assert card.recall_of_failed == (1.0, 15)
    assert card.no_information == []


def test_a_judge_that_always_says_five_has_the_lowest_error_of_none_and_no_information():
    people = lambda number: 1.0 if number < 3 else 5.0  # noqa: E731
    card = make_card("c", data(lambda _: 5.0, people), ["j"])
    judge = card.judges["j"]
    assert judge.overall.mae == pytest.approx(0.3)
    assert (judge.overall.spearman, judge.spread_ratio) == (None, 0.0)
    assert judge.recall_of_failed == (0.0, 3)
    assert list(judge.no_information) == ["a", "b"]
    assert any("carries no information" in note for note in card.notes)


def test_labels_that_are_the_judges_own_are_told():
    people = lambda number: spread(number) if number % 2 else 3.0  # noqa: E731
    card = make_card("c", data(spread, people), ["j"])
    provenance = card.judges["j"].provenance
    assert provenance.copied_rows == pytest.approx(0.6, abs=0.05)
    assert provenance.is_suspect
    assert any("look like the judge's own" in note for note in card.notes)
    assert provenance.independent.n < 40
    assert provenance.independent.spearman is None, "what is left are the rows where people said 3"


def test_a_second_person_is_the_ceiling():
    alone = make_card("c", data(spread, spread), ["j"])
    both = make_card("c", data(spread, spread, second=spread), ["j"])
    assert alone.ceiling is None
    assert any("how far two people would agree is not known" in note for note in alone.notes)
    assert both.ceiling.spearman == pytest.approx(1.0)


def test_the_page_shows_everything_and_runs_nothing():
    hostile = data(spread, spread)
    rows = [JudgedRow(row.id, "<script>alert(1)</script>", row.people, row.judges) for row in hostile.rows]
    page = card_page(make_card("<b>card</b>", CardData(rows, CRITERIA, (1.0, 5.0)), ["j"], resamples=50))
    assert "<script" not in page
    assert "&lt;b&gt;card&lt;/b&gt;" in page
    assert page.count('<img src="data:image/svg+xml;base64,') == 3


def _recorded(name):
    folder = os.environ.get("HARNESS_DATA")
    if not folder:
        pytest.skip("HARNESS_DATA names no folder with the recorded rounds")
    return read_lemat(Path(folder) / name, "paper_id")


def test_the_second_round_gives_the_reference_figures():
    rows = _recorded("lemat_multi_judge_human.jsonl")
    card = make_card("second", rows, rows.judges)
    assert (len(rows.rows), len({row.group for row in rows.rows})) == (57, 13)
    found = {name: judge.overall.spearman for name, judge in card.judges.items()}
    assert found == {name: pytest.approx(value, abs=0.005) for name, value in REFERENCE.items()}
    assert card.mean_of_judges.spearman == pytest.approx(0.486, abs=0.005)
    assert "format_compliance" in card.judges["gemini-3-flash"].no_information
    errors = {name: judge.criteria["format_compliance"].mae for name, judge in card.judges.items()}
    assert min(errors, key=errors.get) == "gemini-3-flash", "no information, and the lowest error"
    for judge in card.judges.values():
        for cell in (judge.overall, judge.of_criteria, *judge.criteria.values()):
            defined = [
                name
                for name in ("spearman", "pearson", "kappa", "icc2", "mae", "bias")
                if getattr(cell, name) is not None
            ]
            assert {"mae", "bias"} <= set(cell.interval) <= set(defined)
    assert all({"spearman", "kappa", "icc2"} <= set(judge.overall.interval) for judge in card.judges.values())


def test_the_first_round_has_copied_labels():
    rows = _recorded("lemat_judge_human.jsonl")
    card = make_card("first", rows, rows.judges)
    provenance = card.judges["judge"].provenance
    assert provenance.is_suspect
    assert provenance.same_texts > 0.4
    assert provenance.independent.n < len(rows.rows) / 2
    assert sum(rows.dropped.values()) + len(rows.rows) == 63
