"""Every dialect over a real wire: what is sent, and what is made of the answers."""

import base64
import json

import dspy
import pytest
from dspy import lm15
from dspy.lm15 import Request

from harness.models.config import ModelConfig
from harness.models.dialects import ANTHROPIC, CHAT_DIALECTS, DIALECTS, GEMINI, OPENROUTER, Answer
from harness.models.loopback import LoopbackServer, Reply
from harness.models.remote.dspy_provider import DspyProvider

KEY = "sk-loopback-1234567890"
TEXT = "LiCoO₂ 静脉 α"
PNG = bytes(range(256))
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
MODELS = {"Anthropic": "anthropic/claude-x", "Gemini": "gemini/gemini-x", "OpenRouter": "openrouter/meta/x"}

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
every_provider = pytest.mark.parametrize("dialect", [*CHAT_DIALECTS[:2], ANTHROPIC, GEMINI], ids=lambda d: d.name)


@pytest.fixture
def provider_at():
    """A provider that talks to a server in its dialect: `provider_at(server, dialect, **settings of the model)`."""
    opened = []

    def build(server, dialect, **settings):
        config = ModelConfig(
            settings.pop("model", MODELS.get(dialect.name, "openai/x")),
            **{"api_base": server.api_base, "api_key_env": "KEY", **settings},
        )
        opened.append(DspyProvider("judge", config, {"KEY": KEY}))
        return opened[-1]

    yield build
    for provider in opened:
        provider.close()


def question(*parts, system=None, **config):
    message = lm15.Message.user(list(parts) or TEXT)
    return Request(model="m", messages=(message,), system=system, config=lm15.Config(**config))


@every_dialect
def test_text_arrives_as_it_was_said(provider_at, dialect):
    with LoopbackServer([f"{TEXT} 🧪\nsecond line"], dialect) as server:
        response = provider_at(server, dialect).complete(question())

    assert response.text == f"{TEXT} 🧪\nsecond line"
    assert response.finish_reason == "stop"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (10, 5)


@every_dialect
def test_several_parts_are_all_there(provider_at, dialect):
    with LoopbackServer([Answer(("first", " second"))], dialect) as server:
        parts = provider_at(server, dialect).complete(question()).message.parts

    assert [part.text for part in parts] == ["first", " second"]


@every_dialect
def test_thoughts_are_no_part_of_the_answer(provider_at, dialect):
    with LoopbackServer([Answer("42", thinking="6 times 7")], dialect) as server:
        response = provider_at(server, dialect).complete(question())

    assert response.text == "42"
    thoughts = [part.text for part in response.message.parts if isinstance(part, lm15.ThinkingPart)]
    assert thoughts in ([], ["6 times 7"])  # OpenAI itself keeps them


@every_dialect
def test_an_answer_without_content(provider_at, dialect):
    with LoopbackServer([Answer("")], dialect) as server:
        response = provider_at(server, dialect).complete(question())

    assert (response.text, response.finish_reason) == ("", "stop")


@every_dialect
def test_a_refusal_says_that_it_is_one(provider_at, dialect):
    with LoopbackServer([Answer(finish="refusal", refusal="I will not")], dialect) as server:
        response = provider_at(server, dialect).complete(question())

    refused = [part for part in response.message.parts if isinstance(part, lm15.RefusalPart)]
    assert refused or response.finish_reason == "content_filter"
    assert "I will not" in " ".join(part.text for part in response.message.parts)


@every_dialect
def test_content_taken_out_by_a_filter_is_a_refusal(provider_at, dialect):
    with LoopbackServer([Answer(finish="refusal")], dialect) as server:
        assert provider_at(server, dialect).complete(question()).finish_reason == "content_filter"


def test_a_blocked_prompt_is_a_refusal(provider_at):
    blocked = Reply(body={"promptFeedback": {"blockReason": "SAFETY"}})
    with LoopbackServer([blocked], GEMINI) as server:
        response = provider_at(server, GEMINI).complete(question())

    assert response.finish_reason == "content_filter"
    assert [part.text for part in response.message.parts] == ["Prompt blocked: SAFETY"]


@every_dialect
def test_a_cut_answer_says_that_it_is_one(provider_at, dialect):
    with LoopbackServer([Answer('{"name": "AC', finish="length")], dialect) as server:
        response = provider_at(server, dialect).complete(question())

    assert (response.text, response.finish_reason) == ('{"name": "AC', "length")


@every_dialect
def test_usage_that_is_not_reported_is_unknown(provider_at, dialect):
    with LoopbackServer([Answer("x", input_tokens=None)], dialect) as server:
        usage = provider_at(server, dialect).complete(question()).usage

    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (None, None, None)


@pytest.mark.parametrize(
    ("dialect", "read", "written"),
    [(CHAT_DIALECTS[0], 100, 20), (OPENROUTER, 100, 20), (ANTHROPIC, 160, 20), (GEMINI, 100, 27)],
    ids=lambda value: getattr(value, "name", value),
)
def test_all_tokens_are_counted_however_the_provider_splits_them(provider_at, dialect, read, written):
    # Anthropic counts cached tokens beside the input, Gemini thoughts beside the output; the others inside.
    said = Answer("x", input_tokens=100, output_tokens=20, cached_tokens=60, thinking_tokens=7)
    with LoopbackServer([said], dialect) as server:
        usage = provider_at(server, dialect).complete(question()).usage

    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (read, written, 60)


