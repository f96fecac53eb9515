"""The limit on the store's size: what goes and what stays."""

import sqlite3

import pytest

from harness.models.store import AnswerStore

LIMIT = 1 << 19
ANSWER = {"text": "x" * 3000}


def _fill(store: AnswerStore, name: str, count: int) -> None:
    for number in range(count):
        store.put(f"{name}-{number}", "e", ANSWER)


def _kept(store: AnswerStore, name: str, count: int) -> list[int]:
    return [number for number in range(count) if store.get(f"{name}-{number}")]


def _bytes(path) -> int:
    """The file and its log."""
    return sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}-wal")))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.db"


def test_many_runs_stay_under_the_limit_and_each_keeps_its_own(path):
    largest = 0
    for run in range(6):
        store = AnswerStore(path, limit_bytes=LIMIT)
        for number in range(50):
            store.put(f"{run}-{number}", "e", ANSWER)
            largest = max(largest, _bytes(path))
        assert _kept(store, str(run), 50) == list(range(50))
        store.close()

    assert largest <= LIMIT


def test_the_oldest_answers_go_first(path):
    for run in ("first", "second"):
        store = AnswerStore(path)
        _fill(store, run, 60)
        store.close()
    store = AnswerStore(path, limit_bytes=LIMIT)
    first, second = _kept(store, "first", 60), _kept(store, "second", 60)
    store.close()

    assert second == list(range(60))
    assert 0 < len(first) < 60
    assert first == list(range(60 - len(first), 60))


def test_a_lowered_limit_shrinks_the_file(path):
    store = AnswerStore(path)
    _fill(store, "old", 300)
    store.close()
    assert path.stat().st_size > LIMIT

    store = AnswerStore(path, limit_bytes=LIMIT)
    store.close()

    assert path.stat().st_size <= LIMIT


def test_a_run_that_needs_more_than_the_limit_keeps_all_of_it_until_the_next(path):
    store = AnswerStore(path, limit_bytes=LIMIT)
    _fill(store, "own", 200)
    assert _kept(store, "own", 200) == list(range(200))
    store.close()

    store = AnswerStore(path, limit_bytes=LIMIT)
    _fill(store, "next", 3)
    assert _kept(store, "next", 3) == [0, 1, 2]
    assert 0 < len(_kept(store, "own", 200)) < 200
    store.close()
    assert path.stat().st_size <= LIMIT


def test_old_failures_go_too_and_what_else_is_known_stays(path):
    store = AnswerStore(path)
    store.put_facts("e", {"schema": "none"})
    store.mark_read("split", "run")
    for number in range(300):
        store.put_failure(f"{number}", "e", "invalid", "y" * 3000)
    store.close()

    store = AnswerStore(path, limit_bytes=LIMIT)
    store.put_failure("new", "e", "invalid", "z")
    failures = store.failures()
    assert 0 < len(failures) < 301
    assert failures[-1] == ("new", "invalid", "z")
    assert (store.facts("e"), store.times_read("split")) == ({"schema": "none"}, 1)
    store.close()
    assert path.stat().st_size <= LIMIT


def test_no_limit_at_all_keeps_nothing_of_earlier_runs(path):
    store = AnswerStore(path)
    _fill(store, "old", 20)
    store.close()

    store = AnswerStore(path, limit_bytes=0)
    _fill(store, "own", 20)
    assert _kept(store, "old", 20) == []
    assert _kept(store, "own", 20) == list(range(20))
    store.close()


def test_the_size_is_not_looked_at_for_each_answer(path, monkeypatch):
    looks = []
    store = AnswerStore(path, limit_bytes=LIMIT)
    monkeypatch.setattr("harness.models.store.size.used_bytes", lambda db: looks.append(db) or 0)
    for number in range(512):
        store.put(f"{number}", "e", {"text": "short"})
    store.close()

    assert len(looks) <= 2


def test_an_older_file_comes_under_the_limit_too(path):
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE answers (key TEXT PRIMARY KEY, endpoint TEXT NOT NULL, response TEXT NOT NULL,"
            " created REAL NOT NULL) WITHOUT ROWID"
        )
        rows = [(f"{n}", f'"{"x" * 3000}"', float(n)) for n in range(300)]
        db.executemany("INSERT INTO answers VALUES (?, 'e', ?, ?)", rows)
    db.close()

    store = AnswerStore(path, limit_bytes=LIMIT)
    assert store.get("0") is None
    assert store.get("299").response == "x" * 3000
    store.close()
    assert path.stat().st_size <= LIMIT


def test_the_log_is_emptied_as_soon_as_no_reader_needs_it(path, monkeypatch):
    monkeypatch.setattr("harness.models.store.size._PATIENCE", 1)
    log = path.with_name("answers.db-wal")
    store = AnswerStore(path, limit_bytes=LIMIT)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM answers").fetchone()
    _fill(store, "first", 40)
    assert log.stat().st_size > 120_000
    reader.close()
    _fill(store, "second", 40)

    assert _kept(store, "second", 40) == list(range(40))
    assert log.stat().st_size < 120_000
    store.close()
