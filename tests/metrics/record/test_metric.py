"""RecordMetric: values by hand, the ways record metrics went wrong before, what has no number, how DSPy calls it."""

from types import SimpleNamespace
from typing import Literal

import dspy
import pytest
from pydantic import BaseModel

from metrics import BaseEvaluator, Metric, RecordMetric, Score, UnscoredError


class Counting(BaseEvaluator):
    """Counts how often it is asked."""

    def __init__(self, answer=1.0):
        super().__init__()
        self.asked = []
        self.answer = answer

    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        self.asked.append((field_path, extracted, expected, input_data))
        return self.answer


class Unwilling(BaseEvaluator):
    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        raise UnscoredError("the judge did not answer")


class Step(BaseModel):
    action: str
    temperature: float | None = None


class Recipe(BaseModel):
    target: str
    steps: list[Step] = []
    notes: str | None = None


def value(expected, predicted, fields=None, **options):
    return RecordMetric(fields or {}, **options).compare(expected, predicted).value


# Values by hand


def test_the_value_is_the_weighted_mean_over_leaves_on_either_side():
    fields = {"a": {"exact": {}, "weight": 2}, "b": "exact", "c": "exact", "d": "exact"}

    assert value({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 0, "d": 4}, fields) == 2 / 5


def test_types_choose_evaluators_when_none_are_named():
    assert value({"n": 900}, {"n": 900.0000001}) == 1.0
    assert value({"s": "John Doe"}, {"s": "Jon Doe"}) == 0.875
    assert value({"s": "John Doe"}, {"s": "Jane Smith"}) == 0.0  # a fifth alike is chance
    assert value({"b": True}, {"b": False}) == 0.0
    assert value({"list": ["x", 5]}, {"list": [5.0, "x"]}) == 1.0


def test_a_schema_chooses_evaluators_when_none_are_named():
    class Sample(BaseModel):
        unit: Literal["mmol", "mmmol"]
        name: str

    expected, predicted = {"unit": "mmol", "name": "heat"}, {"unit": "mmmol", "name": "heal"}

    for schema in (Sample, Sample.model_json_schema()):
        parts = RecordMetric(schema=schema).compare(expected, predicted).parts
        assert {path: part.value for path, part in parts.items()} == {"unit": 0.0, "name": 0.75}


def test_wrong_steps_earn_nothing_by_chance():
    expected = {"steps": [{"action": "heat"}, {"action": "mix"}]}

    for schema in (None, {"properties": {"steps": {"items": {"properties": {"action": {"type": "string"}}}}}}):
        assert value(expected, {"steps": [{"action": "wash"}, {"action": "dry"}]}, schema=schema) == 0.0


def test_parts_and_details_say_what_the_value_is_made_of():
    expected = {"target": "x", "steps": [{"action": "mix", "t": 5}, {"action": "heat", "t": 900}]}

    score = RecordMetric().compare(expected, {"target": "x", "steps": [{"action": "heat", "t": 90}]})

    assert {path: part.value for path, part in score.parts.items()} == {
        "target": 1.0,
        "steps[*].action": 0.5,
        "steps[*].t": 0.0,
        "steps[*]": 0.25,
    }
    rates = {name: part.value for name, part in score.parts["steps[*]"].parts.items()}
    assert rates == {"precision": 0.5, "recall": 0.25, "f1": 1 / 3}
    assert score.value == 2 / 5
    assert score.parts["steps[*].action"].details == {
        "n": 2,
        "n_expected": 2,
        "n_predicted": 1,
        "precision": 1.0,
        "recall": 0.5,
        "f1": 2 / 3,
    }
    assert score.parts["target"].details == {"n": 1, "n_expected": 1, "n_predicted": 1}
    assert score.details["n_fields"] == 5
    assert (score.details["precision"], score.details["recall"]) == (2 / 3, 2 / 5)
    assert score.details["lists"]["steps[*]"] == {
        "expected": 2,
        "predicted": 1,
        "matched": 1,
        "precision": 0.5,
        "recall": 0.25,
        "f1": 1 / 3,
    }
    assert Score.from_dict(score.to_dict()) == score


