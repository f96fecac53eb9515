"""Judges of a file: a rubric of one's own as metric and audit, panels, gates, replicates, wrong settings."""

import json

import pytest

from harness.assembly import load_experiment
from harness.errors import RunStopped, UsageError
from harness.experiment import run
from harness.measurement import evaluate_program
from harness.models.roles import Endpoints
from harness.models.scripted import ScriptedProvider, request_text
from harness.planning import plan
from harness.progress import SilentProgress
from harness.scoring import Scoring
from harness.session import open_session

RUBRIC = """\
name: invoice
version: 2
instructions: |
  You check data that a program took from an invoice.
  {scale}
  {criteria}
inputs:
  text: {description: the invoice, from: source}
  record: {description: what was taken from it, from: extraction}
scale: {low: 0, high: 10}
criteria:
  vendor: it names who sends the invoice
  total: {description: it is the amount to pay, weight: 3}
lists: {errors: what is wrong and where}
"""
MODELS = "models={task: scripted/model, judge: scripted/judge, judges: {second: scripted/second}}"
JUDGED = "metric={rubric_judge: {rubric: invoice.yaml}}"


def says(vendor, total, confidence="high"):
    return json.dumps(
        {
            "evaluation": {
                "reasoning": "read",
                "scores": {
                    "vendor_reasoning": "vendor is not the sender",
                    "vendor_score": vendor,
                    "total_reasoning": "total is empty, the invoice says 17 EUR",
                    "total_score": total,
                },
                "confidence_level": confidence,
                "errors": ["total: empty"],
            }
        }
    )


def by_record(request):
    """A judge that reads: an empty total is 0, a given one 10."""
    record = request_text(request).rsplit("[[ ## record ## ]]", 1)[1]
    return says(0, 0) if "unknown" in record else says(10, 10)


@pytest.fixture
def judged(project):
    (project / "invoice.yaml").write_text(RUBRIC)
    return project


@pytest.fixture
def providers(answers):
    task = ScriptedProvider(answers, concurrency=1)
    judge = ScriptedProvider(by_record, "scripted/judge", concurrency=1)
    second = ScriptedProvider(lambda _: says(10, None), "scripted/second", concurrency=1)
    return {provider.model: provider for provider in (task, judge, second)}


def endpoints(providers):
    return Endpoints(environ={}, providers=providers)


def test_a_rubric_of_ones_own_as_metric_from_files_alone(judged, providers):
    experiment = load_experiment("experiment.yaml", [MODELS, JUDGED])

    result = run(experiment, endpoints=endpoints(providers))

    assert (result.baseline.total.score, result.tuned.total.score, result.verdict) == (0.0, 1.0, "improved")
    row = result.baseline.rows[0]
    assert row.score.feedback.splitlines()[:2] == [
        "vendor: 0 on the scale from 0 to 10: vendor is not the sender",
        "total: 0 on the scale from 0 to 10: total is empty, the invoice says 17 EUR",
    ]
    assert {"vendor", "total"} == set(row.score.parts)
    asked = len(providers["scripted/judge"].requests)
    assert result.ledger["judge"].calls == asked > 24

    again = evaluate_program(experiment, endpoints=endpoints(providers))
    assert again["score"] == 0.0
    assert len(providers["scripted/judge"].requests) == asked, "a judged evaluation run twice makes no call"


def test_a_judge_as_audit_is_reported_and_never_optimised(judged, providers):
    experiment = load_experiment(
        "experiment.yaml", [MODELS, "audit={rubric_judge: {rubric: invoice.yaml}, grounded: {}}"]
    )

    result = run(experiment, endpoints=endpoints(providers))

    assert (result.audit["rubric_judge"].baseline.score, result.audit["rubric_judge"].tuned.score) == (0.0, 1.0)
    assert result.audit["grounded"].tuned.score == 1.0
    assert result.audit["grounded"].baseline.score == 0.0
    assert len(providers["scripted/judge"].requests) == 24, "on test alone"


def test_a_panel_and_its_plan(judged, providers):
    panel = "metric={rubric_judge: {rubric: invoice.yaml, panel: [judge, judges.second], samples: 2}}"
    experiment = load_experiment("experiment.yaml", [MODELS, panel, "optimizer=none"])

    planned = plan(experiment)
    assert (planned.calls["judge"], planned.calls["judges.second"]) == (48, 48)
    result = run(experiment, endpoints=endpoints(providers))
    # The first judge gives 0 and 0, the second 10 for the vendor and says that the total does not apply.
    assert result.baseline.total.score == pytest.approx((1 * 5 + 3 * 0) / 4 / 10)
    assert result.ledger["judges.second"].calls == 24


def test_a_gate_saves_the_judge(judged, providers):
    gated = "metric={rubric_judge: {rubric: invoice.yaml, gate: {grounded: {}, at_least: 0.9}}}"
    experiment = load_experiment("experiment.yaml", [MODELS, gated, "optimizer=none"])

    result = run(experiment, endpoints=endpoints(providers))

    assert result.baseline.total.score == 0.0
    assert providers["scripted/judge"].requests == []


