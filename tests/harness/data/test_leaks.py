import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from harness.data.leaks import LONG, THRESHOLD, check_leaks, find_leaks
from harness.data.record import Record
from harness.data.splits import Splits
from harness.errors import UsageError

SENTENCE = "BaCO3 and TiO2 were ball milled in ethanol, dried and calcined at 900 °C for 5 h to give BaTiO3."
PARAGRAPH = " ".join(
    f"Step {number}: the powder was pressed into pellets and heated at {number}00 °C in flowing argon."
    for number in range(1, 9)
)


def record(identity, text, expected=None, **fields):
    return Record(identity, {"text": text, **fields}, expected, None, f"a.csv line {identity}")


def cut(train, validation=(), test=()):
    return Splits(tuple(train), tuple(validation), tuple(test), 0)


def leaking(one, two, expected=({"n": 1}, {"n": 2}), inputs=("text",)):
    return find_leaks(cut([record("1", one, expected[0])], test=[record("2", two, expected[1])]), inputs)


@pytest.mark.parametrize(
    "copy",
    [
        SENTENCE,
        SENTENCE.upper(),
        SENTENCE.replace(" ", "\u2009\n"),
        SENTENCE.replace(",", " ;").rstrip("."),
        SENTENCE.replace("BaCO3", "BaCO₃").replace("TiO2", "TiO₂"),
        SENTENCE.replace("900 °C", "900℃"),
        SENTENCE.replace("5 h", "5h"),
    ],
)
def test_the_same_text_in_other_dress_is_a_leak_whatever_the_records(copy):
    (leak,) = leaking(SENTENCE, copy)
    assert (leak.first.id, leak.second.id, leak.splits, leak.similarity) == ("1", "2", ("train", "test"), 1.0)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("heated to -5 °C", "heated to 5 °C"),
        ("heated to −5 °C", "heated to 5 °C"),
        ("1.5 g of NaCl", "15 g of NaCl"),
        ("a ratio of 1:1", "a ratio of 11"),
        ("x < 5", "x > 5"),
        ("5 $", "5 €"),
        ("!!!", "???"),
        ("का", "की"),
        ("加热到九百度", "加热到八百度"),
        (SENTENCE, SENTENCE.replace("900", "800")),
        (SENTENCE, SENTENCE.replace("BaCO3", "SrCO3").replace("BaTiO3", "SrTiO3")),
    ],
)
def test_a_short_text_that_says_something_else_is_no_leak(one, two):
    assert leaking(one, two) == []


def test_nearly_the_same_short_text_is_a_leak_when_its_record_is_the_same():
    typo = SENTENCE.replace("milled", "miled")
    assert [leak.similarity >= THRESHOLD for leak in leaking(SENTENCE, typo, ({"n": 1}, {"n": 1}))] == [True]
    assert leaking(SENTENCE, typo) == []
    assert leaking("urea", "ureas", ({"n": 1}, {"n": 1})) == []


def test_nearly_the_same_long_text_is_a_leak_whatever_its_record():
    assert len(PARAGRAPH) > LONG
    (leak,) = leaking(PARAGRAPH, PARAGRAPH.replace("argon", "oxygen", 1))
    assert THRESHOLD <= leak.similarity < 1


def test_a_long_text_with_more_than_one_edit_in_twenty_is_no_leak():
    assert leaking(PARAGRAPH, PARAGRAPH.replace("argon", "nitrogen")) == []


def test_only_pairs_across_splits_count():
    twins = [record("1", SENTENCE), record("2", SENTENCE)]
    assert find_leaks(cut(twins)) == []
    assert [leak.splits for leak in find_leaks(cut(twins[:1], twins[1:]))] == [("train", "validation")]
    both = find_leaks(cut(twins[:1], twins[1:], [record("3", SENTENCE)]))
    assert sorted((leak.first.id, leak.second.id) for leak in both) == [("1", "2"), ("1", "3"), ("2", "3")]


