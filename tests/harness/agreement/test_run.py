"""`harness agree` end to end: recorded and live judges, their noise, attacks on them, what is wrong in a sentence."""

import json

import pytest
from mlflow import MlflowClient
from typer.testing import CliRunner

from harness.agreement.run import agree
from harness.cli import app
from harness.errors import RunStopped, UsageError
from harness.models.roles import Endpoints
from harness.models.scripted import ScriptedProvider, request_text
from harness.spec import load_card_spec
from harness.tracking.store import default_location

RUBRIC = """\
name: invoice
instructions: Judge it.
inputs:
  text: {description: the invoice, from: source}
  record: {description: what was taken from it, from: extraction}
criteria: {vendor: the sender, total: the amount}
"""
LIVE = """\
name: live
data: {path: rows.jsonl, group_by: paper}
judge: {rubric_judge: {rubric: invoice.yaml}}
models: {judge: scripted/judge}
repeats: 2
"""


def row(number):
    score = 1 + number % 5
    return {
        "id": f"r{number}",
        "paper": f"p{number // 2}",
        "text": f"Bill {number} of Acme, {number} EUR",
        "extraction": {"vendor": "Acme", "total": number, "quality": score},
        "human": {"vendor": score, "total": min(5, score + 1)},
        "recorded": {"vendor": score, "total": 3},
    }


@pytest.fixture
def cards(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    (workplace / "rows.jsonl").write_text("\n".join(json.dumps(row(number)) for number in range(20)))
    (workplace / "invoice.yaml").write_text(RUBRIC)
    (workplace / "live.yaml").write_text(LIVE)
    (workplace / "recorded.yaml").write_text("name: recorded\ndata: {path: rows.jsonl, group_by: paper}\n")
    return workplace


def by_quality(request):
    """Scores what the extraction says of itself, so people and judge agree; whatever says nothing gets a 1."""
    record = request_text(request).rsplit("[[ ## record ## ]]", 1)[1].strip().splitlines()[0]
    quality = json.loads(record).get("quality", 1) if record.startswith("{") else 1
    scores = {
        f"{name}_{part}": quality if part == "score" else "so"
        for name in ("vendor", "total")
        for part in ("score", "reasoning")
    }
    return json.dumps({"evaluation": {"reasoning": "r", "scores": scores, "confidence_level": "high"}})


def endpoints(script):
    provider = ScriptedProvider(script, "scripted/judge", concurrency=4)
    return Endpoints(environ={}, providers={provider.model: provider}), provider


def test_recorded_judges_from_a_file_alone(cards):
    result = CliRunner().invoke(app, ["agree", "recorded.yaml", "--json"])
    document = json.loads(result.stdout)
    assert (document["rows"], document["groups"]) == (20, 10)
    cell = document["judges"]["recorded"]["overall"]
    assert cell["spearman"] == pytest.approx(1.0)
    assert len(cell["interval"]["spearman"]) == 2
    assert document["judges"]["recorded"]["no_information"] == ["total"]
    assert document["mean_of_judges"] is None
    assert (cards / document["page"]).read_text().startswith("<!doctype html>")
    client = MlflowClient(tracking_uri=default_location(cards).uri)
    run = client.get_run(document["run_id"])
    assert run.data.metrics["recorded/spearman"] == pytest.approx(1.0)
    names = {file.path for file in client.list_artifacts(document["run_id"])}
    assert names == {
        "agreement.json", "bias_by_criterion.png", "card.html", "recorded_against_people.png", "recorded_by_group.png",
    }  # fmt: skip
    told = CliRunner().invoke(app, ["agree", "recorded.yaml"]).stdout
    assert "recorded: 20 extractions of 10 groups" in told
    assert "carries no information" in told


def test_a_live_judge_its_noise_and_the_attacks_on_it(cards):
    opened, provider = endpoints(by_quality)
    document = agree(load_card_spec("live.yaml"), endpoints=opened)

    judge = document["judges"]["rubric_judge"]
    assert judge["overall"]["spearman"] == pytest.approx(1.0, abs=0.01)
    assert (judge["live"]["repeats"], judge["live"]["flips"], judge["live"]["noise_floor"]) == (2, 0.0, 0.0)
    battery = judge["live"]["attack_battery"]
    assert battery["rows"] == 5
    assert not any(found["gained"] for found in battery["attacks"].values())
    assert battery["attacks"]["master key"]["change"] <= -0.9
    assert judge["live"]["calls"] == 40, "two for each row; the attacks on it are in the ledger"
    assert document["ledger"]["judge"]["calls"] == len(provider.requests) > 40

    again, other = endpoints(by_quality)
    assert agree(load_card_spec("live.yaml"), endpoints=again)["judges"] != {}
    assert other.requests == [], "the second card makes no call"


def test_a_judge_that_can_be_gamed_and_one_that_wavers(cards):
    answers = iter(range(10_000))

    def gullible(request):
        said = json.loads(by_quality(request))
        text = request_text(request)
        lucky = "perfect" in text or next(answers) % 2
        said["evaluation"]["scores"]["vendor_score"] = 5 if lucky else 2
        return json.dumps(said)

    opened, _ = endpoints(gullible)
    live = agree(load_card_spec("live.yaml"), endpoints=opened)["judges"]["rubric_judge"]["live"]
    assert live["flips"] > 0
    assert live["noise_floor"] is not None


def test_a_silent_judge_stops(cards):
    opened, _ = endpoints(lambda _: "Score: 3/5")
    with pytest.raises(RunStopped, match="rubric_judge scored none of 20 rows; the first: "):
        agree(load_card_spec("live.yaml"), endpoints=opened)


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        ("recorded.yaml", "recorded=[recordd]", "no judge 'recordd' is recorded; did you mean 'recorded'"),
        ("recorded.yaml", "data.group_by=papr", "it has no 'papr' to group by"),
        ("recorded.yaml", "data.path=none.jsonl", "none.jsonl"),
        ("recorded.yaml", "models.judge=a/b", "models are for a live judge"),
        ("recorded.yaml", "resample=3", "unknown key 'resample' in the card|unknown key 'resample'"),
        ("live.yaml", "judge={rubric_juge: {}}", "did you mean 'rubric_judge'"),
        (
            "live.yaml",
            "judge={synthesis_judge: {}}",
            "the judge scores structural_completeness, .*; people scored vendor, total",
        ),
        ("live.yaml", "judge={rubric_judge: {rubric: invoice.yaml, role: judges.x}}", "name it: models.judges.x"),
    ],
)
def test_what_is_wrong_is_told(cards, file, change, sentence):
    opened, _ = endpoints(by_quality)
    with pytest.raises(UsageError, match=sentence):
        agree(load_card_spec(file, [change]), endpoints=opened)


def test_the_schema_of_a_card():
    found = json.loads(CliRunner().invoke(app, ["schema", "card"]).stdout)
    assert {"data", "recorded", "judge", "repeats"} <= set(found["properties"])
