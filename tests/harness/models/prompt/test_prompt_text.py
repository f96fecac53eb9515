"""A program's prompts as text, and the adapters by name."""

import subprocess
import sys

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from harness.models.prompt import (
    CompactAdapter,
    MapAwareJSONAdapter,
    ReAskingChatAdapter,
    decoding_schema,
    prompt_adapter,
    prompt_text,
)
from programs import SynthesisExtraction


def test_the_ontology_is_sent_in_order_and_strict():
    sent = decoding_schema(SynthesisExtraction().extract.signature, CompactAdapter())["json_schema"]
    assert sent["strict"] is True
    assert list(sent["schema"]["properties"])[:3] == ["target_compound", "target_compound_type", "synthesis_method"]


def test_adapters_by_name():
    assert type(prompt_adapter("json")) is MapAwareJSONAdapter
    assert type(prompt_adapter("compact")) is CompactAdapter
    chat = prompt_adapter("chat")
    assert type(chat) is ReAskingChatAdapter
    assert chat.use_json_adapter_fallback is False
    with pytest.raises(ValueError, match="there is no prompt adapter 'xml'; known: chat, compact, json"):
        prompt_adapter("xml")


def test_another_predictors_output_is_a_placeholder():
    class Chain(dspy.Module):
        def __init__(self):
            super().__init__()
            self.first = dspy.Predict("text -> summary")
            self.second = dspy.ChainOfThought("text, summary -> label")

    found = prompt_text(Chain(), CompactAdapter(), {"text": "t"})
    assert list(found) == ["first", "second.predict"]
    assert found["second.predict"].endswith("[user]\ntext: t\nsummary: {summary}\n")


def test_the_text_does_not_depend_on_the_hash_seed(tmp_path):
    script = tmp_path / "show.py"
    script.write_text(
        "from harness.models.prompt import CompactAdapter, decoding_schema, prompt_text\n"
        "from programs import SynthesisExtraction\n"
        "program = SynthesisExtraction(target=True)\n"
        "print(prompt_text(program, CompactAdapter(), {'text': 't', 'target_material': 'm'}))\n"
        "print(decoding_schema(program.extract.signature, CompactAdapter()))\n"
    )
    seen = {
        subprocess.run(
            [sys.executable, str(script)],
            env={"PYTHONHASHSEED": seed, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    assert b"mechanochemical" in seen.pop()


@pytest.mark.parametrize("name", ["json", "compact"])
def test_half_an_answer_is_never_completed_and_thoughts_are_no_answer(name):
    signature = dspy.Signature("text -> label: str, note: str")
    adapter = prompt_adapter(name)
    for half in ('{"label": "a", "no', '{"label": "a"', "label: a"):
        with pytest.raises(AdapterParseError):
            adapter.parse(signature, half)
    thought = '<think>maybe {"label": "wrong", "note": "n"}?</think>\n{"label": "right", "note": "n"}'
    assert adapter.parse(signature, thought)["label"] == "right"
