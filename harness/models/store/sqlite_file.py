"""One SQLite file under threads, processes and forks, whose errors are sentences."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.models.store.per_process import PerProcess


class _Connections:
    def __init__(self) -> None:
        self.writing = threading.Lock()
        self.idle: list[sqlite3.Connection] = []  # append and pop are atomic


class SqliteFile:
    """Connections to one file: as many as were ever used at once, not one per thread.

    Args:
        path: the file; its folder must be there.
        what: what people call it, for messages.
        pragmas: settings of every connection.
        busy_seconds: how long to wait for another process's write.

    Raises:
        UsageError: from every method, when the file cannot be read, written or unlocked.
    """

    def __init__(self, path: Path, what: str, *, pragmas: Sequence[str] = (), busy_seconds: float = 30.0) -> None:
        self.path = path
        self._what = what
        self._pragmas = pragmas
        self._busy_seconds = busy_seconds
        self._connections = PerProcess(_Connections)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection in autocommit mode, for reading; closed, and with it rolled back, when the block raises."""
        here = self._connections.get()
        try:
            connection = self._take(here)
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise UsageError(self._sentence(error)) from error
        here.idle.append(connection)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The same for writing: the threads of a process wait for each other here, not in SQLite's coarser naps."""
        with self._connections.get().writing, self.connection() as db:
            yield db

    def one(self, query: str, values: Sequence[Any] = ()) -> Any:
        """The first row, None when there is none."""
        with self.connection() as db:
            return db.execute(query, values).fetchone()

    def write(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Execute one statement."""
        with self.writing() as db:
            db.execute(statement, values)

    def close(self) -> None:
        """Close the connections that are not in use. The file can be used again."""
        here = self._connections.get()
        with suppress(IndexError):
            while True:
                here.idle.pop().close()

    def _take(self, here: _Connections) -> sqlite3.Connection:
        with suppress(IndexError):
            return here.idle.pop()
        connection = sqlite3.connect(
            self.path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in self._pragmas:
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _sentence(self, error: sqlite3.Error) -> str:
        words = str(error)
        if "locked" in words or "busy" in words:
            return f"{self._what} {self.path} stayed locked by another process for {self._busy_seconds:g} seconds"
        if "not a database" in words or "malformed" in words:
            advice = "move it away to start with an empty one, or name another file"
            return f"{self._what} {self.path} is damaged ({words}); {advice}"
        return f"{self._what} {self.path} cannot be used ({words}); check the folder's permissions and space"
