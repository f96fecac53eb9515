import csv
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.data.formats import parse_json, read_rows, read_text
from harness.errors import UsageError


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(folder, name, content):
    return [(dict(row.cells), row.number, row.where) for row in read_rows(write(folder, name, content))]


def test_jsonl_counts_lines_and_skips_blank_ones(tmp_path):
    assert rows_of(tmp_path, "a.jsonl", '{"x": 1}\r\n\n{"x": 2}\n') == [
        ({"x": 1}, 1, "a.jsonl line 1"),
        ({"x": 2}, 3, "a.jsonl line 3"),
    ]


def test_jsonl_is_not_split_at_unicode_line_separators(tmp_path):
    text = "one\u2028two\u0085three\x0bfour\x1c"
    assert read_rows(write(tmp_path, "a.ndjson", json.dumps({"x": text}, ensure_ascii=False)))[0].cells == {"x": text}


def test_a_line_may_be_very_long(tmp_path):
    text = "x" * 3_000_000
    assert read_rows(write(tmp_path, "a.jsonl", json.dumps({"x": text})))[0].cells == {"x": text}
    assert read_rows(write(tmp_path, "a.csv", f"x,y\n{text},1\n"))[0].cells == {"x": text, "y": "1"}


def test_csv_leaves_the_limit_of_the_csv_module_as_it_was(tmp_path):
    before = csv.field_size_limit()
    read_rows(write(tmp_path, "a.csv", "x\n" + "y" * 200_000))
    with pytest.raises(UsageError):
        read_rows(write(tmp_path, "b.csv", 'x\n"' + "y" * 200_000))
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("content", ['[{"x": 1}, {"x": 2}]', '{"records": [{"x": 1}, {"x": 2}], "licence": "MIT"}'])
def test_json_is_a_list_or_an_object_with_records(tmp_path, content):
    assert rows_of(tmp_path, "a.json", content) == [({"x": 1}, 1, "a.json record 1"), ({"x": 2}, 2, "a.json record 2")]


def test_csv_names_the_line_a_row_starts_on(tmp_path):
    content = '\ufeffid,text\r\n1,"two\r\nlines, ""quoted"""\r\n\r\n2,plain\r\n'
    assert rows_of(tmp_path, "a.csv", content) == [
        ({"id": "1", "text": 'two\r\nlines, "quoted"'}, 2, "a.csv line 2"),
        ({"id": "2", "text": "plain"}, 5, "a.csv line 5"),
    ]


def test_empty_cells_are_missing_and_a_nameless_index_column_is_not_read(tmp_path):
    assert rows_of(tmp_path, "a.csv", ",a,b\n0,,x\n1, ,y\n") == [
        ({"b": "x"}, 2, "a.csv line 2"),
        ({"b": "y"}, 3, "a.csv line 3"),
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "a;b\n1,5;x\n"),
        ("a.tsv", "a\tb\n1,5\tx\n"),
        ("a.CSV", 'a,b\r"1,5",x\r'),
    ],
)
def test_other_delimiters_and_line_ends(tmp_path, name, content):
    assert read_rows(write(tmp_path, name, content))[0].cells == {"a": "1,5", "b": "x"}


def test_parquet_keeps_nesting(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([{"x": 1, "y": {"z": [{"n": 0.5}]}}, {"x": None, "y": None}]), path)
    assert [(row.cells, row.where) for row in read_rows(path)] == [
        ({"x": 1, "y": {"z": [{"n": 0.5}]}}, "a.parquet row 1"),
        ({"x": None, "y": None}, "a.parquet row 2"),
    ]


