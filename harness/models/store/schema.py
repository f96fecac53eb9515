"""The tables of the answer store, and how a file of an older version becomes one of this version."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from harness.errors import UsageError
from harness.models.store.size import used_bytes

VERSION = 1

REBUILT_BYTES = 1 << 28
"""An older file up to this size is rebuilt once, in memory, so that it can shrink from then on. A larger one keeps its
size: what is removed from it makes room for new answers."""

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, endpoint TEXT NOT NULL, response TEXT NOT NULL, created REAL NOT NULL,
    usd REAL, opening INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    key TEXT NOT NULL, endpoint TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, created REAL NOT NULL,
    opening INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS test_reads (
    split TEXT NOT NULL, fingerprint TEXT NOT NULL, created REAL NOT NULL, PRIMARY KEY (split, fingerprint)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (
    endpoint TEXT PRIMARY KEY, facts TEXT NOT NULL, created REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS openings (number INTEGER PRIMARY KEY AUTOINCREMENT, created REAL NOT NULL);
"""
_INDEXES = """
CREATE INDEX IF NOT EXISTS failures_by_key ON failures (key);
CREATE INDEX IF NOT EXISTS answers_by_age ON answers (opening, created);
CREATE INDEX IF NOT EXISTS failures_by_age ON failures (opening, created);
"""
_ADDED = (
    ("answers", "usd", "REAL"),
    ("answers", "opening", "INTEGER NOT NULL DEFAULT 0"),
    ("failures", "opening", "INTEGER NOT NULL DEFAULT 0"),
)


def prepare(db: sqlite3.Connection, path: Path) -> int:
    """Make or migrate the tables, and count this opening. Nothing stored is lost.

    To be called by one process at a time.

    Args:
        db: a connection to the file.
        path: the file, for messages.

    Returns:
        the number of this opening, higher than every earlier one whatever the clock says.

    Raises:
        UsageError: a newer version of this program made the file.
    """
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise UsageError(
            f"the answer store {path} was made by a newer version of this program (its format is {version}, known is "
            f"{VERSION}); update the program, or move the file away"
        )
    if version < VERSION:
        # Before anything is written: afterwards only a rebuild can change it.
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        _migrate(db)
        _let_it_shrink(db)
    return db.execute("INSERT INTO openings (created) VALUES (?)", (time.time(),)).lastrowid or 0


def _migrate(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    for statement in filter(str.strip, _TABLES.split(";")):
        db.execute(statement)
    for table, column, kind in _ADDED:
        known = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        if column not in known:
            db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    for statement in filter(str.strip, _INDEXES.split(";")):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def _let_it_shrink(db: sqlite3.Connection) -> None:
    if db.execute("PRAGMA auto_vacuum").fetchone()[0] or used_bytes(db) > REBUILT_BYTES:
        return
    with suppress(sqlite3.OperationalError):  # in use by another process: it stays as it is, and works
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("VACUUM")
