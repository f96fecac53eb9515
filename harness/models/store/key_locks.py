"""One holder per key among all processes, by file locks that the kernel frees when their holder dies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from filelock import lock_descriptor, unlock_descriptor

from harness.errors import UsageError

SHORTEST, LONGEST = 0.002, 0.01
"""Seconds between two looks at a key another process holds: short at first, for the many short waits."""


class KeyLocks:
    """Locks by key, one file each in a folder. Safe under threads, processes and forks; not reentrant.

    A file is there only while its key is held or waited for, so the folder stays small. The file of a holder that was
    killed stays behind unlocked, until the key is asked for again or `sweep` removes it.

    The library's own lock object also survives misuse this module rules out, and costs ten times as much per call.

    Args:
        folder: made when missing.
        wait: lets seconds pass.

    Raises:
        UsageError: from the constructor and every method, when the folder or its files cannot be made or locked.
    """

    def __init__(self, folder: Path, *, wait: Callable[[float], None] = time.sleep) -> None:
        self.folder = Path(folder)
        self._wait = wait
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._sentence(error) from error

    @contextmanager
    def held(self, key: str, waiting: Callable[[], None]) -> Iterator[None]:
        """Hold `key` inside.

        Args:
            key: any text.
            waiting: called between two looks while another holds the key; may raise to give up.
        """
        path = f"{self.folder}/{blake2b(key.encode('utf-8', 'replace'), digest_size=16).hexdigest()}"
        descriptor = self._lock(path, waiting)
        try:
            yield
        finally:
            _remove(path)
            try:
                # Closing alone would leave it locked as long as a forked child has a copy of the descriptor.
                unlock_descriptor(descriptor)
            finally:
                os.close(descriptor)

    def sweep(self) -> None:
        """Remove the files that killed holders left behind."""
        try:
            left = [entry.path for entry in os.scandir(self.folder)]
        except OSError as error:
            raise self._sentence(error) from error
        for path in left:
            with suppress(OSError):  # its holder removed it just now, or it is no file of ours
                descriptor = os.open(path, os.O_RDWR)
                try:
                    if lock_descriptor(descriptor, blocking=False) and os.fstat(descriptor).st_nlink:
                        _remove(path)
                finally:
                    os.close(descriptor)

    def _lock(self, path: str, waiting: Callable[[], None]) -> int:
        pause = SHORTEST
        while True:
            descriptor = self._open(path)
            try:
                while not self._try(descriptor):
                    waiting()
                    self._wait(pause)
                    pause = min(LONGEST, 1.5 * pause)
                # Only who holds a file removes it. One without a name was its last holder's: the name is free again.
                if os.fstat(descriptor).st_nlink:
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _open(self, path: str) -> int:
        flags = os.O_RDWR | os.O_CREAT
        try:
            try:
                return os.open(path, flags, 0o666)
            except FileNotFoundError:  # somebody cleaned up the folder
                self.folder.mkdir(parents=True, exist_ok=True)
                return os.open(path, flags, 0o666)
        except OSError as error:
            raise self._sentence(error) from error

    def _try(self, descriptor: int) -> bool:
        try:
            return lock_descriptor(descriptor, blocking=False)
        except OSError as error:
            raise self._sentence(error) from error

    def _sentence(self, error: OSError) -> UsageError:
        return UsageError(f"the folder of locks {self.folder} cannot be used: {error.strerror}")


def _remove(path: str) -> None:
    # The folder may have been cleaned up; the lock itself is the open file, not its name.
    with suppress(OSError):
        os.unlink(path)
