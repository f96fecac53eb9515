"""The embedded model: the request it gets and the errors it maps, on a fake runtime; then the real thing."""

import json
import os
import sys
import threading
import types
from pathlib import Path

import dspy
import pydantic
import pytest
from dspy import lm15
from dspy.lm15 import Request

from harness.errors import ProgramFailure, RunStopped, UsageError
from harness.models.config import ModelConfig
from harness.models.llama_cpp import LlamaCppProvider, LlamaRuntime
from harness.models.roles import Endpoints, build_role_lm
from harness.models.schema_bounds import SchemaBounds
from harness.models.weights import Weights, locate

STRING = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"a": STRING}, "required": ["a"], "additionalProperties": False}
REPLY = {
    "id": "x",
    "choices": [{"finish_reason": "stop", "message": {"content": "hi"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}},
}


class FakeRuntime(LlamaRuntime):
    def __init__(self, reply=REPLY):
        super().__init__(Weights(Path("x.gguf"), "abc"))
        self.reply, self.bodies = reply, []

    def chat(self, body):
        self.bodies.append(body)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def _request(*messages, system=None, **config):
    messages = messages or (lm15.Message.user("q"),)
    return Request(model="local/x@1", system=system, messages=messages, config=lm15.Config(**config))


def test_a_request_becomes_a_chat_with_the_prompt_kept_for_reuse():
    runtime = FakeRuntime()
    request = _request(
        lm15.Message.user("one"),
        lm15.Message.assistant("two"),
        lm15.Message.user([lm15.TextPart("three"), lm15.TextPart("four")]),
        system="rules",
        temperature=0.5,
        max_tokens=9,
        top_p=0.9,
        stop=("END",),
        seed=3,
    )
    response = LlamaCppProvider("local/x", runtime).complete(request)

    assert runtime.bodies == [
        {
            "messages": [
                {"role": "system", "content": "rules"},
                {"role": "user", "content": "one"},
                {"role": "assistant", "content": "two"},
                {"role": "user", "content": "three\n\nfour"},
            ],
            "cache_prompt": True,
            "temperature": 0.5,
            "max_tokens": 9,
            "top_p": 0.9,
            "stop": ["END"],
            "seed": 3,
        }
    ]
    assert (response.text, response.finish_reason, response.model) == ("hi", "stop", "local/x@1")
    assert response.usage == lm15.Usage(input_tokens=7, output_tokens=2, cache_read_tokens=5)


def test_an_unset_temperature_is_greedy():
    runtime = FakeRuntime()
    LlamaCppProvider("local/x", runtime).complete(_request(system=(lm15.TextPart("rules"),)))

    assert runtime.bodies[0]["temperature"] == 0.0
    assert runtime.bodies[0]["messages"][0] == {"role": "system", "content": "rules"}


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        (None, None),
        ({"type": "json_object"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True},
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "n",
                    "schema": {**SCHEMA, "properties": {"a": {"type": "string", "maxLength": 9}}},
                },
            },
        ),
        (
            {"type": "json_schema", "schema": {"type": "integer"}},
            {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "integer"}}},
        ),
    ],
)
def test_schemas_are_sent_bounded(wanted, sent):
    runtime = FakeRuntime()
    provider = LlamaCppProvider("local/x", runtime, bounds=SchemaBounds(lengths={"a": 9}))
    provider.complete(_request(response_format=wanted))

    assert runtime.bodies[0].get("response_format") == sent


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (
            {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192}},
            lm15.ContextLengthError,
            "the prompt has 9000 tokens and the context 8192",
        ),
        ({"error": {"code": 400, "message": "bad\nthing"}}, lm15.InvalidRequestError, "bad thing"),
        ({"error": {"code": 500, "message": "broken"}}, lm15.ServerError, "broken"),
        (ValueError("failed to parse grammar"), lm15.InvalidRequestError, "failed to parse grammar"),
    ],
)
def test_errors_keep_their_meaning(reply, error, words):
    with pytest.raises(error, match=words):
        LlamaCppProvider("local/x", FakeRuntime(reply)).complete(_request())


def test_a_cut_or_empty_answer_says_so():
    cut = {"choices": [{"finish_reason": "length", "message": {"content": None}}]}
    response = LlamaCppProvider("local/x", FakeRuntime(cut)).complete(_request())

    assert (response.finish_reason, response.text) == ("length", "")
    assert response.usage == lm15.Usage()