def test_models_and_plain_data_mix():
    model = Recipe(target="x", steps=[Step(action="heat", temperature=900)])

    for expected in (model, model.model_dump()):
        for predicted in (model, model.model_dump(exclude_none=True)):
            assert value(expected, predicted) == 1.0


def test_single_values_and_bare_lists_are_records_too():
    assert value("positive", "positive") == 1.0
    assert value("positive", None, {"$": "exact"}) == 0.0
    assert value([{"n": 1}, {"n": 2}], [{"n": 2}], {"[*].n": "exact"}) == 0.5
    assert value({"a": 1}, "text") == 0.0


def test_ordered_lists_keep_their_order():
    expected, predicted = {"s": ["mix", "heat", "cool"]}, {"s": ["heat", "mix", "cool"]}

    assert value(expected, predicted) == 1.0
    for fields in ({"s": {"ordered": True}}, {"s[*]": {"exact": {}, "ordered": True}}):
        assert value(expected, predicted, fields) == 2 / 4
        assert value(expected, {"s": ["mix", "cool"]}, fields) == 2 / 3
        assert value(expected, expected, fields) == 1.0


def test_a_weight_of_zero_only_reports():
    fields = {"a": "exact", "b": {"exact": {}, "weight": 0}}
    score = RecordMetric(fields).compare({"a": 1, "b": 1}, {"a": 1, "b": 2})

    assert score.value == 1.0
    assert score.parts["b"].value == 0.0
    assert score.details["n_fields"] == 1


def test_a_list_or_object_goes_whole_to_the_evaluator_of_its_path():
    assert value({"p": [1, 2]}, {"p": [1.0, 2.0]}, {"p": "exact"}) == 1.0
    assert value({"p": [1, 2]}, {"p": [2, 1]}, {"p": "exact"}) == 0.0
    assert value({"p": [1, 2]}, {"p": "x"}, {"p": "levenshtein"}) is None


# The ways record metrics went wrong before


GOLD = {
    "target": "LiCoO2",
    "steps": [{"action": "mix", "t": 25}, {"action": "calcine", "t": 900}],
    "notes": None,
    "vendor": "",
    "tags": [],
}


@pytest.mark.parametrize("nothing", [{}, None, {"target": None, "steps": []}, {"notes": "", "vendor": None}])
def test_an_empty_prediction_of_a_full_record_is_zero(nothing):
    assert value(GOLD, nothing) == 0.0


def test_fields_absent_on_both_sides_are_not_counted():
    full = RecordMetric().compare(GOLD, GOLD)

    assert (full.value, full.details["n_fields"]) == (1.0, 5)
    assert value(GOLD, {key: GOLD[key] for key in ("target", "steps")}) == 1.0


@pytest.mark.parametrize("wrong", [[], None, [{"action": "zzz", "t": 1}, {"action": "yyy", "t": 2}]])
def test_a_right_target_does_not_hide_wrong_or_absent_steps(wrong):
    assert value(GOLD, {"target": "LiCoO2", "steps": wrong}) <= 0.2


def test_two_empty_records_are_right_and_say_that_nothing_was_compared():
    for expected, predicted in [({}, {}), (None, {"a": None}), ({"a": ""}, {"b": []})]:
        score = RecordMetric().compare(expected, predicted)
        assert (score.value, score.details["n_fields"]) == (1.0, 0)
        assert score.feedback == "nothing was expected and nothing was extracted"


def test_an_invented_field_costs():
    assert value({"a": 1}, {"a": 1, "b": 2}) == 0.5


def test_steps_are_matched_whatever_their_order():
    assert value(GOLD, {**GOLD, "steps": GOLD["steps"][::-1]}) == 1.0


def test_half_of_the_steps_is_half_of_the_recall():
    fields = {"steps[*].action": "exact", "steps[*].t": "numeric"}
    score = RecordMetric(fields).compare(GOLD, {"steps": GOLD["steps"][:1]})

    assert score.value == 0.5
    assert score.details["lists"]["steps[*]"]["recall"] == 0.5
    assert score.details["lists"]["steps[*]"]["precision"] == 1.0


