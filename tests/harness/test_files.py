"""Files somebody else named: whatever the file system says no to is one sentence, and says whose fault it is."""

import errno
import os
import socket
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.files import kind_of, named_path, names_beside, outside, read_file

NOT_ALLOWED = PermissionError(errno.EACCES, "Permission denied")


def test_what_is_there(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    kinds = {name: kind_of(tmp_path / name) for name in ("a.txt", "", "pipe", "none", "a.txt/below")}
    assert kinds == {"a.txt": "file", "": "folder", "pipe": "special", "none": "missing", "a.txt/below": "missing"}


@pytest.mark.parametrize("name", ["n" * 300, "a\0b"])
def test_what_no_place_can_be_called(tmp_path, name):
    with pytest.raises(UsageError, match="cannot be used: "):
        kind_of(tmp_path / name)
    assert names_beside(tmp_path / name / "x") == []


def test_a_path_of_nobody():
    with pytest.raises(UsageError, match=r"no home folder of '~nosuchuser'$"):
        named_path("~nosuchuser/x.csv")
    with pytest.raises(UsageError, match="cannot hold the character NUL"):
        named_path("a\0.csv")
    assert named_path("~/x.csv", Path("work")) == Path.home() / "x.csv"


def test_a_folder_nobody_may_enter(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise NOT_ALLOWED

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(UsageError, match=r"a.csv cannot be used: Permission denied$"):
        kind_of(tmp_path / "a.csv")


def test_a_file_is_read_or_refused(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xff")
    assert read_file(file) == b"\xff"
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)
        server.bind("socket")
        for name, sentence in (
            ("pipe", "p is a pipe or a device where a file is needed"),
            ("socket", "p is a pipe or a device where a file is needed"),
            (".", "p is a folder where a file is needed"),
            ("none", "p does not exist"),
        ):
            with pytest.raises(UsageError) as error:
                read_file(Path(name), "p")
            assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("raised", "kind", "sentence"),
    [
        (NOT_ALLOWED, UsageError, "a.txt cannot be read: Permission denied"),
        (OSError(errno.EIO, "Input/output error"), HarnessError, "a.txt cannot be read: Input/output error"),
        (MemoryError(), HarnessError, "a.txt cannot be read: there is not enough memory for it"),
    ],
)
def test_whose_fault_it_is(tmp_path, monkeypatch, raised, kind, sentence):
    (tmp_path / "a.txt").write_text("x")

    def refused(self):
        raise raised

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(HarnessError) as error:
        read_file(tmp_path / "a.txt", "a.txt")
    assert (type(error.value), str(error.value)) == (kind, sentence)


def test_what_is_no_bug_of_ours():
    assert outside(OSError(errno.ENOSPC, "No space left on device")) == "No space left on device"
    assert outside(OSError(errno.EROFS, "Read-only file system", "mlruns")) == "mlruns: Read-only file system"
    assert outside(PermissionError(errno.EACCES, "Permission denied", "mlruns")) == "mlruns: Permission denied"
    assert outside(FileNotFoundError(errno.ENOENT, "No such file or directory", "x")) is None
    assert outside(OSError("no number")) is None
