"""CompositeMetric: the weighted mean, parts without a value, feedback, version, records; ScaledMetric."""

import math

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.scripted import ScriptedProvider
from metrics import CompositeMetric, Metric, RecordMetric, ScaledMetric, Score, StringCheckEvaluator
from metrics.asking import RoleModel
from metrics.composite import _MAX_CHARACTERS


class Fixed:
    """A metric that says what it was told to say."""

    def __init__(self, said, name="fixed", version="1"):
        self.said = said if isinstance(said, Score) else Score(said)
        self.name, self.version = name, version
        self.asked = []

    def __call__(self, example, prediction):
        self.asked.append((example, prediction))
        return self.said

    def compare(self, expected, predicted):
        return self.said


class NeedsSource(Fixed):
    def compare(self, expected, predicted):
        raise NotImplementedError


UNSCORED = Score.unscored("the judge did not answer")


def composite(said, weights=None, **options):
    return CompositeMetric({name: Fixed(value) for name, value in said.items()}, weights or {}, **options)


def value(said, weights=None, **options):
    return composite(said, weights, **options)(None, None).value


# The value


def test_the_value_is_the_weighted_mean():
    assert value({"a": 1.0, "b": 0.0, "c": 0.5}, {"a": 2, "b": 1}) == 2.5 / 4
    assert value({"a": 0.25}) == 0.25


def test_zero_is_a_value_and_not_a_hole():
    assert value({"a": 0.0, "b": 1.0}, {"a": 0.5, "b": 0.5}) == 0.5
    assert value({"a": 0.0, "b": 1.0}, {"a": 0.5, "b": 0.5}, missing="renormalise") == 0.5
    assert value({"a": 0.0, "b": 0.0}) == 0.0


@settings(max_examples=200)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=3),
        st.tuples(st.floats(0, 1), st.floats(0, 1e6) | st.sampled_from([0.1, 1e-12, 1e300])),
        min_size=1,
        max_size=6,
    ).filter(lambda drawn: any(weight for _, weight in drawn.values()))
)
def test_the_value_lies_between_its_parts_and_their_order_changes_nothing(drawn):
    def metric(order):
        return composite({name: drawn[name][0] for name in order}, {name: drawn[name][1] for name in order})

    first, other = metric(drawn), metric(sorted(drawn, reverse=True))
    counted = [score for score, weight in drawn.values() if weight]

    assert min(counted) <= first(None, None).value <= max(counted)
    assert first(None, None).value == other(None, None).value
    assert first.version == other.version
    assert first(None, None) == first(None, None)


def test_a_part_of_weight_zero_is_reported_only():
    score = composite({"a": 0.5, "b": 0.0, "c": UNSCORED}, {"b": 0, "c": 0})(None, None)

    assert (score.value, score.parts["b"].value, score.parts["c"].error) == (0.5, 0.0, "the judge did not answer")
    assert "missing" not in score.details


def test_every_part_is_asked_once_with_the_same_example_and_prediction():
    parts = {"a": Fixed(1.0), "b": Fixed(0.5)}
    example, prediction = object(), object()

    CompositeMetric(parts)(example, prediction)

    assert [part.asked for part in parts.values()] == [[(example, prediction)]] * 2


# Parts without a value


def test_a_part_without_a_value_leaves_the_whole_without_one():
    score = composite({"record": 1.0, "judge": UNSCORED}, {"record": 0.6, "judge": 0.4})(None, None)

    assert (score.value, score.error) == (None, "judge: the judge did not answer")
    assert score.parts["record"].value == 1.0
    assert score.details == {"weights": {"record": 0.6, "judge": 0.4}, "missing": ["judge"], "weight_used": 0.6}
    assert score.feedback.startswith("judge: no score, weight 0.4\nthe judge did not answer")


def test_weights_are_renormalised_only_where_that_is_declared():
    said = {"a": 0.5, "b": 1.0, "judge": UNSCORED}
    score = composite(said, {"a": 1, "b": 2, "judge": 1}, missing="renormalise")(None, None)

    assert score.value == 2.5 / 3
    assert (score.details["missing"], score.details["weight_used"]) == (["judge"], 0.75)
    assert "judge: no score" in score.feedback


