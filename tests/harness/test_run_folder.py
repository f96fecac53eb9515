"""A run folder is known by what could change its result, and never holds half a file."""

import dataclasses
import errno
import json
import math
import os
from pathlib import Path

import pytest

from harness.results import Evaluation, ExperimentResult, RoleUsage, Row
from harness.run_folder import (
    Fingerprint,
    RunFolder,
    find_run_folder,
    finished_folder,
    repetition_folder,
    write_atomically,
)
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


def finished_run(folder, when):
    folder.write_result(result())
    folder.write_state("finished", f"run-{when}")
    os.utime(folder.path / "run.json", (when, when))
    return folder


def test_repetitions_have_folders_of_their_own_and_go_on_until_they_are_finished(tmp_path):
    mark = Fingerprint.of({})
    own = finished_run(RunFolder("x", mark, tmp_path), 100)
    assert (own.replicate, own.reader) == (0, mark.digest)
    first = repetition_folder("x", mark, tmp_path)
    assert first.path.name == f"{own.path.name}-again1"
    assert first.replicate > 0
    assert first.reader != own.reader
    first.write_state("stopped", "run-1")
    again = repetition_folder("x", mark, tmp_path)
    assert (again.path, again.replicate) == (first.path, first.replicate)
    assert finished_folder("x", mark, tmp_path).path == own.path
    finished_run(again, 200)
    assert repetition_folder("x", mark, tmp_path).path.name.endswith("-again2")
    assert finished_folder("x", mark, tmp_path).path == again.path
    assert find_run_folder("run-100", tmp_path) == own.path


def test_without_a_result_nothing_is_finished(tmp_path):
    folder = RunFolder("x", Fingerprint.of({}), tmp_path)
    assert not folder.is_finished
    folder.write_state("finished", "run")
    assert not folder.is_finished
    assert finished_folder("x", folder.fingerprint, tmp_path) is None


def test_a_result_of_an_earlier_version_still_loads(tmp_path):
    folder = RunFolder("x", Fingerprint.of({}), tmp_path)
    folder.write_result(result())
    file = folder.path / "result.json"
    document = json.loads(file.read_text())
    del document["stopped"]
    document["ledger"]["task"] = {"calls": 1, "cached": 2, "input_tokens": 3, "output_tokens": 4, "usd": None}
    file.write_text(json.dumps(document))
    usage = folder.result().ledger["task"]
    assert usage == RoleUsage(1, 2, 3, 4, None)
    assert usage.replayed_usd is None, "what was replayed then is unknown, not free"


def test_what_a_metric_keeps_is_written_whatever_it_is(tmp_path):
    odd = Score(0.5, "half \ud800", details={"raw": "a\ud800", "thing": object, "set": {1}, "nan": math.nan})
    row = Row("a", None, {"text": "t"}, {}, {}, odd, error="b\ud800")
    side = Evaluation("baseline", "test", [row], aggregate([0.5]), {}, {})
    folder = RunFolder("n", Fingerprint.of({}), tmp_path)
    folder.write_result(dataclasses.replace(result(), baseline=side))
    read = folder.result()
    assert read is not None
    assert read.baseline.rows[0].score.feedback == "half \ufffd"
    assert read.baseline.rows[0].score.details["raw"] == "a\ufffd"
    assert read.baseline.rows[0].error == "b\ufffd"


def test_a_full_disk_names_the_file_and_leaves_no_draft(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a.json", "before")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left on device") as error:
        write_atomically(tmp_path / "a.json", "after")
    assert error.value.filename == str(tmp_path / "a.json")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]
