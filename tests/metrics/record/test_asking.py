"""A record metric whose evaluators ask models: refused without, counted before, bound for a run."""

from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import BaseEvaluator, RecordMetric, ScoreJudge
from metrics.asking import RoleModel

ROLE = RoleModel("judge", "openai/m")
LABELS = {"allowed_labels": ["sol-gel", "hydrothermal"]}


class Preparing(BaseEvaluator):
    def __init__(self, config=None, is_ready=False):
        self.is_ready = is_ready

    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        return float(self.is_ready)

    def prepared(self):
        return Preparing(is_ready=True)


class Missing(Preparing):
    def prepared(self):
        raise ImportError("weights of the model are not here: pip install them")


@pytest.mark.parametrize(
    "field",
    ["score_judge", {"score_judge": {}}, {"evaluator": ScoreJudge()}, ScoreJudge(), {"label_model_grader": LABELS}],
)
def test_an_evaluator_without_its_model_is_refused_whatever_the_settings_say(field, scripted_lm):
    lm, asked = scripted_lm([])
    words = r"field 'a': (score_judge|label_model_grader) asks a model and was given none; give it its lm"
    with dspy.context(lm=lm), pytest.raises(ValueError, match=words):
        RecordMetric({"a": field})
    assert asked.requests == []


def test_each_matched_value_is_judged_once_and_the_tasks_model_never(scripted_lm):
    judge, asked = scripted_lm(lambda request: '{"score": 1}')
    task, never = scripted_lm(lambda request: '{"score": 0}', "scripted/task")
    metric = RecordMetric({"steps[*].note": ScoreJudge({"lm": judge}), "steps[*].n": "exact"})
    expected = {"steps": [{"n": n, "note": f"note {n}"} for n in range(3)]}
    predicted = {"steps": [{"n": n, "note": f"a note {n}"} for n in (2, 0, 1, 7)]}

    with dspy.context(lm=task), ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(lambda _: metric.compare(expected, predicted), range(16)))
    assert {score.value for score in scores} == {6 / 8}
    assert (len(asked.requests), len(never.requests)) == (16 * 3, 0)


def test_evaluators_see_id_and_inputs_and_never_the_answer():
    seen = []

    class Seeing(BaseEvaluator):
        def evaluate(self, extracted, expected, input_data=None, field_path=None):
            seen.append(input_data)
            return 1.0

    metric = RecordMetric({"a": Seeing()}, output_field="record")
    example = dspy.Example(id="p1", group="g", text="t", expected={"a": 1}, record={"a": 1}).with_inputs("text")
    metric(example, {"record": {"a": 1}})
    metric(dict(example.items()), {"record": {"a": 1}})
    assert seen == [{"id": "p1", "group": "g", "text": "t"}] * 2


def test_scores_by_id_reach_their_examples():
    metric = RecordMetric({"a": {"predefined_score": {"scores": {"p1": 0.25, "p2": 1}}}})
    values = [metric({"id": name, "expected": {"a": 1}}, {"r": {"a": 1}}).value for name in ("p2", "p1", "p3")]
    assert values == [1.0, 0.25, None]


def test_calls_are_counted_by_the_values_of_the_expected_record():
    metric = RecordMetric(
        {
            "method": {"label_model_grader": {**LABELS, "lm": ROLE}},
            "steps[*].notes[*]": {"score_judge": {"lm": RoleModel("other", "m")}},
            "target": "exact",
        }
    )
    record = {"method": "x", "steps": [{"notes": ["a", "b"]}, {"notes": ["c", None, ""]}, {"notes": []}]}
    assert metric.model_calls(record) == {"judge": 1, "other": 3}
    assert metric.model_calls({"method": None}) == {}
    assert RecordMetric({"a": "exact"}).model_calls(record) == {}


def test_binding_gives_the_model_of_the_role_and_keeps_version_and_original(scripted_lm):
    lm, asked = scripted_lm(lambda request: '{"score": 0.5}')
    waiting = RecordMetric({"a": {"score_judge": {"lm": ROLE}}, "b": Preparing()})
    ready = waiting.bind({"judge": lm, "task": object()})
    record = {"a": "x", "b": "y"}
    assert ready.compare(record, record).value == 0.75
    assert ready.version == waiting.version
    assert waiting.compare(record, record).value is None
    assert len(asked.requests) == 1
    assert ready.model_calls(record) == {}


def test_what_cannot_be_made_ready_is_told():
    with pytest.raises(ImportError, match="pip install them"):
        RecordMetric({"a": Missing()}).bind({})


NOTES = st.lists(st.one_of(st.text(max_size=3), st.none()), max_size=5)


@settings(max_examples=200)
@given(st.lists(NOTES, max_size=4), st.lists(NOTES, max_size=4))
def test_the_count_is_an_upper_bound_of_what_is_judged(expected, predicted):
    judged = []

    class Judge(BaseEvaluator):
        lm = ROLE
        needs_lm = True

        def evaluate(self, extracted, expected, input_data=None, field_path=None):
            judged.append(field_path)
            return 0.5

    metric = RecordMetric({"steps[*].notes[*]": Judge()})
    sides = ({"steps": [{"notes": notes} for notes in side]} for side in (expected, predicted))
    record, answer = sides
    metric.compare(record, answer)
    assert len(judged) <= metric.model_calls(record).get("judge", 0)
