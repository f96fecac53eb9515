"""Bundles somebody else made, every hash right: what this package did not write is refused, the file and key named."""

import hashlib
import json
import os
import socket
import stat

import pytest

from harness import bundle
from harness.bundle import folder as bundle_folder
from harness.bundle.folder import HASHES, MANIFEST
from harness.errors import UsageError

PROGRAM = "program.json"
BOUNDS = {"max_items": 6, "max_length": 48, "items": {"lines": 2}, "lengths": {}, "free_text": 400}


def put(folder, name, content):
    """Write a file of the bundle and its hash."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    lines = (folder / HASHES).read_text().splitlines()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    lines = [line for line in lines if line[66:] != name] + [f"{digest}  {name}"]
    (folder / HASHES).write_text("\n".join(lines) + "\n")


def complaint(folder):
    with pytest.raises(UsageError) as error:
        bundle.load(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def made(kit, tmp_path):
    kit.export(tmp_path / "b", kit.nearest(), model_settings={**kit.SETTINGS, "bounds": BOUNDS})
    assert bundle.load(tmp_path / "b").model["bounds"] == BOUNDS
    return tmp_path / "b"


@pytest.mark.parametrize(
    ("name", "path", "value", "sentence"),
    [
        (MANIFEST, "model bounds", 5, "manifest.json is not as this package writes it: model.bounds: Input should"),
        (MANIFEST, "model bounds items lines", "2", "model.bounds.items.lines: Input should be a valid integer"),
        (MANIFEST, "model max_tokens", -1, "model.max_tokens: Input should be greater than or equal to 1"),
        (MANIFEST, "model temperature", "0", "model.temperature: Input should be a valid number"),
        (MANIFEST, "model api_base", "http://h", "model.api_base: Extra inputs are not permitted"),
        (MANIFEST, "inputs", "x", "inputs: Input should be a valid list"),
        (MANIFEST, "versions dspy", 3, "versions.dspy: Input should be a valid string"),
        (MANIFEST, "format_version", [1], "has bundle format [1], this version of the package reads 1"),
        (MANIFEST, "program arguments", None, "program.arguments: Input should be a valid dictionary"),
        (PROGRAM, "predictors extract inputs", "x", "predictors.extract.inputs: Input should be"),
        (PROGRAM, "predictors extract demos", [5], "predictors.extract.demos[0]: Input should be"),
        (PROGRAM, "predictors extract instructions", "a\ud800", "half a Unicode character at predictors.ex"),
        (PROGRAM, "wrapper state k", "x", "the wrapper.state in program.json cannot be used: TypeError"),
        (PROGRAM, "wrapper state", {}, "the wrapper.state in program.json cannot be used: KeyError: 'demos'"),
        ("output_schema.json", "type", 5, "it differs at schema.type: 5 in the bundle"),
    ],
)  # fmt: skip
def test_another_type_of_value_is_named_by_its_key(made, name, path, value, sentence):
    document = json.loads((made / name).read_text())
    holder, keys = document, path.split()
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    put(made, name, json.dumps(document))
    assert sentence in complaint(made)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[" * 300 + "]" * 300, "program.json is nested more than 200 levels deep at [0][0]"),
        ("[" * 9000 + "]" * 9000, "program.json is not JSON: program.json: nested too deeply to read"),
        ('{"predictors": NaN}', "program.json is not JSON: program.json line 1 column 16: NaN is not JSON"),
        ("1" * 5000, "program.json is not JSON: program.json: a number cannot be read"),
        ("[]", "program.json is not as this package writes it: the top: Input should be"),
        (b"\xff{}", "program.json cannot be read: it is not UTF-8 text"),
    ],
)
def test_another_text_is_named_by_its_file(made, content, sentence):
    put(made, "program.json", content)
    assert sentence in complaint(made)


@pytest.mark.parametrize("name", ["a\0b", "a\x1b[2J", "/etc/passwd", "a//b", "prompts/extract.txt"])
def test_a_line_of_the_list_that_is_none(made, name):
    with (made / HASHES).open("a") as file:
        file.write(f"{'0' * 64}  {name}\n")
    said = complaint(made)
    assert "was changed after it was exported: HASHES has the line" in said
    assert said.isprintable()


def test_what_is_no_regular_file(made, tmp_path, monkeypatch):
    prompt = made / "prompts" / "extract.txt"
    content = prompt.read_bytes()
    prompt.unlink()
    os.mkfifo(prompt)
    assert complaint(made).endswith("prompts/extract.txt is not a regular file")
    prompt.unlink()
    prompt.mkdir()
    assert complaint(made).endswith("prompts/extract.txt is not a regular file")
    prompt.rmdir()
    monkeypatch.chdir(made)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("prompts/extract.txt")
        assert complaint(made).endswith("prompts/extract.txt is not a regular file")
    prompt.unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "extract.txt").write_bytes(content)
    prompt.symlink_to(tmp_path / "elsewhere" / "extract.txt")
    assert complaint(made).endswith("prompts/extract.txt is a link; a bundle holds its files itself")
    (made / MANIFEST).unlink()
    os.mkfifo(made / MANIFEST)
    assert complaint(made).endswith("manifest.json is not a regular file")


def test_an_enormous_file_is_not_read(made):
    with (made / "output_schema.json").open("r+b") as file:
        file.truncate(1 << 40)  # a hole: nothing is on the disk
    assert complaint(made).endswith("with output_schema.json it is larger than 256 MB; that is no bundle")


def test_what_would_not_load_is_not_written(kit, tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_folder, "MOST_BYTES", 1 << 20)
    with pytest.raises(UsageError, match="it would be larger than 1 MB"):
        kit.export(tmp_path / "b", kit.tuned(instructions="x" * (1 << 20)))
    assert not (tmp_path / "b").exists()


def test_a_bundle_that_may_not_be_read(made, monkeypatch):
    def refused(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(type(made), "read_bytes", refused)
    assert complaint(made).endswith("HASHES cannot be read: Permission denied")
    assert stat.S_ISREG((made / HASHES).stat().st_mode)
