"""scales: which texts name another scale."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators.scales import other_scale


@pytest.mark.parametrize(
    "text",
    [
        "Rate the quality on a scale of 0-1",
        "Rate the quality on a scale from 0.0 to 1.0.",
        "Score between 0 and 1, where 1 is best",
        "How good is the temperature? 0.0 to 1.0",
        "(0–1)",
        "a 0-1 score",
        "The yield must lie within 1-5 % of the stated one",
        "The temperature range 800-900 °C is plausible",
        "Rate whether 1-5 h of heating fit",
        "Between 0 and 3 steps may be missing",
        "See section 1-5 of the paper",
        "published 2019-2021",
        "1-10-2020",
        "LiNi0-1O2",
        "",
    ],
)
def test_texts_that_name_no_scale_but_zero_to_one(text):
    assert other_scale(text, (0, 1)) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Rate the purity from 1 to 5", "1 to 5"),
        ("Rate from 1–5", "1-5"),
        ("on a scale of 1 through 7", "1 through 7"),
        ("scale: 0..10", "0..10"),
        ("Score the answer between 0 and 100.", "0 and 100"),
        ("Accuracy (1-5)", "1-5"),
        ("Accuracy [0-10]", "0-10"),
        ("Use a 1-5 scale", "1-5"),
        ("Give 1 to 5 stars", "1 to 5"),
        ("Give a score out of 10", "10"),
        ("rated /5", "5"),
        ("on a 5-point scale", "5"),
        ("on a scale of 2-6", "2-6"),
        ("0-1 for purity, then a scale of 1-5 for yield", "1-5"),
        ("scale from -1 to 1", "-1 to 1"),
    ],
)
def test_texts_that_name_another_scale(text, words):
    assert other_scale(text, (0, 1)) == words


def test_zero_to_one_is_another_scale_where_one_to_five_is_declared():
    assert other_scale("0.0 to 1.0, where 1.0 is best", (1, 5)) == "0.0 to 1.0"
    assert other_scale("Rate the quality on a scale of 0-1", (1, 5)) == "0-1"
    assert other_scale("Rate from 1 to 5", (1, 5)) is None
    assert other_scale("on a 5-point scale, 1-5", (1, 5)) is None
    assert other_scale("out of 5", (0, 5)) is None


@settings(max_examples=300)
@given(st.sampled_from([0, 1]), st.integers(2, 100), st.sampled_from(["{}-{}", "{}–{}", "{} to {}"]))
def test_every_way_of_writing_a_scale_is_seen(low, high, form):
    text = f"Rate how plausible it is on a scale of {form.format(low, high)}, please."
    assert other_scale(text, (low, high)) is None
    assert other_scale(text, (low, high + 1)) is not None


@settings(max_examples=300)
@given(st.text())
def test_any_text_is_read(text):
    assert other_scale(text, (0, 1)) is None or isinstance(other_scale(text, (0, 1)), str)
