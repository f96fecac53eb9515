"""Which places of a record count: include, exclude, lists as parts, places that are only reported."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import RecordMetric
from metrics.record.fields import FieldError, read_fields
from metrics.record.paths import parse

GOLD = {
    "target": "LiCoO2",
    "steps": [
        {"n": 1, "action": "mix", "at": {"t": 25, "unit": "C"}},
        {"n": 2, "action": "heat", "at": {"t": 900, "unit": "C"}},
    ],
    "tags": ["a", "b"],
    "notes": "none",
}


def parts(metric, predicted=None):
    return set(metric.compare(GOLD, GOLD if predicted is None else predicted).parts)


def test_include_counts_a_place_with_everything_inside_it():
    assert parts(RecordMetric(include=["steps[*].at"])) == {"steps[*].at.t", "steps[*].at.unit", "steps[*]"}
    assert parts(RecordMetric(include=["tags"])) == parts(RecordMetric(include=["tags[*]"])) == {"tags[*]"}
    assert RecordMetric(include=["target"]).compare(GOLD, {"target": "LiCoO2", "notes": "other"}).value == 1.0


def test_include_stands_beside_the_places_with_an_evaluator():
    metric = RecordMetric({"target": "exact"}, include=["tags"])

    assert parts(metric) == {"target", "tags[*]"}
    assert metric.compare(GOLD, {"target": "LiCoO2"}).value == 1 / 3


def test_the_whole_record_with_another_evaluator_for_one_place():
    metric = RecordMetric({"target": "exact"}, include=["$"])

    assert parts(metric) == parts(RecordMetric())
    assert metric.compare(GOLD, {**GOLD, "target": "LiCoO3"}).parts["target"].value == 0.0
    assert RecordMetric().compare(GOLD, {**GOLD, "target": "LiCoO3"}).parts["target"].value > 0.8


def test_exclude_leaves_out_a_place_with_everything_inside_it():
    metric = RecordMetric(exclude=["steps[*].n", "notes", "steps[*].at"])
    predicted = {**GOLD, "notes": "wrong", "steps": [{"n": 7, "action": "heat"}, {"n": 7, "action": "mix", "at": 5}]}

    assert metric.compare(GOLD, predicted).value == 1.0
    assert parts(metric, predicted) == {"target", "steps[*].action", "steps[*]", "tags[*]"}
    assert RecordMetric(exclude=["steps"]).compare(GOLD, {**GOLD, "steps": "none"}).value == 1.0


def test_exclude_reaches_into_what_is_included():
    assert parts(RecordMetric(include=["steps"], exclude=["steps[*].at.unit", "steps[*].n"])) == {
        "steps[*].action",
        "steps[*].at.t",
        "steps[*]",
    }


def test_items_of_which_nothing_counts_are_no_items():
    metric = RecordMetric(exclude=["steps[*].n"])
    score = metric.compare({"steps": [{"n": 1}]}, {"steps": [{"n": 1}, {"n": 2}]})

    assert (score.value, score.details["n_fields"], score.details["lists"]) == (1.0, 0, {})


@pytest.mark.parametrize(
    ("options", "sentence", "keys"),
    [
        ({"exclude": ["$"]}, r"exclude: '\$' leaves out the whole record, so nothing would be measured", ("exclude",)),
        ({"include": "steps"}, "include is a list of paths, got 'steps'", ("include",)),
        ({"exclude": {"steps": 1}}, "exclude is a list of paths, got {'steps': 1}", ("exclude",)),
        ({"include": ["steps[0]"]}, "for every item write 'steps", ("include", "steps[0]")),
        ({"exclude": [5]}, "a path is text such as 'vendor'", ("exclude", "5")),
        (
            {"fields": {"a.b": "exact"}, "exclude": ["a"]},
            "exclude: 'a' leaves out 'a.b', which is to count",
            ("exclude",),
        ),
        ({"include": ["a"], "exclude": ["a"]}, "exclude: 'a' leaves out 'a', which is to count", ("exclude",)),
        ({"fields": {"l": {"ordered": True}}, "exclude": ["l"]}, r"exclude: 'l' leaves out 'l\[\*\]'", ("exclude",)),
        (
            {"fields": {"a": "exact"}, "exclude": ["a.b"]},
            "exclude: 'a' is compared whole, so 'a.b' inside it cannot be left out",
            ("exclude",),
        ),
        (
            {"fields": {"a": "exact"}, "include": ["a.b"]},
            "include: 'a' is compared whole, so 'a.b' inside it cannot count as well",
            ("include",),
        ),
        ({"fields": {"a": {"exact": {"x": 1}}}}, "field 'a': exact: unknown option 'x'", ("fields", "a")),
        ({"fields": {"a[0]": "exact"}}, "items are not named by position", ("fields", "a[0]")),
    ],
)
def test_places_that_cannot_be_are_refused_with_where_they_stand(options, sentence, keys):
    with pytest.raises(FieldError, match=sentence) as error:
        RecordMetric(**options)
    assert error.value.keys == keys


def test_paths_of_both_options_that_match_nothing_are_found():
    metric = RecordMetric(include=["tags", "step"], exclude=["tags[*].name", "steps[*].nn"])

    assert set(metric.unmatched_paths([GOLD])) == {"step", "tags[*].name", "steps[*].nn"}
    assert RecordMetric(include=["$"], exclude=["steps[*].at", "notes"]).unmatched_paths([GOLD]) == []


def test_both_options_are_part_of_the_version():
    metrics = [RecordMetric(), RecordMetric(include=["a"]), RecordMetric(exclude=["a"]), RecordMetric(include=["a.b"])]

    assert len({metric.version for metric in metrics}) == 4
    assert RecordMetric(include=["a", "b"]).version == RecordMetric(include=["b", "a"]).version


def test_whether_a_place_counts():
    fields = read_fields({"a": "exact"}, None, ["l[*].x"])

    assert [fields.counts(parse(path)) for path in ("a", "l[*].x", "l[*].x.y", "l[*]", "b")] == [
        True,
        True,
        True,
        False,
        False,
    ]


# Lists as parts


def test_lists_are_parts_with_precision_recall_and_f1():
    predicted = {**GOLD, "steps": [GOLD["steps"][0], {"n": 9, "action": "zzzz"}], "tags": ["b", "c", "d"]}
    score = RecordMetric({"steps[*].action": "exact"}, include=["tags"]).compare(GOLD, predicted)

    steps, tags = score.parts["steps[*]"], score.parts["tags[*]"]
    assert steps.value == 1 / 3
    assert steps.feedback == "1 of 2 expected items found among 2"
    assert {name: part.value for name, part in steps.parts.items()} == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert tags.value == 1 / 4
    assert {name: part.value for name, part in tags.parts.items()} == {"precision": 1 / 3, "recall": 0.5, "f1": 0.4}


def test_a_rate_without_anything_to_divide_by_is_unscored():
    rates = RecordMetric().compare({"l": [{"a": 1}]}, {}).parts["l[*]"].parts

    assert (rates["recall"].value, rates["f1"].value) == (0.0, 0.0)
    assert (rates["precision"].value, rates["precision"].error) == (None, "precision: nothing to divide by")


def test_lists_of_lists_are_matched_at_both_depths():
    expected = {"grid": [[1, 2], [3, 4]]}
    metric = RecordMetric()

    assert metric.compare(expected, {"grid": [[4, 3], [2, 1]]}).value == 1.0
    assert metric.compare(expected, {"grid": [[1, 2]]}).value == 0.5
    assert set(metric.compare(expected, expected).parts) == {"grid[*][*]", "grid[*]"}
    ordered = RecordMetric({"grid[*]": {"ordered": True}, "grid[*][*]": {"exact": {}, "ordered": True}})
    assert ordered.compare(expected, {"grid": [[3, 4], [1, 2]]}).value < 1.0
    assert ordered.compare(expected, expected).value == 1.0


# Places that are only reported


def test_items_of_which_everything_is_only_reported_are_matched_too():
    metric = RecordMetric({"target": "exact", "tags[*]": {"exact": {}, "weight": 0}})
    score = metric.compare(GOLD, {**GOLD, "tags": ["b", "a"]})

    assert (score.value, score.parts["tags[*]"].value, score.details["n_fields"]) == (1.0, 1.0, 1)
    assert metric.compare(GOLD, {**GOLD, "tags": ["b", "x"]}).parts["tags[*]"].value == 1 / 3
    assert metric.compare(GOLD, {**GOLD, "tags": []}).value == 1.0


def test_a_reported_place_never_decides_which_items_belong_together():
    fields = {"l[*].a": "exact", "l[*].b": {"exact": {}, "weight": 0}}
    expected = {"l": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]}

    score = RecordMetric(fields).compare(expected, {"l": [{"a": 1, "b": "y"}, {"a": 2, "b": "x"}]})

    assert (score.value, score.parts["l[*].b"].value) == (1.0, 0.0)


# Any record

VALUES = st.none() | st.integers(-2, 2) | st.sampled_from(["", "heat", "heal", "5 h"])
RECIPES = st.fixed_dictionaries(
    {
        "target": VALUES,
        "steps": st.lists(st.fixed_dictionaries({"action": VALUES, "n": VALUES}), max_size=3),
        "tags": st.lists(VALUES, max_size=3),
    }
)


def without_numbers(record):
    return {**record, "steps": [{"action": step["action"]} for step in record["steps"]]}


@settings(max_examples=200)
@given(RECIPES, RECIPES)
def test_what_is_excluded_or_not_included_might_as_well_not_be_there(expected, predicted):
    alone = RecordMetric().compare(without_numbers(expected), without_numbers(predicted))

    for metric in (
        RecordMetric(exclude=["steps[*].n"]),
        RecordMetric(include=["target", "tags", "steps[*].action"]),
        RecordMetric(include=["$"], exclude=["steps[*].n"]),
    ):
        score = metric.compare(expected, predicted)
        assert (score.value, score.details["n_fields"]) == (alone.value, alone.details["n_fields"])
        assert {name: part.value for name, part in score.parts.items()} == {
            name: part.value for name, part in alone.parts.items()
        }
