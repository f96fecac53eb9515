"""Grounded: what stands in the source, in whatever form; what was made up is found."""

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics import CompositeMetric, GroundedMetric, RecordMetric

SOURCE = (
    "Li2CO3 (2.00 g, 99.9%) and Co₃O₄ were mixed for two hours, heated at 10−3 Pa to 800–900 °C at 5 °C/min. "
    "Yield 1,200 mg of LiCoO2; washed with 0.5 M HCl in a tube furnace."
)


def grounded(value, metric=None, **more):
    return (metric or GroundedMetric(**more))({"text": SOURCE}, {"record": {"a": value}})


@pytest.mark.parametrize(
    "value",
    [2.0, 2, 99.9, 1200, 0.001, 900, "2.00 g", "2 h", "120 min", "1.2 g", "800-900 °C", "5 K/min", "500 mM", "0.001 Pa",
     "Li2CO3", "CLi2O3", "Co3O4", "CoLiO2", "HCl", "tube furnace", "Tube  Furnace"],
)  # fmt: skip
def test_what_stands_in_the_source(value):
    assert grounded(value).value == 1.0


@pytest.mark.parametrize(
    "value",
    [99, 9, 4.34, 20, "3 h", "120 s", "850 °C", "2 mg", "1.2 kg", "LiCoO3", "Na2CO3", "rotary kiln", "12", "00 g"],
)
def test_what_was_made_up(value):
    score = grounded(value)
    assert score.value == 0.0
    assert score.feedback.startswith("a: ")
    assert score.details["ungrounded"] == ["a"]


def test_a_text_gets_the_share_of_its_words():
    score = grounded("furnace lined with gold")
    assert score.value == 0.5
    assert "is only in part in the source" in score.feedback


def test_places_that_no_source_holds():
    record = {
        "steps": [{"step_number": 7, "action": "mixed"}, {"step_number": 8, "action": "washed", "stirring": True}]
    }
    example, prediction = {"text": SOURCE}, {"record": record}
    assert GroundedMetric()(example, prediction).value == 0.5
    assert GroundedMetric(exclude=["steps[*].step_number"])(example, prediction).value == 1.0
    assert GroundedMetric(exclude=["steps"])(example, prediction).value == 0.0, "nothing is left to look up"


def test_choices_of_a_schema_are_passed_over_and_a_misfit_is_nothing():
    schema = {
        "type": "object",
        "properties": {"method": {"anyOf": [{"$ref": "#/$defs/Method"}, {"type": "null"}]}, "mass": {"type": "number"}},
        "$defs": {"Method": {"enum": ["solid-state", "sol-gel"]}},
    }
    metric = GroundedMetric(schema=schema)
    right = metric({"text": SOURCE}, {"record": {"method": "sol-gel", "mass": 2.0}})
    assert (right.value, right.details["n"], right.parts["schema"].value) == (1.0, 1, 1.0)
    wrong = metric({"text": SOURCE}, {"record": {"mass": "2.00"}})
    assert (wrong.value, wrong.parts["schema"].value) == (0.0, 0.0)
    assert wrong.feedback.startswith("the record does not fit the schema")


@pytest.mark.parametrize("nothing", [None, {}, [], "", {"a": None}, {"a": []}])
def test_nothing_extracted_is_nothing(nothing):
    assert GroundedMetric()({"text": SOURCE}, {"record": nothing}).value == 0.0


def test_what_it_needs_is_told():
    with pytest.raises(ValueError, match="grounded looks values up in 'source_text', which the example does not hold"):
        GroundedMetric()({"id": "1"}, {"record": {}})
    with pytest.raises(NotImplementedError, match="needs the source"):
        GroundedMetric().compare({}, {})
    assert GroundedMetric()({"text": SOURCE}, {"record": {"\ud800": 1}}).value is None
    named = GroundedMetric(source="abstract", output_field="answer")
    assert named({"abstract": "5 g"}, {"answer": {"m": "5 g"}, "other": 1}).value == 1.0
    assert named.version != GroundedMetric().version


def test_it_stands_beside_a_record_metric():
    both = CompositeMetric({"record": RecordMetric(), "grounded": GroundedMetric()}, {"record": 1, "grounded": 1})
    example = dspy.Example(text=SOURCE, expected={"mass": 2.0, "time": "2 h"}).with_inputs("text")
    assert both(example, dspy.Prediction(record={"mass": 2.0, "time": "3 h"})).value == 0.5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.text(max_size=200))
def test_any_extraction_from_any_source_has_a_value_in_bounds(record, source):
    score = GroundedMetric()({"text": source}, {"record": record})
    assert score.value is None or 0.0 <= score.value <= 1.0
    assert score == GroundedMetric()({"text": source}, {"record": record}) or record != record
