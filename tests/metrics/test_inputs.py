"""Where a metric finds what it compares."""

from types import SimpleNamespace

import dspy
import pytest

from metrics.inputs import columns, expected_of, predicted_in


@pytest.mark.parametrize("row", [dspy.Example(expected=1), {"expected": 1}, SimpleNamespace(expected=1)])
def test_an_example_is_anything_with_fields(row):
    assert columns(row) == {"expected": 1}
    assert expected_of(row) == 1


def test_a_prediction_of_one_field_needs_no_name():
    assert predicted_in(dspy.Prediction(reasoning="because", links=[1]), None) == [1]
    assert predicted_in({"reasoning": "it is the result"}, None) == "it is the result"
    assert predicted_in(None, "figure") is None


def test_what_is_not_there_is_said():
    with pytest.raises(ValueError, match=r"this one has \['text'\]"):
        expected_of({"text": ""})
    with pytest.raises(ValueError, match="the fields are: a, b"):
        predicted_in({"a": 1, "b": 2}, None)
    with pytest.raises(ValueError, match="did you mean 'figure'"):
        predicted_in({"figure": 1}, "figur")
