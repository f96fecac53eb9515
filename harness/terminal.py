"""What the command line writes, and where: answers on stdout, everything else on stderr.

Text from papers and models is shown here, so control characters never reach the terminal.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    r"""`text` without control characters, which could move the cursor or recolour the screen.

    >>> printable("a\x1b[2Jb\tc")
    'a?[2Jb\tc'
    """
    return _CONTROL.sub("?", text)


def answer(text: str) -> None:
    """Write to stdout. A reader who has gone (`| head`) is no error: the work is done."""
    try:
        print(_encodable(text), flush=True)
    except BrokenPipeError:
        drop_stdout()


def answer_json(document: Any) -> None:
    """Write one JSON document to stdout."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    answer(text if _encodable(text) == text else json.dumps(document, indent=2, allow_nan=False))


def answer_rich(*parts: RenderableType) -> None:
    """Write tables and text to stdout, coloured on a terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))
    answer(captured.get().rstrip("\n"))


def say(text: str) -> None:
    """Write to stderr; when nobody reads it any more, nobody misses it."""
    with contextlib.suppress(OSError, ValueError):
        print(printable(text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def stdout_kept_for_the_answer() -> Iterator[None]:
    """While inside, whatever is printed goes to stderr: by Python, by C++ below it, by a process started meanwhile.

    Afterwards `sys.stdout` is the real output again; the file descriptor 1 keeps pointing to stderr, since a C library
    may flush what it had buffered as late as at exit.
    """
    real = sys.stdout
    if not _is_descriptor_one(real):
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    real.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = os.fdopen(kept, "w", encoding=real.encoding, errors=real.errors)


def stdout_is_gone() -> bool:
    """True when the reader of stdout has closed it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return True
    return False


def stdout_fails() -> bool:
    """True when what is still to be written cannot be: the disk behind it is full."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return True
    return False


def drop_stdout() -> None:
    """Send what is still to be written to nowhere, so that the flush at exit raises nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _encodable(text: str) -> str:
    """`text` with what stdout's encoding does not have written as escapes: a file may have a name of any bytes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _is_descriptor_one(stream: Any) -> bool:
    try:
        return stream.fileno() == 1
    except (AttributeError, OSError, ValueError):
        return False
