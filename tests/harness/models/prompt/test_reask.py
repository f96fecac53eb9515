"""An answer that cannot be read is asked for once more, with what was wrong; after that it is a failure with a name."""

import asyncio
import json
from typing import Literal

import dspy
import pydantic
import pytest
from dspy import lm15
from dspy.utils.exceptions import AdapterParseError

from harness.errors import ProgramFailure, RunStopped, StopReason
from harness.models.faults import program_failure
from harness.models.ledger import Ledger
from harness.models.prompt import prompt_adapter
from harness.models.prompt.reask import QUOTED, fault_of, follow_up
from harness.models.scripted import ScriptedProvider, reply

ADAPTERS = ["json", "chat", "compact"]


class Bill(pydantic.BaseModel):
    vendor: str
    total: float
    unit: Literal["EUR", "USD"] = "EUR"


PROGRAM = dspy.Signature({"text": (str, dspy.InputField()), "bill": (Bill, dspy.OutputField())}, "Read the bill.")


def said(adapter, record):
    """A record as a model writes it under this adapter."""
    text = json.dumps(record)
    return {"json": f'{{"bill": {text}}}', "chat": f"[[ ## bill ## ]]\n{text}\n[[ ## completed ## ]]"}.get(
        adapter, text
    )


WRONG, RIGHT = {"vendor": "Acme", "total": "about 12"}, {"vendor": "Acme", "total": 12}


def ask(lm, adapter, way="sync", **config):
    program = dspy.Predict(PROGRAM, **config)
    program.demos = [dspy.Example(text="old", bill=Bill(vendor="Old", total=1))]
    with dspy.context(lm=lm, adapter=prompt_adapter(adapter)):
        return program(text="q") if way == "sync" else asyncio.run(program.acall(text="q"))


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_second_question_names_the_fault_and_its_answer_counts(scripted_lm, ledger, adapter, way):
    provider = ScriptedProvider([said(adapter, WRONG), said(adapter, RIGHT)])
    lm = scripted_lm(provider)
    assert ask(lm, adapter, way).bill == Bill(vendor="Acme", total=12)
    first, second = provider.requests
    assert second.system == first.system
    assert second.config == first.config
    assert second.messages[: len(first.messages)] == first.messages
    answer, complaint = second.messages[len(first.messages) :]
    assert (answer.role, complaint.role) == ("assistant", "user")
    assert answer.text == said(adapter, WRONG)
    assert "That answer cannot be used." in complaint.text
    assert "total" in complaint.text
    assert "about 12" in complaint.text
    assert "number" in complaint.text
    assert len(complaint.text.splitlines()) == 2
    assert (ledger.usage()["task"].calls, ledger.usage()["task"].failures) == (2, {"invalid": 1})


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_store_replays_both_questions(scripted_lm, ledger, adapter):
    provider = ScriptedProvider([said(adapter, WRONG), said(adapter, RIGHT)])
    lm = scripted_lm(provider)
    for _ in range(2):
        assert ask(lm, adapter).bill.total == 12
    assert len(provider.requests) == 2
    assert (ledger.usage()["task"].calls, ledger.usage()["task"].cached) == (2, 2)


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_it_asks_no_third_time_and_says_what_was_wrong_both_times(scripted_lm, ledger, adapter, way):
    provider = ScriptedProvider([said(adapter, WRONG), said(adapter, {"vendor": "Acme"})])
    with pytest.raises(ProgramFailure) as failed:
        ask(scripted_lm(provider), adapter, way)
    assert len(provider.requests) == 2
    assert ledger.usage()["task"].failures == {"invalid": 2}
    assert failed.value.kind == "invalid"
    assert program_failure(failed.value) is failed.value
    before, after = str(failed.value).split("; asked again: ")
    assert before.startswith("the answer could not be read: ")
    assert "about 12" in before
    assert "total" in after
    assert isinstance(failed.value.__cause__, AdapterParseError)


def test_the_same_fault_twice_is_said_once(scripted_lm):
    with pytest.raises(ProgramFailure, match=r"holds no JSON object; asked again: the same once more$"):
        ask(scripted_lm(ScriptedProvider(["nonsense", "nonsense too"])), "compact")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (reply("{", finish_reason="length"), "answer cut at"),
        (lm15.ContextLengthError("the prompt has 9000 tokens"), "9000 tokens"),
        (reply("", finish_reason="content_filter"), "refused"),
    ],
)
def test_a_second_answer_that_does_not_come_leaves_the_first_unreadable(scripted_lm, second, words):
    # A cut answer is tried again by the engine, hence for good.
    script = iter(["nonsense"])
    with pytest.raises(ProgramFailure, match=words) as failed:
        ask(scripted_lm(ScriptedProvider(lambda _: next(script, second))), "compact")
    assert failed.value.kind == "invalid"
    assert str(failed.value).startswith("the answer could not be read: the answer holds no JSON object; asked again: ")
    assert isinstance(failed.value.__cause__, AdapterParseError)


