"""The Score contract: a number in 0..1 or the reason why there is none."""

import math

import pytest

from metrics import Score, UnscoredError, config_version


@pytest.mark.parametrize("value", [1.5, -0.1, math.nan, math.inf, True, "0.5"])
def test_a_value_is_a_number_between_zero_and_one(value):
    with pytest.raises(ValueError, match=r"a score is a number in 0\.\.1"):
        Score(value)


def test_value_and_error_exclude_each_other():
    with pytest.raises(ValueError, match="a Score without a value says why"):
        Score(None)
    with pytest.raises(ValueError, match="a Score with a value has no error"):
        Score(0.5, error="no")


@pytest.mark.parametrize(
    ("number", "value", "error"),
    [
        (0, 0.0, None),
        (True, 1.0, None),
        ("0.25", 0.25, None),
        (None, None, "not a number: None"),
        ("high", None, "not a number: 'high'"),
        (math.nan, None, "not a finite number: nan"),
        (-math.inf, None, "not a finite number: -inf"),
        (4, None, "out of range 0..1: 4"),
        (-0.5, None, "out of range 0..1: -0.5"),
    ],
)
def test_a_number_from_elsewhere_is_a_value_or_a_reason(number, value, error):
    score = Score.measured(number, "why")

    assert (score.value, score.error) == (value, error)
    assert score.feedback == (error or "why")


def test_as_float_is_the_value_or_the_reason():
    assert Score(1).as_float() == 1.0
    with pytest.raises(UnscoredError, match="no gold"):
        Score.unscored("no gold").as_float()


def test_plain_data_and_back():
    score = Score(0.5, "f", {"a": Score.unscored("no gold", feedback="g")}, details={"n": 2})

    assert Score.from_dict(score.to_dict()) == score


def test_versions_follow_the_configuration():
    assert config_version("a", {"x": 1, "y": 2}) == config_version("a", {"y": 2, "x": 1})
    assert len({config_version("a", {"x": 1}), config_version("b", {"x": 1}), config_version("a", {"x": 2})}) == 3


@pytest.mark.parametrize("wrong", [{"feedback": None}, {"parts": {"a": 5}}, {"parts": {1: Score(1.0)}}])
def test_what_no_report_can_show_is_refused_where_it_is_made(wrong):
    with pytest.raises(TypeError):
        Score(0.5, **wrong)


def test_halves_of_characters_are_shown_as_what_they_are():
    assert Score(0.5, "a\ud800b").feedback == "a\ufffdb"
    assert Score(0.5, "\ud83d\ude00 é").feedback == "😀 é"
    assert Score.unscored("\udc00").error == "\ufffd"
