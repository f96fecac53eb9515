"""What a program is asked about: formats, ids, and documents that cannot be read."""

import csv
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.prediction.documents import Document, read_documents


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.JSONL"])
def test_jsonl(tmp_path, name):
    rows = '\ufeff{"id": "x", "text": "a\u2028b", "other": 1}\n\n{"text": "c"}\r\n{"id": 7, "text": "d"}'
    documents = read_documents(write(tmp_path / name, rows), ("text",))
    assert [(each.id, each.inputs["text"]) for each in documents] == [("x", "a\u2028b"), (3, "c"), (7, "d")]
    assert documents[1].where == f"{name} line 3"


def test_json(tmp_path):
    rows = [{"id": "x", "text": "a", "n": [1]}, {"text": "b", "n": 2}]
    documents = read_documents(write(tmp_path / "a.json", json.dumps(rows)), ("text", "n"))
    assert [(each.id, each.inputs) for each in documents] == [
        ("x", {"text": "a", "n": [1]}),
        (2, {"text": "b", "n": 2}),
    ]


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t")])
def test_csv(tmp_path, name, mark):
    text = f'id{mark}text\nx{mark}"two\nlines"\n\n{mark}plain\n'
    documents = read_documents(write(tmp_path / name, text), ("text",))
    assert [(each.id, each.inputs["text"]) for each in documents] == [("x", "two\nlines"), (5, "plain")]


def test_text_files(tmp_path):
    write(tmp_path / "b.md", "\ufeffb")
    write(tmp_path / "sub" / "a.txt", "a")
    write(tmp_path / "a.TXT", "A")
    write(tmp_path / "ignored.pdf", "x")
    documents = read_documents(tmp_path, ("page",))
    assert [(each.id, each.inputs) for each in documents] == [
        ("a.TXT", {"page": "A"}),
        ("b.md", {"page": "b"}),
        ("sub/a.txt", {"page": "a"}),
    ]
    assert read_documents(tmp_path / "b.md", ("page",)) == [Document("b.md", {"page": "b"}, where="b.md")]


@pytest.mark.parametrize(
    ("name", "text", "errors"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text": \n', [None, "a.jsonl line 2: not valid JSON"]),
        ("a.jsonl", '{"text": "a"}\n[1]\n', [None, "a.jsonl line 2: a row is an object, got list"]),
        ("a.jsonl", '{"text": "a"}\n{"other": 1}\n', [None, "a.jsonl line 2: text is missing"]),
        ("a.jsonl", '{"text": "a"}\n{"text": null}\n', [None, "a.jsonl line 2: text is missing"]),
        ("a.jsonl", '{"text": "a"}\n{"text": " \\n"}\n', [None, "a.jsonl line 2: text is empty"]),
        ("a.csv", "id,text\n1,a\n2\n", [None, "a.csv line 3: text is missing"]),
        ("a.csv", "id,text\n1,a,b\n2,c\n", ["a.csv line 2: more cells than columns", None]),
        ("a.csv", 'text\na\n"b"c\n', [None, "a.csv line 3: "]),
        ("a.txt", b"\xff\xfe", ["a.txt cannot be read as UTF-8 text"]),
        ("a.txt", " \n", ["a.txt: text is empty"]),
    ],
)
def test_a_document_that_cannot_be_read_does_not_stop_the_others(tmp_path, name, text, errors):
    documents = read_documents(write(tmp_path / name, text), ("text",))
    assert len({document.id for document in documents}) == len(errors)
    for document, error in zip(documents, errors, strict=True):
        assert (document.error or "").startswith(error or "")
        assert (document.error is None) == (error is None)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.jsonl", '{"txt": "a"}\n', "has the input 'text'; did you mean 'txt'?"),
        ("a.csv", "id,zzz\n1,2\n", "has the input 'text'; known: id, zzz"),
        ("a.jsonl", '{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n', "'1' is given twice: a.jsonl line 1 and"),
        ("a.jsonl", "\n", "is empty"),
        ("a.csv", "id,text\n", "is empty"),
        ("a.json", '{"text": "a"}', "a.json holds dict, a list of rows is expected"),
        ("a.json", "[", "a.json is not valid JSON"),
        ("a.jsonl", b"\xff", "is not UTF-8 text"),
        ("a.xlsx", "x", "cannot read files ending in '.xlsx'; known: .csv, .json, .jsonl, .md, .ndjson, .tsv, .txt"),
        ("a", "x", "cannot read files ending in 'nothing'"),
    ],
)  # fmt: skip
def test_an_input_that_cannot_be_used_is_refused(tmp_path, name, text, sentence):
    with pytest.raises(UsageError) as error:
        read_documents(write(tmp_path / name, text), ("text",))
    assert sentence in str(error.value)


def test_what_is_not_there_is_refused(tmp_path):
    write(tmp_path / "papers.jsonl", "x")
    with pytest.raises(UsageError, match=r"there is no input .*paper.jsonl; did you mean 'papers.jsonl'\?"):
        read_documents(tmp_path / "paper.jsonl", ("text",))
    with pytest.raises(UsageError, match=r"there is no input .*none/a.jsonl$"):
        read_documents(tmp_path / "none" / "a.jsonl", ("text",))
    with pytest.raises(UsageError, match=r"holds no \.txt or \.md file"):
        read_documents(tmp_path, ("text",))


def test_text_files_carry_one_input(tmp_path):
    with pytest.raises(UsageError, match="the program needs text, target, a text file holds one of them"):
        read_documents(write(tmp_path / "a.txt", "x"), ("text", "target"))


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text()), max_size=3))
def test_equal_inputs_have_equal_digests(inputs):
    again = dict(reversed(list(inputs.items())))
    assert Document(1, inputs).digest == Document(2, again).digest
    assert Document(1, inputs).digest != Document(1, {**inputs, "more": 1}).digest


LONG = "x" * 200_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", f"id,text\n1,{LONG}\n"),
        ("a.csv", f"id;text\n1;{LONG}\n"),
        ("a.csv", f"id\ttext\n1\t{LONG}\n"),
        ("a.tsv", f"id\ttext\n1\t{LONG}\n"),
        ("a.csv", f'"id";"text"\n1;"{LONG}"\n'),
    ],
)
def test_cells_of_any_length_and_any_usual_separator(tmp_path, name, text):
    limit = csv.field_size_limit()
    (document,) = read_documents(write(tmp_path / name, text), ("text",))
    assert (document.id, document.inputs, document.error) == ("1", {"text": LONG}, None)
    assert csv.field_size_limit() == limit


def test_half_a_character_is_a_failure_of_its_row(tmp_path):
    rows = [{"id": "a\ud800", "text": "x"}, {"id": "b", "text": "y\ud800"}, {"id": "c", "text": "z"}]
    path = write(tmp_path / "a.jsonl", "\n".join(json.dumps(row) for row in rows))
    first, second, third = read_documents(path, ("text",))
    assert (first.id, first.error) == ("a\ufffd", "a.jsonl line 1: the id holds half a Unicode character")
    assert second.error == "a.jsonl line 2: text holds half a Unicode character"
    assert third.error is None


def test_what_cannot_be_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(UsageError, match="is a pipe or a device"):
        read_documents(tmp_path / "a.jsonl", ("text",))
    with pytest.raises(UsageError, match="File name too long"):
        read_documents(tmp_path / ("n" * 300 + ".csv"), ("text",))
    write(tmp_path / "a.txt", "x")

    def refused(*_):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(UsageError, match=r"the folder .* cannot be read: Permission denied"):
        read_documents(tmp_path, ("text",))
