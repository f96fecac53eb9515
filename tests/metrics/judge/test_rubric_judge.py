"""A judge at a real wire: levels, temperatures, what is recovered, what is never read, and whose LM is whose."""

import copy
import json

import dspy
import pytest

from harness.models.loopback import LoopbackServer, fault
from metrics.asking import RoleModel
from metrics.evaluators.lm_evaluator import NoAnswerError
from metrics.judge.linking import DspyLinkingJudge, LinkingEvaluation, make_linking_judge_signature
from metrics.judge.rubric_judge import RubricJudge
from metrics.judge.synthesis import (
    DspyGeneralSynthesisJudge,
    GeneralSynthesisEvaluation,
    make_general_synthesis_judge_signature,
)
from tests.metrics.judge.judging import CRITERIA, JSON, SOURCE, answer, content, evaluation

INPUT = (SOURCE, JSON)
INPUTS = {"source_text": SOURCE, "extracted_ontology_json": JSON, "target_material": "LiCoO2"}


@pytest.fixture
def judge_at():
    servers = []

    def make(script, **options):
        server = LoopbackServer(script)
        servers.append(server)
        lm = dspy.LM("openai/judge", api_base=server.api_base, api_key="k", cache=False, num_retries=0)
        return DspyGeneralSynthesisJudge(lm, **options), server

    yield make
    for server in servers:
        server.close()


def _asked(server):
    return [
        (request.body.get("response_format", {}).get("type"), request.body.get("temperature"))
        for request in server.requests
    ]


def test_a_readable_answer_takes_one_call(judge_at):
    judge, server = judge_at([answer(4.5, process_steps=2.0)])

    found = judge(input=INPUT)

    assert isinstance(found, GeneralSynthesisEvaluation)
    assert (found.scores.process_steps_score, found.scores.semantic_accuracy_score) == (2.0, 4.5)
    assert found.scores.overall_score == pytest.approx((6 * 4.5 + 2) / 7, abs=1e-12)
    assert (found.confidence_level, found.missing_information) == ("high", ["Co3O4 is missing"])
    assert _asked(server) == [("json_schema", 0.0)]
    schema = server.requests[0].body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert set(schema["schema"]["properties"]["evaluation"]["properties"]["scores"]["required"]) == {
        f"{name}_{part}" for name in CRITERIA for part in ("score", "reasoning")
    }
    assert '"LiCoO2"' in content(server.requests[0]), "the target is the extraction's own"


def test_a_refused_schema_leaves_the_level_at_once_and_is_remembered(judge_at):
    def script(request):
        if request.body.get("response_format", {}).get("type") == "json_schema":
            return fault(400, "response_format of type json_schema is not supported by this model")
        return answer()

    judge, server = judge_at(script)
    assert judge.verdict(INPUTS).level == "json_object"
    assert copy.copy(judge).verdict(INPUTS).attempts == 1
    assert [kind for kind, _ in _asked(server)] == ["json_schema", "json_object", "json_object"]


def test_an_endpoint_that_takes_no_format_is_asked_by_the_prompt_alone(judge_at):
    def script(request):
        if "response_format" in request.body:
            return fault(400, "unknown field: response_format")
        return answer()

    judge, server = judge_at(script)
    assert (judge.verdict(INPUTS).level, judge.verdict(INPUTS).attempts) == ("prompt", 1)
    assert [kind for kind, _ in _asked(server)] == ["json_schema", "json_object", None, None]


def test_invalid_answers_are_asked_for_at_higher_temperatures(judge_at):
    judge, server = judge_at(["I would say 4 of 5.", '{"evaluation": {"scores": {}}}', answer()])

    found = judge.verdict(INPUTS)

    assert _asked(server) == [("json_schema", 0.0), ("json_schema", 0.3), ("json_schema", 0.5)]
    assert (found.attempts, found.temperature, found.overall) == (3, 0.5, 4.0)


def test_after_six_attempts_the_last_error_is_raised(judge_at):
    judge, server = judge_at(["no", "no", "no", "no", "no", '{"evaluation": {"scores": {"process_steps_score": 9}}}'])

    with pytest.raises(NoAnswerError, match=r"not one score can be read: .*\(6 attempts\)") as caught:
        judge(input=INPUT)
    assert caught.value.kind == "unreadable"
    assert _asked(server) == [(kind, warmth) for kind in ("json_schema", "json_object") for warmth in (0.0, 0.3, 0.5)]


