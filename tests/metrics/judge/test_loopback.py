"""A judge and a real HTTP server: what goes over the wire when formats are refused and answers cannot be read."""

import copy
import json

import dspy
import pytest

from harness.models.loopback import Reply, fault
from harness.models.loopback import answer as completion
from metrics.judge import DspyGeneralSynthesisJudge, DspyLinkingJudge, NoVerdictError, RubricJudge

UNSUPPORTED = fault(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.")
JUDGED = {
    "source_text": "Li2CO3 and Co3O4 were heated at 900 °C.",
    "extracted_ontology_json": '{"target_compound": "LiCoO2"}',
}
SIX = [(form, heat) for form in ("json_schema", "json_object") for heat in (0.0, 0.3, 0.5)]


def asked(server):
    """(form, temperature) of every request."""
    return [((r.body.get("response_format") or {}).get("type"), r.body.get("temperature")) for r in server.requests]


@pytest.fixture
def good(answer):
    return answer(DspyGeneralSynthesisJudge().rubric)


def test_a_readable_answer_takes_one_call(served_lm, good):
    lm, server = served_lm([good])
    verdict = DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    assert (verdict.overall, verdict.level, verdict.temperature, verdict.attempts) == (4.0, "json_schema", 0.0, 1)
    assert asked(server) == SIX[:1]


def test_a_refused_format_moves_on_at_once_and_is_remembered(served_lm, good):
    lm, server = served_lm([UNSUPPORTED, good])
    judge = DspyGeneralSynthesisJudge(lm)
    first, second = judge.verdict(JUDGED), judge.verdict(JUDGED)
    assert (first.level, first.attempts, second.level, second.attempts) == ("json_object", 2, "json_object", 1)
    assert asked(server) == [("json_schema", 0.0), ("json_object", 0.0), ("json_object", 0.0)]


def test_what_is_remembered_holds_for_that_endpoint_and_model_alone(served_lm, good):
    lm, _ = served_lm([UNSUPPORTED, good])
    other_place, second = served_lm([good])
    other_model = lm.copy(model="openai/another")
    judge = DspyGeneralSynthesisJudge(lm)
    judge.verdict(JUDGED)
    assert judge.with_lm(lm).verdict(JUDGED).attempts == 1
    assert judge.with_lm(other_place).verdict(JUDGED).level == "json_schema"
    assert judge.with_lm(other_model).verdict(JUDGED).level == "json_schema"
    assert asked(second) == SIX[:1]
    assert DspyGeneralSynthesisJudge(lm).levels.offered(lm)[0] == "json_schema"  # nothing is kept outside of a judge


def test_the_schema_is_in_the_prompt_where_no_decoder_has_it(served_lm, good):
    lm, server = served_lm([UNSUPPORTED, good])
    DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    strict, plain = server.requests
    form = strict.body["response_format"]["json_schema"]
    assert form["strict"] is True
    assert list(form["schema"]["properties"]["evaluation"]["properties"]["scores"]["required"])[:2] == [
        "structural_completeness_reasoning", "structural_completeness_score",
    ]  # fmt: skip
    assert json.dumps(form["schema"], ensure_ascii=False) in plain.body["messages"][0]["content"]
    assert "JSON Schema" not in strict.body["messages"][0]["content"]


def test_an_endpoint_without_any_json_mode_is_asked_by_the_prompt_alone(served_lm, good):
    lm, server = served_lm([UNSUPPORTED, fault(400, "response_format must be text"), good])
    judge = DspyGeneralSynthesisJudge(lm)
    assert judge.verdict(JUDGED).level == judge.verdict(JUDGED).level == "prompt"
    assert asked(server) == [("json_schema", 0.0), ("json_object", 0.0), (None, 0.0), (None, 0.0)]


@pytest.mark.parametrize(
    "wrong", ["I cannot judge this.", '{"evaluation": {"scores": {}}}', "[]", "", '{"overall": 5}']
)
def test_answers_that_cannot_be_read_escalate_through_temperatures_and_levels(served_lm, wrong):
    lm, server = served_lm([wrong])
    with pytest.raises(NoVerdictError) as caught:
        DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    assert (caught.value.kind, caught.value.raw) == ("unreadable", wrong)
    assert asked(server) == SIX


def test_a_readable_answer_ends_the_escalation_wherever_it_comes(served_lm, good):
    for place, (level, temperature) in enumerate(SIX):
        lm, server = served_lm(["no"] * place + [good])
        verdict = DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
        assert (verdict.level, verdict.temperature, verdict.attempts) == (level, temperature, place + 1)
        assert len(server.requests) == place + 1


def test_the_last_error_is_raised_when_all_fail(served_lm, good):
    replies = ["no"] * 5 + ['{"evaluation": 7}']
    lm, server = served_lm(replies)
    with pytest.raises(NoVerdictError, match="evaluation is not an object: 7"):
        DspyGeneralSynthesisJudge(lm)((JUDGED["source_text"], JUDGED["extracted_ontology_json"]))
    assert len(server.requests) == 6


def test_complete_json_without_the_outer_key_is_read_in_one_call(served_lm, answer):
    lm, server = served_lm([answer(DspyGeneralSynthesisJudge().rubric, wrapped=False)])
    verdict = DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    assert (verdict.overall, list(verdict.repairs), len(server.requests)) == (4.0, ["no outer evaluation"], 1)


def test_the_temperatures_are_a_setting(served_lm):
    lm, server = served_lm(["no"])
    with pytest.raises(NoVerdictError):
        DspyGeneralSynthesisJudge(lm, retry_temperatures=[0.2, 0.9]).verdict(JUDGED)
    assert asked(server) == [(form, heat) for form in ("json_schema", "json_object") for heat in (0.2, 0.9)]


def test_the_callers_lm_is_not_changed_and_its_forms_are_not_sent(served_lm, good):
    lm, server = served_lm(
        [UNSUPPORTED, "no", good], response_format={"type": "text"}, extra_body={"grammar": "x"}, temperature=0.9, n=3,
    )  # fmt: skip
    before = copy.deepcopy(lm.kwargs)
    DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    assert (lm.kwargs, lm.history) == (before, [])
    assert asked(server) == [("json_schema", 0.0), ("json_object", 0.0), ("json_object", 0.3)]
    assert {"grammar", "n", "extra_body"} & {key for r in server.requests for key in r.body} == set()


@pytest.mark.parametrize("model", ["openai/gpt-5-mini", "openai/o3"])
def test_models_with_fixed_sampling_are_sent_no_temperature(served_lm, good, model):
    lm, server = served_lm(["no", good], model)
    verdict = DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    assert (verdict.temperature, verdict.attempts) == (None, 2)
    assert {"temperature" in r.body for r in server.requests} == {False}


def test_a_refused_temperature_is_left_out_from_then_on(served_lm, good):
    lm, server = served_lm([fault(400, "Unsupported value: 'temperature' does not support 0.0 with this model."), good])
    judge = DspyGeneralSynthesisJudge(lm)
    assert [judge.verdict(JUDGED).temperature for _ in range(2)] == [None, None]
    assert asked(server) == [("json_schema", 0.0), ("json_schema", None), ("json_schema", None)]


@pytest.mark.parametrize(
    ("said", "kind", "calls"),
    [
        (fault(401, "wrong key"), "unreached", 1),
        (fault(404, "no such model"), "unreached", 1),
        (fault(500, "out of memory"), "unreached", 1),
        (Reply(hang_up=True), "unreached", 1),
        (fault(400, "something is wrong with you"), "unreached", 2),
        (fault(400, "too long", code="context_length_exceeded"), "input", 1),
    ],
)
def test_an_endpoint_that_does_not_answer_is_told_from_one_that_answers_nonsense(served_lm, said, kind, calls):
    lm, server = served_lm([said])
    with pytest.raises(NoVerdictError) as caught:
        DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    assert (caught.value.kind, caught.value.raw, len(server.requests)) == (kind, "", calls)


def test_an_answer_cut_short_is_no_answer(served_lm, good):
    lm, server = served_lm([completion(good[:200], finish_reason="length"), good])
    verdict = DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    assert (verdict.attempts, verdict.temperature, verdict.overall) == (2, 0.3, 4.0)


def test_usage_of_answers_that_cannot_be_read_is_counted(served_lm, good):
    lm, _ = served_lm(["no", good])
    with dspy.track_usage() as usage:
        DspyGeneralSynthesisJudge(lm).verdict(JUDGED)
    (total,) = usage.get_total_tokens().values()
    assert total["total_tokens"] == 30


def test_the_other_judges_share_it_all(served_lm, answer, rubric):
    linking = DspyLinkingJudge()
    lm, server = served_lm([UNSUPPORTED, answer(linking.rubric, wrapped=False)])
    given = {"source_text": "t", "synthesis_json": "[]", "plot_data_json": "[]", "linking_output_json": "{}"}
    verdict = linking.with_lm(lm).verdict(given)
    assert (verdict.level, list(verdict.flags.values()), verdict.overall) == ("json_object", [False] * 9, 4.0)
    lm, server = served_lm([UNSUPPORTED, "no", answer(rubric)])
    verdict = RubricJudge(rubric, lm).verdict({"text": "t", "record": "{}"})
    assert (verdict.level, verdict.temperature, asked(server)[2]) == ("json_object", 0.3, ("json_object", 0.3))
