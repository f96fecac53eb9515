"""A judge as a metric: values, parts, samples, panels, reliability, gates; nothing unreadable counts."""

import json
from types import SimpleNamespace

import dspy
import pytest

from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, build_role_lm
from harness.models.scripted import ScriptedProvider, request_text
from harness.models.store import AnswerStore
from metrics import RecordMetric
from metrics.asking import RoleModel
from metrics.judge.metric import JudgeMetric
from metrics.judge.rubric_judge import RubricJudge
from metrics.judge.score_map import fit_score_map
from metrics.judge.synthesis import DspyGeneralSynthesisJudge
from metrics.testing import JudgeConformance, conformance
from metrics.testing.judges import UNREADABLE
from tests.metrics.judge.judging import RECORD, SOURCE, answer, evaluation

EXAMPLE = dspy.Example(id="p1", group="d1", text=SOURCE, expected=RECORD).with_inputs("text")
PREDICTION = dspy.Prediction(record=RECORD)


@pytest.fixture
def role_lm(tmp_path):
    store = AnswerStore(tmp_path / "answers.db")
    opened = []

    def make(script, ledger=None, model="scripted/judge"):
        said = iter(script)
        provider = ScriptedProvider(lambda _: next(said, script[-1]), model)
        endpoints = Endpoints({}, {provider.model: provider})
        opened.append(endpoints)
        lm = build_role_lm(
            "judge", ModelConfig(provider.model), endpoints=endpoints, store=store, ledger=ledger or Ledger()
        )
        return lm, provider

    yield make
    for endpoints in opened:
        endpoints.close()
    store.close()


def _metric(lm, **settings):
    return JudgeMetric(DspyGeneralSynthesisJudge(lm), **settings)


def test_the_value_is_the_mean_on_the_scale_and_every_criterion_is_a_part(role_lm):
    lm, _ = role_lm([answer(5.0, process_steps=2.0, equipment_extraction=None, format_compliance=9)])

    score = _metric(lm)(EXAMPLE, PREDICTION)

    assert score.value == pytest.approx(((4 * 5 + 2) / 5 - 1) / 4)
    assert score.parts["process_steps"].value == 0.25
    assert "equipment_extraction" not in score.parts, "it does not apply"
    assert score.parts["format_compliance"].error == "format_compliance: 9 is not on the scale from 1 to 5"
    assert score.details["left_out"] == {"equipment_extraction": "not_applicable", "format_compliance": "unreadable"}
    first, second, *rest = score.feedback.splitlines()
    assert first == "format_compliance: no score (9 is not on the scale from 1 to 5)"
    assert second == "process_steps: 2 on the scale from 1 to 5: about process_steps"
    assert "extraction errors: steps[0].conditions.temperature: 90 instead of 900" in rest


def test_weights_of_the_metric_go_before_those_of_the_rubric(role_lm):
    lm, _ = role_lm([answer(5.0, process_steps=1.0)])
    only = dict.fromkeys(evaluation()["scores"], 0.0)
    weights = {name.removesuffix("_score"): 0.0 for name in only if name.endswith("_score")} | {"process_steps": 2.0}

    assert _metric(lm, weights=weights)(EXAMPLE, PREDICTION).value == 0.0


@pytest.mark.parametrize("said", [text for text in UNREADABLE if text])
def test_an_unreadable_answer_is_no_score(role_lm, said):
    lm, _ = role_lm([said])

    score = _metric(lm)(EXAMPLE, PREDICTION)

    assert score.value is None
    assert "attempts" in score.error


def test_a_second_evaluation_makes_no_call(role_lm):
    first, provider = role_lm([answer(3.0)])
    assert _metric(first, samples=3)(EXAMPLE, PREDICTION).value == 0.5
    assert len(provider.requests) == 3
    ledger = Ledger()
    again, other = role_lm([answer(1.0)], ledger)
    assert _metric(again, samples=3)(EXAMPLE, PREDICTION).value == 0.5
    assert other.requests == []
    assert ledger.usage()["judge"].cached == 3


def test_a_replicate_is_asked_anew(role_lm):
    lm, provider = role_lm([answer(3.0), answer(4.0)])
    metric = _metric(lm)

    assert metric(EXAMPLE, PREDICTION).value == metric(EXAMPLE, PREDICTION).value == 0.5
    assert metric.replicated(1)(EXAMPLE, PREDICTION).value == metric.replicated(1)(EXAMPLE, PREDICTION).value == 0.75
    assert len(provider.requests) == 2
    assert metric.replicated(1).version == metric.version


@pytest.mark.parametrize(
    ("aggregate", "value"), [("mean", (11 / 3 - 1) / 4), ("median", 0.75), ("minimum", 0.5), ("vote", 0.75)]
)
def test_samples_become_one(role_lm, aggregate, value):
    lm, provider = role_lm([answer(4.0), answer(3.0), answer(4.0)])

    score = _metric(lm, samples=3, aggregate=aggregate)(EXAMPLE, PREDICTION)

    assert score.value == pytest.approx(value)
    assert {request.config.temperature for request in provider.requests} == {1.0}


def test_too_few_readable_samples_are_no_score(role_lm):
    lm, _ = role_lm([answer(4.0), *["no"] * 20])
    assert _metric(lm, samples=4)(EXAMPLE, PREDICTION).value is None