def test_images_are_refused():
    image = lm15.Message.user([lm15.TextPart("see"), lm15.ImagePart(data="aGk=")])

    with pytest.raises(lm15.UnsupportedFeatureError, match="reads text only, and the program sends a part 'image'"):
        LlamaCppProvider("local/x", FakeRuntime()).complete(_request(image))


def test_all_that_changes_answers_is_in_the_digest():
    runtimes = [
        LlamaRuntime(Weights(Path("x"), "abc")),
        LlamaRuntime(Weights(Path("y"), "abd")),
        LlamaRuntime(Weights(Path("x"), "abc"), n_ctx=1024),
        LlamaRuntime(Weights(Path("x"), "abc"), n_threads=2),
    ]
    digests = {LlamaCppProvider("local/x", runtime).endpoint for runtime in runtimes}
    digests.add(LlamaCppProvider("local/x", runtimes[0], bounds=SchemaBounds()).endpoint)

    assert len(digests) == 5
    assert LlamaCppProvider("local/x", LlamaRuntime(Weights(Path("elsewhere"), "abc"))).endpoint in digests


def test_a_missing_runtime_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(UsageError, match=r"needs the runtime xllamacpp: pip install 'dspy-judge-harness\[embedded\]'"):
        LlamaRuntime(Weights(Path("x.gguf"), "abc")).chat({})


def test_a_temporary_folder_with_too_long_a_path(monkeypatch, tmp_path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))

    with pytest.raises(UsageError, match="set TMPDIR to a shorter one"):
        LlamaRuntime(Weights(Path("x.gguf"), "abc")).chat({})
    assert list(deep.iterdir()) == []


def test_a_file_that_is_no_model(monkeypatch):
    module = types.ModuleType("xllamacpp")
    parameters = types.SimpleNamespace(
        model=types.SimpleNamespace(), cpuparams=types.SimpleNamespace(), cpuparams_batch=types.SimpleNamespace()
    )

    def refuse(_):
        raise RuntimeError("bad magic")

    module.CommonParams, module.Server = lambda: parameters, refuse
    monkeypatch.setitem(sys.modules, "xllamacpp", module)

    with pytest.raises(UsageError, match=r"llama\.cpp cannot load the weights broken\.gguf: bad magic"):
        LlamaRuntime(Weights(Path("broken.gguf"), "abc")).chat({})


def test_closing_frees_the_model_and_the_next_call_loads_it_again(monkeypatch):
    runtime = LlamaRuntime(Weights(Path("x.gguf"), "abc"))
    server = types.SimpleNamespace(handle_chat_completions=lambda body: REPLY)
    started = []
    monkeypatch.setattr("harness.models.llama_cpp._start", lambda *settings: started.append(settings) or server)
    provider = LlamaCppProvider("local/x", runtime)

    provider.complete(_request())
    provider.complete(_request())
    provider.close()
    provider.complete(_request())

    assert started == [(Path("x.gguf"), runtime.n_ctx, runtime.n_threads)] * 2


def test_a_fork_forgets_the_parents_server_and_lock_but_keeps_the_server_alive(monkeypatch):
    hooks = []
    monkeypatch.setattr(os, "register_at_fork", lambda *, after_in_child: hooks.append(after_in_child))
    runtime = LlamaRuntime(Weights(Path("x.gguf"), "abc"))
    runtime._server = parents = object()
    runtime._lock.acquire()
    hooks[0]()

    assert runtime._server is None
    assert runtime._inherited == [parents]
    assert not runtime._lock.locked()
    del runtime
    hooks[0]()  # a runtime that is gone has nothing to forget


# The real model


class Synthesis(pydantic.BaseModel):
    target: str
    precursors: list[str]


EXTRACT = dspy.Signature(
    {"text": (str, dspy.InputField()), "synthesis": (Synthesis, dspy.OutputField())}, "Extract the synthesis."
)
TEXT = "LiCoO2 was made from Li2CO3 and Co3O4."
TIGHT = SchemaBounds(max_items=3, max_length=12)


@pytest.fixture(scope="module")
def weights():
    pytest.importorskip("xllamacpp")
    return locate("local/smollm2-135m")


@pytest.fixture(scope="module")
def runtime(weights):
    # One thread: two of them spin against each other as soon as the machine has other work.
    runtime = LlamaRuntime(weights, n_ctx=2048, n_threads=1)
    yield runtime
    runtime.close()


