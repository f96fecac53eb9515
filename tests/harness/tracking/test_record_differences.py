"""What a person would say is wrong with an answer."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.tracking.record_differences import record_differences

records = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(records)
def test_a_right_answer_has_no_differences(record: Any) -> None:
    assert record_differences(record, record, record) == []


@given(records, records, records)
def test_any_records_can_be_compared(expected: Any, baseline: Any, tuned: Any) -> None:
    for found in record_differences(expected, baseline, tuned):
        assert found.baseline_differs or found.tuned_differs
        assert not found.baseline_differs or found.baseline != found.expected


def test_null_and_absent_are_the_same_and_numbers_are_numbers() -> None:
    assert record_differences({"a": None, "t": 900}, {"t": 900.0}, {"a": None, "t": 900}) == []


def test_an_extra_item_is_shown_after_the_others() -> None:
    found = record_differences([{"name": "BaCO3"}], [{"name": "BaCO3"}], [{"name": "TiO2"}, {"name": "BaCO3"}])
    assert [(each.path, each.expected, each.tuned, each.baseline_differs) for each in found] == [
        ("[+1].name", None, "TiO2", False)
    ]


def test_a_program_without_an_answer_differs_nowhere() -> None:
    assert record_differences({"a": 1}, None, None) == []
    (found,) = record_differences({"a": 1}, None, {"a": 2})
    assert (found.tuned_differs, found.baseline_differs) == (True, False)


def test_long_lists_are_compared_by_position() -> None:
    items = [str(number) for number in range(100)]
    found = record_differences(items, items, items[::-1])
    assert len(found) == 100
    assert found[0].path == "[0]"


def test_another_shape_is_a_difference() -> None:
    found = record_differences({"a": {"b": 1}}, {"a": "x"}, {"a": [1]})
    assert [(each.path, each.expected, each.baseline, each.tuned) for each in found] == [
        ("a.b", "1", None, None),
        ("a", None, "x", None),
        ("a[+1]", None, None, "1"),
    ]
