"""What the machine refuses, and characters no argument has: sentences; an error of ours stays a defect."""

import errno
import json
import sys
from types import ModuleType

import pytest

from harness.cli import exit_code


@pytest.fixture
def harness(capsys):
    """Runs one command in this process: (exit code, stdout, stderr)."""

    def command(*arguments):
        code = exit_code(arguments)
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def failing(monkeypatch):
    """Makes reading an experiment file raise."""

    def set_up(error):
        def load(*_):
            raise error

        monkeypatch.setattr("harness.cli.load_spec", load)

    return set_up


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "mlruns/x.json"), "mlruns/x.json: No space left on device"),
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        (PermissionError(errno.EACCES, "Permission denied", "mlruns"), "mlruns: Permission denied"),
    ],
)
def test_what_the_machine_refuses_is_a_sentence(failing, harness, error, sentence):
    failing(error)
    code, out, err = harness("run", "x.yaml")
    assert (code, out) == (1, "")
    assert err.splitlines() == [f"error: {sentence}", "what is finished is kept; the same command continues"]


@pytest.mark.parametrize(
    "error", [FileNotFoundError(errno.ENOENT, "No such file or directory", "x"), OSError("no number"), KeyError("x")]
)
def test_an_error_of_ours_is_never_the_machines(failing, harness, error):
    failing(error)
    code, _, err = harness("run", "x.yaml")
    assert code == 1
    assert "Traceback" in err
    assert "this is a defect" in err


@pytest.mark.parametrize(
    "arguments",
    [("check", "a\0b"), ("run", "x.yaml", "--set", "name=a\0"), ("predict", "b", "i", "o\0"), ("init", "\0")],
)
def test_nul_in_an_argument(harness, arguments):
    code, out, err = harness(*arguments)
    assert (code, out) == (2, "")
    assert "holds the character NUL" in err
    assert "\0" not in err


@pytest.mark.parametrize("name", ["n" * 300, "~nosuchuser/x", "/dev/null/x"])
def test_odd_places(harness, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for arguments in (("check", name), ("evaluate", name, "x.yaml"), ("evaluate", name), ("schema", name)):
        code, _, err = harness(*arguments)
        assert code == 2, arguments
        assert "Traceback" not in err
    if not name.startswith("~"):
        assert harness("init", name)[0] == 2


def test_notes_of_a_bundle_are_shown(harness, monkeypatch):
    counts = {"total": 1, "answered": 1, "failed": 0, "notes": ["other prompts than when it was exported"]}
    fake = ModuleType("harness.prediction")
    vars(fake)["predict_bundle"] = lambda *_, **__: counts
    monkeypatch.setitem(sys.modules, "harness.prediction", fake)
    assert harness("predict", "b", "i", "o")[1].splitlines()[-1] == "note: other prompts than when it was exported"
    assert json.loads(harness("predict", "b", "i", "o", "--json")[1]) == counts