@pytest.mark.parametrize(
    ("said", "repair"),
    [
        (json.dumps(evaluation()), "no outer evaluation key"),
        (f"```json\n{answer()}\n```", "code fence"),
        (answer().replace("Co3O4 is missing", "Co3O4\n\tis missing"), "raw control characters"),
        (answer("4"), "number as text"),
        (answer()[:-1] + ",}", "trailing comma"),
        (f"<think>four, I think</think>{answer()}", "thoughts"),
    ],
)
def test_what_changes_no_score_is_recovered_in_one_call(judge_at, said, repair):
    judge, server = judge_at([said])

    found = judge.verdict(INPUTS)

    assert (found.overall, list(found.repairs), len(server.requests)) == (4.0, [repair], 1)


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        (0, "unreadable", "0 is not on the scale from 1 to 5"),
        (6, "unreadable", "6 is not on the scale from 1 to 5"),
        ("N/A", "unreadable", "process_steps_score is not a number: 'N/A'"),
        (True, "unreadable", "process_steps_score is not a number: True"),
        ("4/5", "unreadable", "process_steps_score is not a number: '4/5'"),
        (None, "not_applicable", "about process_steps"),
    ],
)
def test_one_bad_criterion_leaves_the_others_standing(judge_at, said, status, reason):
    judge, _ = judge_at([answer(3.0, process_steps=said)])

    found = judge.verdict(INPUTS)

    one = found.criteria["process_steps"]
    assert (one.score, one.status, one.reason) == (None, status, reason)
    assert len(found.scores) == 6
    assert found.overall == 3.0


def test_a_missing_criterion_is_unreadable(judge_at):
    given = evaluation(3.0)
    del given["scores"]["process_steps_score"]
    judge, _ = judge_at([json.dumps({"evaluation": given})])

    one = judge.verdict(INPUTS).criteria["process_steps"]

    assert (one.status, one.reason) == ("unreadable", "the answer has no 'process_steps_score'")


def test_a_form_full_of_nulls_is_no_judgement(judge_at):
    judge, server = judge_at([answer(None), answer(3.0)])

    assert judge.verdict(INPUTS).overall == 3.0
    assert len(server.requests) == 2


def test_scores_keep_their_precision(judge_at):
    judge, _ = judge_at([answer(3.0, process_steps=3.28)])

    assert judge.verdict(INPUTS).overall == pytest.approx(3.04, abs=1e-12)


def test_a_server_that_is_not_there_is_told(judge_at):
    judge, server = judge_at([fault(401, "no such key")])

    with pytest.raises(NoAnswerError, match="the model gave no answer") as caught:
        judge.verdict(INPUTS)
    assert caught.value.kind == "unreached"
    assert len(server.requests) == 1


def test_the_callers_lm_stays_as_it_is(judge_at):
    judge, server = judge_at([answer()])
    judge.lm.kwargs["response_format"] = {"type": "text"}
    judge.lm.kwargs["extra_body"] = {"guided": 1}
    before = dict(judge.lm.kwargs)

    judge.verdict(INPUTS)

    assert judge.lm.kwargs == before
    assert server.requests[0].body["response_format"]["type"] == "json_schema"
    assert "guided" not in server.requests[0].body


def test_neither_the_ambient_lm_nor_adapter_is_used(judge_at):
    judge, server = judge_at([answer()])
    other, elsewhere = judge_at([answer(1.0)])
    with dspy.context(lm=other.lm, adapter=dspy.ChatAdapter()):
        assert judge.verdict(INPUTS).overall == 4.0
    assert (len(server.requests), elsewhere.requests) == (1, [])


def test_a_judge_without_a_model_takes_the_ambient_one_only_when_called_directly(judge_at):
    judge, server = judge_at([answer()])
    with dspy.context(lm=judge.lm):
        assert DspyGeneralSynthesisJudge()(input=INPUT).scores.overall_score == 4.0
    assert len(server.requests) == 1
    with pytest.raises(NoAnswerError, match=r"models\.judge \(m\) is only there while an experiment runs"):
        DspyGeneralSynthesisJudge(RoleModel("judge", "m")).verdict(INPUTS)


