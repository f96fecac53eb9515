"""Bundles: what is written, and that it loads anywhere with the same bytes."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import dspy
import pytest

from harness import bundle
from harness.bundle.folder import HASHES
from harness.errors import UsageError
from harness.models.prompt import prompt_adapter, prompt_text
from programs import SchemaExtraction, SynthesisExtraction, output_contract

KEY = "sk-a-key-nobody-may-see"
ENDPOINT = "http://10.1.2.3:8000/v1"
ANSWERS = {
    "compact": '{"vendor": "A"}',
    "json": '{"record": {"vendor": "A"}}',
    "chat": '[[ ## record ## ]]\n{"vendor": "A"}\n[[ ## completed ## ]]',
}
LOADER = """\
import json, sys
import dspy
from dspy import lm15
from dspy._vendor.lm15.serde import request_to_dict
import harness

class Engine:
    supports_function_calling = supports_reasoning = False
    supports_response_schema = True
    supported_params = frozenset(("response_format", "temperature"))
    def complete(self, request):
        print(json.dumps(request_to_dict(request), ensure_ascii=True))
        message = lm15.Message.assistant([lm15.TextPart(sys.argv[2])])
        usage = lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2)
        return lm15.Response(id=None, model=request.model, message=message, finish_reason="stop", usage=usage)

loaded = harness.load(sys.argv[1])
lm = dspy.LM("scripted/x", engine=Engine(), cache=False, num_retries=0)
print(json.dumps(loaded.contract.plain(loaded(lm=lm, text="die Fr\\u00e4ge").record)))
"""


@pytest.mark.parametrize("adapter", ["compact", "json", "chat"])
def test_a_fresh_process_elsewhere_sends_the_same_bytes(kit, tmp_path, adapter):
    """I1, I5, C15: no user's file, no training code, the very request of the tuned program."""
    from dspy._vendor.lm15.serde import request_to_dict

    engine = kit.Engine(ANSWERS[adapter])
    program = kit.tuned()
    with dspy.context(lm=kit.model(engine), adapter=prompt_adapter(adapter)):
        program(text="die Fräge")
    kit.export(tmp_path / "made here" / "bundle", program, adapter)
    moved = tmp_path / "moved"
    (tmp_path / "made here" / "bundle").rename(moved)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "load.py").write_text(LOADER)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [sys.executable, "load.py", str(moved), ANSWERS[adapter]],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    sent, record = done.stdout.splitlines()
    assert sent == json.dumps(request_to_dict(engine.requests[0]), ensure_ascii=True)
    assert json.loads(record) == {"vendor": "A"}


def test_what_a_bundle_holds(kit, tmp_path):
    digest = kit.export(tmp_path / "b", kit.tuned())
    files = kit.files_of(tmp_path / "b")
    assert sorted(files) == [
        "HASHES",
        "manifest.json",
        "output_schema.json",
        "program.json",
        "prompts/extract.json",
        "prompts/extract.txt",
        "report.json",
    ]
    manifest = json.loads(files["manifest.json"])
    assert manifest["program"]["class"] == "programs.schema:SchemaExtraction"
    assert manifest["model"] == kit.SETTINGS
    assert set(manifest["versions"]) == {"python", "dspy", "pydantic", "jsonschema", "dspy-judge-harness"}
    assert json.loads(files["output_schema.json"]) == kit.Invoice.model_json_schema()
    assert json.loads(files["report.json"]) == {"verdict": "improved"}
    text = files["prompts/extract.txt"].decode()
    assert text == prompt_text(kit.tuned(), prompt_adapter("compact"), {"text": "{text}"})["extract"]
    assert text.endswith("[user]\n{text}\n")
    assert hashlib.sha256(files["HASHES"]).hexdigest() == digest == bundle.load(tmp_path / "b").digest


def test_hashes_are_those_of_sha256sum(kit, tmp_path):
    kit.export(tmp_path / "b", kit.tuned())
    subprocess.run(["sha256sum", "--check", "--quiet", HASHES], cwd=tmp_path / "b", check=True)


def test_equal_programs_give_equal_bundles(kit, tmp_path):
    assert kit.export(tmp_path / "a", kit.tuned()) == kit.export(tmp_path / "b", kit.tuned())
    assert kit.files_of(tmp_path / "a") == kit.files_of(tmp_path / "b")


