"""The folder of a bundle: written whole or not at all, and every change to it noticed."""

import hashlib
import os

import pytest

from harness import bundle
from harness.bundle.folder import HASHES
from harness.errors import HarnessError, UsageError


def test_something_in_the_way_is_left_alone(kit, tmp_path):
    folder = tmp_path / "b"
    folder.mkdir()
    kit.export(folder, kit.tuned())  # an empty folder is fine
    with pytest.raises(UsageError, match="exists and is not empty"):
        kit.export(folder, kit.tuned())
    first = kit.files_of(folder)
    kit.export(folder, kit.tuned(instructions="Other."), overwrite=True)
    assert kit.files_of(folder) != first
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("x")
    with pytest.raises(UsageError, match="holds something that is not a bundle"):
        kit.export(other, kit.tuned(), overwrite=True)
    with pytest.raises(UsageError, match="exists and is not a folder"):
        kit.export(other / "precious.txt", kit.tuned())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "other"]


def test_a_place_that_cannot_be_written_is_told(kit, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="the bundle cannot be written to"):
        kit.export(tmp_path / "file" / "b", kit.tuned())
    kit.export(tmp_path / "b", kit.tuned())
    before = kit.files_of(tmp_path / "b")
    rename, calls = os.rename, []

    def failing(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(HarnessError, match="No space left on device") as full:
        kit.export(tmp_path / "b", kit.tuned(instructions="Other."), overwrite=True)
    assert full.value.exit_code == 1  # nobody wrote anything wrong
    assert kit.files_of(tmp_path / "b") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "file"]


def test_what_is_not_a_bundle_is_refused(kit, tmp_path):
    with pytest.raises(UsageError, match="none is not a bundle: there is no such folder"):
        bundle.load(tmp_path / "none")
    with pytest.raises(UsageError, match=r"is not a bundle: it has no manifest.json$"):
        bundle.load(tmp_path)
    kit.export(tmp_path / "bundle", kit.tuned())
    with pytest.raises(UsageError, match=r"it has no manifest\.json; did you mean .*/bundle"):
        bundle.load(tmp_path)


def test_a_changed_bundle_is_refused(kit, tmp_path):
    kit.export(tmp_path / "b", kit.tuned())
    prompt = tmp_path / "b" / "prompts" / "extract.txt"
    (tmp_path / "b" / "my notes.txt").write_text("what is not listed is not read")
    bundle.load(tmp_path / "b")
    content = prompt.read_bytes()
    prompt.write_bytes(content + b" ")
    with pytest.raises(UsageError, match=r"was changed after it was exported: prompts/extract.txt has another hash"):
        bundle.load(tmp_path / "b")
    prompt.unlink()
    with pytest.raises(UsageError, match=r"is not complete: prompts/extract.txt is missing"):
        bundle.load(tmp_path / "b")
    prompt.write_bytes(content)
    hashes = (tmp_path / "b" / HASHES).read_text()
    for broken in (hashes.replace("prompts/", "../prompts/"), hashes + "nonsense\n"):
        (tmp_path / "b" / HASHES).write_text(broken)
        with pytest.raises(UsageError, match="was changed after it was exported: HASHES has the line"):
            bundle.load(tmp_path / "b")
    (tmp_path / "b" / HASHES).write_text("")
    with pytest.raises(UsageError, match=r"HASHES does not list manifest.json"):
        bundle.load(tmp_path / "b")
    (tmp_path / "b" / HASHES).write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        bundle.load(tmp_path / "b")
    (tmp_path / "b" / HASHES).unlink()
    with pytest.raises(UsageError, match="is not complete: HASHES is missing"):
        bundle.load(tmp_path / "b")


def test_files_a_bundle_must_have(kit, tmp_path):
    kit.export(tmp_path / "b", kit.tuned())
    hashes = tmp_path / "b" / HASHES
    kept = [line for line in hashes.read_text().splitlines() if not line.endswith("program.json")]
    hashes.write_text("\n".join(kept) + "\n")
    with pytest.raises(UsageError, match=r"is not complete: program.json is missing"):
        bundle.load(tmp_path / "b")
    kit.export(tmp_path / "c", kit.tuned())
    schema = tmp_path / "c" / "output_schema.json"
    old, new = schema.read_bytes(), b"{"
    schema.write_bytes(new)
    hashes = tmp_path / "c" / HASHES
    digests = [hashlib.sha256(content).hexdigest() for content in (old, new)]
    hashes.write_text(hashes.read_text().replace(*digests))
    with pytest.raises(UsageError, match=r"output_schema.json is not JSON"):
        bundle.load(tmp_path / "c")
