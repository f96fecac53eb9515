"""SIGTERM, which schedulers and containers send before they kill, ends a command as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """SIGTERM came. A KeyboardInterrupt, so that whatever cleans up after Ctrl-C cleans up now."""


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Inside, the first SIGTERM raises `Terminated` in the main thread; later ones leave the cleaning up alone.

    Outside the main thread, where Python takes no signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated("terminated by SIGTERM")

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