def test_nothing_secret_and_no_pickle(kit, tmp_path, monkeypatch):
    """V20, I2, I3: a bound LM with key and address leaves no trace."""
    monkeypatch.setenv("SOME_API_KEY", KEY)
    program = kit.tuned()
    program.set_lm(dspy.LM("openai/x", api_key=KEY, api_base=ENDPOINT, cache=False))
    kit.export(tmp_path / "b", program, forbidden=[ENDPOINT])
    for name, content in kit.files_of(tmp_path / "b").items():
        for secret in (KEY, ENDPOINT, str(tmp_path), str(Path.cwd()), "10.1/x", "augmented"):
            assert secret.encode() not in content, (name, secret)
        assert not content.startswith(b"\x80")
        content.decode()


def test_a_secret_inside_the_program_stops_the_export(kit, tmp_path, monkeypatch):
    program = kit.tuned(instructions=f"Use {KEY} to log in.")
    with pytest.raises(UsageError, match=r"its program.json would hold a key or an endpoint$") as error:
        kit.export(tmp_path / "b", program, forbidden=["", KEY])
    assert KEY not in str(error.value)
    monkeypatch.setenv("MY_SERVICE_TOKEN", KEY)
    with pytest.raises(UsageError, match=r"its program.json would hold the value of MY_SERVICE_TOKEN$"):
        kit.export(tmp_path / "b", program)
    monkeypatch.setenv("MY_SERVICE_TOKEN", "ünï")  # too short to be one, and in the text
    kit.export(tmp_path / "b", kit.tuned())


def test_a_path_of_this_machine_stops_the_export(kit, tmp_path):
    with pytest.raises(UsageError, match=r"its report.json would hold a path of this machine$"):
        kit.export(tmp_path / "b", kit.tuned(), report={"folder": str(Path.cwd() / "mlruns")})
    assert not (tmp_path / "b").exists()


def test_a_weights_file_is_named_without_its_folder(kit, tmp_path):
    kit.export(
        tmp_path / "b", kit.tuned(), model_settings={"model": "local//home/me/small.gguf", "bounds": {"max_items": 6}}
    )
    assert bundle.load(tmp_path / "b").model == {"model": "local/small.gguf", "bounds": {"max_items": 6}}


def test_an_unknown_model_setting_is_refused(kit, tmp_path):
    with pytest.raises(ValueError, match="a bundle does not hold the model setting 'api_base'"):
        kit.export(tmp_path / "b", kit.tuned(), model_settings={"model": "x", "api_base": ENDPOINT})


def test_a_loaded_program_gives_plain_records_or_instances(kit, tmp_path):
    kit.export(tmp_path / "b", kit.tuned())
    lm = kit.model(kit.Engine('{"vendor": "A", "day": "2024-01-02T00:00:00Z"}'))
    loaded = bundle.load(tmp_path / "b")
    assert loaded(lm=lm, text="t").record == {"vendor": "A", "day": "2024-01-02T00:00:00Z"}
    with dspy.context(lm=lm):
        assert loaded(text="t").record["vendor"] == "A"
    typed = bundle.load(tmp_path / "b", program=SchemaExtraction(kit.Invoice))
    assert isinstance(typed(lm=lm, text="t").record, kit.Invoice)
    assert bundle.load(str(tmp_path / "b"), program=SchemaExtraction).contract.schema == loaded.contract.schema


def test_a_loaded_program_says_what_it_needs(kit, tmp_path):
    kit.export(tmp_path / "b", kit.tuned())
    loaded = bundle.load(tmp_path / "b")
    with pytest.raises(UsageError, match="the program needs text; text is missing"):
        loaded()
    with pytest.raises(UsageError, match="the program has no input 'txt'; did you mean 'text'"):
        loaded(text="t", txt="t")
    with dspy.context(lm=None), pytest.raises(UsageError, match="there is no model: pass lm="):
        loaded(text="t")


def test_the_ontology_program(kit, tmp_path):
    program = SynthesisExtraction(target=True)
    synthesis = {"target_compound": "TiO₂", "target_compound_type": "other", "synthesis_method": "sol-gel"}
    value = output_contract(program).validate(synthesis)
    program.extract.demos = [dspy.Example(text="t", target_material="TiO₂", synthesis=value)]
    kit.export(tmp_path / "b", program)
    loaded = bundle.load(tmp_path / "b")
    assert loaded.contract.inputs == ("text", "target_material")
    found = loaded(lm=kit.model(kit.Engine(json.dumps(synthesis))), text="t", target_material="x").synthesis
    assert found == value


