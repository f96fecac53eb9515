"""`--set`: short forms opened, dotted keys found, names replaced, everything else refused by name."""

import pytest

from harness.errors import UsageError
from harness.spec.document import SpecDocument
from harness.spec.marked_yaml import parse_yaml
from harness.spec.overrides import ShortForms, apply_override

FORMS = ShortForms(main_keys={("data",): "path", ("models", "*"): "model"}, named=("program", "metric", "optimizer"))


def changed(text, *changes):
    marked = parse_yaml(text, "x.yaml")
    places = {path: f"x.yaml line {line}" for path, line in marked.lines.items()}
    document = SpecDocument("x.yaml", marked.data, places)
    for change in changes:
        apply_override(document, change, FORMS)
    return document


@pytest.mark.parametrize(
    ("text", "change", "result"),
    [
        ("a: 1", "a=2", {"a": 2}),
        ("a: 1", "b=text", {"a": 1, "b": "text"}),
        ("a: 1", " b =[1, {c: 2}]", {"a": 1, "b": [1, {"c": 2}]}),
        ("a: 1", "a=", {"a": None}),
        ("a: 1", "a=x=y", {"a": "x=y"}),
        ("a: {b: 1}", "a.c=2", {"a": {"b": 1, "c": 2}}),
        ("a: {b: 1}", "x.y.z=2", {"a": {"b": 1}, "x": {"y": {"z": 2}}}),
        ("a:", "a.b=2", {"a": {"b": 2}}),
        # short forms are opened
        ("data: rows.csv", "data.split.seed=1", {"data": {"path": "rows.csv", "split": {"seed": 1}}}),
        ("models: {task: a/b}", "models.task.timeout=9", {"models": {"task": {"model": "a/b", "timeout": 9}}}),
        ("optimizer: gepa", "optimizer.gepa.auto=light", {"optimizer": {"gepa": {"auto": "light"}}}),
        ("m: {a: fuzzy}", "m.a.fuzzy.k=1", {"m": {"a": {"fuzzy": {"k": 1}}}}),
        # another name takes the place of the one in the file
        ("optimizer: {gepa: {auto: light}}", "optimizer.nearest_demos.k=4", {"optimizer": {"nearest_demos": {"k": 4}}}),
        ("optimizer: gepa", "optimizer.nearest_demos.k=4", {"optimizer": {"nearest_demos": {"k": 4}}}),
        ("optimizer: gepa", "optimizer=none", {"optimizer": "none"}),
        ("a: 1", "optimizer.nearest_demos.k=4", {"a": 1, "optimizer": {"nearest_demos": {"k": 4}}}),
        # names with dots
        ("program: a.b:C", "program.a.b:C.k=1", {"program": {"a.b:C": {"k": 1}}}),
        ("program: {x.py:C: {k: 0, j: 2}}", "program.x.py:C.k=1", {"program": {"x.py:C": {"k": 1, "j": 2}}}),
        ("program: x.py:C", "program.y.py:D.k=1", {"program": {"y.py:D": {"k": 1}}}),
        ("f: {'s[*].a': exact}", "f.s[*].a=fuzzy", {"f": {"s[*].a": "fuzzy"}}),
        ("f: {a: 1}", 'f."s[*].a"=fuzzy', {"f": {"a": 1, "s[*].a": "fuzzy"}}),
    ],
)
def test_one_change(text, change, result):
    assert changed(text, change).data == result


def test_changes_build_on_each_other():
    document = changed("data: r.csv", "data.split.seed=1", "data.split.test=8", "data.path=s.csv")
    assert document.data == {"data": {"path": "s.csv", "split": {"seed": 1, "test": 8}}}


def test_a_changed_key_has_its_place_on_the_command_line_and_the_others_keep_theirs():
    document = changed("data: {path: r.csv, split: {seed: 0, test: 5}}\nname: n", "data.split={seed: 1}", "x.y=1")
    assert document.place(("data", "split", "seed")) == "in --set data.split"
    assert document.place(("data", "path")) == "x.yaml line 1"
    assert document.place(("x",)) == "in --set x.y"
    assert document.place(("name",)) == "x.yaml line 2"
    assert document.place(("nowhere",)) == "x.yaml"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("data.split.seed", "--set takes KEY=VALUE, such as data.split.seed=1, not 'data.split.seed'"),
        ("=1", "--set takes KEY=VALUE"),
        (".a=1", "--set takes KEY=VALUE"),
        ("a..b=1", "--set takes KEY=VALUE"),
        ("a.=1", "--set takes KEY=VALUE"),
        ("name.x=1", "in --set name.x: name is 'n', which holds no keys"),
        ("count.x=1", "in --set count.x: count is 5, which holds no keys"),
        ("list.x=1", "in --set list.x: list is a list: set it whole"),
        ("data.path.x=1", "in --set data.path.x: data.path is 'r.csv', which holds no keys"),
        ("a={b", "in --set a line 1: not readable as YAML"),
    ],
)
def test_a_change_that_cannot_be_made_is_one_sentence(change, sentence):
    with pytest.raises(UsageError) as caught:
        changed("name: n\ncount: 5\nlist: [1]\ndata: {path: r.csv}", change)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_refused_value_is_a_problem_of_the_change():
    document = changed("a: 1", "b={c: 1, c: 2}", "d=.inf")
    assert [sentence for _, sentence in document.problems] == [
        "in --set b: the key 'c' is given twice (first on line 1)",
        "in --set d: '.inf' is not a finite number",
    ]
