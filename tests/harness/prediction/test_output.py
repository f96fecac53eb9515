"""Where predictions may be written, who may write them, and what is kept when the disk is full."""

import errno
import os
import subprocess
import sys

import pytest

from harness.errors import HarnessError, UsageError
from harness.prediction.documents import Document
from harness.prediction.lock import OutputLock
from harness.prediction.output import PredictionOutput, refuse_output

DOCUMENTS = [Document(name, {"text": name}, where=name) for name in "abc"]


def output(path, documents=DOCUMENTS):
    return PredictionOutput(path, field="record", origin={"bundle": "b", "model": "m"}, documents=documents)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("-", "not to the terminal; name one: results.jsonl"),
        ("texts", "texts is a folder; name the file to write, such as texts/results.jsonl"),
        ("/dev/stdout", "/dev/stdout is not a regular file"),
        ("/dev/null", "/dev/null is not a regular file"),
        ("texts/out.txt", "would be read as one of the texts of texts the next time"),
        ("n" * 300, "cannot be used: File name too long"),
        ("a\0b", "cannot be used: embedded null byte"),
    ],
)
def test_outputs_that_are_none(tmp_path, monkeypatch, target, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    with pytest.raises(UsageError) as error:
        refuse_output(type(tmp_path)("texts"), type(tmp_path)(target))
    assert sentence in str(error.value)
    refuse_output(type(tmp_path)("texts"), type(tmp_path)("texts/out.jsonl"))


def test_a_name_that_is_too_long_with_its_ending_is_found_at_once(tmp_path):
    with pytest.raises(UsageError, match="File name too long"):
        output(tmp_path / ("n" * 244 + ".jsonl"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match=r"the folder of .*file/out.jsonl cannot be made"):
        output(tmp_path / "file" / "out.jsonl")
    with output(tmp_path / "new" / "folder" / "out.jsonl") as written:
        written.add(DOCUMENTS[0], {})
    assert (tmp_path / "new" / "folder" / "out.jsonl").exists()


def test_two_at_once(tmp_path):
    path = tmp_path / "out.jsonl"
    with output(path) as first:
        first.add(DOCUMENTS[0], {})
        with pytest.raises(UsageError, match=r"another predict is writing .*out.jsonl at this moment"):
            output(path)
        with output(tmp_path / "other.jsonl"):
            pass
        first.add(DOCUMENTS[1], {})
    with output(path) as again:
        assert again.finished == {"a", "b"}
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")) == []


def test_another_process_holds_it_until_it_is_killed(tmp_path):
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib\nfrom harness.prediction.lock import OutputLock\n"
            "lock = OutputLock(pathlib.Path(sys.argv[1]))\nprint('held', flush=True)\nsys.stdin.read()",
            str(tmp_path / "out.jsonl"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="another predict"):
            OutputLock(tmp_path / "out.jsonl")
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
    lock = OutputLock(tmp_path / "out.jsonl")
    lock.release()
    lock.release()


def test_a_lock_file_that_was_removed_meanwhile_is_made_anew(tmp_path, monkeypatch):
    path, opened = tmp_path / "out.jsonl", os.open

    def open_and_lose(name, *arguments):
        descriptor = opened(name, *arguments)
        monkeypatch.setattr(os, "open", opened)
        os.unlink(name)  # its holder let go between our opening and our locking it
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose)
    lock = OutputLock(path)
    with pytest.raises(UsageError, match="another predict"):
        OutputLock(path)
    lock.release()


def test_a_refused_output_is_free_again(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("mine\n")
    for _ in range(2):
        with pytest.raises(UsageError, match="was not written by predict"):
            output(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out.jsonl"]


class Full:
    """A file on a disk that has no space left for the second row."""

    def __init__(self, file):
        self.file = file
        self.rows = 0

    def write(self, text):
        self.rows += 1
        if self.rows > 1:
            self.file.write(text[:5])
            raise OSError(errno.ENOSPC, "No space left on device")
        self.file.write(text)

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.close()
        raise OSError(errno.ENOSPC, "No space left on device")


def no_space(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_keeps_the_rows_before(tmp_path, monkeypatch):
    path = tmp_path / "out.jsonl"

    def write_two():
        with output(path) as written:
            written._written = Full(written._written)
            written.add(DOCUMENTS[0], {})
            monkeypatch.setattr(os, "replace", no_space)
            written.add(DOCUMENTS[1], {})

    with pytest.raises(HarnessError, match=r"out.jsonl cannot be written: No space left on device$") as error:
        write_two()
    assert error.value.exit_code == 1
    monkeypatch.undo()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.origin.json"]
    with output(path) as again:
        assert again.finished == {"a"}
        again.add(DOCUMENTS[1], {})
    assert path.read_text().count("\n") == 2


def test_a_disk_that_is_full_at_the_end_is_told(tmp_path, monkeypatch):
    path = tmp_path / "out.jsonl"

    def write_two():
        with output(path) as written:
            written.add(DOCUMENTS[1], {})
            written.add(DOCUMENTS[0], {})
            monkeypatch.setattr(os, "replace", no_space)

    with pytest.raises(HarnessError, match="No space left on device"):
        write_two()
    monkeypatch.undo()
    with output(path) as again:
        assert again.finished == {"a", "b"}


def test_a_failure_is_kept_whatever_the_model_said(tmp_path):
    with output(tmp_path / "out.jsonl") as written:
        written.fail(DOCUMENTS[0], "half \ud800", answer="a\ud800")
    assert "half \ufffd" in (tmp_path / "out.jsonl.failures.jsonl").read_text(encoding="utf-8")


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(UsageError, match=r"nothing can be written beside .*: Permission denied$"):
        output(tmp_path / "out.jsonl")
