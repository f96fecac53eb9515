"""text_similarity: the evaluator, on a server of the test's own."""

import hashlib
import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.loopback import LoopbackServer, Reply
from metrics.evaluators import TextSimilarityEvaluator, create_evaluator
from metrics.evaluators.embedders import EndpointEmbedder
from metrics.evaluators.vectors import VectorStore

DIRECTIONS = {"CEO": [3.0, 4.0], "Chief Executive Officer": [4.0, 3.0], "janitor": [-4.0, 3.0], "boss": [3.0, 3.9]}


def vector(text):
    """A direction of its own for every text."""
    angle = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:4]) / 2**32 * math.tau
    return DIRECTIONS.get(text, [math.cos(angle), math.sin(angle)])


def embeddings(received):
    texts = received.body["input"]
    data = [{"index": n, "object": "embedding", "embedding": vector(text)} for n, text in enumerate(texts)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Reply(body={"object": "list", "model": "m", "data": data[::-1], "usage": usage})


@pytest.fixture
def served():
    """An evaluator on a server with this script, and the server."""
    servers = []

    def make(script=embeddings, **options):
        server = LoopbackServer(script)
        servers.append(server)
        config = {"provider": "openai", "model": "small", "api_base": server.api_base, **options}
        return TextSimilarityEvaluator(config), server

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def on_vectors():
    """An evaluator on the directions above, without a server."""

    def make(**options):
        evaluator = TextSimilarityEvaluator(
            {"provider": "openai", "model": "m", "api_base": "http://127.0.0.1:1/v1", **options}
        )

        class Directions(EndpointEmbedder):
            def embed(self, texts):
                rows = np.array([vector(text) for text in texts], dtype=np.float32)
                return rows / np.linalg.norm(rows, axis=1, keepdims=True)

        evaluator._vectors = VectorStore(Directions("m", None, None))
        return evaluator

    return make


def asked(server):
    return [text for received in server.requests for text in received.body["input"]]


def test_the_cosine_is_the_value_and_the_request_is_a_plain_one(served):
    evaluator, server = served(api_key="sk-4f9aB27c")
    score = evaluator.score("CEO", "Chief Executive Officer", field_path="title")
    assert score.value == 0.96
    assert score.feedback == "title: expected 'Chief Executive Officer', got 'CEO' (similarity 0.96)"
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == "Bearer sk-4f9aB27c"
    assert request.body == {
        "model": "small",
        "input": ["CEO", "Chief Executive Officer"],
        "encoding_format": "float",
    }


@pytest.mark.parametrize(
    ("extracted", "expected", "value"),
    [
        ("CEO", "CEO", 1.0), (" CEO ", "CEO", 1.0), ("LiCoO₂", "LiCoO2", 1.0), ("CEO", "janitor", 0.0),
        ("5 h", "50 h", 0.0), ("5 h", "5 hours", 1.0), ("1 mmol", "1 mol", 0.0), (500, 500.0, 1.0), (500, "500", 1.0),
        (500, 50, 0.0), (True, "true", 1.0), (None, "None", 0.0), ("", "", 1.0), ("", "CEO", 0.0), (None, None, 1.0),
        (["CEO"], "CEO", 0.0), ("CEO", ["CEO"], None),
    ],
)  # fmt: skip
def test_values(on_vectors, extracted, expected, value):
    assert on_vectors().score(extracted, expected).value == value


def test_below_the_threshold_is_nothing(on_vectors):
    assert on_vectors(threshold=0.96).evaluate("CEO", "Chief Executive Officer") == 0.96
    score = on_vectors(threshold=0.97).score("CEO", "Chief Executive Officer")
    assert score.value == 0.0
    assert "similarity 0.96 is below the threshold 0.97" in score.feedback


def test_all_that_a_comparison_of_lists_needs_goes_in_one_batch(served):
    evaluator, server = served()
    values = evaluator.similarities(
        ["CEO", "boss", "5 h", "CEO"], ["Chief Executive Officer", "janitor", "50 h", "CEO"]
    )
    assert values[0].tolist() == [0.96, 0.0, pytest.approx(values[3, 2]), 1.0]
    assert values[2, 2] == 0.0
    assert len(server.requests) == 1
    assert asked(server) == sorted(set(asked(server)), key=lambda text: (len(text), text))
    evaluator.evaluate("boss", "CEO")
    assert len(server.requests) == 1


def test_many_texts_go_in_several_batches(served):
    evaluator, server = served()
    evaluator.similarities([f"text {n}" for n in range(150)], ["a"])
    assert [len(received.body["input"]) for received in server.requests] == [64, 64, 23]


def test_threads_embed_each_text_once(served):
    evaluator, server = served()
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda n: evaluator.evaluate(f"word {n % 7}", "CEO"), range(70)))
    assert values == values[:7] * 10
    assert sorted(asked(server)) == sorted([*(f"word {n}" for n in range(7)), "CEO"])


def test_a_folder_keeps_vectors_from_run_to_run(served, tmp_path):
    first, server = served(cache_folder=tmp_path)
    value = first.evaluate("CEO", "boss")
    options = {"provider": "openai", "model": "small", "api_base": server.api_base, "cache_folder": tmp_path}
    assert TextSimilarityEvaluator(options).evaluate("CEO", "boss") == value
    assert len(server.requests) == 1