@pytest.fixture
def local_lm(runtime, store, ledger):
    def build(**more):
        model = "local/smollm2-135m"
        provider = LlamaCppProvider(model, runtime, bounds=TIGHT)
        endpoints = Endpoints({}, {model: provider})
        return build_role_lm("task", ModelConfig(model, **more), endpoints=endpoints, store=store, ledger=ledger)

    return build


def _listening():
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A":  # LISTEN
                    sockets.add((fields[1], fields[9]))
    return sockets


def _own_sockets():
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue
    return {link[8:-1] for link in links if link.startswith("socket:[")}


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="reads Linux's socket tables")
def test_nothing_listens_and_nothing_is_left_on_disk(weights, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    runtime = LlamaRuntime(weights, n_ctx=512, n_threads=1)
    runtime.chat({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})
    ours = [address for address, inode in _listening() if inode in _own_sockets()]
    runtime.close()

    assert ours == []
    assert list(tmp_path.iterdir()) == []


def test_the_schema_is_obeyed_and_usage_counted(local_lm, ledger):
    with dspy.context(lm=local_lm(), adapter=dspy.JSONAdapter()):
        found = dspy.Predict(EXTRACT)(text=TEXT).synthesis
    usage = ledger.usage()["task"]

    assert isinstance(found, Synthesis)
    assert len(found.precursors) <= 3
    assert all(len(text) <= 12 for text in (found.target, *found.precursors))
    assert usage.calls == 1
    assert usage.input_tokens > 50
    assert usage.output_tokens > 5
    assert usage.usd == 0.0


def test_the_same_requests_in_the_same_order_get_the_same_answers(weights):
    wanted = {"type": "json_schema", "name": "s", "schema": Synthesis.model_json_schema()}

    def answers():
        runtime = LlamaRuntime(weights, n_ctx=512, n_threads=1)
        provider = LlamaCppProvider("local/x", runtime, bounds=TIGHT)
        responses = [
            provider.complete(
                _request(
                    lm15.Message.user(text), system="Read.", temperature=0.0, max_tokens=60, response_format=wanted
                )
            )
            for text in (TEXT, TEXT.replace("Li", "Na"))
        ]
        runtime.close()
        assert responses[1].usage.cache_read_tokens, "the prompt's common beginning is reused"
        return [response.text for response in responses]

    assert answers() == answers()


def test_four_threads_get_their_own_answers(local_lm, ledger):
    lm = local_lm(max_tokens=30)
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer", "enum": [1, 2, 3]}}}
    answers = {}

    def work(number):
        answers[number] = lm(f"Repeat the number {number}.", response_format=schema)[0]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [0, 1, 2, 3]
    assert {json.loads(text) for text in answers.values()} <= {1, 2, 3}
    assert ledger.usage()["task"].calls == 4


def test_a_seed_decides_a_sample(runtime):
    provider = LlamaCppProvider("local/x", runtime)

    def sample(seed):
        return provider.complete(
            _request(lm15.Message.user("Write a word."), temperature=1.5, max_tokens=6, seed=seed)
        ).text

    sample(1)  # the first one also reads the prompt
    assert sample(1) == sample(1)
    assert len({sample(seed) for seed in range(4)}) > 1


def test_too_long_and_cut_are_failures_of_one_example(local_lm):
    with pytest.raises(ProgramFailure, match=r"the prompt has [0-9]+ tokens and the context 2048"):
        local_lm()("word " * 3000)
    with pytest.raises(ProgramFailure, match=r"answer cut at max_tokens=3; raise models\.task\.max_tokens"):
        local_lm(max_tokens=3)("Tell me a long story.")


def test_a_schema_llama_cpp_cannot_take_stops_the_first_call(local_lm):
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "nonsense"}}}

    with pytest.raises(RunStopped, match="task model 'local/smollm2-135m': "):
        local_lm()("q", response_format=schema)


def test_the_largest_bounds_are_within_what_llama_cpp_repeats(runtime):
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 10**6}}, "required": ["a"]}
    wanted = {"type": "json_schema", "name": "n", "schema": schema}
    provider = LlamaCppProvider("local/x", runtime)

    assert provider.complete(_request(response_format=wanted, max_tokens=5, temperature=0.0)).text