def test_a_record_with_default_and_absent_values_round_trips_from_plain_demos(kit, tmp_path):
    program = SchemaExtraction(kit.Invoice.model_json_schema())
    program.extract.demos = [dspy.Example(text="a", record={"vendor": "A"}), dspy.Example(text="b", record=None)]
    kit.export(tmp_path / "b", program, "json")
    assert [demo["record"] for demo in bundle.load(tmp_path / "b").program.extract.demos] == [{"vendor": "A"}, None]


def test_demos_chosen_per_question_are_chosen_again(kit, tmp_path):
    program = kit.nearest()
    kit.export(tmp_path / "b", program, probes=[{"text": "ef"}, {"text": "ij"}])
    loaded = bundle.load(tmp_path / "b")
    adapter = prompt_adapter("compact")
    for text in ("ab", "ef", "ij", "zz"):
        assert prompt_text(loaded.program, adapter, {"text": text}) == prompt_text(program, adapter, {"text": text})
    assert loaded(lm=kit.model(kit.Engine('{"vendor": "A"}')), text="ab").record == {"vendor": "A"}
    assert "[assistant]\n" in (tmp_path / "b" / "prompts" / "extract.txt").read_text()


@pytest.mark.parametrize("adapter", ["compact", "json", "chat"])
def test_a_users_own_program_is_loaded_with_its_class_or_an_instance(kit, tmp_path, adapter):
    reference = {"class": "/home/me/mine.py:Mine", "arguments": {"hint": [Path("/home/me/hint.txt"), "~/a/b"]}}
    kit.export(tmp_path / "b", kit.mine(), adapter, program_reference=reference)
    answer = {"chat": "[[ ## reasoning ## ]]\nr\n[[ ## label ## ]]\nx\n[[ ## completed ## ]]"}
    lm = kit.model(kit.Engine(answer.get(adapter, '{"reasoning": "r", "label": "x"}')))
    for given in (kit.Mine, kit.Mine()):
        loaded = bundle.load(tmp_path / "b", program=given)
        assert loaded(lm=lm, text="t", more=1).label == "x"
        assert len(loaded.program.steps[0].predict.demos) == 2
    assert bundle.load(tmp_path / "b", program=kit.Mine).program.hint == ["hint.txt", "b"]
    with pytest.raises(
        UsageError, match=r"a program of your own, mine.py:Mine: call load\('.*', program=Mine\), or give --program$"
    ):
        bundle.load(tmp_path / "b")


def test_a_program_without_reference_is_named_by_its_class(kit, tmp_path):
    kit.export(tmp_path / "b", kit.mine())
    assert json.loads((tmp_path / "b" / "manifest.json").read_text())["program"] == {"class": "Mine", "arguments": {}}
    assert [path.name for path in sorted((tmp_path / "b" / "prompts").iterdir())] == [
        "steps_0_.predict.json",
        "steps_0_.predict.txt",
    ]


def test_predictors_whose_names_make_equal_file_names_are_kept_apart(kit, tmp_path):
    class Two(kit.Mine):
        def __init__(self):
            super().__init__()
            self.steps_ = {"0]": dspy.Predict("text -> a"), "0[": dspy.Predict("text -> b")}

    kit.export(tmp_path / "b", Two())
    assert len(list((tmp_path / "b" / "prompts").glob("*.txt"))) == 3


def test_other_versions_with_other_prompts_are_noted(kit, tmp_path):
    """I7: a newer dspy may write prompts differently; then the user is told, not stopped."""
    kit.export(tmp_path / "b", kit.tuned())
    assert bundle.load(tmp_path / "b").notes == ()
    kit.rewrite(tmp_path / "b", "manifest.json", lambda m: m["versions"].update(dspy="3.4.0"))
    assert bundle.load(tmp_path / "b").notes == ()
    kit.rewrite(
        tmp_path / "b", "program.json", lambda p: p["predictors"]["extract"].update(instructions="As another dspy.")
    )
    (note,) = bundle.load(tmp_path / "b").notes
    assert note.startswith("other prompts than when it was exported, prompts/extract.txt for one: dspy 3.4.0 then, ")