def test_a_replicate_reaches_the_judge(judged, providers):
    experiment = load_experiment("experiment.yaml", [MODELS, JUDGED, "optimizer=none"])
    example = experiment.examples["test"][0]
    with open_session(experiment, SilentProgress(), endpoints=endpoints(providers)) as session:
        scoring = session.measure.scoring
        assert isinstance(scoring, Scoring)
        import dspy

        prediction = dspy.Prediction(record={"vendor": "unknown", "total": None})
        for replicate in (0, 0, 1, 1, 2):
            scoring.score(example, prediction, replicate)
    assert len(providers["scripted/judge"].requests) == 3


def test_a_judge_that_cannot_be_read_stops_the_run(judged, providers):
    providers["scripted/judge"]._script = lambda request: "Score: 3/5"
    experiment = load_experiment("experiment.yaml", [MODELS, JUDGED])
    with pytest.raises(RunStopped, match=r"could not score .* rubric_judge: the answer is not JSON"):
        run(experiment, endpoints=endpoints(providers))


def test_gepa_reflects_on_the_judges_reasons(judged, providers):
    asked = []

    def reflecting(request):
        asked.append(request_text(request))
        return "```\nTake the vendor and the total from the bill.\n```"

    providers["scripted/prompt"] = ScriptedProvider(reflecting, "scripted/prompt", concurrency=1)
    models = MODELS.replace("judges:", "prompt: scripted/prompt, judges:")
    experiment = load_experiment("experiment.yaml", [models, JUDGED, "optimizer={gepa: {max_metric_calls: 30}}"])
    run(experiment, endpoints=endpoints(providers))
    assert asked
    assert "total is empty, the invoice says 17 EUR" in asked[0]
    assert "errors: total: empty" in asked[0]


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        ("{rubric_judge: {}}", "a rubric_judge goes by a rubric: rubric: my_rubric.yaml, or synthesis, or linking"),
        ("{rubric_judge: {rubric: none.yaml}}", "rubric .*none.yaml cannot be read: No such file or directory"),
        ("{rubric_judge: {rubric: synthesi}}", "there is no rubric 'synthesi', did you mean 'synthesis'"),
        ("{rubric_judge: {rubric: invoice.yaml, sample: 2}}", "there is no argument 'sample'; did you mean 'samples'"),
        ("{rubric_judge: {rubric: invoice.yaml, role: judges.secnd}}", "did you mean 'judges.second'"),
        ("{rubric_judge: {rubric: invoice.yaml, role: judge, panel: [judge]}}", "leave one of them out"),
        ("{rubric_judge: {rubric: invoice.yaml, panel: judge}}", "panel is a list of roles"),
        ("{rubric_judge: {rubric: invoice.yaml, samples: 2, sample_temperature: 0}}", "are one and the same"),
        ("{rubric_judge: {rubric: invoice.yaml, weights: {vendr: 1}}}", "did you mean 'vendor'"),
        ("{rubric_judge: {rubric: invoice.yaml, score_map: map.json}}", "map.json cannot be read"),
        (
            "{rubric_judge: {rubric: invoice.yaml, gate: {grounded: {}, at_least: 7}}}",
            "at_least is a number from 0 to 1",
        ),
        ("{rubric_judge: {rubric: invoice.yaml, gate: {groundd: {}}}}", "there is no metric of this name"),
        ("{rubric_judge: {rubric: invoice.yaml, inputs: {text: txt}}}", "the judge is to be shown 'txt'"),
        ("{synthesis_judge: {rubric: invoice.yaml}}", "there is no argument 'rubric'"),
        ("{linking_judge: {}}", "the judge is to be shown 'synthesis_json'"),
        ("{syntesis_judge: {}}", "did you mean 'synthesis_judge'"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence_with_its_place(judged, metric, sentence):
    with pytest.raises(UsageError, match=sentence) as caught:
        load_experiment("experiment.yaml", [MODELS, f"metric={metric}"])
    assert len(str(caught.value).splitlines()) == 1
    assert "metric" in str(caught.value)


def test_a_judge_needs_a_model(judged):
    with pytest.raises(UsageError, match=r"rubric_judge asks a model; name it: models: \{judge: \.\.\.\}"):
        load_experiment("experiment.yaml", [JUDGED])


def test_judges_that_nobody_asks_and_one_that_grades_itself_are_told(judged):
    notes = load_experiment("experiment.yaml", [MODELS, JUDGED]).notes
    assert "models.judges.second is declared, but nothing in this experiment calls it" in notes
    same = MODELS.replace("judge: scripted/judge", "judge: scripted/model")
    notes = load_experiment("experiment.yaml", [same, JUDGED]).notes
    assert any("models.judge is the task's own model" in note for note in notes)
