"""Readers of judged extractions: lenient, and every repair and drop counted."""

import json

import pytest

from harness.agreement.readers import read_lemat, read_table
from harness.errors import UsageError


def write(tmp_path, name, *rows):
    file = tmp_path / name
    file.write_text("\n".join(json.dumps(row) for row in rows) if name.endswith("jsonl") else "\n".join(rows))
    return file


def lemat(human, judge, **more):
    return {
        "paper_id": "p",
        "match": "exact",
        "flags": [],
        "human": {"scores": human},
        "judges": {"j": {"scores": judge}},
        **more,
    }


def test_what_is_mended_and_left_out_is_counted(tmp_path):
    file = write(
        tmp_path,
        "rows.jsonl",
        lemat({"a": "4", "b": None}, {"a": 4.75, "b": 0.0}),
        lemat({"a": 4, "b": 4}, {"a": "good", "b": 5}, match="fuzzy"),
        lemat({"a": 4, "b": 4}, {"a": "good", "b": 5}, flags=["human_scores_identical_for_all_extractors"]),
        {"paper_id": "p", "match": "exact", "human": None, "judges": {"j": {}}},
        {"paper_id": "p", "match": "exact", "human": {"scores": {"a": 1}}, "judges": None},
    )
    data = read_lemat(file, None)
    (row,) = data.rows
    assert row.people.scores == {"a": 4.0, "b": None}
    assert row.judges["j"].scores == {"a": 4.75, "b": None}
    assert row.judges["j"].unreadable == ["b"]
    assert data.dropped == {
        "paired by guess (fuzzy)": 1,
        "the person gave every extractor the same scores": 1,
        "no person's evaluation": 1,
        "no judge's evaluation": 1,
    }
    assert data.repaired == {
        "human: number as text": 1,
        "human: null taken for not applicable": 1,
        "judge: kept between the half points": 1,
        "judge: 0 is off the scale": 1,
    }


def test_an_overall_score_that_was_never_worked_out_is_none(tmp_path):
    judged = {"scores": {"a": 4}, "overall": 0.0}
    data = read_lemat(write(tmp_path, "rows.jsonl", lemat({"a": 4}, {}, judges={"j": judged})), None)
    assert (data.rows[0].judges["j"].overall, data.rows[0].judges["j"].mean) == (None, 4.0)
    assert data.repaired == {"judge: overall score 0 is off the scale": 1}


def test_a_table_of_ones_own(tmp_path):
    file = write(
        tmp_path,
        "rows.csv",
        "id,paper,human.vendor,human.total,strict.vendor,strict.total,human2.vendor,text",
        "1,x,5,4,4,4,5,a bill",
        "2,x,1,2,3,,1,another",
        "3,y,3,3,n/a,3,,third",
    )
    data = read_table(file, "paper")
    assert (data.criteria, data.judges, data.scale) == (["vendor", "total"], ["strict"], (1.0, 5.0))
    assert [row.group for row in data.rows] == ["x", "x", "y"]
    assert data.rows[0].second.scores == {"vendor": 5.0}
    assert data.rows[2].judges["strict"].scores == {"vendor": None, "total": 3.0}
    assert data.rows[2].judges["strict"].unreadable == ["vendor"]
    assert data.repaired == {"strict: no number": 1}
    assert data.rows[0].fields["text"] == "a bill"


@pytest.mark.parametrize(
    ("rows", "group", "sentence"),
    [
        (
            ["id,judge.a", "1,3"],
            None,
            r"people's scores stand in columns human\.CRITERION; the columns are id, judge\.a",
        ),
        (["id,human.a", "1,"], None, "people.s scores stand in columns human"),
        (["id,human.a,paper", "1,3,x"], "papr", "it has no 'papr' to group by; did you mean 'paper'"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(tmp_path, rows, group, sentence):
    with pytest.raises(UsageError, match=sentence):
        read_table(write(tmp_path, "rows.csv", *rows), group)


def test_a_file_of_another_kind_is_told(tmp_path):
    with pytest.raises(UsageError, match="a row of the reader lemat has human and judge or judges"):
        read_lemat(write(tmp_path, "rows.jsonl", {"id": 1, "text": "x"}), None)
