"""predefined_score."""

import math
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators import PredefinedScoreEvaluator, create_evaluator


def value(config, name):
    return PredefinedScoreEvaluator(config).score("x", "y", {"id": name}).value


def test_the_established_options_and_defaults():
    for config in (None, {}, {"scores": None}, {"scores": []}, {"scores": {}}):
        evaluator = create_evaluator("predefined_score", config)
        assert evaluator.options() == {"scores": {}, "max_value": 100.0, "ids": None}
        assert evaluator.score("x", "y", {"id": "a"}).value is None


@pytest.mark.parametrize(
    ("config", "values"),
    [
        ({"scores": {"a": 0.1, "b": 1, "c": 0}}, [0.1, 1.0, 0.0]),
        ({"scores": {"a": True, "b": False, "c": 0.5}}, [1.0, 0.0, 0.5]),
        ({"scores": {"a": 85, "b": 100, "c": 0}}, [0.85, 1.0, 0.0]),
        ({"scores": {"a": 1, "b": 3, "c": 5}}, [0.01, 0.03, 0.05]),
        ({"scores": {"a": 1, "b": 3, "c": 5}, "max_value": 5}, [0.2, 0.6, 1.0]),
        ({"scores": {"a": 0.5, "b": 4.5, "c": 5}, "max_value": 5}, [0.1, 0.9, 1.0]),
        ({"scores": [1, 3, 5], "ids": ["a", "b", "c"], "max_value": 5}, [0.2, 0.6, 1.0]),
        ({"scores": (0.1, 0.2, 0.3), "ids": ("a", "b", "c")}, [0.1, 0.2, 0.3]),
        ({"scores": {"a": 0.5, "b": None, "c": 1}}, [0.5, None, 1.0]),
        ({"scores": {"a": 0.5}}, [0.5, None, None]),
        ({"scores": {"a": 1, "b": 1, "c": 0}, "max_value": 5}, [1.0, 1.0, 0.0]),
    ],
)
def test_every_example_has_its_own_score(config, values):
    assert [value(config, name) for name in "abc"] == pytest.approx(values)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"scores": 5}, "scores: a list of numbers or a mapping of ids to numbers is needed, got 5"),
        ({"scores": "0.5"}, "scores: a list of numbers or a mapping"),
        ({"scores": [0.1, 0.2]}, "a list of 2 scores belongs to no examples; give them by id"),
        ({"scores": [0.1, 0.2], "ids": ["a"]}, "there are 2 scores for 1 ids"),
        ({"scores": [], "ids": ["a"]}, "there are 0 scores for 1 ids"),
        ({"scores": [0.1, 0.2], "ids": ["a", "a"]}, "the id 'a' is there twice"),
        ({"scores": {1: 0.1, "1": 0.2}}, "the id '1' is there twice"),
        ({"scores": {"a": 0.1}, "ids": ["a"]}, "ids belong to a list of scores"),
        ({"scores": {"a": "0.5"}}, "the score of 'a' is '0.5', not a number of 0 or more"),
        ({"scores": {"a": -0.1}}, "the score of 'a' is -0.1"),
        ({"scores": {"a": math.nan}}, "the score of 'a' is nan"),
        ({"scores": {"a": math.inf}}, "the score of 'a' is inf"),
        ({"scores": {"a": [1]}}, r"the score of 'a' is [1]"),
        ({"scores": {"a": 0.5, "b": 80}}, "0.5 is a share of 1 and 80 is not"),
        ({"scores": {"a": True, "b": 80}}, "True is a share of 1 and 80 is not"),
        ({"scores": {"a": False, "b": 4}, "max_value": 5}, "False is a share of 1 and 4 is not"),
        ({"scores": {"a": 101}}, "101 is above max_value 100; declare the highest score as max_value"),
        ({"scores": {"a": 7}, "max_value": 5}, "7 is above max_value 5"),
        ({"scores": {"a": 1}, "max_value": 0}, "max_value: input should be greater than 0"),
        ({"scores": [1], "ids": "a"}, "ids: "),
        ({"score": {}}, "unknown option 'score', did you mean 'scores'?"),
    ],
)
def test_what_cannot_be_a_score_is_refused_in_one_sentence(config, words):
    with pytest.raises(ValueError, match="predefined_score: ") as caught:
        PredefinedScoreEvaluator(config)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("input_data", "error"),
    [
        (None, "x: the example has no id, by which its score is found"),
        ({}, "x: the example has no id, by which its score is found"),
        ({"id": None}, "x: the example has no id, by which its score is found"),
        ({"id": "b"}, "x: there is no score for the example 'b'"),
        ({"id": 2}, "x: there is no score for the example '2'"),
    ],
)
def test_without_id_or_score_there_is_no_score(input_data, error):
    score = PredefinedScoreEvaluator({"scores": {"a": 1}}).score("v", "w", input_data, "x")
    assert (score.value, score.error) == (None, error)


