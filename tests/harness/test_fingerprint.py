"""What makes an experiment another one: the file, the data, and the code it calls."""

import pytest

from harness.assembly import load_experiment
from harness.experiment import run
from harness.fingerprint import fingerprint, own_code


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pack").mkdir()
    for name, text in {
        "mine.py": "import json\nimport beside\nfrom pack import part\n",
        "beside.py": "def f():\n    import later\n",
        "later.py": "import mine\n",
        "unused.py": "",
        "broken.py": "def (",
        "pack/__init__.py": "",
        "pack/part.py": "from . import other\nfrom .deep import x\nimport broken\n",
        "pack/other.py": "",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_code_behind_a_reference_is_the_file_and_what_it_imports_from_its_folder(folder):
    found = own_code(["mine.py:Mine"], folder)
    assert list(found) == ["beside.py", "broken.py", "later.py", "mine.py", "pack/__init__.py", "pack/other.py",
                           "pack/part.py"]  # fmt: skip
    assert own_code(["pack.part:Thing"], folder).keys() == {
        "broken.py", "pack/__init__.py", "pack/other.py", "pack/part.py"
    }  # fmt: skip


def test_an_edit_anywhere_in_it_changes_its_digest_and_an_edit_elsewhere_does_not(folder):
    before = own_code(["mine.py:Mine"], folder)
    (folder / "unused.py").write_text("changed = 1\n")
    assert own_code(["mine.py:Mine"], folder) == before
    (folder / "later.py").write_text("changed = 1\n")
    after = own_code(["mine.py:Mine"], folder)
    assert [name for name in before if before[name] != after[name]] == ["later.py"]


def test_a_file_elsewhere_is_named_from_the_experiments_folder(folder):
    below = folder / "experiments"
    below.mkdir()
    assert "../mine.py" in own_code(["../mine.py:Mine"], below)
    assert own_code(["missing.py:Mine", "os.path:join", "metrics:RecordMetric"], below) == {}


def test_this_packages_own_scoring_is_part_of_it(project, monkeypatch):
    experiment = load_experiment("experiment.yaml")
    before = fingerprint(experiment, {"task": "endpoint"})
    monkeypatch.setattr("harness.fingerprint._DECIDING", ("metrics",))
    assert fingerprint(experiment, {"task": "endpoint"}).difference(before.components) == ["scoring"]
    assert set(before.components["code"]) == {"schema.py"}


def test_another_endpoint_is_another_experiment(project):
    experiment = load_experiment("experiment.yaml")
    one, other = (fingerprint(experiment, {"task": endpoint}) for endpoint in ("a", "b"))
    assert one.difference(other.components) == ["models"]


def test_edited_code_of_ones_own_is_a_new_experiment(project, scripted):
    program = (
        "import dspy\n\n\nclass Mine(dspy.Module):\n    output_field = 'label'\n\n    def __init__(self):\n"
        "        super().__init__()\n        self.extract = dspy.Predict('text -> label')\n\n"
        "    def forward(self, text):\n        return self.extract(text=text)\n"
    )
    metric = (
        "from metrics import Score\n\n\nclass Half:\n    name, version = 'half', '1'\n\n"
        "    def __call__(self, example, prediction):\n        return Score(0.5)\n\n"
        "    def compare(self, expected, predicted):\n        return Score(0.5)\n"
    )
    overrides = ["program=mine.py:Mine", "metric=half.py:Half", "optimizer=none"]
    fingerprints = set()
    for text, measure in (
        (program, metric),
        (program.replace("text=text", "text=text.upper()"), metric),
        (program, metric.replace("0.5", "0.25")),
    ):
        (project / "mine.py").write_text(text)
        (project / "half.py").write_text(measure)
        endpoints, _ = scripted(lambda request: '{"label": "x"}')
        result = run(load_experiment("experiment.yaml", overrides), endpoints=endpoints)
        assert not result.replayed
        fingerprints.add(result.fingerprint)
    assert len(fingerprints) == 3


def test_an_edited_file_that_a_metric_imports_is_a_new_experiment(project, scripted):
    (project / "half.py").write_text(
        "from metrics import Score\n\n\nclass Half:\n    name, version = 'half', '1'\n\n"
        "    def __call__(self, example, prediction):\n        from worth import WORTH\n\n"
        "        return Score(WORTH)\n\n"
        "    def compare(self, expected, predicted):\n        return Score(0.5)\n"
    )
    changed = []
    for worth in ("0.5", "0.25"):
        (project / "worth.py").write_text(f"WORTH = {worth}\n")
        endpoints, _ = scripted()
        result = run(load_experiment("experiment.yaml", ["metric=half.py:Half", "optimizer=none"]), endpoints=endpoints)
        assert not result.replayed
        changed.append([note for note in result.notes if note.startswith("changed since")])
    assert changed == [[], ["changed since the last run of this experiment: code"]]
