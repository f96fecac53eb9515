"""Prompt adapters: what a program sends, byte by byte, and how answers are read."""

import asyncio
import datetime
import enum
import json
from typing import Literal

import dspy
import pydantic
import pytest
from dspy import lm15
from dspy.utils.exceptions import AdapterParseError
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ProgramFailure
from harness.models.prompt import CompactAdapter, decoding_schema, prompt_adapter, prompt_text
from programs import SchemaExtraction, output_contract


class Engine:
    """Answers with given texts in turn, the last one for good, and keeps the requests."""

    supports_function_calling = supports_reasoning = False

    def __init__(self, *answers, schema=True, params=("response_format", "temperature")):
        self.answers = list(answers)
        self.requests = []
        self.supports_response_schema = schema
        self.supported_params = frozenset(params)

    def complete(self, request):
        self.requests.append(request)
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(self._next())]),
            finish_reason="stop",
            usage=lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2),
        )

    def _next(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def __deepcopy__(self, memo):
        return self


def under(engine, adapter):
    lm = dspy.LM("scripted/x", engine=engine, cache=False, num_retries=0)
    return dspy.context(lm=lm, adapter=prompt_adapter(adapter))


class Unit(enum.Enum):
    EUR = "EUR"
    USD = "USD"


class Line(pydantic.BaseModel):
    name: str
    amount: float | None = pydantic.Field(None, description="bare number")


class Invoice(pydantic.BaseModel):
    """An invoice."""

    vendor: str = pydantic.Field(description="who sent it")
    day: datetime.date | None = None
    unit: Unit = Unit.EUR
    lines: list[Line] = []


LEAST = {"vendor": "Müller & Söhne"}
FULL = '{"vendor": "Müller & Söhne", "day": null, "unit": "EUR", "lines": []}'
COMPACT = """\
[system]
Extract the Invoice record from the text, and leave empty what is not said there.

An invoice.

Answer with one line of JSON. Its keys:
- vendor: text (who sent it)
- day: text date or null
- unit: "EUR" | "USD" or null
- lines: list of {name: text, amount: number or null (bare number)}

[user]
Rechnung von Müller

[assistant]
{"vendor": "Müller & Söhne", "day": null, "unit": "EUR", "lines": []}

[user]
the question
"""


def invoice_program(record=None):
    program = SchemaExtraction(Invoice)
    value = output_contract(program).validate(LEAST) if record is None else record
    program.extract.demos = [dspy.Example(text="Rechnung von Müller", record=value, id=7, group="g")]
    return program


def test_compact_byte_by_byte():
    assert prompt_text(invoice_program(), CompactAdapter(), {"text": "the question"}) == {"extract": COMPACT}


def test_a_demo_is_the_same_from_a_record_and_from_a_model():
    assert prompt_text(invoice_program(dict(LEAST)), CompactAdapter(), {"text": "the question"})["extract"] == COMPACT


def test_question_and_demo_look_alike_and_everything_before_the_question_stays():
    engine = Engine(FULL, FULL)
    with under(engine, "compact"):
        program = invoice_program()
        for text in ("Rechnung von Müller", "something else"):
            program(text=text)
    first, second = engine.requests
    assert first.system == second.system
    assert first.messages[:-1] == second.messages[:-1]
    assert first.messages[-1] == first.messages[0]


@pytest.mark.parametrize("adapter", ["json", "chat", "compact"])
def test_a_class_and_its_schema_give_the_same_request(adapter):
    """The promise a bundle rests on: requests depend on the JSON Schema alone."""
    answer = {"json": f'{{"record": {FULL}}}', "compact": FULL}.get(
        adapter, f"[[ ## record ## ]]\n{FULL}\n[[ ## completed ## ]]"
    )
    engine = Engine(answer, answer)
    schema = json.loads(json.dumps(Invoice.model_json_schema()))
    with under(engine, adapter):
        for model in (Invoice, schema):
            program = SchemaExtraction(model)
            program.extract.demos = [dspy.Example(text="a", record=json.loads(FULL))]
            program(text="b")
    first, second = engine.requests
    assert first == second
    assert json.dumps(first.config.response_format) == json.dumps(second.config.response_format)


def test_the_schema_sent_is_the_bare_record_closed():
    engine = Engine(FULL)
    with under(engine, "compact"):
        invoice_program()(text="x")
    sent = engine.requests[0].config.response_format
    assert sent["strict"] is True
    assert list(sent["schema"]["properties"]) == sent["schema"]["required"] == ["vendor", "day", "unit", "lines"]
    assert sent["schema"]["$defs"]["Line"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("engine", "sent"),
    [(Engine(FULL, schema=False), {"type": "json_object"}), (Engine(FULL, params=("temperature",)), None)],
)
def test_a_server_without_schemas_is_asked_for_what_it_can(engine, sent):
    with under(engine, "compact"):
        assert invoice_program()(text="x").record.vendor == "Müller & Söhne"
    assert engine.requests[0].config.response_format == sent


@pytest.mark.parametrize(
    "answer",
    [
        FULL,
        FULL.replace('"EUR"', "null"),
        f"```json\n{FULL}\n```",
        f"```\n{FULL}```\n",
        f"Here it is: {FULL} Anything else?",
        f'{{"record": {FULL}}}',
        FULL.replace("}", ', "extra": 1}'),
        FULL.replace("{", "{\n  "),
        '{"vendor": "Müller & Söhne"}',
    ],
)
def test_answers_that_are_whole_are_read(answer):
    with under(Engine(answer), "compact"):
        assert invoice_program()(text="x").record == Invoice(vendor="Müller & Söhne")


def test_a_line_end_inside_a_text_is_kept():
    with under(Engine(FULL.replace("Müller & ", "a\nb")), "compact"):
        assert invoice_program()(text="x").record.vendor == "a\nbSöhne"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I cannot do that.", "the answer holds no JSON object"),
        ("[1, 2]", "the answer holds no JSON object"),
        ('{"vendor": NaN}', "the answer holds NaN, which is not JSON"),
        ('{"vendor": "x",}', "the answer is not complete JSON"),
        ("{'vendor': 'x'}", "the answer is not complete JSON"),
        ('{"vendor": ' + "[" * 100_000, "the answer is nested too deeply"),
        ('{"day": null}', "'vendor' is a required property"),
        ('{"vendor": "x", "lines": [{"name": 3}]}', "lines[0].name: 3 is not of type 'string'"),
        ('{"vendor": "x", "day": "yesterday"}', "day: Input should be a valid date"),
    ],
)
def test_answers_that_are_not_whole_are_unreadable_and_kept(answer, reason):
    with under(Engine(answer), "compact"), pytest.raises(ProgramFailure) as error:
        invoice_program()(text="x")
    assert str(error.value).startswith(f"the answer could not be read: {reason}")
    assert error.value.__cause__.lm_response == answer


