"""A run folder is known by what could change its result, and never holds half a file."""

import pytest

from harness.results import Evaluation, ExperimentResult, RoleUsage, Row
from harness.run_folder import Fingerprint, RunFolder, find_run_folder, write_atomically
from metrics.score import Score
from metrics.statistics import aggregate, paired_difference


def result():
    score = Score(0.5, "f", {"steps[*].action": Score.unscored("no gold")}, details={"n_fields": 2})
    rows = [Row("a", "p", {"text": "t"}, {"x": [1]}, {"x": [1.5]}, score, {"strict": score}, "judge", "why")]
    side = Evaluation("baseline", "test", rows, aggregate([0.5]), {"x": aggregate([0.5])}, {})
    delta = paired_difference([0.1, 0.2], [0.2, 0.4])
    return ExperimentResult(
        "run", "name", "improved", side, side, delta, {}, [], {"task": RoleUsage(1, 2, 3, 4, None)},
        {"extract": ("before", "after")}, {}, {"train": 1}, ["note"], 2, "fp", 1.5, "folder", "folder/bundle",
    )  # fmt: skip


def test_a_result_is_read_back_as_it_was_written(tmp_path):
    folder = RunFolder("quick start", Fingerprint.of({"a": 1}), tmp_path)
    assert folder.result() is None
    folder.write_result(result())
    assert folder.result() == result()
    assert folder.relative.name.startswith("quick-start-")


@pytest.mark.parametrize("content", ["", "{", '{"run_id": 1}'])
def test_a_result_that_cannot_be_read_is_no_result(tmp_path, content):
    folder = RunFolder("x", Fingerprint.of({}), tmp_path)
    write_atomically(folder.path / "result.json", content)
    assert folder.result() is None


def test_the_components_that_changed_are_named(tmp_path):
    old = RunFolder("x", Fingerprint.of({"data": "1", "metric": "m"}), tmp_path)
    old.write_state("finished", "run-1")
    other = RunFolder("y", Fingerprint.of({"data": "9", "metric": "9"}), tmp_path)
    other.write_state("finished", "run-2")
    new = RunFolder("x", Fingerprint.of({"data": "2", "metric": "m"}), tmp_path)
    assert new.changed_since_last() == ["data"]
    assert RunFolder("z", Fingerprint.of({}), tmp_path).changed_since_last() == []


def test_a_folder_is_found_by_its_run(tmp_path):
    folder = RunFolder("x", Fingerprint.of({}), tmp_path)
    folder.write_state("running", "abc")
    assert find_run_folder("abc", tmp_path) == folder.path
    assert find_run_folder("abd", tmp_path) is None
    assert folder.state()["status"] == "running"


def test_a_damaged_state_counts_as_none(tmp_path):
    folder = RunFolder("x", Fingerprint.of({}), tmp_path)
    write_atomically(folder.path / "run.json", "[1]")
    assert folder.state() == {}


def test_no_draft_is_left_behind(tmp_path):
    write_atomically(tmp_path / "a" / "b.json", "1")
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["b.json"]


def test_names_of_any_script_have_folders_of_their_own(tmp_path):
    folders = {RunFolder(name, Fingerprint.of({}), tmp_path).path for name in ("名前", "漢字", "a/b", "..")}
    assert len(folders) == 4
    assert all(folder.parent == tmp_path / "mlruns" / "runs" for folder in folders)