def test_samples_and_replicates_are_other_requests(judge_at):
    judge, _ = judge_at([answer()])
    seen = []
    real = type(judge.lm).__call__

    def spy(lm, *given, **settings):
        seen.append(settings.get("rollout_id"))
        return real(lm, *given, **settings)

    judge.lm.__class__ = type("Spied", (type(judge.lm),), {"__call__": spy})
    for sample, replicate in ((0, 0), (1, 0), (0, 1), (0, 0)):
        judge.verdict(INPUTS, sample=sample, replicate=replicate, temperature=1.0)
    assert seen[0] is seen[3] is None
    assert len({seen[1], seen[2], None}) == 3


def test_reasoning_comes_first_where_it_is_asked_for(judge_at):
    said = json.dumps({"reasoning": "first I read", "evaluation": evaluation()})
    judge, server = judge_at([said], enable_reasoning_traces=True)

    assert judge(input=INPUT).scores.overall_score == 4.0
    schema = server.requests[0].body["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reasoning", "evaluation"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("short", JSON), "source_text has 5 characters; below 50 there is nothing to judge"),
        ((SOURCE, "{}"), "extracted_ontology_json has 2 characters"),
        ((SOURCE, "this is no JSON at all, is it"), "extracted_ontology_json is not JSON"),
        ((SOURCE,), r"the judge's input is \(source_text, extracted_ontology_json"),
    ],
)
def test_nothing_to_judge_is_refused(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        DspyGeneralSynthesisJudge()(input=given)


def test_the_signatures_of_the_named_judges():
    signature = make_general_synthesis_judge_signature(instructions="Judge it.", source_text_description="the paper")
    assert list(signature.input_fields) == ["source_text", "extracted_ontology_json", "target_material"]
    assert list(signature.output_fields) == ["evaluation"]
    assert signature.instructions == "Judge it."
    assert signature.input_fields["source_text"].json_schema_extra["desc"] == "the paper"
    linking = make_linking_judge_signature("Other")
    assert (linking.__name__, list(linking.input_fields)) == (
        "Other",
        ["source_text", "synthesis_json", "plot_data_json", "linking_output_json"],
    )
    with pytest.raises(ValueError, match="instructions is empty"):
        make_general_synthesis_judge_signature(instructions=" ")
    with pytest.raises(ValueError, match="the signature has the rubric's inputs"):
        DspyGeneralSynthesisJudge(signature=linking)


def test_the_linking_judge():
    parts = ("material_identity", "performance_data_correctness", "completeness", "format_structure")
    said = {
        "reasoning": "r",
        "scores": {f"{name}_score": 3.5 for name in parts},
        "failure_flags": {"f8_false_negative": True, "f1_name_mismatch": "yes"},
        "confidence_level": "low",
        "missing_links": ["series B"],
    }
    with LoopbackServer([json.dumps({"evaluation": said})]) as server:
        lm = dspy.LM("openai/judge", api_base=server.api_base, api_key="k", cache=False)
        found = DspyLinkingJudge(lm)(input=(SOURCE, '[{"material": "A"}]', '[{"name": "fig"}]', '{"mappings": []}'))
    assert isinstance(found, LinkingEvaluation)
    assert found.failure_flags.active_flags() == ["F8"]
    assert (found.scores.overall_score, found.confidence_level, found.missing_links) == (3.5, "low", ["series B"])
    with pytest.raises(ValueError, match="plot_data_json is not JSON"):
        DspyLinkingJudge()(input=(SOURCE, '[{"material": "A"}]', "no JSON here", '{"mappings": []}'))


def test_the_version_holds_what_a_verdict_depends_on():
    judge = RubricJudge("synthesis", RoleModel("judge", "m"))
    others = [
        RubricJudge("linking", RoleModel("judge", "m")),
        RubricJudge("synthesis", RoleModel("judge", "other")),
        RubricJudge("synthesis", RoleModel("judge", "m"), retry_temperatures=(0.0,)),
        RubricJudge("synthesis", RoleModel("judge", "m"), enable_reasoning_traces=True),
    ]
    assert len({judge.version, *(other.version for other in others)}) == 5
    assert judge.with_lm(dspy.LM("openai/judge", api_key="k")).version == judge.version
    shown = copy.deepcopy(judge)
    shown.evaluate.demos = [dspy.Example(source_text="a")]
    assert shown.version != judge.version


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"confidence_threshold": 2}, "confidence_threshold is from 0 to 1, got 2"),
        ({"retry_temperatures": ()}, "retry_temperatures are numbers from 0 to 2, at least one"),
        ({"lm": "gpt"}, "a judge's lm is a dspy.LM, got str"),
    ],
)
def test_wrong_settings_are_told(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        RubricJudge("synthesis", **options)
