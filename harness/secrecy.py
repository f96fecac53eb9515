"""Which keys can be told from ordinary text, and so be kept out of files and messages."""

from __future__ import annotations

SHORTEST = 8
"""Characters of the shortest key that can be protected."""
_SHORTEST_OF_LETTERS = 20


def is_recognisable(secret: str) -> bool:
    """Whether a text that holds `secret` gives it away.

    A server on one's own machine often takes any key, and then the key is `test`, `none` or `password`. Texts hold such
    words for reasons of their own: refusing them would refuse the user's papers. Keys that are really secret are long,
    and have digits or are longer than words.

    >>> [is_recognisable(key) for key in ("sk-4f9aB27c", "test", "password", "12345", "QWERTYUIOPASDFGHJKLZ")]
    [True, False, False, False, True]
    """
    secret = secret.strip()
    if len(secret) < SHORTEST or any(sign.isspace() for sign in secret):
        return len(secret) >= _SHORTEST_OF_LETTERS
    return len(secret) >= _SHORTEST_OF_LETTERS or any(sign.isdigit() for sign in secret)
