"""What a process that uses the package meets first: a quick start, the public names, nothing heavy before its time."""

import os
import subprocess
import sys

import pytest

import harness
from harness.assembly import load_experiment
from harness.bundle import load
from harness.experiment import run
from harness.exporting import export_run
from harness.measurement import evaluate_program
from harness.prediction import predict

LEAST = """program: {programs.schema:SchemaExtraction: {model: "schema.py:Invoice"}}
data: invoices.csv
models: {task: local/smollm2-135m}
"""


# --- the start of the process ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["run", "--help"], 0),
        (["run", "x.yaml"], 2),
        (["run", "x.yaml", "--foce"], 2),
        (["list", "nothing"], 2),
        (["schema", "experiment"], 0),
    ],
)
def test_help_and_mistakes_are_answered_at_once_without_the_heavy_libraries(tmp_path, arguments, code):
    (tmp_path / "x.yaml").write_text(LEAST + "optimiser: x\n", encoding="utf-8")
    program = (
        "import sys\nfrom harness.cli import exit_code\n"
        f"code = exit_code({arguments!r})\n"
        "heavy = {'dspy', 'mlflow', 'optuna', 'litellm', 'numpy', 'scipy', 'sklearn'}\n"
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    before = os.times()
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    after = os.times()
    assert done.stderr.splitlines()[-1] == f"{code} []"
    assert after.children_user - before.children_user < 1.0  # seconds of processor time: a busy machine does not count


def test_importing_the_package_imports_nothing_heavy():
    program = (
        "import sys, harness\n"
        "assert harness.__version__.startswith('0.')\n"
        "assert set(harness.__all__) == set(dir(harness))\n"
        "print(sorted({'dspy', 'mlflow', 'pydantic', 'numpy', 'typer'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- the Python surface ----------------------------------------------------------------------------------------


def test_the_public_names_are_loaded_when_they_are_used():
    surface = (harness.load_experiment, harness.load, harness.run, harness.export, harness.evaluate, harness.predict)
    assert surface == (load_experiment, load, run, export_run, evaluate_program, predict)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'harness' has no attribute 'tune'"):
        _ = harness.tune
    assert "run" in dir(harness)