FAULT = Reply(401, {"error": {"message": "Incorrect API key provided: sk-4f9aB27c."}})


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([FAULT], "Incorrect API key provided: ***"),
        ([Reply(404, {"error": {"message": "no model small"}})], "no model small"),
        ([Reply(body={"data": []})], "0 vectors for 2 texts"),
        ([Reply(body={"object": "list"})], "cannot be had"),
        ([Reply(body={"data": [{"index": n, "embedding": [1, 0]} for n in range(3)]})], "3 vectors for 2 texts"),
        ([Reply(body={"data": [{"index": 1, "embedding": [1, 0]} for _ in range(2)]})], "its vectors are not numbered"),
        ([Reply(body={"data": [{"index": n, "embedding": [0, 0]} for n in (0, 1)]})], "a vector holds no direction"),
        ([Reply(body={"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 0]}]})], "no vectors"),
        ([Reply(body={"data": [{"index": n, "embedding": ["x"]} for n in (0, 1)]})], "no vectors"),
        ([Reply(body=b"<html>")], "cannot be had"),
    ],
)  # fmt: skip
def test_a_server_that_gives_no_vectors_leaves_no_score(served, script, words):
    evaluator, server = served(script, api_key="sk-4f9aB27c")
    score = evaluator.score("CEO", "boss", field_path="title")
    assert score.value is None
    assert score.error.startswith(f"title: the embeddings of 'small' at {server.api_base} cannot be had: ")
    assert words in score.error
    assert "sk-4f9aB27c" not in score.error
    assert np.isnan(evaluator.similarities(["CEO"], ["boss"])).all()
    assert evaluator.similarities(["CEO"], ["CEO"]).tolist() == [[1.0]]
    with pytest.raises(ValueError, match="text_similarity: the embeddings of 'small' at"):
        evaluator.prepared()


def test_what_fails_for_a_moment_is_tried_again(served):
    replies = iter([Reply(503, {"error": {"message": "busy"}}, {"Retry-After": "0"})])
    evaluator, server = served(lambda received: next(replies, None) or embeddings(received))
    assert evaluator.evaluate("CEO", "Chief Executive Officer") == 0.96
    assert len(server.requests) == 2


def test_what_waits_for_a_run_embeds_nothing_before(served):
    waiting, server = served(deferred=True)
    score = waiting.score("CEO", "boss", field_path="x")
    assert score.error == "x: text_similarity: texts are only embedded while an experiment runs"
    assert waiting.evaluate("CEO", "CEO") == 1.0
    assert np.isnan(waiting.similarities(["CEO"], ["boss"])).all()
    assert server.requests == []
    ready = waiting.prepared()
    assert ready.evaluate("CEO", "Chief Executive Officer") == 0.96
    assert waiting.score("CEO", "boss").value is None
    assert ready.version == waiting.version


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"provider": "openai"}, "provider openai needs the model's name there, such as text-embedding-3-small"),
        ({"provider": "openay"}, "provider: input should be 'sentence-transformers' or 'openai'"),
        (
            {"api_base": "http://x/v1"},
            "api_base belongs to provider openai; sentence-transformers runs on this machine",
        ),
        ({"api_key": "k"}, "api_key belongs to provider openai"),
        ({"provider": "openai", "model": "m", "api_base": "x"}, "api_base: an address such as http"),
        ({"provider": "openai", "model": "m", "api_base": "http://me:pw@x/v1"}, "without a user or a key"),
        (
            {"provider": "openai", "model": "m", "api_key_env": "NOT_SET"},
            "environment variable NOT_SET, which is not set",
        ),
        ({"provider": "openai", "model": "m"}, "environment variable OPENAI_API_KEY, which is not set"),
        ({"threshold": 1.5}, "threshold: "),
        ({"modle": "m"}, "unknown option 'modle', did you mean 'model'?"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(config, words, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ValueError, match="text_similarity") as caught:
        TextSimilarityEvaluator(config)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_key_is_taken_from_the_variable_and_is_nowhere_else(served, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-4f9aB27c")
    evaluator, server = served(api_key_env="MY_KEY")
    plain, _ = served(api_base=server.api_base)
    evaluator.evaluate("CEO", "boss")
    assert server.requests[0].headers["authorization"] == "Bearer sk-4f9aB27c"
    assert evaluator.version == plain.version
    for text in (repr(evaluator), json.dumps(evaluator.options()), repr(evaluator.config)):
        assert "sk-4f9aB27c" not in text


def test_the_established_options_and_defaults():
    fields = create_evaluator.__globals__["CATALOGUE"]["text_similarity"].config_model.model_fields
    assert fields["model"].default == "sentence-transformers/all-MiniLM-L6-v2"
    assert fields["provider"].default == "sentence-transformers"
    assert fields["threshold"].default == 0.0


TEXTS = st.one_of(st.text(), st.sampled_from(["CEO", "5 h", "50 h", 5, 5.0, None, "None", True, -1e300, "1e-9", ["a"]]))


@settings(max_examples=200)
@given(TEXTS, TEXTS)
def test_matching_and_scoring_agree_on_zero_to_one(extracted, expected):
    evaluator = TextSimilarityEvaluator({"provider": "openai", "model": "m", "api_base": "http://127.0.0.1:1/v1"})

    class Directions(EndpointEmbedder):
        def embed(self, texts):
            return np.array([vector(text) for text in texts], dtype=np.float32)

    evaluator._vectors = VectorStore(Directions("m", None, None))
    score = evaluator.score(extracted, expected)
    if score.value is not None:
        assert 0.0 <= score.value <= 1.0
        assert evaluator.score(extracted, extracted).value in (1.0, None)
    if isinstance(extracted, str) and isinstance(expected, str) and extracted.strip() and expected.strip():
        assert evaluator.similarities([extracted], [expected])[0, 0] == pytest.approx(score.value, abs=1e-6)
        assert evaluator.score(expected, extracted).value == pytest.approx(score.value, abs=1e-6)
