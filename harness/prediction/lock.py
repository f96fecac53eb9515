"""One writer per output: a second predict on the same file says so instead of mixing its rows with the first one's."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import lock_descriptor, unlock_descriptor

from harness.errors import UsageError
from harness.files import refusal


class OutputLock:
    """The right to write one output, held from creation to `release`; a process that is killed loses it at once.

    Args:
        path: the output. The lock is a file beside it, `.NAME.lock`, which is there only while it is held.

    Raises:
        UsageError: somebody else holds it, or nothing may be written beside the output.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.with_name(f".{path.name}.lock")
        self._descriptor = self._locked(path)

    def _locked(self, path: Path) -> int:
        while True:
            try:
                descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            except OSError as error:
                raise refusal(f"nothing can be written beside {path}", error) from error
            try:
                if not lock_descriptor(descriptor, blocking=False):
                    raise UsageError(
                        f"another predict is writing {path} at this moment; wait for it, or name another output"
                    )
                if os.fstat(descriptor).st_nlink:
                    return descriptor
            except OSError as error:
                os.close(descriptor)
                raise refusal(f"{path} cannot be locked against a second predict", error) from error
            except UsageError:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its holder removed it between our opening and our locking it: once more

    def release(self) -> None:
        """Let others write; again, nothing happens."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        self._file.unlink(missing_ok=True)  # before it is unlocked: whoever waits for this very file sees it is gone
        try:
            unlock_descriptor(descriptor)
        finally:
            os.close(descriptor)
