import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from harness.data.reading import READERS, labelled, read
from harness.data.record import Record
from harness.errors import UsageError


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode())
    return path


def jsonl(folder, *rows):
    return write(folder, "a.jsonl", "\n".join(map(json.dumps, rows)))


def own(*rows):
    def my_reader(path, columns):
        yield from rows

    return my_reader


ROWS = ({"id": "a", "text": "x", "doi": "1", "expected": {"n": 1}}, {"id": "b", "text": "y", "expected": {"n": 2}})


def test_read_gives_checked_records_with_their_groups(tmp_path):
    records = read(jsonl(tmp_path, *ROWS), READERS["records"], {}, "doi", inputs=("text",))
    assert [(record.id, record.group) for record in records] == [("a", "1"), ("b", None)]


def test_the_same_id_twice_names_both_places(tmp_path):
    path = jsonl(tmp_path, *ROWS, {"id": "a", "text": "z", "expected": {}})
    with pytest.raises(UsageError, match=r"id 'a' is there twice: a.jsonl line 1 and a.jsonl line 3"):
        read(path, READERS["records"])


def test_an_id_that_is_another_rows_line_number_is_caught(tmp_path):
    path = jsonl(tmp_path, {"id": "2", "text": "x", "expected": {}}, {"text": "y", "expected": {}})
    with pytest.raises(UsageError, match="id '2' is there twice"):
        read(path, READERS["records"])


def test_a_group_column_that_is_not_there_names_the_nearest(tmp_path):
    with pytest.raises(UsageError, match=r"data.group_by: a.jsonl has no column 'dio'; did you mean 'doi'"):
        read(jsonl(tmp_path, *ROWS), READERS["records"], {}, "dio")


def test_an_input_that_is_not_there_names_the_nearest(tmp_path):
    with pytest.raises(UsageError, match=r"needs 'texts' and a.jsonl has no such column; did you mean 'text'"):
        read(jsonl(tmp_path, *ROWS), READERS["records"], inputs=("texts",))


def test_an_input_missing_in_some_rows_names_them(tmp_path):
    with pytest.raises(
        UsageError, match=r"'doi', which is missing in 1 of 2 rows of a.jsonl: 'b' \(a.jsonl line 2\)\."
    ):
        read(jsonl(tmp_path, *ROWS), READERS["records"], inputs=("doi",))


def test_records_without_expected_are_named_and_can_be_asked_for(tmp_path):
    path = jsonl(tmp_path, *ROWS, *[{"id": str(n), "text": "z"} for n in range(7)])
    with pytest.raises(UsageError, match=r"7 of 9 rows of a.jsonl have no expected record: '0' .*; and 2 more\."):
        read(path, READERS["records"])
    having, lacking = labelled(read(path, READERS["records"], require_expected=False))
    assert [record.id for record in having] == ["a", "b"]
    assert len(lacking) == 7


def test_only_a_csv_is_fitted_to_the_schema(tmp_path):
    schema = {"properties": {"total": {"type": "number"}, "nr": {"type": "string"}}}
    path = write(tmp_path, "a.csv", "text,expected.total,expected.nr\nx,12.50,1001\n")
    assert read(path, READERS["records"], schema=schema)[0].expected == {"total": 12.5, "nr": "1001"}
    path = jsonl(tmp_path, {"text": "x", "expected": {"total": "12.50", "nr": 1001}})
    assert read(path, READERS["records"], schema=schema)[0].expected == {"total": "12.50", "nr": 1001}


def test_what_no_program_can_be_given_is_refused_with_its_place(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"text": "x", "expected": {"n": 1e999}}')
    with pytest.raises(UsageError, match=r"a.jsonl line 1, expected.n: inf is not a number"):
        read(path, READERS["records"])
    path = write(tmp_path, "a.jsonl", '{"text": "\\ud800", "expected": {}}')
    with pytest.raises(UsageError, match=r"a.jsonl line 1, text: character 1 of the text is half"):
        read(path, READERS["records"])


class Gold(BaseModel):
    n: int