@settings(deadline=None)
@given(st.integers(0, len(FULL) - 1))
def test_an_answer_that_was_cut_never_becomes_a_record(length):
    with pytest.raises(AdapterParseError):
        CompactAdapter().parse(SchemaExtraction(Invoice).extract.signature, FULL[:length])


RECORDS = st.builds(
    Invoice,
    vendor=st.text(),
    day=st.none() | st.dates(),
    unit=st.sampled_from(Unit),
    lines=st.lists(
        st.builds(Line, name=st.text(), amount=st.none() | st.floats(allow_nan=False, allow_infinity=False))
    ),
)


@settings(deadline=None)
@given(RECORDS)
def test_a_demo_is_an_answer_that_reads_as_its_record(record):
    signature = SchemaExtraction(Invoice).extract.signature
    line = CompactAdapter().format_assistant_message_content(signature, {"record": record})
    assert "\n" not in line
    assert CompactAdapter().parse(signature, line) == {"record": record}


class Several(dspy.Signature):
    """Judge it."""

    title: str = dspy.InputField()
    notes: list[str] | None = dspy.InputField()
    reasoning: str = dspy.OutputField()
    grade: Literal["good", "bad"] = dspy.OutputField(desc="how it is")
    parts: list[Line] = dspy.OutputField()
    remark: str | None = dspy.OutputField()
    weight: float = dspy.OutputField(default=1.0)


SEVERAL = """\
[system]
Judge it.

Answer with one line of JSON. Its keys:
- reasoning: text
- grade: "good" | "bad" (how it is)
- parts: list of {name: text, amount: number or null (bare number)}
- remark: text or null
- weight: number or null

[user]
title: t
notes: ["a", "b"]

[assistant]
{"grade": "good", "parts": [{"name": "n", "amount": null}]}

[user]
title: T
notes: {notes}
"""


def test_several_outputs_have_a_key_each():
    program = dspy.Predict(Several)
    program.demos = [
        dspy.Example(title="t", notes=["a", "b"], grade="good", parts=[Line(name="n")]),
        dspy.Example(title="without output"),
        dspy.Example(grade="good"),
    ]
    assert prompt_text(program, CompactAdapter(), {"title": "T"}) == {"self": SEVERAL}


def test_several_outputs_are_read_with_their_defaults():
    engine = Engine('{"reasoning": 3, "grade": "bad", "parts": [{"name": "n", "amount": "2"}], "weight": null}')
    with under(engine, "compact"):
        read = dspy.Predict(Several)(title="t", notes=None)
    assert dict(read.items()) == {
        "reasoning": "3",
        "grade": "bad",
        "parts": [Line(name="n", amount=2)],
        "remark": None,
        "weight": 1.0,
    }
    assert engine.requests[0].messages[-1].text == "title: t"
    assert engine.requests[0].config.response_format["strict"] is True