def test_a_panel(role_lm):
    kind, _ = role_lm([answer(5.0)], model="scripted/kind")
    stern, _ = role_lm([answer(1.0)], model="scripted/stern")
    judges = [DspyGeneralSynthesisJudge(kind), DspyGeneralSynthesisJudge(stern)]

    assert JudgeMetric(judges)(EXAMPLE, PREDICTION).value == 0.5
    assert JudgeMetric(judges, panel="minimum")(EXAMPLE, PREDICTION).value == 0.0
    assert JudgeMetric(judges, panel_weights=[3, 1])(EXAMPLE, PREDICTION).value == 0.75
    mute, _ = role_lm(["no"], model="scripted/mute")
    assert JudgeMetric([*judges, DspyGeneralSynthesisJudge(mute)])(EXAMPLE, PREDICTION).value is None


@pytest.mark.parametrize(("policy", "value", "calls"), [("keep", 0.75, 1), ("unscored", None, 1), ("resample", 0.5, 2)])
def test_an_unsure_judge(role_lm, policy, value, calls):
    unsure = json.dumps({"evaluation": {**evaluation(4.0), "confidence_level": "low"}})
    lm, provider = role_lm([unsure, answer(3.0)])

    score = _metric(lm, reliability=policy)(EXAMPLE, PREDICTION)

    assert (score.value, len(provider.requests)) == (value, calls)
    assert score.details["reliable"] is (policy == "resample")


def test_a_score_map(role_lm):
    lm, _ = role_lm([answer(5.0)])
    fitted = fit_score_map([1, 3, 5], [1, 2, 3], groups=["a", "a", "b"])

    score = _metric(lm, score_map=fitted)(EXAMPLE, PREDICTION)

    assert (score.value, score.details["mapped"], score.details["overall"]) == pytest.approx((0.5, 3.0, 5.0))
    assert (fitted.n, fitted.groups) == (3, 2)
    assert _metric(lm, score_map=fitted).version != _metric(lm).version


def test_a_gate_is_asked_first(role_lm):
    lm, provider = role_lm([answer(5.0)])
    gated = _metric(lm, gate=RecordMetric(), gate_at_least=0.9)

    failed = gated(EXAMPLE, dspy.Prediction(record={"target_compound": "TiO2"}))

    assert (failed.value, provider.requests) == (0.0, [])
    assert failed.feedback.startswith("record gives 0.06: steps[0]: missing")
    assert gated(EXAMPLE, PREDICTION).value == 1.0


def test_what_the_judge_is_shown(role_lm):
    lm, provider = role_lm([answer()])
    _metric(lm)(EXAMPLE, PREDICTION)
    text = request_text(provider.requests[0])
    assert '[[ ## target_material ## ]]\n"LiCoO2"' in text
    assert json.dumps(RECORD) in text, "the extraction as JSON, not quoted a second time"
    example = SimpleNamespace(abstract="short" * 20, text=SOURCE, expected=None)
    _metric(lm, inputs={"source_text": "abstract"})(example, PREDICTION)
    assert "shortshort" in request_text(provider.requests[1])
    with pytest.raises(ValueError, match="the judge is to be shown 'abstrakt'; did you mean 'abstract'"):
        _metric(lm, inputs={"source_text": "abstrakt"})(example, PREDICTION)


def test_nothing_of_the_measured_program_is_touched(role_lm):
    lm, _ = role_lm([answer()])
    with dspy.context(trace=[], track_usage=True):
        _metric(lm)(EXAMPLE, PREDICTION)
        assert dspy.settings.trace == []


def test_planned_calls_and_binding(role_lm):
    metric = JudgeMetric(
        [
            RubricJudge("synthesis", RoleModel("judge", "scripted/judge")),
            RubricJudge("synthesis", RoleModel("judge", "m")),
        ],
        samples=2,
    )
    assert metric.model_calls(RECORD) == {"judge": 4}
    lm, _ = role_lm([answer(3.0)])
    bound = metric.bind({"judge": lm})
    assert bound.version == metric.version
    assert bound(EXAMPLE, PREDICTION).value == 0.5
    assert metric(EXAMPLE, PREDICTION).error.startswith("synthesis_judge: models.judge")
    with pytest.raises(NotImplementedError, match="needs the source"):
        metric.compare(RECORD, RECORD)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"samples": 0}, "samples is 1 or more, got 0"),
        ({"samples": 2, "sample_temperature": 0.0}, "several samples at temperature 0 are one and the same"),
        ({"aggregate": "means"}, "aggregate 'means' is not known; did you mean 'mean'"),
        ({"reliability": "drop"}, "reliability 'drop' is not known"),
        ({"weights": {"process_step": 1}}, "there is no criterion 'process_step', did you mean 'process_steps'"),
        ({"weights": {"process_steps": -1}}, "that of process_steps is a number, 0 or more, got -1"),
        ({"panel_weights": [1, 2]}, "2 panel_weights for 1 judges"),
        ({"inputs": {"source": "text"}}, "the rubric shows no 'source'"),
    ],
)
def test_wrong_settings_are_told(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        _metric(RoleModel("judge", "m"), **settings)


def test_judges_of_a_panel_share_a_rubric():
    judges = [RubricJudge("synthesis"), RubricJudge("linking")]
    with pytest.raises(ValueError, match="the judges of a panel go by one rubric"):
        JudgeMetric(judges)
    with pytest.raises(ValueError, match="needs a judge"):
        JudgeMetric([])


def says(answer):
    """The metric on a model that says the same to everything."""
    provider = ScriptedProvider(lambda _: answer, "scripted/judge")
    return JudgeMetric(
        DspyGeneralSynthesisJudge(dspy.LM("scripted/judge", engine=provider, cache=False, num_retries=0))
    )


TestConformance = conformance(
    JudgeConformance,
    says,
    good_answer=answer(5.0),
    bad_answer=answer(1.5),
    partly_answer=answer(4.0, process_steps="N/A"),
)
