"""A user's own code: whatever it raises, when it is loaded, made or asked, is one sentence that names it."""

import re

import pytest

from harness.assembly import load_experiment
from harness.errors import RunStopped, StopReason, UsageError
from harness.foreign import first_line, foreign_code, told, whole

OWN = """\
import sys

import dspy
from metrics import BaseEvaluator


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


class OddError(BaseException):
    pass


def fail(how):
    if how == "exit":
        sys.exit(3)
    if how == "recursion":
        return fail(how)
    half, stop = RuntimeError("a\\ud800"), KeyboardInterrupt()
    raise {"silent": SilentError(), "odd": OddError("odd"), "half": half, "stop": stop}[how]


class Evaluator(BaseEvaluator):
    def __init__(self, config):
        fail(config["how"])

    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        return 1.0


class Asked(Evaluator):
    def __init__(self, config):
        self.config, self.how = {}, config["how"]

    def evaluate(self, extracted, expected, input_data=None, field_path=None):
        fail(self.how)


class Versioned(Asked):
    @property
    def version(self):
        fail(self.how)


class Metric:
    name = version = "m"

    def __init__(self, how):
        fail(how)

    def __call__(self, example, prediction): ...

    def compare(self, expected, predicted): ...


class Numbered(Metric):
    version = 5

    def __init__(self, how): ...


class Program(dspy.Module):
    output_field = "record"

    def __init__(self, how):
        super().__init__()
        fail(how)


class Promising(dspy.Module):
    output_field = "record"

    def __init__(self, how):
        super().__init__()
        self.how = how

    @property
    def output_type(self):
        fail(self.how)


def read(path, columns):
    yield {"id": "1", "text": "x", "expected": {}}
    fail(path.stem)
"""
RAISED = {
    "exit": "SystemExit: 3",
    "recursion": "RecursionError: maximum recursion depth exceeded",
    "silent": "SilentError: (its message cannot be read)",
    "odd": "OddError: odd",
    "half": "RuntimeError: a\ufffd",
}
FIELD = "metric={{record: {{fields: {{vendor: {{'own.py:%s': {{how: {how}}}}}}}}}}}"
PLACES = [
    (FIELD % "Evaluator", "own.py:Evaluator cannot be made"),
    (FIELD % "Asked", "comparing the record of invoices"),
    (FIELD % "Versioned", "own.py:Versioned: its name and version cannot be read"),
    ("metric={{'own.py:Metric': {{how: {how}}}}}", "metric own.py:Metric: it cannot be made from ['how']"),
    ("program={{'own.py:Program': {{how: {how}}}}}", "own.py:Program cannot be made from ['how']"),
    ("program={{'own.py:Promising': {{how: {how}}}}}", "what own.py:Promising puts out cannot be read"),
]


def complaint(change):
    with pytest.raises(UsageError) as error:
        load_experiment("experiment.yaml", [change])
    # Where Python noticed the recursion ("... in comparison") is Python's own matter, and differs from run to run.
    return re.sub(r"(recursion depth exceeded)( [a-zA-Z ]+)?$", r"\1", str(error.value))


@pytest.mark.parametrize("how", RAISED)
@pytest.mark.parametrize(("change", "sentence"), PLACES)
def test_a_class_that_raises_anything_is_named(project, change, sentence, how):
    (project / "own.py").write_text(OWN)
    said = complaint(change.format(how=how))
    assert said.startswith("in --set ")
    assert sentence in said
    assert said.endswith(f": own.py line {said.rsplit('own.py line ', 1)[1].split(':')[0]}: {RAISED[how]}")
    assert "\n" not in said


@pytest.mark.parametrize(("change", "sentence"), PLACES)
def test_ctrl_c_stays_itself(project, change, sentence):
    (project / "own.py").write_text(OWN)
    with pytest.raises(KeyboardInterrupt):
        load_experiment("experiment.yaml", [change.format(how="stop")])


@pytest.mark.parametrize("how", RAISED)
def test_a_file_and_a_reader_that_raise_anything(project, how):
    (project / "own.py").write_text(OWN)
    (project / "loaded.py").write_text(f"{OWN}\n\nfail({how!r})\n")
    said = complaint("program=loaded.py:P")
    assert said.startswith("in --set program: loaded.py cannot be loaded: loaded.py line ")
    assert said.endswith(f": {RAISED[how]}")
    (project / f"{how}.csv").write_text("text\n")
    said = complaint(f"data={{path: {how}.csv, reader: 'own.py:read'}}")
    assert said == f"the reader read failed after 1 records of {how}.csv: {RAISED[how]}"


def test_a_version_is_text(project):
    (project / "own.py").write_text(OWN)
    assert "its version is 5, where text is needed" in complaint("metric={'own.py:Numbered': {how: x}}")


def test_a_refusal_of_their_own_is_only_its_message():
    with pytest.raises(UsageError, match=r"^m: there is no field 'x'$"), foreign_code("m"):
        raise ValueError("there is no field 'x'")
    for passed in (UsageError("ours"), RunStopped(StopReason.MODEL, "gone"), KeyboardInterrupt()):
        with pytest.raises(type(passed)) as kept, foreign_code("m"):
            raise passed
        assert kept.value is passed


def test_messages():
    assert told(KeyError("a")) == "KeyError: 'a'"
    assert first_line(ValueError()) == ""
    assert whole("a\ud83d\ude00é") == "a\ufffd\ufffdé"
    assert whole("😀é") == "😀é"
