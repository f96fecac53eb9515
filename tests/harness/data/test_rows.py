import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.data.record import Record
from harness.data.rows import read_records
from harness.errors import UsageError


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode())
    return path


def test_a_row_is_id_inputs_and_expected(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"id": 7, "text": "x", "doi": "10.1/a", "expected": {"n": 1}}\n')
    assert read_records(path, {}) == [
        Record("7", {"text": "x", "doi": "10.1/a"}, {"n": 1}, None, "a.jsonl line 1"),
    ]


def test_without_an_id_the_line_number_is_the_id(tmp_path):
    path = write(tmp_path, "a.csv", 'id,text\n,"one\ntwo"\n b ,three\n')
    assert [(record.id, record.where) for record in read_records(path, {})] == [
        ("2", "a.csv line 2"),
        ("b", "a.csv line 4"),
    ]


@pytest.mark.parametrize(("identity", "text"), [("007", "007"), (7, "7"), (7.0, "7"), ("  ", "1"), (None, "1")])
def test_ids_become_text(tmp_path, identity, text):
    path = write(tmp_path, "a.json", json.dumps([{"id": identity, "x": 1}]))
    assert read_records(path, {})[0].id == text


@pytest.mark.parametrize("identity", [True, 7.5, ["a"], {"a": 1}])
def test_an_id_that_is_none_is_refused(tmp_path, identity):
    path = write(tmp_path, "a.json", json.dumps([{"id": identity, "x": 1}]))
    with pytest.raises(UsageError, match=r"a.json record 1: the id is"):
        read_records(path, {})


def test_dotted_columns_build_the_record(tmp_path):
    path = write(
        tmp_path,
        "a.csv",
        "text,expected.vendor,expected.total,expected.items[0].name,expected.items[0].price,expected.items[2].name,"
        "expected.tags\n"
        'x,Acme,12.5,bolt,3,nut,"[""a"", 1]"\n'
        "y,Brown,7,,,nut,\n"
        "z,,,,,,\n",
    )
    records = read_records(path, {})
    assert [record.expected for record in records] == [
        {
            "vendor": "Acme",
            "total": 12.5,
            "items": [{"name": "bolt", "price": 3}, {"name": "nut"}],
            "tags": ["a", 1],
        },
        {"vendor": "Brown", "total": 7, "items": [{"name": "nut"}]},
        None,
    ]
    assert [dict(record.fields) for record in records] == [{"text": "x"}, {"text": "y"}, {"text": "z"}]


def test_dotted_columns_may_build_a_list_at_the_top(tmp_path):
    path = write(tmp_path, "a.csv", "text,expected[0].n,expected[1].n\nx,1,2\n")
    assert read_records(path, {})[0].expected == [{"n": 1}, {"n": 2}]


def test_dotted_keys_build_the_record_in_other_formats_and_keep_their_types(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"text": "x", "expected.total": "12.50", "expected.paid": null}\n')
    assert read_records(path, {})[0].expected == {"total": "12.50"}


@pytest.mark.parametrize("quoted", ['{"total": 12.5}', ' {"total": 12.5}\n'])
def test_expected_may_be_text_that_holds_an_object(tmp_path, quoted):
    path = write(tmp_path, "a.json", json.dumps([{"text": "x", "expected": quoted}]))
    assert read_records(path, {})[0].expected == {"total": 12.5}


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("[1, 2]", [1, 2]), ("[Cu(pz)2](PF6)2", "[Cu(pz)2](PF6)2"), ("hydrothermal", "hydrothermal"), ("", None)],
)
def test_expected_may_be_a_list_or_plain_text(tmp_path, cell, expected):
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["text", "expected"], ["x", cell]])
    assert read_records(write(tmp_path, "a.csv", out.getvalue()), {})[0].expected == expected


def test_an_empty_expected_object_is_a_record(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"text": "x", "expected": {}}\n{"text": "y", "expected": null}\n')
    assert [record.expected for record in read_records(path, {})] == [{}, None]


def test_columns_give_other_names(tmp_path):
    path = write(tmp_path, "a.csv", 'nr,body,text,gold\n9,x,raw,"{""n"": 1}"\n')
    records = read_records(path, {"id": "nr", "text": "body", "expected": "gold"})
    assert records == [Record("9", {"text": "x"}, {"n": 1}, None, "a.csv line 2")]


