"""Files and folders that somebody else named: looked at and read, or refused in one sentence.

Everything the file system can say no to is told here, so that nobody who reads a file has to know that `is_file()`
raises for a folder that may not be entered, that `~name` may be nobody, or that a pipe is opened for ever.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Literal

from harness.errors import HarnessError, UsageError

Kind = Literal["file", "folder", "special", "missing"]

_OUTSIDE = frozenset(
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENXIO, errno.ENODEV),
        *(errno.EMFILE, errno.ENFILE, errno.ENOLCK, errno.ETXTBSY, errno.ENOMEM),
    )
)
"""The machine said no: full, read-only, broken or busy. No other argument would have been better."""
_PLACE = frozenset((errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP))
"""The place said no."""


def named_path(text: str | os.PathLike[str], folder: Path = Path()) -> Path:
    """The path somebody wrote: `~` opened, relative ones below `folder`.

    Raises:
        UsageError: `~NAME` of somebody this machine does not know, or a character no path can hold.

    >>> named_path("rows.csv", Path("work")).as_posix()
    'work/rows.csv'
    >>> named_path("~nobody-of-this-name/rows.csv")
    Traceback (most recent call last):
    harness.errors.UsageError: '~nobody-of-this-name/rows.csv' names no place: this machine knows no home folder of '~nobody-of-this-name'
    """  # noqa: E501
    written = os.fspath(text)
    if "\0" in written:
        raise UsageError(f"{written!r} names no place: a path cannot hold the character NUL")
    try:
        return folder / Path(written).expanduser()
    except RuntimeError:
        user = Path(written).parts[0]
        raise UsageError(f"{written!r} names no place: this machine knows no home folder of {user!r}") from None


def kind_of(path: Path) -> Kind:
    """What is at `path`: a file, a folder, something special (a pipe, a device, a socket) or nothing.

    Raises:
        UsageError: it cannot be looked at: no permission, too long a name, links that lead in a circle.

    >>> kind_of(Path(os.devnull)), kind_of(Path("nowhere", "at all"))
    ('special', 'missing')
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except (OSError, ValueError) as error:
        raise refusal(f"{path} cannot be used", error) from None
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "special"


def read_file(path: Path, called: str = "") -> bytes:
    """The bytes of a file.

    Args:
        path: the file.
        called: what it is called in the error; the path itself when empty.

    Raises:
        UsageError: it is not there, a folder, special, or may not be read.
        HarnessError: the disk or the machine failed.
    """
    called = called or str(path)
    kind = kind_of(path)
    if kind != "file":
        raise UsageError(f"{called} {_INSTEAD[kind]}")
    try:
        return path.read_bytes()
    except (OSError, MemoryError) as error:
        raise refusal(f"{called} cannot be read", error) from None


_INSTEAD = {
    "folder": "is a folder where a file is needed",
    "special": "is a pipe or a device where a file is needed",
    "missing": "does not exist",
}


def names_beside(path: Path) -> list[str]:
    """The names in the folder of `path`, for a hint; none when it cannot be listed."""
    return names_in(path.parent)


def names_in(folder: Path) -> list[str]:
    """The names in a folder, for a hint; none when there is no such folder or it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def refusal(sentence: str, error: BaseException) -> HarnessError:
    """`sentence` with the reason: a UsageError when another place would do, a HarnessError when the machine failed.

    >>> refusal("a.csv cannot be read", PermissionError(errno.EACCES, "Permission denied"))
    UsageError('a.csv cannot be read: Permission denied')
    >>> type(refusal("a.csv cannot be written", OSError(errno.ENOSPC, "No space left on device"))).__name__
    'HarnessError'
    """
    kind = HarnessError if isinstance(error, MemoryError) or getattr(error, "errno", None) in _OUTSIDE else UsageError
    return kind(f"{sentence}: {reason(error)}")


def reason(error: BaseException) -> str:
    """What the system said, without number and path."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def outside(error: OSError) -> str | None:
    """One sentence about what the machine or its owner refused; None for an error that may be a bug of ours.

    >>> outside(OSError(errno.ENOSPC, "No space left on device", "mlruns/a.json"))
    'mlruns/a.json: No space left on device'
    >>> outside(FileNotFoundError(errno.ENOENT, "No such file or directory", "x")) is None
    True
    """
    if error.errno not in _OUTSIDE and error.errno not in _PLACE:
        return None
    return f"{error.filename}: {reason(error)}" if error.filename is not None else reason(error)
