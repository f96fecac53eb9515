"""The whole path on a scripted model: verdict, files, MLflow, resume, stops, secrets."""

import json
import os
import re
from dataclasses import replace

import pytest

from harness.assembly import load_experiment
from harness.errors import RunStopped, UsageError
from harness.experiment import run
from harness.exporting import export_run
from harness.measurement import evaluate_program
from harness.run_folder import find_run_folder
from harness.tracking.tracker import Tracker


@pytest.fixture
def finished(project, scripted):
    endpoints, provider = scripted()
    return run(load_experiment("experiment.yaml"), endpoints=endpoints), provider


def test_a_program_that_demos_help_is_improved(finished):
    result, provider = finished
    assert result.verdict == "improved"
    assert result.baseline.total.score == 0.0
    assert result.tuned.total.score == 1.0
    assert (result.delta.mean, result.delta.n_pairs) == (1.0, 12)
    assert result.ledger["task"].calls == len(provider.requests) == 12 + 2 * 4 + 12
    assert result.test_reads == 1


def test_the_document_has_the_promised_shape(finished):
    document = json.loads(json.dumps(finished[0].to_document()))
    assert {"run_id", "experiment", "verdict", "baseline", "tuned", "delta", "audit", "ledger", "bundle"} <= set(
        document
    )
    assert {"score", "n_scored", "n_total", "lower_bound", "interval"} <= set(document["baseline"])
    assert {"mean", "interval", "smallest_detectable"} <= set(document["delta"])
    assert set(document["ledger"]["task"]) == {
        "calls", "cached", "input_tokens", "output_tokens", "usd", "estimated", "failures",
        "replayed_input_tokens", "replayed_output_tokens", "replayed_usd",
    }  # fmt: skip
    assert document["stopped"] is None


def test_the_runs_folder_holds_everything(finished, project):
    folder = project / finished[0].folder
    names = {path.name for path in folder.iterdir()}
    assert {"run.json", "splits.json", "result.json", "report.html", "bundle", "bundle-baseline"} <= names
    assert not [name for name in names if name.endswith(".new")]
    splits = json.loads((folder / "splits.json").read_text())
    assert len(splits["test"]) == 12


def test_mlflow_has_one_parent_with_baseline_compile_and_tuned(finished, project):
    tracker = Tracker.open(project)
    info = tracker.find_run(finished[0].run_id)
    assert info.status == "FINISHED"
    assert info.metrics["test/score"] == 1.0
    assert info.metrics["delta/low"] == 1.0
    children = tracker._client.search_runs([info.experiment_id], f"tags.`mlflow.parentRunId` = '{info.run_id}'")
    assert {child.info.run_name for child in children} == {"baseline", "compile", "tuned"}
    assert {child.info.status for child in children} == {"FINISHED"}


def test_the_same_experiment_again_is_read_back_without_a_call(finished, scripted):
    endpoints, provider = scripted()
    again = run(load_experiment("experiment.yaml"), endpoints=endpoints)
    assert again.replayed
    assert replace(again, replayed=False) == finished[0]
    assert provider.requests == []


def test_force_asks_everything_anew_and_looks_at_the_test_split_again(finished, scripted):
    endpoints, provider = scripted()
    again = run(load_experiment("experiment.yaml"), endpoints=endpoints, force=True)
    assert len(provider.requests) == 32
    assert again.run_id != finished[0].run_id
    assert again.test_reads == 2
    assert again.folder == f"{finished[0].folder}-again1"
    endpoints, provider = scripted()
    latest = run(load_experiment("experiment.yaml"), endpoints=endpoints)
    assert (latest.run_id, latest.replayed, provider.requests) == (again.run_id, True, [])


def test_an_interrupted_force_hides_nothing_and_goes_on(finished, project, scripted, answers):
    def script(request):
        if len(provider.requests) > 14:
            raise KeyboardInterrupt
        return answers(request)

    endpoints, provider = scripted(script)
    with pytest.raises(RunStopped):
        run(load_experiment("experiment.yaml"), endpoints=endpoints, force=True)
    export_run("experiment", project / "tuned")
    assert run(load_experiment("experiment.yaml"), endpoints=endpoints).run_id == finished[0].run_id
    endpoints, rest = scripted()
    again = run(load_experiment("experiment.yaml"), endpoints=endpoints, force=True)
    assert len(rest.requests) == 32 - 14, "what the interrupted repetition paid for is not paid again"
    assert again.folder.endswith("-again1")


def test_a_changed_experiment_is_a_new_run_and_says_what_changed(finished, scripted):
    endpoints, _ = scripted()
    changed = run(load_experiment("experiment.yaml", ["optimizer.nearest_demos.k=3"]), endpoints=endpoints)
    assert changed.fingerprint != finished[0].fingerprint
    assert "changed since the last run of this experiment: optimizer" in changed.notes
    assert changed.test_reads == 2


