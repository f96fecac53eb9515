"""YAML with lines: what people mean is what is read, and what cannot be read is one sentence."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.spec.marked_yaml import parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("1e-3", 0.001),
        ("1.5E3", 1500.0),
        (".5", 0.5),
        ("010", 10),
        ("0x1f", 31),
        ("0o17", 15),
        ("-3", -3),
        ("1_000", "1_000"),
        ("True", True),
        ("false", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("[1, {a: b}]", [1, {"a": "b"}]),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_values_are_read_as_yaml_1_2_reads_them(text, value):
    read = parse_yaml(f"key: {text}", "x.yaml").data["key"]
    assert read == value
    assert type(read) is type(value)


def test_keys_are_text_as_written():
    assert parse_yaml("{no: 1, 5: 2, null: 3, 010: 4}", "x.yaml").data == {"no": 1, "5": 2, "null": 3, "010": 4}


def test_every_key_and_item_knows_its_line():
    marked = parse_yaml("a:\n  b: 1\n  c:\n    - x\n    - y\nd: 2\n", "x.yaml")
    assert marked.lines == {("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("a", "c", 0): 4, ("a", "c", 1): 5, ("d",): 6}


def test_an_alias_is_a_copy():
    marked = parse_yaml("a: &x {k: [1]}\nb: *x\n", "x.yaml")
    assert marked.data == {"a": {"k": [1]}, "b": {"k": [1]}}
    marked.data["a"]["k"].append(2)
    assert marked.data["b"] == {"k": [1]}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3", 3, "'a' is given twice (first on line 1)"),
        ("x:\n  a: 1\n  a: 2", 3, "'a' is given twice (first on line 2)"),
        ("a: .inf", 1, "not a finite number"),
        ("a: -.Inf", 1, "not a finite number"),
        ("a: .nan", 1, "not a finite number"),
        ("a: 1e999", 1, "not a finite number"),
        ("a: !!int five", 1, "cannot be read under the tag 'int'"),
        ("a: !!python/object:os.system x", 1, "the tag 'python/object:os.system'"),
        ("a: !mine {b: 1}", 1, "the tag '!mine'"),
        ("a: !!set [b]", 1, "set' is not supported"),
        ("? [a, b]\n: 1", 1, "a key must be text"),
        ('"\\ud800": 1', 1, "a key must be text"),
        ('a: "\\ud800"', 1, "the text holds half a Unicode character"),
        ("a: 1\n<<: {b: 2}", 2, "merge keys"),
    ],
)
def test_what_is_refused_is_a_problem_with_its_line(text, line, words):
    ((where, sentence),) = parse_yaml(text, "x.yaml").problems
    assert where == line
    assert words in sentence


def test_the_first_of_two_equal_keys_is_kept_so_that_the_rest_can_be_checked():
    assert parse_yaml("a: 1\na: 2\nb: 3", "x.yaml").data == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a:\n\t- b", "x.yaml line 2: a tab; YAML is indented with spaces"),
        ("a: b: c", "x.yaml line 1: not readable as YAML: mapping values are not allowed here (put a text"),
        ("{a: 1", "x.yaml line 1: not readable as YAML: while parsing a flow mapping, expected ',' or '}'"),
        ("a: 1\n---\nb: 2", "x.yaml line 2: not readable as YAML: expected a single document"),
        ("a: *b", "x.yaml line 1: not readable as YAML: found undefined alias 'b'"),
        ("a: 1\nb: \x01", "x.yaml line 2: a character that YAML text cannot hold"),
        ("[" * 5000, "x.yaml: nested too deeply"),
        ("a: &x [*x]", "x.yaml line 1: an alias that leads back to itself"),
        (
            "a: &a [1,1,1,1,1,1,1,1]\n"
            + "".join(f"{k}: &{k} [{', '.join([f'*{j}'] * 8)}]\n" for j, k in zip("abcdefg", "bcdefgh", strict=True)),
            "an alias that leads back to itself or multiplies",
        ),
    ],
)
def test_what_is_not_yaml_is_one_sentence(text, sentence):
    with pytest.raises(UsageError) as caught:
        parse_yaml(text, "x.yaml")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_is_read_as_none():
    for text in ("", "# a comment\n", "---\n"):
        assert parse_yaml(text, "x.yaml").data is None


texts = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_json_and_what_pyyaml_writes_are_read_back(value):
    assert parse_yaml(json.dumps(value), "x.yaml").data == value
    assert parse_yaml(yaml.safe_dump(value, allow_unicode=True), "x.yaml").data == value


@given(st.text(alphabet="ab:-[]{}!&*<>'\"|#\t\n 1.?,%@`", max_size=40))
def test_any_text_is_read_or_refused_in_one_sentence(text):
    try:
        marked = parse_yaml(text, "x.yaml")
    except UsageError as error:
        assert str(error).startswith("x.yaml")  # noqa: PT017  # either outcome is right
    else:
        json.dumps(marked.data, allow_nan=False)
