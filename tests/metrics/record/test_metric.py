"""RecordMetric: values by hand, what must hold for any record, and the ways records metrics went wrong before."""

import copy
import random
import time
from types import SimpleNamespace
from typing import Literal

import dspy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from metrics import BaseEvaluator, Metric, RecordMetric, Score, UnscoredError

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "heat", "heal", "5 h", "50 h", "2"])
RECORDS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
STEPS = st.fixed_dictionaries(
    {
        "target": SCALARS,
        "steps": st.lists(
            st.fixed_dictionaries(
                {
                    "action": SCALARS,
                    "n": SCALARS,
                    "materials": st.lists(st.fixed_dictionaries({"name": SCALARS}), max_size=2),
                }
            ),
            max_size=4,
        ),
    }
)  # fmt: skip
few = settings(max_examples=60)


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


def shuffled(record, rng):
    """The same record with every list in another order."""
    if isinstance(record, dict):
        return {key: shuffled(inner, rng) for key, inner in record.items()}
    if isinstance(record, list):
        return rng.sample([shuffled(inner, rng) for inner in record], len(record))
    return record


def leaf_paths(record, path=()):
    if isinstance(record, dict):
        return [found for key, inner in record.items() for found in leaf_paths(inner, (*path, key))]
    if isinstance(record, list):
        return [found for index, inner in enumerate(record) for found in leaf_paths(inner, (*path, index))]
    return [path]


def held(record, path):
    for key in path:
        record = record[key]
    return record


def at(record, path, new):
    """A copy of `record` with another value at one place."""
    record = copy.deepcopy(record)
    held(record, path[:-1])[path[-1]] = new
    return record


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
    }
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


# What must hold for any record


@few
@given(RECORDS)
def test_a_record_equals_itself(record):
    assert value(record, record) == 1.0
    assert value(record, copy.deepcopy(record)) == 1.0


@few
@given(RECORDS, RECORDS)
def test_bounds_determinism_and_no_mutation(expected, predicted):
    before = copy.deepcopy((expected, predicted))

    first = RecordMetric().compare(expected, predicted)

    assert (expected, predicted) == before
    assert 0.0 <= first.value <= 1.0
    assert all(0.0 <= part.value <= 1.0 for part in first.parts.values())
    assert RecordMetric().compare(expected, predicted) == first


@few
@given(RECORDS, RECORDS, st.randoms(use_true_random=False))
def test_the_order_of_items_changes_nothing(expected, predicted, rng):
    first = RecordMetric().compare(expected, predicted)
    other = RecordMetric().compare(shuffled(expected, rng), shuffled(predicted, rng))

    assert other.value == pytest.approx(first.value)
    assert {path: part.value for path, part in other.parts.items()} == pytest.approx(
        {path: part.value for path, part in first.parts.items()}
    )
    assert other.details["n_fields"] == first.details["n_fields"]


@few
@given(STEPS, STEPS, st.booleans(), st.data())
def test_damage_never_raises_the_value(expected, predicted, ordered, data):
    """A present value made worthless, anywhere in the prediction."""
    metric = RecordMetric({"steps": {"ordered": True}} if ordered else {})
    present = [path for path in leaf_paths(predicted) if held(predicted, path) not in (None, "", [])]
    assume(present)
    damaged = at(predicted, data.draw(st.sampled_from(present)), "§§§§")

    assert metric.compare(expected, damaged).value <= metric.compare(expected, predicted).value + 1e-9


@few
@given(STEPS, STEPS, st.booleans())
def test_a_false_item_never_raises_the_value(expected, predicted, ordered):
    metric = RecordMetric({"steps": {"ordered": True}} if ordered else {})
    more = {
        **predicted,
        "steps": [*predicted["steps"], {"action": "§§§§", "n": "§§§§", "materials": [{"name": "§§§§"}]}],
    }

    assert metric.compare(expected, more).value <= metric.compare(expected, predicted).value + 1e-9


@few
@given(STEPS, st.data(), st.integers(0, 2), st.booleans())
def test_dropping_a_right_item_never_raises_the_value(expected, data, n_false, ordered):
    metric = RecordMetric({"steps": {"ordered": True}} if ordered else {})
    kept = [step for step in expected["steps"] if data.draw(st.booleans())]
    false = [{"action": "§§§§", "n": "§§§§"}] * n_false
    assume(kept)
    dropped = data.draw(st.integers(0, len(kept) - 1))

    whole = metric.compare(expected, {**expected, "steps": kept + false}).value
    less = metric.compare(expected, {**expected, "steps": kept[:dropped] + kept[dropped + 1 :] + false}).value
    assert less <= whole + 1e-9


@few
@given(STEPS, STEPS)
def test_leaving_out_a_value_that_is_expected_never_raises_the_value(expected, predicted):
    """At the top of the record, where both sides meet whatever else is in them."""
    assume(expected["target"] not in (None, ""))

    assert value(expected, {**predicted, "target": None}) <= value(expected, predicted) + 1e-9


def test_five_hundred_items_of_five_leaves_are_compared_in_time():
    rng = random.Random(0)
    items = [
        {"name": f"material {rng.random()}", "amount": i * 0.5, "time": f"{i} h", "kind": f"k{i % 7}", "dry": i > 9}
        for i in range(500)
    ]
    predicted = [dict(item) for item in rng.sample(items, 500)]
    for item in predicted[::3]:
        item["name"] = "other " + item["name"]
    RecordMetric().compare({"x": [1, 2]}, {"x": [2, 1]})  # imports

    start = time.process_time()
    score = RecordMetric().compare({"x": items}, {"x": predicted})

    assert time.process_time() - start < 2.0
    assert 0.9 < score.value < 1.0
