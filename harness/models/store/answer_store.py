"""Every answer once: the only cache. SQLite, JSON, no pickle; safe under threads, processes and forks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from harness.files import refusal
from harness.models.store.flight import SingleFlight
from harness.models.store.key_locks import KeyLocks
from harness.models.store.per_process import PerProcess
from harness.models.store.schema import prepare
from harness.models.store.size import PRAGMAS, SizeLimit
from harness.models.store.sqlite_file import SqliteFile

T = TypeVar("T")

STORE = Path("mlruns") / "answers.db"
"""The store of a working folder."""
LIMIT_BYTES = 4 << 30
"""What a store may take up on disk when nothing else is said: 4 GiB."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer that was paid for before.

    Attributes:
        response: as JSON data.
        usd: what it cost in US dollars; None when that is unknown.
    """

    response: dict[str, Any]
    usd: float | None


class AnswerStore:
    """Complete answers by canonical request key, what is known of endpoints, and how often a test split was read.

    What is stored first stays: a second answer to the same key, from another process, is dropped, so that every
    replay tells the same story. Failures are kept for information and never served.

    Beside the file lies a folder of locks, `NAME-locks`: one small file per request in flight.

    Args:
        path: the SQLite file; it and its folder are made when missing, a file of an older version is migrated.
        limit_bytes: what the file may take up. Above it the oldest answers go, those of the earliest openings first;
            never one stored since this store was opened, so one run alone may exceed the limit. 0 keeps nothing of
            earlier openings.
        busy_seconds: how long to wait for another process's write.

    Raises:
        UsageError: from the constructor and every method, when the file cannot be read, written or unlocked.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = AnswerStore(Path(folder) / "answers.db")
    ...     store.put("key", "endpoint", {"text": "1414 °C"}, usd=0.002)
    ...     answer = store.get("key")
    ...     store.close()
    >>> answer
    StoredAnswer(response={'text': '1414 °C'}, usd=0.002)
    """

    def __init__(self, path: Path, *, limit_bytes: int = LIMIT_BYTES, busy_seconds: float = 30.0) -> None:
        self.path = Path(path)
        self._flights: PerProcess[SingleFlight[Any]] = PerProcess(SingleFlight)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sentence = f"the folder of the answer store {self.path} cannot be made"
            raise refusal(sentence, error) from error
        self._file = SqliteFile(self.path, "the answer store", pragmas=PRAGMAS, busy_seconds=busy_seconds)
        self._locks = KeyLocks(self.path.with_name(f"{self.path.name}-locks"))
        self._locks.sweep()
        with self._locks.held("", _nothing), self._file.writing() as db:  # no request's key is empty
            self._opening = prepare(db, self.path)
        self._size = SizeLimit(self._file, limit_bytes, self._opening)
        self._size.keep()

    def get(self, key: str) -> StoredAnswer | None:
        """The stored answer for a request key."""
        row = self._file.one("SELECT response, usd FROM answers WHERE key = ?", (key,))
        return StoredAnswer(json.loads(row[0]), row[1]) if row else None

    def put(self, key: str, endpoint: str, response: dict[str, Any], usd: float | None = None) -> None:
        """Keep a complete answer and what it cost in US dollars."""
        text = json.dumps(response, separators=(",", ":"))
        self._write(
            "INSERT OR IGNORE INTO answers (key, endpoint, response, usd, created, opening) VALUES (?, ?, ?, ?, ?, ?)",
            (key, endpoint, text, usd, time.time(), self._opening),
            len(text),
        )

    def once(self, key: str, call: Callable[[], T], *, waiting: Callable[[], None]) -> tuple[T, bool]:
        """Run `call` while no other thread or process runs one for the same key.

        Callers of this process that come meanwhile share the result, or the Exception it raised. Those of another
        process come next: their `call` has to look into the store first. A process that is killed holds nothing up.

        Args:
            key: the request's key.
            call: what to do once.
            waiting: called every few hundredths of a second while waiting; may raise to give up.

        Returns:
            the result, and whether this caller's own `call` made it.
        """

        return self._flights.get().do(key, call, waiting=waiting, guard=lambda: self._locks.held(key, waiting))

    def put_failure(self, key: str, endpoint: str, kind: str, text: str) -> None:
        """Record why a request got no usable answer. Never served."""
        text = _encodable(text)
        self._write(
            "INSERT INTO failures (key, endpoint, kind, text, created, opening) VALUES (?, ?, ?, ?, ?, ?)",
            (key, endpoint, kind, text, time.time(), self._opening),
            len(text),
        )

    def cut_answer(self, key: str) -> str | None:
        """Why the answer to this very request, output limit included, was cut; None when it was not.

        A cut answer is never served as an answer, but asking for it again would only pay for the same cut.
        """
        # Files of older versions call it "length".
        row = self._file.one("SELECT text FROM failures WHERE key = ? AND kind IN ('cut', 'length') LIMIT 1", (key,))
        return row[0] if row else None

    def failures(self) -> list[tuple[str, str, str]]:
        """Recorded failures, oldest first: request key, kind, text."""
        with self._file.connection() as db:
            return db.execute("SELECT key, kind, text FROM failures ORDER BY rowid").fetchall()

    def facts(self, endpoint: str) -> dict[str, Any] | None:
        """What was found out about an endpoint, as JSON data; None when nothing was."""
        row = self._file.one("SELECT facts FROM facts WHERE endpoint = ?", (endpoint,))
        return json.loads(row[0]) if row else None

    def put_facts(self, endpoint: str, facts: dict[str, Any]) -> None:
        """Keep what was found out about an endpoint; it replaces what was known."""
        self._file.write("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (endpoint, json.dumps(facts), time.time()))

    def mark_read(self, split: str, fingerprint: str) -> None:
        """Note that the experiment `fingerprint` read the test split; again is the same read."""
        self._file.write("INSERT OR IGNORE INTO test_reads VALUES (?, ?, ?)", (split, fingerprint, time.time()))

    def times_read(self, split: str) -> int:
        """How many different experiments read the test split."""
        row = self._file.one("SELECT COUNT(*) FROM test_reads WHERE split = ?", (split,))
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Close the connections that are not in use. The store can be used again."""
        self._file.close()

    def _write(self, statement: str, values: Sequence[Any], size: int) -> None:
        self._file.write(statement, values)
        self._size.stored(size)


def _nothing() -> None:
    pass


def _encodable(text: str) -> str:
    # A model may emit a lone surrogate, which SQLite refuses; a failure's text is for people only.
    return text.encode("utf-8", "replace").decode("utf-8")
