"""Answers on stdout and nothing else there; a reader who has gone, control characters, stray prints."""

import contextlib
import io
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.terminal import (
    answer,
    answer_json,
    answer_rich,
    printable,
    say,
    stdout_fails,
    stdout_is_gone,
    stdout_kept_for_the_answer,
)


class ClosedPipe(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


def python(program, **options):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, **options)


@given(st.text())
def test_no_control_character_is_printable(text):
    shown = printable(text)
    assert len(shown) == len(text)
    assert not any((ord(letter) < 32 and letter not in "\t\n") or 127 <= ord(letter) < 160 for letter in shown)
    assert all(new in (old, "?") for old, new in zip(text, shown, strict=True))


def test_what_is_said_goes_to_stderr_without_control_characters(capsys):
    say("a\x1b[31mred")
    assert capsys.readouterr() == ("", "a?[31mred\n")


def test_nobody_listening_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", ClosedPipe())
    say("anyone?")
    monkeypatch.setattr(sys, "stderr", None)
    say("anyone?")


def test_a_document_is_json_and_readable(capsys):
    answer_json({"name": "Müller", "value": None})
    out = capsys.readouterr().out
    assert json.loads(out) == {"name": "Müller", "value": None}
    assert "Müller" in out


def test_a_document_is_json_in_any_encoding(monkeypatch):
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", ascii_only)
    answer_json({"name": "Müller"})
    assert json.loads(ascii_only.buffer.getvalue()) == {"name": "Müller"}


def test_not_a_number_never_gets_into_a_document():
    with pytest.raises(ValueError, match="not JSON compliant"):
        answer_json({"value": float("nan")})


def test_tables_and_text_are_written_as_they_are(capsys):
    answer_rich("[bold]not markup[/bold] :smile: " + "long " * 40, "second")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("[bold]not markup[/bold] :smile: long")
    assert first.count("long") == 40
    assert second == "second"


def test_a_reader_who_has_gone_is_no_error():
    program = (
        "import sys, time\n"
        "from harness.terminal import answer, answer_rich, stdout_is_gone\n"
        "sys.stdin.readline()\n"
        "answer('x' * 100_000); answer('y'); answer_rich('z')\n"
        "print(stdout_is_gone(), file=sys.stderr)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate("go\n", timeout=60)
    assert (process.returncode, errors) == (0, "False\n")  # it was dropped, so there is nothing left to be gone


def test_a_closed_reader_is_noticed(monkeypatch):
    class Gone(io.StringIO):
        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    assert stdout_is_gone()


@contextlib.contextmanager
def stdout_on_descriptor_one():
    """`sys.stdout` on the real file descriptor 1; both are what they were again afterwards."""
    stream, before = sys.stdout, os.dup(1)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    try:
        yield
    finally:
        sys.stdout.close()
        sys.stdout = stream
        os.dup2(before, 1)
        os.close(before)


def test_the_descriptor_keeps_pointing_to_stderr(capfd):
    with stdout_on_descriptor_one():
        with stdout_kept_for_the_answer():
            print("stray")
        sys.stderr.flush()
        answer("the answer")
        os.write(1, b"late\n")
    assert capfd.readouterr() == ("the answer\n", "stray\nlate\n")


def test_what_cannot_be_delivered_is_dropped(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    monkeypatch.setattr(sys, "stdout", stream)
    answer("nobody reads this")
    assert not stdout_is_gone()
    answer("nor this")
    stream.close()


def test_stray_prints_go_to_stderr_and_the_answer_to_stdout():
    done = python(
        "import os, subprocess, sys\n"
        "from harness.terminal import answer_json, stdout_kept_for_the_answer\n"
        "with stdout_kept_for_the_answer():\n"
        "    print('by Python')\n"
        "    os.write(1, b'by a C library\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"by a child\")'], check=True)\n"
        "answer_json({'done': True})\n"
        "os.write(1, b'buffered, flushed late\\n')"
    )
    assert json.loads(done.stdout) == {"done": True}
    assert sorted(done.stderr.splitlines()) == ["buffered, flushed late", "by Python", "by a C library", "by a child"]


def test_stdout_is_given_back_when_the_work_fails():
    done = python(
        "from harness.terminal import answer, stdout_kept_for_the_answer\n"
        "try:\n"
        "    with stdout_kept_for_the_answer():\n"
        "        raise ValueError\n"
        "except ValueError:\n"
        "    answer('given back')"
    )
    assert (done.stdout, done.stderr) == ("given back\n", "")


def test_a_replaced_stdout_is_kept_clean_too(capsys):
    with stdout_kept_for_the_answer():
        print("stray")
    answer("the answer")
    assert capsys.readouterr() == ("the answer\n", "stray\n")


def test_a_process_without_stdout_works():
    done = python(
        "import sys\nsys.stdout = None\n"
        "from harness.terminal import answer_json, stdout_kept_for_the_answer\n"
        "with stdout_kept_for_the_answer():\n    pass\n"
        "answer_json({})",
        env=os.environ,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_names_of_any_bytes_are_shown(capsys):
    answer("a\udcff")
    answer_json({"a": "\udcff", "b": "é"})
    out = capsys.readouterr().out
    assert out.startswith("a\\udcff\n")
    assert json.loads(out.split("\n", 1)[1]) == {"a": "\udcff", "b": "é"}


def test_a_full_disk_behind_stdout_is_noticed(monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert stdout_fails()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert not stdout_fails()