BROKEN = [
    ("a.jsonl", '{"x": 1}\n{"x": }\n', "a.jsonl line 2 column 7: not valid JSON"),
    ("a.jsonl", '{"x": 1}\n{"x": "cut', "a.jsonl line 2 column 7: not valid JSON"),
    ("a.jsonl", '{"x": 1}\n["x"]\n', "a.jsonl line 2: the row is a list where an object is needed"),
    ("a.jsonl", "null\n", "a.jsonl line 1: the row is null"),
    ("a.jsonl", '{"x": "NaN, -Infinity", "y": [1, NaN]}', "a.jsonl line 1 column 34: NaN is not JSON"),
    ("a.jsonl", '{"x": "\\"NaN", "y": -Infinity}', "a.jsonl line 1 column 21: -Infinity is not JSON"),
    ("a.jsonl", '{"x": 1, "y": 2, "x": 3}', "a.jsonl line 1: the key 'x' is there twice"),
    ("a.jsonl", '{"x": ' + "1" * 5000 + "}", "a.jsonl line 1: a number cannot be read"),
    ("a.jsonl", '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "a.jsonl line 1: nested too deeply to read"),
    ("a.json", '[\n  {"x": 1},\n  {"x": 2,}\n]', "a.json line 3 column 1[01]: not valid JSON"),
    ("a.json", '[\n  {"x": Infinity}\n]', "a.json line 2 column 9: Infinity is not JSON"),
    ("a.json", '{"x": 1}\n{"x": 2}\n', "a.json line 2 column 1: not valid JSON"),
    ("a.json", '{"x": 1}', "a.json holds one object; give a list of objects"),
    ("a.json", '{"records": "none"}', "a.json: the records are text where a list of objects is needed"),
    ("a.json", "[1]", "a.json record 1: the row is a number where an object is needed"),
    ("a.json", "[]", "a.json has no rows"),
    ("a.csv", "a,b\n1,2\n3\n", "a.csv line 3 has 1 cells where the header has 2"),
    ("a.csv", "a,b\n1,2,3\n", "a.csv line 2 has 3 cells where the header has 2"),
    ("a.csv", "a,b,a\n1,2,3\n", "a.csv line 1: two columns are called 'a'"),
    ("a.csv", 'a,b\n1,2\n"x,y\n', "a.csv: the row that starts on line 3 cannot be read"),
    ("a.csv", "a,b\n", "a.csv has no rows"),
    ("a.csv", "", "a.csv is empty"),
    ("a.jsonl", " \n\n", "a.jsonl is empty"),
    ("a.csv", "text\nna\u00efve\n".encode("latin-1"), "a.csv line 2: byte 0xef is not UTF-8"),
    ("a.csv", "text\nx\n".encode("utf-16"), "a.csv line 1: byte 0xff is not UTF-8"),
    ("a.parquet", "not parquet", "a.parquet is not a Parquet file that can be read"),
    ("a.xlsx", "x", r"cannot read files ending in '.xlsx'; known: .csv, .json"),
    ("a.jsonnl", "x", r"cannot read files ending in '.jsonnl'; did you mean '.jsonl'"),
    ("data", "x", "cannot read files ending in 'nothing'"),
]


@pytest.mark.parametrize(("name", "content", "sentence"), BROKEN, ids=[f"{row[0]}-{row[2][:40]}" for row in BROKEN])
def test_a_broken_file_is_one_sentence_with_its_place(tmp_path, name, content, sentence):
    with pytest.raises(UsageError, match=sentence) as raised:
        read_rows(write(tmp_path, name, content))
    assert "\n" not in str(raised.value)


def test_a_missing_file_names_the_one_beside_it(tmp_path):
    write(tmp_path, "invoices.csv", "a\n1\n")
    with pytest.raises(UsageError, match=r"no data file .*invoces.csv; did you mean 'invoices.csv'"):
        read_rows(tmp_path / "invoces.csv")


def test_a_missing_folder_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match="empty or not there"):
        read_rows(tmp_path / "nowhere" / "a.csv")
    with pytest.raises(UsageError, match="is a folder"):
        read_rows(tmp_path)


def test_read_text_drops_the_byte_order_mark(tmp_path):
    assert read_text(write(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"x": 1}')) == '{"x": 1}'


def test_parse_json_keeps_key_order_and_types():
    value = parse_json('{"b": 1, "a": 1.0, "c": [true, null, "x"]}', "x")
    assert list(value) == ["b", "a", "c"]
    assert type(value["b"]) is int
    assert type(value["a"]) is float


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_is_parted_by_what_its_header_has_most_of(tmp_path, separator):
    text = separator.join(("id", "text", '"a,b;c,d;\t\tx"')) + "\n" + separator.join(("1", "x", "y")) + "\n"
    assert rows_of(tmp_path, "a.csv", text)[0][0] == {"id": "1", "text": "x", "a,b;c,d;\t\tx": "y"}


def test_what_is_no_file(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="is a pipe or a device; data is read from a file"):
        read_rows(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="cannot be used: File name too long"):
        read_rows(tmp_path / ("n" * 300 + ".csv"))

    def refused(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "read_bytes", refused)
    with pytest.raises(UsageError, match=r"b.csv cannot be read: Permission denied"):
        read_rows(write(tmp_path, "b.csv", "text\nx\n"))