def test_only_the_programs_inputs_are_compared():
    one, two = record("1", SENTENCE, {}, doi="10.1/a"), record("2", SENTENCE, {}, doi="10.2/zzzzzzzzzzzz")
    assert find_leaks(cut([one], [two]), ["text"])
    assert not find_leaks(cut([one], [two]))
    assert not find_leaks(cut([one], [two]), ["doi"])


def test_inputs_that_are_no_text_are_compared_as_json():
    one = Record("1", {"points": [[1, 2], [3, 4]], "n": 5}, {"a": 1}, None, "")
    same = Record("2", {"n": 5, "points": [[1, 2], [3, 4]]}, {"a": 2}, None, "")
    other = Record("3", {"n": 6, "points": [[1, 2], [3, 4]]}, {"a": 3}, None, "")
    assert [leak.second.id for leak in find_leaks(cut([one], [same], [other]))] == ["2"]


def test_the_sentence_names_both_and_the_way_out():
    splits = cut([record("1", SENTENCE)], [record("2", SENTENCE + "!")], [record("3", SENTENCE)])
    with pytest.raises(UsageError) as raised:
        check_leaks(splits, ["text"])
    assert str(raised.value) == (
        "the same example is in train and validation: '1' (a.csv line 1) and '2' (a.csv line 2); remove one of the "
        "two, or give both the same value in a column and name it in data.group_by. 2 more such pairs."
    )
    near = cut([record("1", PARAGRAPH)], test=[record("2", PARAGRAPH.replace("argon", "oxygen", 1))])
    with pytest.raises(UsageError, match=r"nearly the same example \(similarity 0.99\) is in train and test: '1'"):
        check_leaks(near)


def test_clean_splits_pass():
    check_leaks(cut([record("1", SENTENCE)], [record("2", PARAGRAPH)], [record("3", "another text")]))
    check_leaks(cut([], [], []))


@given(st.lists(st.text("ab1 ", min_size=0, max_size=40), min_size=2, max_size=12))
def test_no_pair_is_lost_on_the_way(texts):
    """The q-gram counts only rule out pairs that a comparison of all pairs would rule out too."""
    rows = [record(str(n), f"x{text}", {"n": 0}) for n, text in enumerate(texts)]
    tokens = {row.id: " ".join(re.findall(r"1+|[abx]+", row.fields["text"])) for row in rows}
    half = len(rows) // 2
    found = {(leak.first.id, leak.second.id) for leak in find_leaks(cut(rows[:half], test=rows[half:]), ["text"])}
    assert found == {
        (one.id, two.id)
        for one in rows[:half]
        for two in rows[half:]
        if Levenshtein.normalized_similarity(tokens[one.id], tokens[two.id]) >= THRESHOLD
    }


@given(st.text("abcdefgh", min_size=60, max_size=200), st.data())
def test_a_text_with_few_edits_is_found(text, data):
    copy = text
    for _ in range(data.draw(st.integers(0, len(text) // 20))):
        at = data.draw(st.integers(0, len(copy) - 1))
        copy = copy[:at] + data.draw(st.sampled_from(["", "x", "ab"])) + copy[at + 1 :]
    near = Levenshtein.normalized_similarity(text, copy) >= THRESHOLD
    assert bool(leaking(text, copy, ({}, {}))) == near


def test_a_thousand_papers_take_less_than_five_seconds_and_a_hundred_sentences_less_than_one():
    draw = random.Random(0)
    words = ["".join(draw.choices("etaoinshrdlucmf", k=draw.randint(2, 9))) for _ in range(2000)]

    def rows(count, length):
        return [record(str(n), " ".join(draw.choices(words, k=length))[: length * 6], {"n": n}) for n in range(count)]

    for count, length, seconds in ((1000, 670, 5), (100, 20, 1)):
        data = rows(count, length)
        data[-1] = record("twin", data[0].fields["text"].upper(), {"n": -1})
        splits = cut(data[: count // 2], data[count // 2 : count // 2 + 100], data[count // 2 + 100 :])
        start = time.perf_counter()
        leaks = find_leaks(splits, ["text"])
        assert time.perf_counter() - start < seconds
        assert [(leak.first.id, leak.second.id) for leak in leaks] == [("0", "twin")]
