"""Every answer once: the only cache. SQLite, JSON, no pickle; safe under threads and processes."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.models.flight import SingleFlight

STORE = Path("mlruns") / "answers.db"
"""The store of a working folder."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, endpoint TEXT NOT NULL, response TEXT NOT NULL, created REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    key TEXT NOT NULL, endpoint TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, created REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS failures_by_key ON failures (key);
CREATE TABLE IF NOT EXISTS test_reads (
    split TEXT NOT NULL, fingerprint TEXT NOT NULL, created REAL NOT NULL, PRIMARY KEY (split, fingerprint)
) WITHOUT ROWID;
"""

_ADVICE = "move it away to start with an empty one, or name another file"


class AnswerStore:
    """Complete answers by canonical request key, and how often a test split was read.

    What is stored first stays: a second answer to the same key, from another process, is dropped, so that every
    replay tells the same story. Failures are kept for information and never served.

    Args:
        path: the SQLite file; it and its folder are made when missing.
        busy_seconds: how long to wait for another process's write.

    Raises:
        UsageError: from the constructor and every method, when the file cannot be read, written or unlocked.

    Attributes:
        flights: equal requests of this process in flight, by the same keys.
    """

    def __init__(self, path: Path, *, busy_seconds: float = 30.0) -> None:
        self.path = Path(path)
        self._busy_seconds = busy_seconds
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._inherited: list[sqlite3.Connection] = []
        self._process = os.getpid()
        self.flights: SingleFlight[Any] = SingleFlight()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"the folder of the answer store {self.path} cannot be made: {error.strerror}") from error
        with self._connection() as db:
            db.executescript(_SCHEMA)

    def get(self, key: str) -> dict[str, Any] | None:
        """The stored answer for a request key, as JSON data."""
        row = self._one("SELECT response FROM answers WHERE key = ?", (key,))
        return json.loads(row[0]) if row else None

    def put(self, key: str, endpoint: str, response: dict[str, Any]) -> None:
        """Keep a complete answer."""
        self._write(
            "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", (key, endpoint, json.dumps(response), time.time())
        )

    def put_failure(self, key: str, endpoint: str, kind: str, text: str) -> None:
        """Record why a request got no usable answer. Never served."""
        self._write("INSERT INTO failures VALUES (?, ?, ?, ?, ?)", (key, endpoint, kind, _encodable(text), time.time()))

    def cut_answer(self, key: str) -> str | None:
        """Why the answer to this very request, output limit included, was cut; None when it was not.

        A cut answer is never served as an answer, but asking for it again would only pay for the same cut.
        """
        row = self._one("SELECT text FROM failures WHERE key = ? AND kind = 'length' LIMIT 1", (key,))
        return row[0] if row else None

    def failures(self) -> list[tuple[str, str, str]]:
        """Recorded failures, oldest first: request key, kind, text."""
        with self._connection() as db:
            return db.execute("SELECT key, kind, text FROM failures ORDER BY rowid").fetchall()

    def mark_read(self, split: str, fingerprint: str) -> None:
        """Note that the experiment `fingerprint` read the test split; again is the same read."""
        self._write("INSERT OR IGNORE INTO test_reads VALUES (?, ?, ?)", (split, fingerprint, time.time()))

    def times_read(self, split: str) -> int:
        """How many different experiments read the test split."""
        row = self._one("SELECT COUNT(*) FROM test_reads WHERE split = ?", (split,))
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Close the connections that are not in use. The store can be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _one(self, query: str, values: tuple[Any, ...]) -> Any:
        with self._connection() as db:
            return db.execute(query, values).fetchone()

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._connection() as db:
            db.execute(statement, values)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for one statement; as many exist as were ever used at once, not one per thread."""
        try:
            connection = self._take()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise UsageError(self._sentence(error)) from error
        with self._lock:
            self._idle.append(connection)

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._process != os.getpid():  # a fork: an inherited connection is neither used nor closed here
                self._inherited += self._idle
                self._process, self._idle = os.getpid(), []
            if self._idle:
                return self._idle.pop()
        connection = sqlite3.connect(
            self.path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _sentence(self, error: sqlite3.Error) -> str:
        words = str(error)
        if "locked" in words or "busy" in words:
            return f"the answer store {self.path} stayed locked by another process for {self._busy_seconds:g} seconds"
        if "not a database" in words or "malformed" in words:
            return f"the answer store {self.path} is damaged ({words}); {_ADVICE}"
        return f"the answer store {self.path} cannot be used ({words}); check the folder's permissions and space"


def _encodable(text: str) -> str:
    # A model may emit a lone surrogate, which SQLite refuses; a failure's text is for people only.
    return text.encode("utf-8", "replace").decode("utf-8")