@pytest.mark.parametrize("calls_before", [3, 14, 26])
def test_an_interrupted_run_goes_on_without_a_call_paid_twice(project, scripted, answers, calls_before):
    def script(request):
        if len(provider.requests) > calls_before:
            raise KeyboardInterrupt
        return answers(request)

    endpoints, provider = scripted(script)
    with pytest.raises(RunStopped) as stopped:
        run(load_experiment("experiment.yaml"), endpoints=endpoints)
    assert stopped.value.exit_code == 130
    [state] = [json.loads(path.read_text()) for path in project.glob("mlruns/runs/*/run.json")]
    assert state["status"] == "stopped"
    assert Tracker.open(project).find_run(state["run_id"]).status == "KILLED"
    endpoints, rest = scripted()
    result = run(load_experiment("experiment.yaml"), endpoints=endpoints)
    assert result.run_id == state["run_id"]
    assert len(rest.requests) == 32 - calls_before
    assert Tracker.open(project).find_run(state["run_id"]).status == "FINISHED"


def test_too_few_examples_give_no_verdict_and_say_so(project, scripted):
    endpoints, _ = scripted()
    result = run(load_experiment("experiment.yaml", ["data.split.test=5"]), endpoints=endpoints)
    assert result.verdict == "no detectable change"
    assert any("5 independent test examples are too few" in note for note in result.notes)


def test_no_tuning_is_no_change(project, scripted):
    endpoints, provider = scripted()
    result = run(load_experiment("experiment.yaml", ["optimizer=none"]), endpoints=endpoints)
    assert result.verdict == "no detectable change"
    assert result.delta.mean == 0.0
    assert len(provider.requests) == 12
    assert all(row.cached for row in result.tuned.rows)


def test_audits_are_reported_and_not_optimised(project, scripted):
    endpoints, _ = scripted()
    override = "audit={record: {fields: {total: numeric}}}"
    result = run(load_experiment("experiment.yaml", [override]), endpoints=endpoints)
    assert result.audit["record"].tuned.score == 1.0
    assert result.to_document()["audit"]["record"]["delta"]["mean"] == 1.0


def test_a_run_is_exported_and_measured_as_it_was(finished, project, scripted):
    for candidate, score in (("tuned", 1.0), ("baseline", 0.0)):
        folder = export_run("experiment", project / candidate, candidate)
        endpoints, provider = scripted()
        document = evaluate_program(load_experiment("experiment.yaml"), bundle=folder, endpoints=endpoints)
        assert document["score"] == score
        assert provider.requests == []
    with pytest.raises(UsageError, match="exists and is not empty"):
        export_run(finished[0].run_id[:8], project / "tuned")


def test_a_file_is_measured_without_tuning(project, scripted):
    endpoints, provider = scripted()
    document = evaluate_program(load_experiment("experiment.yaml"), endpoints=endpoints)
    assert (document["score"], document["n_total"], document["program"]) == (0.0, 12, "baseline")
    assert len(provider.requests) == 12
    assert document["fields"]["vendor"]["score"] == 0.0


def test_a_bundle_of_another_record_is_not_measured(finished, project, scripted):
    (project / "schema.py").write_text(
        "from pydantic import BaseModel\n\n\nclass Invoice(BaseModel):\n    vendor: str\n"
    )
    endpoints, _ = scripted()
    with pytest.raises(UsageError, match="puts out another record"):
        evaluate_program(load_experiment("experiment.yaml"), bundle=project / finished[0].bundle, endpoints=endpoints)


def test_a_run_of_another_folder_cannot_be_exported_from_here(finished, project):
    (find_run_folder(finished[0].run_id) / "run.json").unlink()
    with pytest.raises(UsageError, match="has no bundle under mlruns/runs"):
        export_run(finished[0].run_id, project / "out")


