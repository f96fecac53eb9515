"""Models in place of their stand-ins, and who asks how often: over metrics of every kind."""

import pytest

from metrics import CompositeMetric, RecordMetric, Score
from metrics.asking import AsksModels, RoleModel, bound, model_calls, role_lm

ROLE = RoleModel("judge", "openai/m")
JUDGED = {"steps[*].note": {"score_judge": {"lm": ROLE}}, "target": "exact"}


class Plain:
    name, version = "plain", "1"

    def __call__(self, example, prediction):
        return Score(1.0)

    def compare(self, expected, predicted):
        return Score(1.0)


def test_a_metric_that_asks_nothing_stays_itself():
    metric = Plain()
    assert bound(metric, {}) is metric
    assert model_calls(metric, {"a": 1}) == {}
    assert not isinstance(metric, AsksModels)


def test_calls_of_the_parts_are_added_up():
    metric = CompositeMetric({"one": RecordMetric(JUDGED), "two": RecordMetric(JUDGED, name="two"), "three": Plain()})
    assert model_calls(metric, {"target": "a", "steps": [{"note": "x"}, {"note": "y"}]}) == {"judge": 4}


def test_a_bound_composite_has_its_models_and_its_version(scripted_lm):
    lm, asked = scripted_lm(lambda request: '{"score": 0.5}')
    metric = CompositeMetric({"one": RecordMetric(JUDGED), "three": Plain()})
    record = {"target": "a", "steps": [{"note": "x"}]}
    assert metric.compare(record, record).error.endswith("is only there while an experiment runs")
    ready = bound(metric, {"judge": lm})
    assert ready.version == metric.version
    assert ready.compare(record, record).value == pytest.approx((0.75 + 1) / 2)
    assert len(asked.requests) == 1


def test_a_role_without_a_model_is_told():
    with pytest.raises(ValueError, match=r"models.judge \(openai/m\) is needed and not there; there are: none"):
        role_lm(ROLE, {})
    with pytest.raises(ValueError, match=r"models.judge \(openai/m\) is needed and not there; there are: task"):
        bound(RecordMetric(JUDGED), {"task": object()})
