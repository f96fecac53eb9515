"""The contract of evaluators: options, feedback, floats, a user's own class."""

import numpy as np
import pytest
from pydantic import Field

from metrics import UnscoredError
from metrics.evaluators import CATALOGUE, BaseEvaluator, EvaluatorConfig, create_evaluator


class Halves(BaseEvaluator):
    """A class as people bring it: only `evaluate`."""

    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        if extracted is None:
            raise UnscoredError("nothing to rate")
        return extracted


class KeyedConfig(EvaluatorConfig):
    level: int = 1
    api_key: str | None = Field(None, exclude=True)


class Keyed(Halves):
    alias = "keyed"
    config_model = KeyedConfig


class OwnConstructor(Halves):
    def __init__(self, config):
        self.config = config


def test_the_catalogue_maps_each_alias_to_its_class_and_cannot_be_changed():
    established = "exact levenshtein text_similarity score_judge label_model_grader python_code predefined_score"
    assert {alias: cls.alias for alias, cls in CATALOGUE.items()} == {alias: alias for alias in CATALOGUE}
    assert list(CATALOGUE)[:7] == established.split()
    with pytest.raises(TypeError):
        CATALOGUE["mine"] = Halves  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize(
    ("alias", "config", "sentence"),
    [
        ("exakt", None, "unknown evaluator 'exakt', did you mean 'exact'?"),
        ("exact", {"case_sensitve": True}, "exact: unknown option 'case_sensitve', did you mean 'case_sensitive'?"),
        ("levenshtein", {"cutoff": 1}, "levenshtein: unknown option 'cutoff', known: threshold"),
        ("levenshtein", {"threshold": 1.5}, "levenshtein: threshold: input should be less than or equal to 1"),
        ("levenshtein", {"threshold": float("nan")}, "levenshtein: threshold: input should be a finite number"),
        ("levenshtein", [0.5], r"levenshtein: options are a mapping of names to values, got \[0.5\]"),
        ("numeric", {"partial": "cubic"}, "numeric: partial: input should be 'none' or 'linear'"),
        ("numeric", {"width": 0}, "numeric: width: input should be greater than 0"),
        ("numeric", {"absolute_tolerance": -1}, "numeric: absolute_tolerance: input should be greater"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(alias, config, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        create_evaluator(alias, config)
    assert "\n" not in str(caught.value)


def test_equal_options_have_equal_versions():
    assert create_evaluator("exact").version == create_evaluator("exact", {"case_sensitive": True}).version
    assert create_evaluator("exact").version != create_evaluator("exact", {"case_sensitive": False}).version
    assert create_evaluator("exact").version != create_evaluator("levenshtein").version


def test_secrets_enter_neither_version_nor_text():
    evaluator = Keyed({"api_key": "sk-secret"})

    assert evaluator.version == Keyed().version
    assert "sk-secret" not in repr(evaluator)
    assert repr(evaluator) == "Keyed({'level': 1})"


def test_feedback_names_field_and_both_values():
    score = create_evaluator("exact").score(90, 900, field_path="conditions.temperature")

    assert score.feedback == "conditions.temperature: expected 900, got 90"


def test_a_class_with_evaluate_alone_scores_too():
    assert Halves().score(0.5, 1).value == 0.5
    assert Halves().score(0.5, 1, field_path="a").feedback == "a: expected 1, got 0.5"
    assert Halves().score(None, 1, field_path="a").error == "a: nothing to rate"
    assert Halves().score(7, 1).error == "out of range 0..1: 7"
    assert Halves().score(float("nan"), 1).error == "not a finite number: nan"


def test_a_class_without_an_alias_goes_by_its_own_name():
    assert Halves().name.endswith("Halves")
    assert OwnConstructor({"a": 1}).version != OwnConstructor({"a": 2}).version
    assert OwnConstructor(None).version == OwnConstructor({}).version


def test_a_class_that_measures_nothing_is_refused():
    with pytest.raises(TypeError, match="Nothing defines neither score nor evaluate"):

        class Nothing(BaseEvaluator):
            pass


def test_evaluate_raises_the_reason_where_there_is_no_number():
    with pytest.raises(UnscoredError, match=r"steps: levenshtein compares texts, not lists or objects"):
        create_evaluator("levenshtein").evaluate("a", ["a"], field_path="steps")


def test_likeness_for_matching_asks_nothing_and_excludes_nothing():
    values = Halves().similarities(["heat", 5, "zzz"], ["heat", "5"])

    np.testing.assert_allclose(values, [[1.0, 0.01], [0.01, 1.0], [0.01, 0.01]])