def test_no_key_no_address_no_pickle_and_no_machine_path_in_what_a_run_writes(project, scripted, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret-value")
    endpoints, _ = scripted()
    overrides = ["models.task.api_key_env=MY_KEY", "models.task.api_base=http://gpu-7.internal:8000/v1"]
    result = run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
    for path in project.glob("mlruns/**/*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"sk-very-secret-value" not in content, path
            assert path.suffix not in (".pkl", ".pickle"), path
    for path in (project / result.bundle).rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert "gpu-7.internal" not in text, path
            assert str(project) not in text, path
            assert os.path.expanduser("~") not in text, path
            assert not re.search(r"\b/(home|root|tmp)/", text), path


def test_failed_answers_and_an_unchanged_prompt_are_told(project, scripted):
    from harness.models.scripted import reply

    endpoints, provider = scripted(lambda request: reply('{"vendor": "A', finish_reason="length"))
    overrides = ["optimizer={bootstrap_few_shot: {max_labeled_demos: 0}}", "models.task.max_tokens=60"]
    result = run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
    assert result.verdict == "not comparable"
    notes = "\n".join(result.notes)
    assert "tuning changed no prompt" in notes
    for evaluation in ("baseline", "tuned"):
        assert f"{evaluation}: 12 of 12" in notes
    assert "raise models.task.max_tokens" in notes
    assert len(provider.requests) == 40, (
        "twice the limit is tried once; tuned asks what baseline asked and pays nothing"
    )
    assert result.ledger["task"].failures["cut"] >= 20


def test_answers_below_the_threshold_are_counted(project, scripted):
    endpoints, _ = scripted()
    overrides = ["optimizer={bootstrap_few_shot: {max_labeled_demos: 0, metric_threshold: 0.9}}"]
    result = run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
    assert "0 of 8 answers on training examples reached metric_threshold" in result.notes


def test_a_bundle_of_a_program_of_ones_own_is_measured_and_predicted_with(project, scripted):
    from harness.prediction import predict_bundle

    (project / "mine.py").write_text(
        "import dspy\nfrom schema import Invoice\n\n\nclass Mine(dspy.Module):\n    output_field = 'record'\n\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        fields = {'text': (str, dspy.InputField()), 'record': (Invoice, dspy.OutputField())}\n"
        "        self.extract = dspy.Predict(dspy.Signature(fields, 'Read the bill.'))\n\n"
        "    def forward(self, text):\n        return self.extract(text=text)\n"
    )
    endpoints, _ = scripted()
    experiment = load_experiment("experiment.yaml", ["program=mine.py:Mine"])
    result = run(experiment, endpoints=endpoints)
    assert result.verdict == "improved"
    endpoints, provider = scripted()
    document = evaluate_program(experiment, bundle=project / result.bundle, endpoints=endpoints)
    assert (document["score"], provider.requests) == (1.0, [])
    (project / "new.jsonl").write_text('{"text": "Bill no. 77 of Zed Ltd, 9 EUR to pay"}\n')
    endpoints, _ = scripted()
    told = predict_bundle(
        project / result.bundle,
        project / "new.jsonl",
        project / "out.jsonl",
        program="mine.py:Mine",
        endpoints=endpoints,
    )
    assert told["answered"] == 1
    assert json.loads((project / "out.jsonl").read_text())["record"] == {"vendor": "Zed Ltd", "total": 9.0}


def test_a_measurement_that_stops_marks_its_run_failed(project, scripted):
    endpoints, _ = scripted([KeyError("a bug of the provider")])
    with pytest.raises(RunStopped, match="a bug of the provider"):
        evaluate_program(load_experiment("experiment.yaml"), endpoints=endpoints)
    latest = Tracker.open(project).latest_run()
    assert (latest.status, latest.tags["kind"]) == ("FAILED", "evaluation")


def test_a_bundle_that_is_refused_costs_no_result(project, scripted, monkeypatch):
    overrides = ["models.task.api_key_env=MY_KEY", "name=invoices-2024"]
    monkeypatch.setenv("MY_KEY", "invoices-2024")  # the report holds the experiment's name
    endpoints, _ = scripted()
    with pytest.raises(UsageError, match="would hold"):
        run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
    [folder] = project.glob("mlruns/runs/*")
    assert (folder / "result.json").is_file()
    assert (folder / "report.html").is_file()
    monkeypatch.setenv("MY_KEY", "sk-another-key-entirely")
    endpoints, provider = scripted()
    result = run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
    assert provider.requests == []
    assert (project / result.bundle / "manifest.json").is_file()


def test_a_bundle_is_measured_under_its_own_prompt_form(finished, project, scripted):
    endpoints, provider = scripted()
    experiment = load_experiment("experiment.yaml", ["adapter=json"])
    document = evaluate_program(experiment, bundle=project / finished[0].bundle, endpoints=endpoints)
    assert (document["score"], provider.requests) == (1.0, [])


def test_a_bundle_measured_on_what_it_was_tuned_on_is_told(finished, project, scripted):
    folder = project / finished[0].bundle
    endpoints, _ = scripted()
    other_split = load_experiment("experiment.yaml", ["data.split.seed=1"])
    notes = evaluate_program(other_split, bundle=folder, endpoints=endpoints)["notes"]
    assert "were training or validation examples when the bundle was tuned" in notes[0]
    endpoints, _ = scripted()
    own_split = evaluate_program(load_experiment("experiment.yaml"), bundle=folder, endpoints=endpoints)
    assert not any("when the bundle was tuned" in note for note in own_split["notes"])
