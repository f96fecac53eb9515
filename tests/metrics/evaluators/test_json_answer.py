"""json_answer: what is read as a model's answer, what is passed over, and what is none."""

import contextlib
import json
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metrics.evaluators.json_answer import choice_of, folded, number_of, read_object, text_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)


@pytest.mark.parametrize(
    ("text", "found", "repaired"),
    [
        ('{"score": 4}', {"score": 4}, []),
        (' \n{"score": 4}\n', {"score": 4}, []),
        ('\ufeff{"score": 4}', {"score": 4}, []),
        ('```json\n{"score": 4}\n```', {"score": 4}, ["code fence"]),
        ('```\n{"score": 4}\n```', {"score": 4}, ["code fence"]),
        ('```json {"score": 4}```', {"score": 4}, ["code fence"]),
        ('{"reason": "a\nb\tc", "score": 4}', {"reason": "a\nb\tc", "score": 4}, ["raw control characters"]),
        ('{"score": 4,}', {"score": 4}, ["trailing comma"]),
        ('{"a": [1, 2, ], "s": ",}",}', {"a": [1, 2], "s": ",}"}, ["trailing comma"]),
        ('{"r": "a\n,]", "s": 1 , }', {"r": "a\n,]", "s": 1}, ["raw control characters", "trailing comma"]),
        ('<think>{"score": 1}</think>\n{"score": 4}', {"score": 4}, ["thoughts"]),
        ('<think>hm</think>```json\n{"score": 4,}\n```', {"score": 4}, ["thoughts", "code fence", "trailing comma"]),
    ],
)
def test_what_changes_no_value_is_passed_over_and_named(text, found, repaired):
    assert read_object(text) == (found, repaired)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer is empty"),
        ("```\n```", "the answer is empty"),
        ("I cannot evaluate this.", "the answer is not JSON: expecting value at character 0"),
        ("Score: 3/5", "not JSON"),
        ("Criterion 1: very poor", "not JSON"),
        ("4", "not a JSON object: 4"),
        ("null", "not a JSON object: null"),
        ('[{"score": 4}]', "not a JSON object"),
        ('"{}"', "not a JSON object"),
        ('Here it is: {"score": 4}', "not JSON"),
        ('{"score": 4} I am sure.', "not JSON: extra data"),
        ('{"score": 1}{"score": 5}', "not JSON: extra data"),
        ('{"score": 4', "not JSON"),
        ("{'score': 4}", "not JSON"),
        ('{"score": 4/5}', "not JSON"),
        ('{"score": NaN}', "the answer holds NaN, which is not JSON"),
        ('{"score": -Infinity}', "-Infinity"),
        ('{"score": 1, "score": 5}', "gives 'score' twice"),
        ('{"a": {"score": 1, "score": 5}}', "gives 'score' twice"),
        ('```json\n{"score": 4}\n```\n```json\n{"score": 5}\n```', "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"score": ' + "9" * 5_000 + "}", "4300"),
    ],
)
def test_everything_else_is_no_answer(text, reason):
    with pytest.raises(ValueError, match=r"answer|4300") as caught:
        read_object(text)
    assert reason in str(caught.value)


@settings(max_examples=300)
@given(OBJECTS, st.booleans(), st.booleans(), st.sampled_from(["", " ", "\n\t"]))
def test_an_object_comes_back_as_it_was_however_it_was_wrapped(found, is_fenced, is_ascii, space):
    text = json.dumps(found, ensure_ascii=is_ascii, indent=2 if space == " " else None)
    text = f"{space}```json\n{text}\n```{space}" if is_fenced else space + text + space
    assert read_object(text) == (found, ["code fence"] if is_fenced else [])


@settings(max_examples=300)
@given(OBJECTS)
def test_a_trailing_comma_changes_no_value(found):
    text = json.dumps(found)
    said = text[:-1] + ",}" if found else text
    assert read_object(said)[0] == found


@settings(max_examples=400)
@given(st.one_of(st.text(), st.text(alphabet='{}[]":,\\ \n`' + string.digits + "true<think>/", max_size=60)))
@example('"' * 5_000)
@example("{" + '"\\' * 5_000)
@example("<think>" * 2_000)
def test_any_text_is_an_object_or_a_reason(text):
    with contextlib.suppress(ValueError):
        found, _ = read_object(text)
        assert isinstance(found, dict)


@pytest.mark.parametrize(
    ("value", "number", "repaired"),
    [
        (4, 4, []), (0.5, 0.5, []), (-1, -1, []), ("4", 4, ["number as text"]), (" 0.5 ", 0.5, ["number as text"]),
        ("−1", -1, ["number as text"]), ("1e-2", 0.01, ["number as text"]),
    ],
)  # fmt: skip
def test_numbers_and_text_that_is_nothing_else(value, number, repaired):
    assert number_of({"score": value}, "score") == (number, repaired)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        "",
        "N/A",
        "high",
        "4/5",
        "4 of 5",
        "80%",
        "4,5",
        "four",
        [4],
        {"value": 4},
        float("inf"),
        "nan",
    ],
)
def test_what_is_no_number(value):
    with pytest.raises(ValueError, match="score is"):
        number_of({"score": value}, "score")


def test_another_key_is_another_key():
    with pytest.raises(ValueError, match="the answer has no 'score'"):
        number_of({"Score": 0.1}, "score")


@pytest.mark.parametrize(
    ("said", "choice"),
    [("sol-gel", "sol-gel"), ("Sol-Gel", "sol-gel"), (" SOL–GEL\n", "sol-gel"), ("solid  state", "Solid state")],
)
def test_a_choice_is_found_without_regard_to_case_and_form(said, choice):
    assert choice_of({"label": said}, "label", ["sol-gel", "Solid state"]) == choice


@pytest.mark.parametrize("said", ["", "sol", "sol-gel method", None, 1, ["sol-gel"], True])
def test_what_is_none_of_the_choices(said):
    with pytest.raises(ValueError, match="label is"):
        choice_of({"label": said}, "label", ["sol-gel", "Solid state"])


def test_a_reason_decides_nothing():
    assert text_of({"reason": " why "}, "reason") == "why"
    assert text_of({}, "reason") == text_of({"reason": None}, "reason") == text_of({"reason": [1]}, "reason") == ""


@settings(max_examples=200)
@given(st.text())
def test_folding_twice_changes_nothing_more(text):
    assert folded(folded(text)) == folded(text)
