"""What a fork must not inherit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """A value of its own in every process, made where it is first asked for.

    A forked child gets a fresh one: locks that a thread of the parent held, calls that will never return here and
    open SQLite connections are neither used nor closed by it.

    >>> value = PerProcess(list)
    >>> value.get() is value.get()
    True
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[int, T] = {}

    def get(self) -> T:
        """This process's value. Threads that ask at once get the same one."""
        process = os.getpid()
        value = self._values.get(process)
        # setdefault is atomic; a lock here could itself be inherited in a locked state.
        return self._values.setdefault(process, self._make()) if value is None else value