@pytest.mark.parametrize(
    "answer", ['{"reasoning": "r", "parts": []}', '{"reasoning": null, "grade": "bad", "parts": []}']
)
def test_a_missing_output_is_unreadable(answer):
    with under(Engine(answer), "compact"), pytest.raises(ProgramFailure, match=r"the answer lacks grade|reasoning"):
        dspy.Predict(Several)(title="t", notes=[])


def test_the_asynchronous_way_is_the_same():
    engine = Engine(FULL)

    class Async:
        async def complete(self, request):
            return engine.complete(request)

    lm = dspy.LM("scripted/x", engine=engine, async_engine=Async(), cache=False, num_retries=0)
    with dspy.context(lm=lm, adapter=CompactAdapter()):
        assert asyncio.run(invoice_program().acall(text="the question")).record.vendor == "Müller & Söhne"
    assert engine.requests[0].messages[-1].text == "the question"


class Shares(pydantic.BaseModel):
    shares: dict[str, float]
    inner: Line | None = None


@pytest.mark.parametrize("model", [Shares, Shares.model_json_schema()])
def test_maps_from_free_keys_survive(model):
    engine = Engine('{"record": {"shares": {"Fe": 0.5}}}', '{"shares": {"Fe": 0.5}, "inner": null}')
    program = SchemaExtraction(model)
    for adapter in ("json", "compact"):
        with under(engine, adapter):
            record = program(text="x").record
        assert output_contract(program).plain(record)["shares"] == {"Fe": 0.5}
    by_json, by_compact = (request.config.response_format for request in engine.requests)
    assert by_json == {"type": "json_object"}
    assert by_compact["strict"] is False
    assert by_compact["schema"]["properties"]["shares"]["additionalProperties"] == {"type": "number"}


def test_keys_of_an_inner_record_are_dotted_and_said_to_be():
    text = prompt_text(SchemaExtraction(Shares), CompactAdapter(), {"text": "t"})["extract"]
    assert "where a dot leads into a record inside the record:\n- shares: map from names to number\n" in text
    assert "- inner: record or null\n- inner.name: text\n- inner.amount: number or null (bare number)\n" in text


def test_the_decoding_schema_is_what_is_sent():
    program = invoice_program()
    for adapter in ("json", "compact"):
        engine = Engine(FULL if adapter == "compact" else f'{{"record": {FULL}}}')
        with under(engine, adapter):
            program(text="x")
        told = decoding_schema(program.extract.signature, prompt_adapter(adapter))["json_schema"]
        sent = engine.requests[0].config.response_format["schema"]
        properties = [each.get("schema", each)["properties"] for each in (told, {"schema": sent})]
        assert list(properties[0]) == list(properties[1])
    assert decoding_schema(program.extract.signature, prompt_adapter("chat")) is None


def test_aliases_are_written_as_they_are_asked_for():
    class Aliased(pydantic.BaseModel):
        vendor: str = pydantic.Field(alias="sender")

    program = dspy.Predict(
        dspy.Signature({"text": (str, dspy.InputField()), "r": (Aliased, dspy.OutputField())}, "Do.")
    )
    program.demos = [dspy.Example(text="t", r=Aliased(sender="A"))]
    text = prompt_text(program, CompactAdapter(), {"text": "q"})["self"]
    assert "- sender: text" in text
    assert '{"sender": "A"}' in text
    with under(Engine('{"sender": "B"}'), "compact"):
        assert program(text="q").r.vendor == "B"


def test_an_image_reaches_the_request_and_is_marked_in_the_text():
    image = dspy.Image("data:image/png;base64,iVBORw0KGgo=")
    signature = dspy.Signature({"figure": (dspy.Image, dspy.InputField()), "n": (int, dspy.OutputField())}, "Count.")
    program = dspy.Predict(signature)
    engine = Engine('{"n": 2}')
    with under(engine, "compact"):
        assert program(figure=image).n == 2
    assert [type(part).__name__ for part in engine.requests[0].messages[0].parts] == ["ImagePart"]
    assert prompt_text(program, CompactAdapter(), {"figure": image})["self"].endswith("[user]\n[image_url]\n")


def test_a_program_that_chooses_demos_is_asked_for_them():
    class Choosing(dspy.Module):
        def with_demos(self, inputs):
            program = invoice_program()
            program.extract.demos[0].text = f"like {inputs['text']}"
            return program

    assert "[user]\nlike q\n" in prompt_text(Choosing(), CompactAdapter(), {"text": "q"})["extract"]
