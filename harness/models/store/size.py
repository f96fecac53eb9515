"""How the answer store stays within its limit: what is removed, when, and how its files shrink."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from harness.models.store.per_process import PerProcess
from harness.models.store.sqlite_file import SqliteFile

_FULL, _ROOMY = 0.85, 0.82
"""Shares of the limit: above the one answers are removed, down to the other. What is left above is for the log beside
the file, and for what several processes store between two of their looks at the size."""
_LOOKS, _LOG_BYTES = 128, 4 << 20
"""The sizes are looked at when a process has stored this part of the limit, or as much as the log may hold."""
_BATCH = 20
"""Answers removed at once; other writers have their turn between two batches."""
_TRIES, _PATIENCE = 5, 20
"""How often, and how many milliseconds each time, to wait for others before the log is left to grow a little longer."""

_OLD_ANSWERS = """
DELETE FROM answers WHERE key IN (SELECT key FROM answers WHERE opening < ? ORDER BY opening, created LIMIT ?)
"""
_OLD_FAILURES = """
DELETE FROM failures WHERE rowid IN (SELECT rowid FROM failures WHERE opening < ? ORDER BY opening, created LIMIT ?)
"""


class SizeLimit:
    """Keeps a store's file within a limit.

    Args:
        file: the store's file.
        limit_bytes: what it and the log beside it may take up.
        opening: the number of this opening; what it stores itself is never removed.
    """

    def __init__(self, file: SqliteFile, limit_bytes: int, opening: int) -> None:
        self._file = file
        self._limit = limit_bytes
        self._opening = opening
        self._watch = PerProcess(_Watch)

    def stored(self, size: int) -> None:
        """Take note of `size` bytes more; now and then look at the files and remove what is too much."""
        watch = self._watch.get()
        if watch.is_due(size, min(self._limit // _LOOKS, _LOG_BYTES)) and watch.removing.acquire(blocking=False):
            try:
                self.keep()
            finally:
                watch.removing.release()

    def keep(self) -> None:
        """Remove the oldest answers and failures of earlier openings where the file is full, and shorten its log."""
        full, roomy = int(self._limit * _FULL), int(self._limit * _ROOMY)
        with self._file.connection() as db:
            removed = used_bytes(db) > full
        while removed:
            with self._file.writing() as db:
                if used_bytes(db) <= roomy:
                    break
                gone = [db.execute(old, (self._opening, _BATCH)).rowcount for old in (_OLD_ANSWERS, _OLD_FAILURES)]
                removed = any(gone)
        with self._file.writing() as db:
            _give_back(db, full)
            if _size(self._file.path.with_name(f"{self._file.path.name}-wal")) > min(self._limit // 32, _LOG_BYTES):
                _empty_log(db)


PRAGMAS = (
    "synchronous = NORMAL",
    "temp_store = MEMORY",  # nothing is written outside the store's folder
    "wal_autocheckpoint = 0",  # `SizeLimit` empties the log; SQLite's own attempts would lock each other out
)
"""Settings of every connection to the store's file."""


def used_bytes(db: sqlite3.Connection) -> int:
    """The size of the file without the room that removed answers left in it."""
    pages, free, size = _pages(db)
    return (pages - free) * size


def _pages(db: sqlite3.Connection) -> tuple[int, int, int]:
    count, free, size = (db.execute(f"PRAGMA {n}").fetchone()[0] for n in ("page_count", "freelist_count", "page_size"))
    return count, free, size


def _give_back(db: sqlite3.Connection, limit: int) -> None:
    """Cut free room off the end of the file where the file is larger than `limit` bytes."""
    pages, free, size = _pages(db)
    surplus = min(free, pages - limit // size)
    if surplus > 0:
        # Not `execute`, which takes a single step of it and gives back a single page.
        db.executescript(f"PRAGMA incremental_vacuum({surplus});")
        _empty_log(db)


def _empty_log(db: sqlite3.Connection) -> None:
    """Write the log into the file, and start it anew."""
    patience = db.execute("PRAGMA busy_timeout").fetchone()[0]
    db.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
    for _ in range(_TRIES):
        if not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # 1: others read or are at it themselves
            break
    db.execute(f"PRAGMA busy_timeout = {patience}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class _Watch:
    """Says when enough was stored to look at the size again."""

    def __init__(self) -> None:
        self.removing = threading.Lock()
        self._lock = threading.Lock()
        self._stored = 0

    def is_due(self, size: int, every: int) -> bool:
        with self._lock:
            self._stored += size
            if self._stored < every:
                return False
            self._stored = 0
            return True
