"""The vector of every text, each embedded once: kept in memory, and in a folder's SQLite file where one is given."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metrics.evaluators.embedders import Embedder, Vectors

FILE = "embeddings.db"
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
_BUSY_SECONDS = 30.0
_AT_ONCE = 500
"""Keys in one query; SQLite takes 999 values at least."""


class VectorFileError(RuntimeError):
    """The file of vectors cannot be used."""


class VectorStore:
    """Vectors by text, of one embedder. Safe under threads; the file is safe under processes, too.

    A vector is kept under the sha256 of the embedder's identity and the text, as little-endian float32 bytes.

    Args:
        embedder: makes what is not there yet, of all texts asked for together in batches of about the same length.
        folder: where the file is, made when missing; None keeps vectors in memory only.
    """

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        self._embedder = embedder
        self._folder = folder
        self._known: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def check(self) -> None:
        """Make sure that vectors can be had: ImportError or ValueError says what is missing."""
        with self._lock:
            self._embedder.check()

    def of(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """One row per text.

        Raises:
            UnscoredError: they cannot be had now.
            ImportError: the model is not here.
            VectorFileError: the file cannot be used.
        """
        wanted = list(texts)
        if not all(text in self._known for text in wanted):
            # One thread at a time: a second one that wants the same text finds it here afterwards.
            with self._lock:
                self._fetch([text for text in dict.fromkeys(wanted) if text not in self._known])
        return np.stack([self._known[text] for text in wanted])

    def _fetch(self, texts: Sequence[str]) -> None:
        if not texts:
            return
        keys = {text: self._key(text) for text in texts}
        stored = self._read(list(keys.values()))
        self._known |= {text: stored[key] for text, key in keys.items() if key in stored}
        # In the order of their lengths, so that a batch is not padded to its longest.
        new = sorted((text for text, key in keys.items() if key not in stored), key=lambda text: (len(text), text))
        if new:
            vectors = np.ascontiguousarray(self._embedder.embed(new), dtype="<f4")
            self._write({keys[text]: vector for text, vector in zip(new, vectors, strict=True)})
            self._known |= dict(zip(new, vectors, strict=True))

    def _key(self, text: str) -> bytes:
        content = f"{self._embedder.identity()}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(content).digest()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        if self._folder is None:
            return {}
        rows: list[tuple[bytes, bytes]] = []
        with self._file() as db:
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows += db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some).fetchall()
        return {key: np.frombuffer(vector, dtype="<f4") for key, vector in rows}

    def _write(self, vectors: Mapping[bytes, Vectors]) -> None:
        if self._folder is None:
            return
        with self._file() as db:
            rows = [(key, vector.tobytes()) for key, vector in vectors.items()]
            db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        """A connection for one batch: short-lived, so that it belongs to no thread and survives no fork."""
        assert self._folder is not None
        path = self._folder / FILE
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(path, timeout=_BUSY_SECONDS)
            try:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute(_TABLE)
                with db:
                    yield db
            finally:
                db.close()
        except (sqlite3.Error, OSError) as error:
            raise VectorFileError(
                f"the vectors of text_similarity in {path} cannot be used ({error}); delete the file, it is made again"
            ) from error