def test_two_wrong_steps_are_worth_nothing():
    wrong = {"steps": [{"action": "zzz", "t": 1}, {"action": "yyy", "t": 2}]}
    score = RecordMetric({"steps[*].action": "exact", "steps[*].t": "numeric"}).compare(GOLD, wrong)

    assert (score.value, score.details["lists"]["steps[*]"]["matched"]) == (0.0, 0)
    assert score.details["n_fields"] == 8


def test_an_evaluator_inside_a_list_is_asked_once_per_pair():
    counting = Counting()
    predicted = {"steps": [{"action": "calcined"}, {"action": "mixing"}]}

    RecordMetric({"steps[*].action": counting}).compare(GOLD, predicted)

    assert sorted(counting.asked) == [
        ("steps[0].action", "mixing", "mix", None),
        ("steps[1].action", "calcined", "calcine", None),
    ]


def test_the_evaluator_of_a_nested_field_decides():
    predicted = {"steps": [{"action": "MIX"}, {"action": "CALCINE"}]}

    assert value(GOLD, predicted, {"steps[*].action": "exact"}) == 0.0
    assert value(GOLD, predicted, {"steps[*].action": {"exact": {"case_sensitive": False}}}) == 1.0


def test_paths_that_match_nothing_are_found():
    records = [GOLD, Recipe(target="x", steps=[Step(action="heat")])]
    metric = RecordMetric(
        {"step.action": "exact", "steps[*].acton": "exact", "steps[*].action": "exact", "notes": "exact"}
        | {"x": {"ordered": True}}
    )

    assert metric.unmatched_paths(records) == ["step.action", "steps[*].acton", "x[*]"]
    assert RecordMetric({"steps": {"ordered": True}, "target": "exact"}).unmatched_paths(records) == []
    assert RecordMetric({"steps[*]": "exact"}).unmatched_paths(records) == []
    assert RecordMetric({"steps[*].action": "exact"}).unmatched_paths([]) == ["steps[*].action"]


def test_known_paths_are_those_of_single_values():
    assert RecordMetric().known_paths([GOLD, Recipe(target="x", steps=[Step(action="heat")])]) == {
        "target",
        "notes",
        "vendor",
        "tags",
        "steps[*].action",
        "steps[*].t",
        "steps[*].temperature",
    }


@pytest.mark.parametrize(
    ("expected", "predicted", "alias", "result"),
    [
        (500, 500.0, "exact", 1.0),
        ("500 °C", "500 ℃", "exact", 1.0),
        ("Schro\u0308dinger", "Schr\u00f6dinger", "exact", 1.0),
        ("50 h", "5 h", "levenshtein", 0.0),
        ("1 mol", "1 mmol", "levenshtein", 0.0),
        ("None", None, "levenshtein", 0.0),
        (None, "None", "levenshtein", 0.0),
        (0, "", "exact", 0.0),
    ],
)
def test_numbers_writings_and_absences(expected, predicted, alias, result):
    assert value({"a": expected}, {"a": predicted}, {"a": alias}) == result


def test_a_pair_that_earns_nothing_counts_as_a_miss_and_a_false_find():
    worthless = Counting(0.0)
    score = RecordMetric({"s[*].a": worthless}).compare({"s": [{"a": "x"}]}, {"s": [{"a": "x"}]})

    assert (score.value, score.details["n_fields"], len(worthless.asked)) == (0.0, 2, 1)
    assert score.details["lists"]["s[*]"]["matched"] == 0
    assert RecordMetric({"s[*].a": Counting(0.4)}).compare({"s": [{"a": 3}]}, {"s": [{"a": 5}]}).value == 0.4


# No number


