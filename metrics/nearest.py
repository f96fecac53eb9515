"""What a wrong name was probably meant to be, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """A half sentence with the valid name closest to `name`, or all valid names when none is close.

    >>> nearest("levenstein", ["exact", "levenshtein"])
    "did you mean 'levenshtein'?"
    >>> nearest("zzz", ["exact", "numeric"])
    'known: exact, numeric'
    >>> nearest("zzz", [])
    'there are none'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(names) if names else "there are none"