@every_provider
def test_what_is_sent_and_to_which_path(provider_at, dialect):
    with LoopbackServer(["x"], dialect) as server:
        provider_at(server, dialect).complete(
            question(system="Extract.", temperature=0.5, max_tokens=77, top_p=0.9, stop=("END",), seed=3)
        )

    (request,) = server.requests
    expected_path, key_header, sent = {
        "Anthropic": (
            "/v1/messages",
            ("x-api-key", KEY),
            {
                "model": "claude-x",
                "messages": [{"role": "user", "content": [{"type": "text", "text": TEXT}]}],
                "stream": False,
                "max_tokens": 77,
                "system": "Extract.",
                "temperature": 0.5,
                "top_p": 0.9,
                "stop_sequences": ["END"],
            },
        ),
        "Gemini": (
            "/v1beta/models/gemini-x:generateContent",
            ("x-goog-api-key", KEY),
            {
                "contents": [{"role": "user", "parts": [{"text": TEXT}]}],
                "systemInstruction": {"parts": [{"text": "Extract."}]},
                "generationConfig": {
                    "temperature": 0.5,
                    "maxOutputTokens": 77,
                    "topP": 0.9,
                    "seed": 3,
                    "stopSequences": ["END"],
                },
            },
        ),
    }.get(
        dialect.name,
        (
            f"{dialect.root}/chat/completions",
            ("authorization", f"Bearer {KEY}"),
            {
                "model": "meta/x" if dialect is OPENROUTER else "x",
                "messages": [{"role": "system", "content": "Extract."}, {"role": "user", "content": TEXT}],
                "max_tokens": 77,
                "temperature": 0.5,
                "top_p": 0.9,
                "seed": 3,
                "stop": ["END"],
            },
        ),
    )
    assert request.path == expected_path
    assert request.headers[key_header[0]] == key_header[1]
    assert request.body == sent


@every_provider
def test_a_schema_is_sent_where_the_dialect_has_its_place(provider_at, dialect):
    form = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}
    with LoopbackServer(["{}"], dialect) as server:
        provider_at(server, dialect, response_schema=True).complete(question(response_format=form))

    body = server.requests[0].body
    if dialect is ANTHROPIC:
        assert body["output_config"]["format"] == {"type": "json_schema", "schema": SCHEMA}
    elif dialect is GEMINI:
        assert body["generationConfig"]["responseMimeType"] == "application/json"
        assert SCHEMA in body["generationConfig"].values()
    else:
        inner = {"name": "answer", "schema": SCHEMA, "strict": True}
        assert body["response_format"] == {"type": "json_schema", "json_schema": inner}


@every_provider
def test_an_answer_under_a_schema_with_choices_is_text(provider_at, dialect):
    choices = {"type": "object", "properties": {"kind": {"type": "string", "enum": ["α", "β"]}}, "required": ["kind"]}
    form = {"type": "json_schema", "name": "answer", "schema": choices | {"additionalProperties": False}}
    with LoopbackServer(['{"kind": "α"}'], dialect) as server:
        response = provider_at(server, dialect, response_schema=True).complete(question(response_format=form))

    assert response.text == '{"kind": "α"}'


@every_provider
def test_json_mode_is_asked_for_where_there_is_one(provider_at, dialect):
    with LoopbackServer(["{}"], dialect) as server:
        provider_at(server, dialect, response_schema=True).complete(question(response_format={"type": "json_object"}))

    body = server.requests[0].body
    if dialect is ANTHROPIC:
        assert "output_config" not in body
    elif dialect is GEMINI:
        assert body["generationConfig"] == {"responseMimeType": "application/json"}
    else:
        assert body["response_format"] == {"type": "json_object"}


@every_provider
def test_the_bytes_of_an_image_arrive(provider_at, dialect):
    image = lm15.ImagePart(media_type="image/png", data=base64.b64encode(PNG).decode())
    with LoopbackServer(["x"], dialect) as server:
        provider_at(server, dialect).complete(question(lm15.TextPart(TEXT), image))

    body = server.requests[0].body
    if dialect is ANTHROPIC:
        text, sent = body["messages"][0]["content"]
        assert (sent["type"], sent["source"]["media_type"]) == ("image", "image/png")
        literal = sent["source"]["data"]
    elif dialect is GEMINI:
        text, sent = body["contents"][0]["parts"]
        assert sent["inlineData"]["mimeType"] == "image/png"
        literal = sent["inlineData"]["data"]
    else:
        text, sent = body["messages"][0]["content"]
        head, _, literal = sent["image_url"]["url"].partition(",")
        assert (sent["type"], head) == ("image_url", "data:image/png;base64")
    assert text["text"] == TEXT
    assert base64.b64decode(literal, validate=True) == PNG


@every_provider
def test_a_program_with_an_image_reaches_every_dialect(provider_at, dialect):
    class Engine:
        supports_response_schema = supports_function_calling = supports_reasoning = False
        supported_params = frozenset({"temperature", "max_tokens"})

        def __init__(self, provider):
            self.complete = provider.complete

    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    with LoopbackServer(['{"formula": "LiCoO₂"}'], dialect) as server:
        lm = dspy.LM("any", engine=Engine(provider_at(server, dialect)), cache=False)
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            read = dspy.Predict("scan: dspy.Image, hint: str -> formula: str")(scan=dspy.Image(url), hint=TEXT)

    assert read.formula == "LiCoO₂"
    sent = json.dumps(server.requests[0].body, ensure_ascii=False)
    assert base64.b64encode(PNG).decode() in sent
    assert TEXT in sent