def test_ids_are_text_whatever_they_were_written_as():
    assert value({"scores": {1: 0.5}}, "1") == value({"scores": {"1": 0.5}}, 1) == 0.5
    assert value({"scores": [0.5], "ids": [1]}, "1") == 0.5


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"scores": {"a": 0.5}}, "the score given is 0.5"),
        ({"scores": {"a": 4}, "max_value": 5}, "the score given is 4 of 5"),
        (
            {"scores": {"a": 4}},
            "the score given is 4 of 100, taken for the highest score because no max_value is given",
        ),
        ({"scores": {"a": 1}, "max_value": 5}, "the score given is 1; no score is above 1, so max_value 5 is not used"),
    ],
)
def test_the_feedback_says_which_scale_was_taken(config, words):
    assert PredefinedScoreEvaluator(config).score("x", "y", {"id": "a"}, "f").feedback == f"f: {words}"


def test_threads_order_and_repetition_change_nothing():
    scores = {f"e{number}": number / 1000 for number in range(1000)}
    evaluator = PredefinedScoreEvaluator({"scores": scores})
    names = [*scores, *random.Random(0).sample([*scores], 200)]
    random.Random(1).shuffle(names)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: evaluator.evaluate(None, None, {"id": name}), names))
    assert found == [scores[name] for name in names]


def test_equal_scores_have_equal_versions_and_later_changes_do_not_reach_them():
    scores = {"a": 1, "b": 2}
    first = PredefinedScoreEvaluator({"scores": scores, "max_value": 5})
    version = first.version
    assert version == PredefinedScoreEvaluator({"scores": [1, 2], "ids": ["a", "b"], "max_value": 5}).version
    assert version != PredefinedScoreEvaluator({"scores": {"a": 1, "b": 3}, "max_value": 5}).version
    scores["a"] = 5
    assert (first.version, first.evaluate(None, None, {"id": "a"})) == (version, 0.2)


SCORES = st.one_of(st.booleans(), st.integers(-1, 200), st.floats(), st.none(), st.text(max_size=2))
IDS = st.one_of(st.text(max_size=4), st.integers(0, 9))


@settings(max_examples=300)
@given(st.dictionaries(IDS, SCORES, max_size=6), st.sampled_from([None, 1, 5, 100, 1e6]), st.data())
def test_any_scores_are_refused_or_keep_their_order_on_zero_to_one(scores, most, data):
    config = {"scores": scores} if most is None else {"scores": scores, "max_value": most}
    try:
        evaluator = PredefinedScoreEvaluator(config)
    except ValueError:
        return
    found = {name: evaluator.score(None, None, {"id": name}).value for name in scores}
    numbers = sorted((float(score), found[name]) for name, score in scores.items() if score is not None)
    assert [one for _, one in numbers] == sorted(one for _, one in numbers)
    assert all(0.0 <= one <= 1.0 for _, one in numbers)
    assert all(found[name] is None for name, score in scores.items() if score is None)