def test_a_second_question_is_paid_out_of_the_budget(scripted_lm):
    provider = ScriptedProvider(["nonsense", said("compact", RIGHT)])
    with pytest.raises(RunStopped) as stopped:
        ask(scripted_lm(provider, ledger=Ledger(1)), "compact")
    assert stopped.value.reason is StopReason.BUDGET
    assert len(provider.requests) == 1


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_of_several_completions_only_the_unreadable_ones_are_asked_again(scripted_lm, adapter, way):
    records = [{"vendor": "A", "total": 1}, WRONG, {"vendor": "C", "total": 3}, {"vendor": "B", "total": 2}]
    provider = ScriptedProvider([said(adapter, record) for record in records])
    found = ask(scripted_lm(provider), adapter, way, n=3)
    assert [bill.vendor for bill in found.completions.bill] == ["A", "B", "C"]
    assert len(provider.requests) == 4


def test_another_rollout_asks_both_questions_anew(scripted_lm):
    provider = ScriptedProvider([said("compact", each) for each in (WRONG, RIGHT, WRONG, RIGHT)])
    lm = scripted_lm(provider)
    for rollout in (1, 2, 1, 2):
        ask(lm, "compact", rollout_id=rollout, temperature=1.0)
    assert len(provider.requests) == 4


def test_a_long_answer_is_shown_again_in_part():
    assistant, user = follow_up("x" * 10_000, "no JSON")
    assert assistant["content"] == "x" * QUOTED + "…"
    assert "no JSON" in user["content"]
    assert follow_up(" \n", "empty")[0]["content"] == "(nothing)"


def test_other_errors_are_none_of_its_business(scripted_lm):
    class Odd(pydantic.BaseModel):
        total: int

        @pydantic.field_validator("total")
        @classmethod
        def _bug(cls, value):
            raise RuntimeError("a bug in the schema")

    signature = dspy.Signature({"text": (str, dspy.InputField()), "r": (Odd, dspy.OutputField())}, "Do.")
    provider = ScriptedProvider(['{"total": 1}'])
    with dspy.context(lm=scripted_lm(provider), adapter=prompt_adapter("compact")), pytest.raises(RuntimeError):
        dspy.Predict(signature)(text="q")
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("adapter", "answer", "fault"),
    [
        ("compact", '{"vendor": "A", "total": 1, "unit": "GBP"}', "unit: Input should be 'EUR' or 'USD', got 'GBP'"),
        ("json", '{"bill": {"vendor": "A", "total": "x"}}', "bill.total: Input should be a valid number"),
        ("json", '{"other": 1}', "the answer lacks bill"),
        ("json", '{"bill": {"vend', "the answer is not complete JSON: Unterminated string"),
        ("chat", "[[ ## bill ## ]]\n{}", "bill.vendor: Field required"),
        ("chat", "12 EUR", "the answer lacks bill"),
        ("compact", '{"vendor": "%s", "total": [1]}' % ("v" * 5000), "total: Input should be a valid number, got [1]"),
        ("compact", '{"vendor": {"a": "%s"}, "total": 1}' % ("v" * 500), "vendor: Input should be a valid string, got"),
    ],
)
def test_faults_name_path_expectation_and_value(adapter, answer, fault):
    with pytest.raises(AdapterParseError) as error:
        prompt_adapter(adapter).parse(PROGRAM, answer)
    assert fault_of(error.value).startswith(fault)
    assert len(fault_of(error.value)) < 300


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_value_outside_an_enumeration_is_named(adapter):
    signature = dspy.Signature("text -> grade: Literal['good', 'bad'], n: int")
    answer = {
        "chat": "[[ ## grade ## ]]\nfine\n[[ ## n ## ]]\n1",
    }.get(adapter, '{"grade": "fine", "n": 1}')
    with pytest.raises(AdapterParseError) as error:
        prompt_adapter(adapter).parse(signature, answer)
    assert fault_of(error.value) == "grade: Input should be 'good' or 'bad', got 'fine'"
