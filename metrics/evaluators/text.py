"""Text as papers and models write it, brought to one form; the numbers in it; what equals what.

The form is only for comparing: Unicode NFKC (subscripts, ligatures, thin spaces, full width, the Greek micro),
then the many dashes, quotation marks and dots to one each, degree signs that are really an ordinal or a ring to
a degree, invisible characters dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

_BEFORE_NFKC = str.maketrans(
    {"º": "°", "˚": "°"}  # NFKC makes a letter o and a free-standing ring of them
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", "")  # soft hyphen, zero widths, word joiner
)
_AFTER_NFKC = str.maketrans(
    dict.fromkeys("‐‑‒–—―−﹘﹣", "-")
    | dict.fromkeys("‘’‛′", "'")
    | dict.fromkeys("“”‟″", '"')
    | dict.fromkeys("•∙⋅‧", "·")
    | {"∆": "Δ"}
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_LONGEST_NUMBER = 40
_LONGEST_SHOWN = 120

Key = tuple[str, Hashable]
Identity = tuple[Key, Key | None]
"""What a value is, and what else it may be read as ("500" is a text that can be read as the number 500)."""


def normalized(text: str) -> str:
    """`text` in the form in which texts are compared.

    >>> normalized("LiCoO₂ at 500 ℃"), normalized("5–10 h"), normalized("5\\u2009µm") == normalized("5 μm")
    ('LiCoO2 at 500 °C', '5-10 h', True)
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_BEFORE_NFKC)).translate(_AFTER_NFKC)


def trimmed(text: str) -> str:
    """The normal form without white space at its ends."""
    return normalized(text).strip()


def is_number(value: Any) -> bool:
    """Whether `value` is a number; True and False are not."""
    if isinstance(value, int | float):
        return not isinstance(value, bool)
    return isinstance(value, Number) and not isinstance(value, complex)


def number_in(text: str) -> int | float | None:
    """The number that `text` is, or None when it is anything else as well (a unit, a group separator).

    >>> number_in(" 500 "), number_in("−1.5e3"), number_in("5 h"), number_in("1,000")
    (500, -1500.0, None, None)
    """
    stripped = trimmed(text)
    if len(stripped) > _LONGEST_NUMBER or not _NUMBER.fullmatch(stripped):
        return None
    return int(stripped) if stripped.lstrip("+-").isdecimal() else float(stripped)


def identity(value: Any, form: Callable[[str], str]) -> Identity:
    """What `value` is for equality: numbers as numbers, True and False as themselves, text in the form given.

    A text that reads as a number or as true/false may stand for it, so that "500" equals 500. Between two texts
    the text decides: "007" is not "7". Inside lists and objects nothing is read as anything else.

    >>> identity(500.0, normalized)[0] == identity(500, normalized)[0]
    True
    >>> identity("500", normalized)
    (('text', '500'), ('number', 500))
    """
    if isinstance(value, str):
        return ("text", form(value)), _reading(value)
    if isinstance(value, bool):
        return ("bool", value), None
    if is_number(value):
        return ("number", value), None
    if isinstance(value, Mapping):
        return ("object", frozenset((str(name), identity(item, form)[0]) for name, item in value.items())), None
    if isinstance(value, list | tuple):
        return ("list", tuple(identity(item, form)[0] for item in value)), None
    return (type(value).__name__, str(value)), None


def _reading(text: str) -> Key | None:
    number = number_in(text)
    if number is not None:
        return "number", number
    lowered = text.strip().lower()
    return ("bool", lowered == "true") if lowered in ("true", "false") else None


def equal(first: Identity, second: Identity) -> bool:
    """Whether two identities are the same value, read one way or the other."""
    return first[0] == second[0] or first[0] == second[1] or first[1] == second[0]


def equal_matrix(rows: Sequence[Identity], columns: Sequence[Identity]) -> NDArray[np.bool_]:
    """`equal` of every row with every column."""
    return (
        same_matrix([row[0] for row in rows], [column[0] for column in columns])
        | same_matrix([row[0] for row in rows], [column[1] for column in columns])
        | same_matrix([row[1] for row in rows], [column[0] for column in columns])
    )


def same_matrix(rows: Sequence[Hashable], columns: Sequence[Hashable]) -> NDArray[np.bool_]:
    """Which row is the same as which column; None is the same as nothing."""
    codes: dict[Hashable, int] = {}
    row, column = (
        np.array([none if key is None else codes.setdefault(key, len(codes)) for key in side], dtype=np.int64)
        for side, none in ((rows, -1), (columns, -2))
    )
    return row[:, None] == column[None, :]


def similarity(first: str, second: str) -> float:
    """1 - edit distance / length of the longer text; two empty texts are the same.

    >>> similarity("Jon Doe", "John Doe")
    0.875
    """
    return Levenshtein.normalized_similarity(first, second)


def similarity_matrix(rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
    """`similarity` of every row with every column."""
    return cdist(rows, columns, scorer=Levenshtein.normalized_similarity, dtype=np.float64)


def shown(value: Any) -> str:
    """A value as feedback shows it: on one line, never longer than a line.

    >>> shown(None), shown("a\\nb"), shown(900)
    ('null', "'a\\\\nb'", '900')
    """
    if value is None:
        return "null"
    text = repr(value[: _LONGEST_SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
