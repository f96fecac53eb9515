"""The `fields` of a record metric."""

import pytest

from metrics import BaseEvaluator, LevenshteinEvaluator, NumericEvaluator, StringCheckEvaluator
from metrics.record.fields import read_fields
from metrics.record.paths import EVERY, parse


class Mine(BaseEvaluator):
    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        return 1.0


def one(entry):
    fields = read_fields({"a[*]": entry}, None)
    return fields.rules.get(parse("a[*]")), fields.ordered


@pytest.mark.parametrize(
    ("entry", "evaluator", "weight"),
    [
        ("exact", StringCheckEvaluator, 1.0),
        ({"levenshtein": {"threshold": 0.6}}, LevenshteinEvaluator, 1.0),
        ({"numeric": None}, NumericEvaluator, 1.0),
        ({"numeric": {}, "weight": 2}, NumericEvaluator, 2.0),
        ({"evaluator": "exact", "weight": 3}, StringCheckEvaluator, 3.0),
        ({"evaluator": Mine(), "weight": 0.5}, Mine, 0.5),
        (Mine(), Mine, 1.0),
    ],
)
def test_forms_of_an_entry(entry, evaluator, weight):
    rule, ordered = one(entry)

    assert isinstance(rule.evaluator, evaluator)
    assert rule.weight == weight
    assert not ordered


def test_options_reach_the_evaluator():
    assert one({"levenshtein": {"threshold": 0.6}})[0].evaluator.options() == {"threshold": 0.6}


def test_order_belongs_to_the_items_of_a_list():
    items = frozenset({("a", EVERY)})

    assert one({"exact": {}, "ordered": True})[1] == items
    assert one({"ordered": True}) == (None, items)
    assert read_fields({"a": {"ordered": True}}, None).ordered == items
    assert one({"exact": {}, "ordered": False})[1] == frozenset()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"a": "exakt"}, "field 'a': unknown evaluator 'exakt', did you mean 'exact'?"),
        ({"a": {"exact": {}, "wieght": 2}}, "field 'a': unknown evaluator or option 'wieght', did you mean 'weight'?"),
        ({"a": {"exact": {}, "numeric": {}}}, "field 'a': name one evaluator .*, got 'exact' and 'numeric'"),
        ({"a": {"weight": 2}}, r"field 'a': name one evaluator \(exact, levenshtein, .*\), got none"),
        ({"a": {}}, "field 'a': name one evaluator .*, got none"),
        (
            {"a": {"exact": {"case_sensitiv": 1}}},
            "field 'a': exact: unknown option 'case_sensitiv', did you mean 'case_sensitive'?",
        ),
        ({"a": {"exact": {}, "weight": -1}}, "field 'a': weight is a number, 0 or more, got -1"),
        ({"a": {"exact": {}, "weight": True}}, "field 'a': weight is a number, 0 or more, got True"),
        ({"a": {"exact": {}, "weight": float("inf")}}, "field 'a': weight is a number, 0 or more, got inf"),
        ({"a": {"ordered": "yes"}}, "field 'a': ordered is true or false, got 'yes'"),
        ({"a": {"exact": {}, "ordered": True}}, "field 'a': ordered belongs to a list"),
        ({"a": {"evaluator": 5}}, "field 'a': an evaluator is an alias or a BaseEvaluator, got 5"),
        ({"a": 5}, "field 'a': an evaluator is an alias, a mapping or a BaseEvaluator, got 5"),
        ({"a[0]": "exact"}, r"path 'a\[0\]': items are not named by position"),
        ({"a": {"exact": {}, "weight": 0}}, "every weight is 0"),
        ({"a": "exact", "a.b": "exact"}, "'a' is compared whole, so 'a.b' inside it cannot count as well"),
        (["a"], r"fields map paths to evaluators, got \['a'\]"),
    ],
)
def test_wrong_fields_are_refused_in_one_sentence(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_fields(fields, None)


def test_without_rules_schema_then_type_decide():
    fields = read_fields({}, {"properties": {"unit": {"enum": ["K"]}, "free": {}}})

    assert fields.counts(("anything",))
    assert isinstance(fields.rule(("unit",)).evaluator, StringCheckEvaluator)
    assert fields.rule(("free",)).evaluator.name == "by_type"


def test_with_rules_only_the_places_named_count():
    fields = read_fields({"a": "exact", "list": {"ordered": True}}, None)

    assert [fields.counts(parse(path)) for path in ("a", "b", "list[*]")] == [True, False, False]
    assert fields.named() == [("a",), ("list", EVERY)]