def test_renaming_expected_renames_the_columns_that_build_it(tmp_path):
    path = write(tmp_path, "a.csv", "text,gold.vendor,gold.items[0],Summe\nx,Acme,bolt,3\n")
    records = read_records(path, {"expected": "gold", "expected.total": "Summe"})
    assert records[0].expected == {"vendor": "Acme", "items": ["bolt"], "total": 3}


def test_parquet_rows_are_rows_like_others(tmp_path):
    path = tmp_path / "a.parquet"
    rows = [{"id": 1, "text": "x", "expected": {"n": 1}}, {"id": 2, "text": None, "expected": None}]
    pq.write_table(pa.Table.from_pylist(rows), path)
    assert read_records(path, {}) == [
        Record("1", {"text": "x"}, {"n": 1}, None, "a.parquet row 1"),
        Record("2", {}, None, None, "a.parquet row 2"),
    ]


WRONG = [
    (
        "text,total\nx,1\n",
        {"expected": "totl"},
        r"data.columns: a.csv has no column 'totl' for 'expected'; did you mean 'total'",
    ),
    ("body\nx\n", {"text": "bdy"}, "no column 'bdy' for 'text'; did you mean 'body'"),
    ("a,expected.\nx,1\n", {}, "the column 'expected.' is no path like"),
    ("a,expected.items[x]\nx,1\n", {}, r"the column 'expected.items\[x\]' is no path"),
    ("expected,expected.n\nx,1\n", {}, "has both a column 'expected' and 'expected.n'"),
    ("expected.a,expected.a.b\n1,2\n", {}, "'expected.a' and 'expected.a.b' want the same place"),
    ("expected.a.b,expected.a\n1,2\n", {}, "'expected.a' and 'expected.a.b' want the same place"),
    ("expected.a[0],expected.a.b\n1,2\n", {}, "want the same place"),
    ("expected[0],expected.b\n1,2\n", {}, "want the same place"),
    (
        'expected\n{"n": }\n'.replace('"', '""').replace("{", '"{').replace("}", '}"'),
        {},
        "a.csv line 2, expected column 7: not valid JSON",
    ),
]


@pytest.mark.parametrize(("content", "columns", "sentence"), WRONG, ids=[row[2][:50] for row in WRONG])
def test_what_is_wrong_with_the_columns_is_one_sentence(tmp_path, content, columns, sentence):
    with pytest.raises(UsageError, match=sentence):
        read_records(write(tmp_path, "a.csv", content), columns)


# The csv module writes NUL and lone line ends as they are; a cell of white space alone counts as empty.
cell_text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1).filter(
    lambda text: text.strip()
)
names = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=6).filter(
    lambda name: name not in ("id", "expected")
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(names, cell_text, min_size=1), min_size=1, max_size=5))
def test_jsonl_gives_back_what_was_written(tmp_path, rows):
    path = write(
        tmp_path, "a.jsonl", "\n".join(json.dumps({**row, "expected": row}, ensure_ascii=False) for row in rows)
    )
    records = read_records(path, {})
    assert [dict(record.fields) for record in records] == rows
    assert [record.expected for record in records] == rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(cell_text, cell_text), min_size=1, max_size=5))
def test_csv_gives_back_what_was_written(tmp_path, pairs):
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerows([["text", "expected"], *[[text, json.dumps({"value": value})] for text, value in pairs]])
    records = read_records(write(tmp_path, "a.csv", out.getvalue()), {})
    assert [(record.fields["text"], record.expected["value"]) for record in records] == pairs
    assert len({record.id for record in records}) == len(pairs)


def test_a_path_has_an_end(tmp_path):
    path = write(tmp_path, "a.csv", f"text,expected.{'.'.join('a' * 500)}\nx,1\n")
    with pytest.raises(UsageError, match=r"the column expected\.a\.a.* has 500 steps; 100 are the most"):
        read_records(path, {})
    path = write(tmp_path, "b.csv", f"text,gold{'[0]' * 101}\nx,1\n")
    with pytest.raises(UsageError, match="has 101 steps"):
        read_records(path, {"expected": "gold"})
