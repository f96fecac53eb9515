"""Checks of a proposed instruction, before anything is spent on it.

A model that is asked for a better instruction may send half of one, an error page, a refusal, or the old one again.
Measuring such a text costs as much as measuring a good one, and on a small validation split it may even win. So every
proposal passes here first, whatever optimizer asked for it.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LONGEST = 10_000
"""Characters. An instruction goes with every call of the program, so a longer one is refused, unless the current one
is that long already."""
QUOTED = 100
"""Characters of a hidden text that make a quotation when they stand in a proposal word by word."""

CUT = "cut"
EMPTY = "empty"
ERROR_TEXT = "an error text"
REFUSAL = "a refusal"
NO_TEXT = "JSON instead of text"
UNCHANGED = "unchanged"
TRIED = "tried before"
DROPS_FIELD = "drops a field name"
TOO_LONG = "too long"
QUOTES = "quotes an example"

_NAMED = re.compile(r"`\{?(\w+)\}?`|\{(\w+)\}")
_BOILERPLATE = re.compile(r"\s*Given the fields? (`\w+`(, )?)+, produce the fields? (`\w+`(, )?)+\.\s*")
"""What DSPy writes for a signature without a docstring: it names every field and means nothing by it."""
_ERROR_TEXT = re.compile(
    r"""\s*(
        error\b.{0,20}: | (http(/[\d.]+)?|status(\s+code)?)\s*:?\s*[45]\d\d\b | [45]\d\d\s+\w+.{0,40}\berror\b
        | ([a-z_]+\.)*\w+(error|exception)\s*: | traceback\ \(most\ recent | <!doctype\s+html | <html\b
        | \{\s*["']error["']\s*: | (an?\s+)?(internal\s+)?(server\s+)?error\s+(has\s+)?occurred
        | (incorrect|invalid)\s+api\s+key | rate\s+limit\s+(reached|exceeded) | you\s+exceeded\s+your\s+current\s+quota
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"""\s*(
        (i'?m|i\ am)\s+(very\s+)?(sorry|unable|not\s+able)
        | (sorry|unfortunately|i\ apologi[sz]e)\b.{0,60}\b(cannot|can't|unable|not\s+able)
        | i\s+(cannot|can't|can\ not|could\s+not|won't|will\s+not)
        | as\s+an?\s+(ai|artificial|(large\s+)?language\s+model)
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_SINGLE_BRACE = re.compile(r"([`'\"])[{}]\1")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many instructions were proposed, how many could be used, and why the others could not.

    >>> str(Counts(4, 1, {"cut": 2, "unchanged": 1}))
    '1 of 4 proposed instructions could be used (rejected: 2 cut, 1 unchanged)'
    """

    proposed: int
    usable: int
    rejected: Mapping[str, int]

    def __str__(self) -> str:
        reasons = ", ".join(f"{times} {reason}" for reason, times in sorted(self.rejected.items(), key=_commonest))
        plural = "" if self.proposed == 1 else "s"
        rejected = f" (rejected: {reasons})" if reasons else ""
        return f"{self.usable} of {self.proposed} proposed instruction{plural} could be used{rejected}"


def _commonest(reason: tuple[str, int]) -> tuple[int, str]:
    return -reason[1], reason[0]


class Proposals:
    """Refuses proposed instructions that cannot be better, and counts them by reason. Safe under threads.

    Args:
        fields: names of the signature's fields; those that an instruction names must stay named.
        tried: instructions that were measured before.
        hidden: texts that no instruction may quote, such as the inputs of validation examples.
        shown: texts that it may quote, such as the inputs of training examples; what stands in both is no quotation.
        longest: characters a proposal may have; the current instruction's length when that is more.

    >>> proposals = Proposals(["text", "record"])
    >>> current = "Read `text` and fill in the record."
    >>> proposals.check(current, "Read the text line by line, then fill in the record.")
    >>> proposals.check(current, "Fill in the record.")
    'drops a field name'
    >>> proposals.check(current, "read the text line by line, then  fill in the record.")
    'tried before'
    >>> str(proposals.counts)
    '1 of 3 proposed instructions could be used (rejected: 1 drops a field name, 1 tried before)'
    """

    def __init__(
        self,
        fields: Iterable[str],
        tried: Iterable[str] = (),
        *,
        hidden: Iterable[str] = (),
        shown: Iterable[str] = (),
        longest: int = LONGEST,
    ) -> None:
        self._fields = frozenset(fields)
        self._tried = {_normal(text) for text in tried}
        self._hidden = [_normal(text) for text in hidden]
        self._shown = [_normal(text) for text in shown]
        self._longest = longest
        self._lock = threading.Lock()
        self._usable = 0
        self._rejected: Counter[str] = Counter()
        self._in_a_row: list[str] = []

    def check(self, current: str, proposed: str) -> str | None:
        """Why `proposed` cannot take the place of `current`, or None; counted either way, and remembered as tried."""
        reason = self._reason(current, proposed)
        with self._lock:
            if reason is None and _normal(proposed) in self._tried:
                reason = TRIED
            if reason is None:
                self._tried.add(_normal(proposed))
                self._usable += 1
                self._in_a_row.clear()
                return None
        return self.reject(reason)

    def reject(self, reason: str) -> str:
        """Count a reply that never became a text: cut, refused, unreadable. Returns the reason."""
        with self._lock:
            self._rejected[reason] += 1
            self._in_a_row.append(reason)
        return reason

    @property
    def counts(self) -> Counts:
        """All proposals so far."""
        with self._lock:
            return Counts(self._usable + self._rejected.total(), self._usable, dict(self._rejected))

    @property
    def rejected_in_a_row(self) -> Mapping[str, int]:
        """The reasons since the last proposal that could be used, with how often each."""
        with self._lock:
            return dict(Counter(self._in_a_row))

    def stalled(self, limit: int) -> bool:
        """Whether the last `limit` proposals were all rejected.

        >>> proposals = Proposals([])
        >>> proposals.reject("cut"), proposals.stalled(2), proposals.reject("cut"), proposals.stalled(2)
        ('cut', False, 'cut', True)
        """
        with self._lock:
            return len(self._in_a_row) >= limit

    def names_to_keep(self, current: str) -> list[str]:
        """The fields that an instruction names in backticks or braces, and that a proposal must name too.

        >>> Proposals(["text", "record"]).names_to_keep("Fill in `record`. Write no `null` and no `{id}`.")
        ['record']
        """
        if _BOILERPLATE.fullmatch(current):
            return []
        named = dict.fromkeys(first or second for first, second in _NAMED.findall(current))
        return [name for name in named if name in self._fields]

    def _reason(self, current: str, proposed: str) -> str | None:
        reason = unusable(proposed)
        if reason is not None:
            return reason
        if _normal(proposed) == _normal(current):
            return UNCHANGED
        if len(proposed) > max(self._longest, len(current)):
            return TOO_LONG
        if any(not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", proposed) for name in self.names_to_keep(current)):
            return DROPS_FIELD
        return QUOTES if self._quotes(_normal(proposed)) else None

    def _quotes(self, proposed: str) -> bool:
        """Whether a stretch of a hidden text stands in it; looked for at every `QUOTED`th character."""
        return any(
            stretch in proposed and not any(stretch in text for text in self._shown)
            for hidden in self._hidden
            for start in range(0, len(hidden) - QUOTED + 1, QUOTED)
            for stretch in (hidden[start : start + QUOTED],)
        )


def unusable(text: str) -> str | None:
    """Why a text is no instruction at all, whatever the current one is; None when it may be one.

    >>> unusable("Error code: 401 - Incorrect API key provided"), unusable('{"new_instruction": "Read the te')
    ('an error text', 'cut')
    >>> unusable("Read the text. Where a value is missing, write null.")
    """
    plain = text.strip().replace("’", "'")
    if not plain or plain.casefold() in ("none", "null", "n/a"):
        return EMPTY
    if _ERROR_TEXT.match(plain):
        return ERROR_TEXT
    if _REFUSAL.match(plain):
        return REFUSAL
    if plain[0] in "{[":
        try:
            json.loads(plain)
        except ValueError:
            return CUT if _is_open(plain) else None
        return NO_TEXT
    return CUT if _is_open(plain) else None


def _is_open(text: str) -> bool:
    """Whether something that was begun is never ended: a code fence, a brace, a sentence at its comma."""
    braces = _SINGLE_BRACE.sub("", text)
    return (
        sum(line.lstrip().startswith("```") for line in text.splitlines()) % 2 == 1
        or braces.count("{") > braces.count("}")
        or text.endswith((",", "(", "[", "{"))
    )


def _normal(text: str) -> str:
    return " ".join(text.split()).casefold()