def test_an_unscored_leaf_leaves_the_record_unscored_with_its_reason():
    score = RecordMetric({"a": "exact", "s[*].b": Unwilling()}).compare(
        {"a": 1, "s": [{"b": 1}]}, {"a": 1, "s": [{"b": 1}]}
    )

    assert score.value is None
    assert score.error == "s[0].b: the judge did not answer"
    assert score.parts["a"].value == 1.0
    assert score.parts["s[*].b"].error == "s[0].b: the judge did not answer"
    assert "the judge did not answer" in score.feedback


def test_an_unscored_leaf_without_weight_is_only_reported():
    score = RecordMetric({"a": "exact", "b": {"evaluator": Unwilling(), "weight": 0}}).compare(
        {"a": 1, "b": 1}, {"a": 1, "b": 1}
    )

    assert score.value == 1.0
    assert score.parts["b"].value is None


def test_texts_compared_with_a_list_inside_an_item_are_reported_not_zero():
    assert value({"s": [{"a": ["x"]}]}, {"s": [{"a": ["y"]}]}, {"s[*].a": "levenshtein"}) is None


def test_a_prediction_that_cannot_be_read_is_unscored_and_an_expected_record_refused():
    loop: list = []
    loop.append(loop)

    assert RecordMetric().compare({"a": 1}, loop).error.startswith("the prediction cannot be read: ")
    with pytest.raises(ValueError, match="a record is JSON data or a model"):
        RecordMetric().compare(loop, {})


# The metric as DSPy calls it


def test_calling_reads_example_and_prediction():
    example = dspy.Example(id="7", text="...", expected={"a": 1}).with_inputs("text")
    counting = Counting()

    assert RecordMetric()(example, dspy.Prediction(record={"a": 1})).value == 1.0
    assert RecordMetric()(example, dspy.Prediction(reasoning="since", record={"a": 1})).value == 1.0
    assert RecordMetric(output_field="b")(example, dspy.Prediction(c=2, b={"a": 1})).value == 1.0
    assert RecordMetric()(SimpleNamespace(expected={"a": 1}), SimpleNamespace(record={"a": 1})).value == 1.0
    assert RecordMetric()(example, None).value == 0.0
    RecordMetric({"a": counting})(example, dspy.Prediction(record={"a": 1}))
    assert counting.asked == [("a", 1, 1, {"id": "7", "text": "..."})]


@pytest.mark.parametrize(
    ("example", "prediction", "output_field", "sentence"),
    [
        ({"text": "t"}, {"r": 1}, None, r"the record to reach in 'expected'; this one has \['text'\]"),
        ({"expected": 1}, {"r": 1, "q": 2}, None, "one field, or the metric an output_field; the fields are: r, q"),
        ({"expected": 1}, {"record": 1}, "recrod", "no field 'recrod', did you mean 'record'?"),
        ({"expected": 1}, {}, None, "the fields are: none"),
    ],
)
def test_calling_with_the_wrong_fields_is_an_error(example, prediction, output_field, sentence):
    with pytest.raises(ValueError, match=sentence):
        RecordMetric(output_field=output_field)(dspy.Example(**example), dspy.Prediction(**prediction))


def test_name_version_and_protocol():
    plain, named = RecordMetric(), RecordMetric(name="other", output_field="x")

    assert isinstance(plain, Metric)
    assert (plain.name, named.name) == ("record", "other")
    assert plain.version == named.version
    different = [
        RecordMetric({"a": "exact"}),
        RecordMetric({"a": "levenshtein"}),
        RecordMetric({"a": {"exact": {}, "weight": 2}}),
        RecordMetric({"a": {"exact": {"case_sensitive": False}}}),
        RecordMetric({"b": "exact"}),
        RecordMetric({"b": {"ordered": True}}),
        RecordMetric(schema={"type": "object"}),
        plain,
    ]
    assert len({metric.version for metric in different}) == len(different)
    assert RecordMetric({"a": "exact", "b": "exact"}).version == RecordMetric({"b": "exact", "a": "exact"}).version
    assert repr(RecordMetric({"steps[*].action": "exact"})) == "RecordMetric(name='record', fields=['steps[*].action'])"