def test_nothing_to_renormalise_is_no_value():
    assert value({"a": UNSCORED, "b": UNSCORED}, missing="renormalise") is None
    assert value({"a": UNSCORED, "b": 1.0}, {"b": 0}, missing="renormalise") is None


def test_a_part_that_raises_or_gives_no_score_is_a_bug():
    class Broken(Fixed):
        def __call__(self, example, prediction):
            return self.asked[5]

    class Bare(Fixed):
        def __call__(self, example, prediction):
            return 0.5

    with pytest.raises(IndexError):
        CompositeMetric({"a": Fixed(1.0), "b": Broken(1.0)})(None, None)
    with pytest.raises(TypeError, match=r"composite: the part 'b' gave float, not a metrics\.Score"):
        CompositeMetric({"a": Fixed(1.0), "b": Bare(1.0)})(None, None)


# Feedback


def test_feedback_tells_the_part_that_cost_most_first():
    said = {
        "right": Score(1.0, "perfect"),
        "small": Score(0.0, "small: all wrong"),
        "large": Score(0.5, "large: one\nlarge: two"),
        "reported": Score(0.0, "for your information"),
    }
    feedback = composite(said, {"small": 0.1, "large": 1, "reported": 0})(None, None).feedback

    assert feedback.splitlines() == [
        "large: 0.50 of 1, weight 1",
        "large: one",
        "large: two",
        "small: 0.00 of 1, weight 0.1",
        "small: all wrong",
        "reported: 0.00 of 1, weight 0",
        "for your information",
    ]
    assert composite({"a": 1.0})(None, None).feedback == "every part is fully right"


def test_feedback_is_capped_and_says_what_is_left_out():
    lines = "\n".join(f"line {number} " + "x" * 90 for number in range(100))
    feedback = composite({"a": Score(0.0, lines)})(None, None).feedback

    assert len(feedback) < _MAX_CHARACTERS + 100
    assert feedback.splitlines()[-1] == "... and 60 more lines"
    assert len(composite({"a": Score(0.0, "x" * 10**6)})(None, None).feedback) < 2 * _MAX_CHARACTERS


# Records


def test_records_are_compared_by_every_part():
    metric = CompositeMetric({"a": RecordMetric({"a": "exact"}), "b": RecordMetric({"b": "exact"})}, {"a": 3})

    assert isinstance(metric, Metric)
    assert metric.compare({"a": 1, "b": 2}, {"a": 1, "b": 3}).value == 0.75
    assert metric.compare({"a": 1, "b": 2}, {}).value == 0.0


def test_where_a_part_compares_no_records_the_others_are_told():
    class CallOnly:
        name, version = "call only", "1"

        def __call__(self, example, prediction):
            return Score(1.0)

    class Wrong(Fixed):
        def compare(self, expected, predicted):
            raise AttributeError("a bug")

    for part in (NeedsSource(1.0), CallOnly(), ScaledMetric(CallOnly())):
        score = CompositeMetric({"record": Fixed(0.5), "judge": part}, missing="renormalise").compare({}, {})
        assert (score.value, score.parts["record"].value) == (None, 0.5)
        assert score.error == "judge: compares no records, it needs the example"
    reported = CompositeMetric({"record": Fixed(0.5), "judge": NeedsSource(1.0)}, {"judge": 0}).compare({}, {})
    assert (reported.value, reported.parts["judge"].value) == (0.5, None)
    with pytest.raises(AttributeError, match="a bug"):
        CompositeMetric({"a": Wrong(1.0)}).compare({}, {})


def test_composites_nest():
    inner = CompositeMetric({"a": Fixed(0.0), "b": Fixed(1.0)})
    score = CompositeMetric({"inner": inner, "c": Fixed(0.0)})(None, None)

    assert (score.value, score.parts["inner"].parts["b"].value) == (0.25, 1.0)
    assert Score.from_dict(score.to_dict()) == score


# What it is made from


