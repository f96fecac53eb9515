"""Feedback of a record: every wrong leaf, the worst first, within its limits."""

from metrics import RecordMetric
from metrics.record.findings import rates


def lines(expected, predicted, fields=None):
    return RecordMetric(fields or {}).compare(expected, predicted).feedback.split("\n")


def test_feedback_names_place_and_both_values_worst_first():
    fields = {"a": "exact", "b": {"exact": {}, "weight": 3}, "c": "levenshtein", "d": "exact"}

    assert lines({"a": 900, "b": "x", "c": "heat", "d": 1}, {"a": 90, "b": "y", "c": "heal", "d": 1}, fields) == [
        "b: expected 'x', got 'y'",
        "a: expected 900, got 90",
        "c: expected 'heat', got 'heal' (similarity 0.75)",
    ]


def test_feedback_tells_missing_null_and_empty_apart():
    assert lines({"a": 1, "b": 2, "c": 3}, {"b": None, "c": "", "d": 4}) == [
        "a: expected 1, got nothing",
        "b: expected 2, got null",
        "c: expected 3, got ''",
        "d: expected nothing, got 4",
    ]


def test_an_item_missed_or_invented_is_one_line_with_all_its_leaves():
    expected = {"s": [{"action": "mix", "m": [{"n": "TiO2"}]}, {"action": "heat"}]}
    predicted = {"s": [{"action": "heat"}, {"action": "zzzzzz", "t": 5}]}

    assert lines(expected, predicted) == [
        "s[0]: missing, expected action 'mix', m[0] n 'TiO2'",
        "s[1]: not expected, got action 'zzzzzz', t 5",
    ]
    assert lines({"tags": ["p", "q"]}, {"tags": ["p", "7"]}) == [
        "tags[1]: missing, expected 'q'",
        "tags[1]: not expected, got '7'",
    ]


def test_feedback_is_short_however_much_is_wrong():
    many = lines({f"f{i}": i + 1 for i in range(100)}, {})
    assert len(many) == 13
    assert many[-1] == "... and 88 more"

    long = lines({f"f{i}": "x" * 500 for i in range(9)}, {f"f{i}": "y" * 500 for i in range(9)})
    assert len("\n".join(long)) <= 2020
    assert long[-1].startswith("... and ")

    (item,) = lines({"s": [{f"f{i}": "x" * 50 for i in range(100)}]}, {"s": []})
    assert len(item) == 300


def test_values_cannot_break_out_of_their_line():
    assert len(lines({"a": "x"}, {"a": "y\nb: expected 1, got 2\r\u2028"})) == 1


def test_a_right_record_says_so():
    assert lines({"a": 1}, {"a": 1}) == ["all values are right"]


def test_rates_divide_by_what_is_there():
    assert rates(1.0, 2, 4) == {"precision": 0.5, "recall": 0.25, "f1": 1 / 3}
    assert rates(0.0, 0, 1) == {"precision": None, "recall": 0.0, "f1": 0.0}
    assert rates(0.0, 0, 0) == {"precision": None, "recall": None, "f1": None}
