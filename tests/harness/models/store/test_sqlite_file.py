import os
import sqlite3

import pytest

from harness.errors import UsageError
from harness.models.store.sqlite_file import SqliteFile


@pytest.fixture
def file(tmp_path):
    file = SqliteFile(tmp_path / "a.db", "the notebook", pragmas=["synchronous = OFF"], busy_seconds=0.01)
    file.write("CREATE TABLE notes (n INTEGER)")
    yield file
    file.close()


def test_every_connection_has_the_settings(file):
    with file.connection() as first, file.connection() as second:
        assert [db.execute("PRAGMA synchronous").fetchone() for db in (first, second)] == [(0,), (0,)]


def test_a_connection_is_used_again(file):
    with file.connection() as first:
        pass
    with file.connection() as second:
        assert second is first


def test_a_block_that_raises_leaves_nothing_half_done(file):
    def half():
        with file.writing() as db:
            db.execute("BEGIN")
            db.execute("INSERT INTO notes VALUES (1)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert file.one("SELECT COUNT(*) FROM notes") == (0,)


def test_connections_of_a_parent_process_are_neither_used_nor_closed(file, monkeypatch):
    with file.connection() as parents:
        pass
    here = os.getpid()
    with monkeypatch.context() as fork:
        fork.setattr(os, "getpid", lambda: here + 1)
        with file.connection() as childs:
            assert childs is not parents
        file.close()

    assert parents.execute("SELECT 1").fetchone() == (1,)


def test_a_lock_is_one_sentence(file):
    other = sqlite3.connect(file.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(UsageError, match=r"the notebook .*a\.db stayed locked by another process for 0\.01 seconds"):
        file.write("INSERT INTO notes VALUES (1)")
    other.close()


def test_damage_is_one_sentence(tmp_path):
    (tmp_path / "b.db").write_bytes(b"no database at all " * 100)
    broken = SqliteFile(tmp_path / "b.db", "the notebook")

    with pytest.raises(UsageError, match=r"the notebook .*b\.db is damaged \(file is not a database\); move it away"):
        broken.one("SELECT 1 FROM notes")


def test_anything_else_is_told_in_sqlites_words(file):
    with pytest.raises(UsageError, match=r"the notebook .*a\.db cannot be used \(no such table: letters\)"):
        file.one("SELECT 1 FROM letters")
