"""The same example, or nearly the same, on two sides of a split.

What is compared is the tokens of the program's inputs: numbers, runs of letters, and symbols that carry meaning, after
NFKC and case folding. Case, white space, punctuation, subscripts, ligatures and "900°C" against "900 °C" make no
difference; digits, signs and decimal points do.

Two records are the same example when

- their tokens are equal, whatever their expected records are, or
- the edit similarity of the tokens is at least `THRESHOLD` (one edit in twenty characters) and either the text is
  long (`LONG`: a paragraph, whose copy gives its answer away even where a number or an element was swapped) or the
  expected records are equal. Short sentences of one pattern that differ in a number and in their record stay two
  examples: knowing what is made "at 800 °C" does not give away what is made "at 900 °C".

Not found: a paragraph inside a longer text, and a short sentence with a slip of the pen whose record differs too. Where
texts belong together, `group_by` is the cure.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import cdist

from harness.data.record import Record
from harness.data.splits import Splits
from harness.errors import UsageError

THRESHOLD = 0.95
"""1 - edits / longer length.

Among all pairs within olivetti (180 texts) and within PcMSP (265) it flags none and three: two papers that are there
under two spellings, and two papers that differ in Sr against Ba. The pair nearest to them has 0.82 (one preparation for
two compounds), then 0.51, so nothing there hangs on the second decimal.
"""
LONG = 300
"""Characters of the shorter text from which on the expected records no longer matter."""

_TOKEN = re.compile(r"(?:(?<![\w.,)])[+-])?\d+(?:[.,]\d+)*|[^\d\s.,+-]+|\+")
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-")
_Q = 3
_BUCKETS = 512
_ROWS = 256
"""Texts whose distances to others are held in memory at once."""


@dataclass(frozen=True, slots=True)
class Leak:
    """Two records in different splits that are the same example."""

    first: Record
    second: Record
    splits: tuple[str, str]
    similarity: float
    """1 for equal tokens, else at least `THRESHOLD`."""


def check_leaks(splits: Splits, inputs: Sequence[str] | None = None) -> None:
    """Refuse splits that share an example.

    Args:
        splits: what `split` gave.
        inputs: the fields the program reads; None compares all fields.

    Raises:
        UsageError: naming one such pair, with places, and how many more there are.
    """
    leaks = find_leaks(splits, inputs)
    if not leaks:
        return
    leak = max(leaks, key=lambda leak: leak.similarity)
    how = "the same example" if leak.similarity == 1 else f"nearly the same example (similarity {leak.similarity:.2f})"
    more = f" {len(leaks) - 1} more such pairs." if len(leaks) > 1 else ""
    raise UsageError(
        f"{how} is in {leak.splits[0]} and {leak.splits[1]}: {leak.first.id!r} ({leak.first.where}) and "
        f"{leak.second.id!r} ({leak.second.where}); remove one of the two, or give both the same value in a column and "
        f"name it in data.group_by.{more}"
    )


def find_leaks(splits: Splits, inputs: Sequence[str] | None = None) -> list[Leak]:
    """Every pair of records in different splits that is the same example, by the rule at the top of this module.

    1,000 texts of 4,000 characters take one to two seconds.
    """
    rows = [(name, record) for name, part in splits.parts().items() for record in part]
    texts = [_comparable(record, inputs) for _, record in rows]
    sides = [list(splits.parts()).index(name) for name, _ in rows]
    leaks: list[Leak] = []
    for one, two in _candidates(texts, sides):
        (name, first), (other, second) = rows[one], rows[two]
        similarity = Levenshtein.normalized_similarity(texts[one], texts[two], score_cutoff=THRESHOLD)
        long = min(len(texts[one]), len(texts[two])) >= LONG
        if similarity == 1 or (similarity > 0 and (long or _canonical(first.expected) == _canonical(second.expected))):
            leaks.append(Leak(first, second, (name, other), similarity))
    return leaks


def _comparable(record: Record, inputs: Sequence[str] | None) -> str:
    """The tokens of the inputs, with a space between each two."""
    names = sorted(record.fields) if inputs is None else inputs
    values = [record.fields.get(name) for name in names]
    text = "\n".join(value if isinstance(value, str) else _canonical(value) for value in values)
    text = unicodedata.normalize("NFKC", text).casefold().translate(_DASHES)
    tokens = _TOKEN.findall(text.translate({ord(character): _spaced(character) for character in set(text)}))
    return " ".join(tokens) or text


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _spaced(character: str) -> str:
    """Punctuation that cannot be part of a number is a space, a symbol (°, <, $) is a token of its own."""
    kind = unicodedata.category(character)[0]
    if kind in "PZC" and character not in ".,-":
        return " "
    return f" {character} " if kind == "S" and character != "+" else character


def _candidates(texts: Sequence[str], sides: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(i, j), i < j, of texts on two sides that may be similar enough; none that is gets lost.

    One edit changes at most q of a text's q-grams on either side, so texts within e edits have q-gram counts within 2qe
    of each other (E. Ukkonen, "Approximate string-matching with q-grams and maximal matches", 1992). Counting q-grams
    by hash bucket can only bring them nearer. Texts are taken by length, since lengths differ by at most e too.
    """
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    lengths = np.array([len(texts[index]) for index in order])
    counts = np.array([_q_grams(texts[index]) for index in order])
    side = np.array([sides[index] for index in order])
    for start in range(0, len(order), _ROWS):
        stop = min(start + _ROWS, len(order))
        end = int(np.searchsorted(lengths, lengths[stop - 1] / THRESHOLD + 1, side="right"))
        distances = cdist(counts[start:stop], counts[start:end], "cityblock")
        near = distances <= 2 * _Q * (1 - THRESHOLD) * lengths[start:end] + 1e-6
        near &= side[start:stop, None] != side[None, start:end]
        for one, two in np.argwhere(np.triu(near, 1)):
            first, second = sorted((order[start + one], order[start + two]))
            yield first, second


def _q_grams(text: str) -> np.ndarray:
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.uint32)
    if len(codes) < _Q:
        return np.zeros(_BUCKETS)
    # Multiplication by odd constants, modulo 2^32, spreads neighbouring codes over the buckets.
    mixed = codes[:-2] * np.uint32(2654435761) + codes[1:-1] * np.uint32(2246822519) + codes[2:] * np.uint32(3266489917)
    return np.bincount(mixed >> np.uint32(23), minlength=_BUCKETS).astype(float)
