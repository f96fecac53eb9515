"""Code of the user's own, called while an experiment is put together: whatever it raises is one sentence."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import HarnessError, RunStopped, UsageError

_SURROGATES = {code: "�" for code in range(0xD800, 0xE000)}


def whole(text: str) -> str:
    r"""`text` with halves of characters, which no file and no database takes, shown as what they are: U+FFFD.

    >>> whole("a\ud800b") == "a\ufffdb"
    True
    """
    return text if text.isascii() else text.translate(_SURROGATES)


def told(error: BaseException) -> str:
    """What was raised, in one line, whatever its own `str` does.

    >>> told(ValueError("a\\nb")), told(SystemExit())
    ('ValueError: a', 'SystemExit')
    """
    name, message = type(error).__name__, first_line(error)
    return f"{name}: {message}" if message else name


def first_line(error: BaseException) -> str:
    """The first line of an error's message; empty when it has none that can be read."""
    try:
        lines = str(error).strip().splitlines()
    except (Exception, SystemExit):  # noqa: BLE001  # a broken message is no reason to lose the error
        return "(its message cannot be read)"
    return whole(lines[0]) if lines else ""


@contextmanager
def foreign_code(sentence: str) -> Iterator[None]:
    """Run code of the user's own; what it raises becomes `SENTENCE: FILE line N: what was raised`.

    A sentence of ours, a stopped run and Ctrl-C stay what they are.

    Args:
        sentence: what was being done, and where the code is named: "x.yaml line 3: my.py:Metric cannot be made".

    Raises:
        UsageError: the code raised; the error is its cause.

    >>> with foreign_code("x.yaml line 3: my.py:Metric cannot be made"):
    ...     raise SystemExit("no")
    Traceback (most recent call last):
    harness.errors.UsageError: x.yaml line 3: my.py:Metric cannot be made: SystemExit: no
    """
    try:
        yield
    except (HarnessError, RunStopped, KeyboardInterrupt):
        raise
    except (TypeError, ValueError) as error:  # how Python code refuses what it is given: the message is for people
        raise UsageError(f"{sentence}: {first_line(error) or told(error)}") from error
    except BaseException as error:  # SystemExit, RecursionError, an exception of their own: all of it is theirs
        raise UsageError(f"{sentence}: {_place(error)}{told(error)}") from error


def _place(error: BaseException) -> str:
    """The innermost line of the user's own files, which is where to look; empty when there is none."""
    others = (Path(__file__).parents[1] / "harness", Path(sysconfig.get_path("stdlib")), *map(Path, _packages()))
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if frame.filename[:1] != "<" and not any(Path(frame.filename).is_relative_to(place) for place in others)
    ]
    return f"{Path(own[-1].filename).name} line {own[-1].lineno}: " if own else ""


def _packages() -> set[str]:
    """Where installed packages are, and this distribution's own."""
    home = Path(__file__).parents[1]
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return {*installed, str(home / "metrics"), str(home / "programs")}
