"""Files of older and newer versions."""

import sqlite3

import pytest

from harness.errors import UsageError
from harness.models.store import AnswerStore, StoredAnswer, schema

FIRST_SCHEMA = """
CREATE TABLE answers (
    key TEXT PRIMARY KEY, endpoint TEXT NOT NULL, response TEXT NOT NULL, created REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE failures (
    key TEXT NOT NULL, endpoint TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, created REAL NOT NULL
);
CREATE INDEX failures_by_key ON failures (key);
CREATE TABLE test_reads (
    split TEXT NOT NULL, fingerprint TEXT NOT NULL, created REAL NOT NULL, PRIMARY KEY (split, fingerprint)
) WITHOUT ROWID;
INSERT INTO failures VALUES ('cut', 'e', 'length', 'answer cut at max_tokens=512', 2.0);
INSERT INTO test_reads VALUES ('split', 'run-a', 1.0);
"""


@pytest.fixture
def old_file(tmp_path):
    path = tmp_path / "answers.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(FIRST_SCHEMA)
        db.executemany(
            "INSERT INTO answers VALUES (?, 'e', ?, ?)", [(f"{n}", f'{{"n": {n}}}', float(n)) for n in range(100)]
        )
    db.close()
    return path


def _pragma(path, name):
    db = sqlite3.connect(path)
    try:
        return db.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        db.close()


def test_an_older_file_keeps_everything(old_file):
    store = AnswerStore(old_file)
    store.put("new", "e", {"n": -1}, usd=0.5)
    store.mark_read("split", "run-b")

    assert [store.get(f"{n}") for n in range(100)] == [StoredAnswer({"n": n}, None) for n in range(100)]
    assert store.get("new") == StoredAnswer({"n": -1}, 0.5)
    assert store.cut_answer("cut") == "answer cut at max_tokens=512"
    assert store.times_read("split") == 2
    store.close()
    again = AnswerStore(old_file)
    assert again.get("99") == StoredAnswer({"n": 99}, None)
    again.close()
    assert _pragma(old_file, "auto_vacuum") == 2, "it can shrink from now on"


def test_a_large_older_file_is_not_rebuilt(old_file, monkeypatch):
    monkeypatch.setattr(schema, "REBUILT_BYTES", 100)
    store = AnswerStore(old_file)

    assert store.get("7") == StoredAnswer({"n": 7}, None)
    store.close()
    assert _pragma(old_file, "auto_vacuum") == 0


def test_an_older_file_in_use_is_migrated_and_rebuilt_another_time(old_file):
    reader = sqlite3.connect(old_file, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM answers").fetchone()
    store = AnswerStore(old_file, busy_seconds=0.01)

    assert store.get("7") == StoredAnswer({"n": 7}, None)
    reader.close()
    store.close()


def test_a_file_of_a_newer_version_is_left_alone(old_file):
    db = sqlite3.connect(old_file)
    db.execute("PRAGMA user_version = 7")
    db.close()

    with pytest.raises(UsageError, match=r"answers\.db was made by a newer version .*format is 7.*update the program"):
        AnswerStore(old_file)


def test_openings_are_counted_whatever_the_clock_says(tmp_path, monkeypatch):
    numbers = []
    for now in (3e9, 1e9, 2e9):
        monkeypatch.setattr(schema.time, "time", lambda now=now: now)
        db = sqlite3.connect(tmp_path / "answers.db", isolation_level=None)
        numbers.append(schema.prepare(db, tmp_path / "answers.db"))
        db.close()

    assert numbers == [1, 2, 3]