def test_a_readers_dicts_become_records():
    reader = own({"id": 5, "text": "x", "expected": Gold(n=1), "group": 3}, {"text": "y", "note": None, "expected": {}})
    assert read(Path("my.txt"), reader) == [
        Record("5", {"text": "x"}, {"n": 1}, "3", "my.txt record 1"),
        Record("2", {"text": "y"}, {}, None, "my.txt record 2"),
    ]


def test_a_readers_records_stay_what_they_are_and_group_by_wins():
    record = Record("a", {"text": "x", "lab": "one"}, {"n": (1, 2)}, "mine", "page 3")
    assert read(Path("my.txt"), own(record))[0] == Record("a", record.fields, {"n": [1, 2]}, "mine", "page 3")
    assert read(Path("my.txt"), own(record), {}, "lab")[0].group == "one"


def test_a_reader_gets_the_path_and_the_columns():
    seen = []

    def my_reader(path, columns):
        seen.append((path, dict(columns)))
        return [{"text": "x", "expected": {}}]

    read(Path("my.txt"), my_reader, {"text": "body"})
    assert seen == [(Path("my.txt"), {"text": "body"})]


class Callable:
    def __call__(self, path, columns):
        yield 42


def failing(path, columns):
    yield {"text": "x"}
    raise KeyError("body")


def refusing(path, columns):
    raise UsageError("page 3 has no title.")


@pytest.mark.parametrize(
    ("reader", "sentence"),
    [
        (own(), "my.txt has no rows"),
        (own(None), "my.txt record 1: the reader .*my_reader yielded NoneType where a Record or a dict"),
        (Callable(), "my.txt record 1: the reader Callable yielded int"),
        (failing, "the reader failing failed after 1 records of my.txt: KeyError: 'body'"),
        (refusing, r"^page 3 has no title\.$"),
        (lambda path, columns: None, "returned NoneType for my.txt where records or dicts are needed"),
        (lambda path, columns: {"id": 1}, "returned dict for my.txt"),
        (lambda path, columns: "text", "returned str for my.txt"),
        (own({"text": "x", "image": b"\x89PNG"}), "my.txt record 1, image: .* is of type bytes"),
        (own({"text": "x", 5: "y"}), "my.txt record 1: 5 is of type int"),
        (own({"id": "a", "text": "x"}, {"id": "a", "text": "y"}), "my.txt record 1 and my.txt record 2"),
    ],
)
def test_what_is_wrong_with_a_users_reader_is_one_sentence(reader, sentence):
    with pytest.raises(UsageError, match=sentence):
        read(Path("my.txt"), reader, require_expected=False)


def test_the_error_of_a_users_reader_keeps_its_cause():
    with pytest.raises(UsageError) as raised:
        read(Path("my.txt"), failing)
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_bug_in_a_reader_of_ours_is_not_called_a_users_error(tmp_path, monkeypatch):
    def broken(path, columns):
        raise ZeroDivisionError

    monkeypatch.setattr("harness.data.reading.READERS", {"records": broken})
    with pytest.raises(ZeroDivisionError):
        read(tmp_path / "a.csv", broken)


HUGE = "1" + "0" * 400


def test_a_number_past_every_float_is_refused_with_its_place(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"id": "a", "text": "x", "expected": {"n": [N]}}'.replace("N", HUGE))
    with pytest.raises(UsageError, match=r"^a.jsonl line 1, expected.n\[0\]: a whole number of more than 308 digits"):
        read(path, READERS["records"])
    path = write(tmp_path, "a.csv", f"text,expected.n\nx,0{HUGE}\n")  # text, until the schema makes a number of it
    schema = {"properties": {"n": {"type": "integer"}}}
    with pytest.raises(UsageError, match=r"^a.csv line 2, expected.n: a whole number of more than 308 digits"):
        read(path, READERS["records"], schema=schema)


@pytest.mark.parametrize("key", ["id", "group", "text", "expected"])
def test_half_a_character_is_refused_wherever_it_stands(key):
    row = {"id": "a", "text": "x", "expected": {}, key: "a\ud800"}
    with pytest.raises(UsageError, match=rf"{key}: character 2 of the text is half a Unicode character"):
        read(Path("a.x"), own(row))