def test_the_version_is_made_of_everything_that_can_change_a_score():
    def version(parts=None, weights=None, **options):
        return CompositeMetric(parts or {"a": Fixed(1.0), "b": Fixed(1.0)}, weights or {}, **options).version

    versions = [
        version(),
        version({"a": Fixed(1.0, version="2"), "b": Fixed(1.0)}),
        version({"a": Fixed(1.0), "c": Fixed(1.0)}),
        version({"a": Fixed(1.0)}),
        version(weights={"a": 2}),
        version(missing="renormalise"),
    ]
    assert len(set(versions)) == len(versions)
    assert version(name="other") == version(weights={"a": 1}) == versions[0]
    assert CompositeMetric({"a": Fixed(1.0)}, name="other").name == "other"
    assert repr(CompositeMetric({"a": Fixed(1.0)})) == "CompositeMetric(name='composite', weights={'a': 1.0})"


def test_what_is_given_can_be_read_and_not_changed():
    given = {"a": Fixed(1.0)}
    metric = CompositeMetric(given)
    given["b"] = Fixed(0.0)

    assert (list(metric.parts), dict(metric.weights)) == (["a"], {"a": 1.0})
    with pytest.raises(TypeError):
        metric.parts["b"] = Fixed(0.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (({},), "parts are metrics by name, at least one"),
        (([Fixed(1.0)],), "parts are metrics by name, at least one"),
        (({"": Fixed(1.0)},), "a part has a name, got ''"),
        (({"a": 5},), "'a' is no metric: it has no name and no version; a function that gives numbers"),
        (({"a": lambda example, prediction: 1.0},), "'a' is no metric: it has no name and no version"),
        (({"a": Score(1.0)},), "'a' is no metric"),
        (({"a": StringCheckEvaluator()},), "'a' is an evaluator of single values; give it a place in a RecordMetric"),
        (({"record": Fixed(1.0)}, {"recrod": 1}), "there is no part 'recrod' for the weight 1, did you mean 'record'"),
        (({"a": Fixed(1.0)}, {"a": -1}), "the weight of 'a' is a number, 0 or more, got -1"),
        (({"a": Fixed(1.0)}, {"a": True}), "the weight of 'a' is a number"),
        (({"a": Fixed(1.0)}, {"a": math.nan}), "the weight of 'a' is a number"),
        (({"a": Fixed(1.0)}, {"a": "1"}), "the weight of 'a' is a number"),
        (({"a": Fixed(1.0)}, {"a": 0}), "every weight is 0, so nothing would be measured"),
        (({"a": Fixed(1.0)}, [1]), "weights are numbers by the name of a part"),
        (({"a": Fixed(1.0)}, {}, "ignore"), "missing is unscored or renormalise, got 'ignore'"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        CompositeMetric(*arguments)


def test_a_part_that_asks_a_model_needs_one():
    judge = Fixed(1.0)
    judge.needs_lm, judge.lm = True, None
    with pytest.raises(ValueError, match="'judge' asks a model and was given none; give it its lm"):
        CompositeMetric({"judge": judge})
    judge.lm = object()
    assert CompositeMetric({"judge": judge})(None, None).value == 1.0


def test_models_are_counted_and_put_in_place_part_by_part():
    judge = RoleModel("judge", "openai/m")
    record = RecordMetric({"$": {"score_judge": {"lm": judge}}})
    metric = CompositeMetric({"a": record, "b": ScaledMetric(record), "c": Fixed(1.0)}, {"a": 2}, "renormalise", "both")

    assert metric.model_calls("text") == {"judge": 2}
    assert metric.compare("text", "text").value == 1.0  # both judges are missing, and that is declared to be allowed
    assert metric.compare("text", "text").details["missing"] == ["a", "b"]
    bound = metric.bind({"judge": scripted_lm()})
    assert (bound.version, bound.name) == (metric.version, "both")
    assert bound.compare("text", "text").value == (2 * 0.5 + 0.5 + 1.0) / 4
    with pytest.raises(ValueError, match=r"models\.judge \(openai/m\) is needed and not there"):
        metric.bind({})


def scripted_lm():
    provider = ScriptedProvider(lambda request: '{"reason": "half", "score": 0.5}', "scripted/judge")
    return dspy.LM("scripted/judge", engine=provider, cache=False, num_retries=0)
