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
from http import HTTPStatus

from harness.foreign import whole

LONGEST = 10_000
"""Characters. An instruction goes with every call of the program, so a longer one is refused, unless the current one
is that long already."""
QUOTED = 100
"""Characters of a hidden text that make a quotation when they stand in a proposal word by word."""
SHORT = 300
"""Characters. What only looks like an error or a refusal is taken for one in a text shorter than this."""

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
_FLAGS = re.VERBOSE | re.IGNORECASE | re.DOTALL
_UNSEEN = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u200b\u2060\ufeff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those without width that no script needs, as Persian and emoji need the joiners."""
_OPENING_MARKS = re.compile(r"""(?:```\w*\s|[\s*_#>`\[("'~-])*""")

_REASONS = "|".join(re.escape(status.phrase) for status in HTTPStatus if status >= 400 and " " in status.phrase)
_ERROR_TEXT = re.compile(
    r"""
        error(\s+(code|message|type|\d+))*\s*[\]*_`]*\s*:
        | (http(/[\d.]+)?|status(\s+code)?)\s*:?\s*[45]\d\d\b | [45]\d\d\s+\w+.{0,40}\berror\b
        | ([a-z_]+\.)*\w+(error|exception)\s*(:|\(|\Z) | traceback\ \(most\ recent | <!doctype\s+html | <html\b
        | <\?xml\b.{0,300}\b(error|fault) | <(error|fault)\b
        | \{\s*["']error["']\s*: | (an?\s+)?(internal\s+)?(server\s+)?error\s+(has\s+)?occurred
        | (incorrect|invalid)\s+api\s+key | rate\s+limit\s+(reached|exceeded) | you\s+exceeded\s+your\s+current\s+quota
    """,
    _FLAGS,
)
_SHORT_ERROR = re.compile(
    rf"""
        error\b(?!\s+(handling|analys|bars?\b|cases?\b|values?\b|margins?\b)).{{0,20}}[:\]]
        | (fehler|erreur|错误|錯誤)\s*[:：]
        | [45]\d\d\s*[:-]?\s+({_REASONS})\b | ({_REASONS})\s*([.,:;!(\n]|\Z)
        | ((the|this|your|our|an?)\s+)?([\w-]+\s+){{0,3}}?
          (servers?|service|model|worker|request|connection|connect|upstream|backend|gateway|proxy|endpoint|api|network
           |engine|quota|rate\s+limit|gpu|cuda|memory|stream|socket|host|deadline|timeout|operation|tokens?|internal)
          (\s+(to|from)\s+(the\s+)?[\w.:/-]+(\s+\w+)?)?
          \s+((is|was|has|have|had|are|been|currently|temporarily|still|not|to)\s+){{0,4}}
          (error|overloaded|loading|busy|unavailable|available|down|timed?[\s-]*out|timeout|fail(ed|ure)|refused|reset|died
           |crashed|exceeded|reached|out\s+of\s+memory|not\s+found|exist|aborted|closed|terminated|invalid|denied|lost)
          (?=\s*(\Z|[.,:;!(\n])|\s+(or|please|while|for|after|because|at|to|by|when|before|on|with)\b)
        | .*\btry\s+again\s+(later|shortly|soon|in\s+an?\s|in\s+\d)
        | (data|event):\s*[\[{{] | <\?xml\b | <(head|body|div|p|span|center|title|pre|h\d)\b[^>]*>.*</\w+>\s*\Z
    """,
    _FLAGS,
)
_REFUSAL = re.compile(
    r"""
        (i'?m|i\ am)\s+(very\s+|so\s+)?(sorry|afraid|unable|not\s+able)
        | (sorry|unfortunately|i\ apologi[sz]e|my\ apologies)\b.{0,60}\b(cannot|can't|unable|not\s+able)
        | i\s+(cannot|can't|can\ not|could\s+not|couldn't|won't|will\s+not|must\s+decline|have\s+to\s+decline)\b
        | as\s+an?\s+(ai|artificial|(large\s+)?language\s+model)\b.{0,60}?\bi('m)?\b
    """,
    _FLAGS,
)
_SHORT_REFUSAL = re.compile(
    r"""
        sorry\b | (my|our)\s+apologies | apologies\b | unfortunately,?\s+(i|we|this|that)\b | we\s+(cannot|can't)\b
        | (i'm|i\ am|i\ do|we're|we\ are)\s*(not|n't)\s+(feel\s+)?(comfortable|allowed|permitted|willing|going\s+to)
        | i\s+(don't|do\ not)\s+(have|feel)\b | i\s+need\s+more\b
        | (could|can)\s+you\s+(please\s+)?(provide|share|clarify)
        | unable\s+to\s+(comply|assist|help|process|fulfil|complete|provide|generate|answer|create|respond|do)
        | (es\s+)?tut\s+mir\s+(sehr\s+)?leid | leider\b | entschuldig | ich\s+(kann|darf|werde|möchte)\b.{0,60}\bnicht\b
        | ich\s+bin\s+(leider\s+)?nicht\b | je\s+(suis\s+)?(vraiment\s+)?désol | désol | malheureusement
        | je\s+(ne|n')\s*(peux|puis|suis|veux)\b | lo\s+(siento|lamento) | (lo\s+)?lamentablemente | me\s+temo
        | desafortunadamente | (disculp|desculp) | no\s+puedo\b | (não|nao)\s+posso | mi\s+dispiace | non\s+posso
        | (很|非常|十分)?(抱歉|遗憾)|(对|對)不起 | 我(无法|無法|不能|没办法)
        | 作为.{0,20}我(无法|不能) | 申し訳 | すみません
    """,
    _FLAGS,
)
_LABEL = re.compile(
    r"""[\s*_#>"'`-]*(
        ((the|new|improved|proposed|revised|updated|final|better|optimi[sz]ed)\s+)*
        (instructions?|prompt|anweisung|anleitung|consigne|instrucci[oó]n|assistant|system|指令)[\s*_]*(:|：|\n|\Z)
        | ((sure|certainly|of\s+course|okay|ok)\b[\s,.!:]*)?(here('s|\s+is|\s+are)|below\s+is)\b[^:.\n]{0,80}
          \b(instructions?|prompt|version|it)\b[\s*_]*(:|\.?\s*\Z)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""What stands before an instruction and is none of it."""
_NOTHING = re.compile(
    r"""
        n/?a | no(t|ne)?(
            \s+(changes?|instructions?|answer|output|response|available|applicable|provided|needed|required)
          )*
        | same(\s+as\s+(above|before))? | lorem\s+ipsum\b.* | to\s+be\s+(done|determined)
        | [\[<{][^\]>}.。!]{0,40}[\]>}]
    """,
    _FLAGS,
)
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of scripts that put no spaces between words."""

_QUOTED_BRACKET = re.compile(r"""([`'"“„«])[^\w\s`]{1,2}([`'"“”»])|[:;]-?\(|\\["()\[\]{}]""")
_CLOSED = re.compile(r"""[.!?。！？…][\s*_)\]"'”“»`]*\Z""")
_LEADS_ON = re.compile(
    r"""(?<![\w`'"*-])(
        the | an? | and | or | but | nor | if | because | whether | than
        | your | their | its | our | every | must | should
        | und | oder | der | den | dem | eine[nmrs]? | für | von | sowie | dass | wenn
        | et | ou | les? | la | une? | des | du | de | avec | pour | dans | que | qui | el | los | las
        | una | del | con | para
    )\Z""",
    re.VERBOSE,  # small letters only: "answer with A" is whole
)
_PREPOSITION = re.compile(r"(?<![\w`'\"*-])(of|to|with|from|for|in|into|on|at|by|as|between|without)\Z")
_STRANDED = re.compile(r"\s*([-*•+]|\d+[.)])\s|.*\b(which|what|who|whom|that|it)\b", re.IGNORECASE)
"""A sentence that may end in a preposition: "the unit that it is given in"."""
_BARE_MARKER = re.compile(r"(\A|\n)[ \t]*(\(?\d+[.)]|[a-z]\)|[-*•+]|\#+)\Z")


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
        self._hidden = [_flat(text) for text in hidden]
        self._shown = [_flat(text) for text in shown]
        self._longest = longest
        self._lock = threading.Lock()
        self._usable = 0
        self._rejected: Counter[str] = Counter()
        self._in_a_row: list[str] = []

    def check(self, current: str, proposed: str) -> str | None:
        """Why `proposed` cannot take the place of `current`, or None; counted either way, and remembered as tried.

        It is judged as `cleaned` leaves it, which is what should be used.
        """
        proposed = cleaned(proposed)
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
        return QUOTES if self._quotes(_flat(proposed)) else None

    def _quotes(self, proposed: str) -> bool:
        """Whether a stretch of a hidden text stands in it; looked for at every `QUOTED`th character."""
        return any(
            stretch in proposed and not any(stretch in text for text in self._shown)
            for hidden in self._hidden
            for start in range(0, len(hidden) - QUOTED + 1, QUOTED)
            for stretch in (hidden[start : start + QUOTED],)
        )


def cleaned(text: str) -> str:
    r"""`text` as it can be sent and stored: halves of characters replaced, control characters taken out.

    >>> cleaned("Read\x00 the text.\r\n\u200bThen stop.")
    'Read the text.\nThen stop.'
    """
    return _UNSEEN.sub("", whole(text).replace("\r\n", "\n").replace("\r", "\n"))


def unusable(text: str) -> str | None:
    """Why a text is no instruction at all, whatever the current one is; None when it may be one.

    >>> unusable("Error code: 401 - Incorrect API key provided"), unusable('{"new_instruction": "Read the te')
    ('an error text', 'cut')
    >>> unusable("502 Bad Gateway"), unusable("I'm afraid not."), unusable("Read the text and"), unusable("(none)")
    ('an error text', 'a refusal', 'cut', 'empty')
    >>> unusable("Read the text. Where a value is missing, write null.")
    """
    plain = cleaned(text).strip().replace("’", "'")
    said = plain[_end(_OPENING_MARKS, plain) :]
    short = len(plain) < SHORT
    if _ERROR_TEXT.match(said) or (short and _SHORT_ERROR.match(said)):
        return ERROR_TEXT
    if _REFUSAL.match(said) or (short and _SHORT_REFUSAL.match(said)):
        return REFUSAL
    if plain[:1] in ("{", "["):
        try:
            json.loads(plain)
        except ValueError:
            pass
        else:
            return NO_TEXT
    if _is_open(plain):
        return CUT
    return EMPTY if _says_nothing(plain) else None


def _says_nothing(text: str) -> bool:
    """Whether no instruction can be in it: a placeholder, a label, a preamble, a single word."""
    rest = re.sub(r"<\|[^|>]*\|>", "", text).strip()
    rest = rest[_end(_LABEL, rest) :]
    if _NOTHING.fullmatch(rest.strip(" \n\t.!*_`'\"()")):
        return True
    return len(_UNSPACED.findall(rest)) < 4 and len(_WORD.findall(rest)) < 2


def _is_open(text: str) -> bool:
    """Whether something that was begun is never ended: a thought, a fence, a bracket, a list, a sentence."""
    braces = _QUOTED_BRACKET.sub("", text)
    bare = text.rstrip("*_ ")
    return (
        sum(line.lstrip().startswith("```") for line in text.splitlines()) % 2 == 1
        or braces.count("{") > braces.count("}")
        or (text.startswith("<think") and "</think" not in text)
        or bare.endswith((",", ":", "(", "[", "{", "，", "、", "：", "（", "「", ' "', "„", "«"))
        or (len(_WORD.findall(text)) > 0 and _BARE_MARKER.search(text) is not None)
        or (not _CLOSED.search(text) and _breaks_off(text))
    )


def _breaks_off(text: str) -> bool:
    """Whether a text without a full stop ends in the middle of a bracket, a quotation or a sentence."""
    line = text[text.rfind("\n") + 1 :]
    if _LEADS_ON.search(line) or (_PREPOSITION.search(line) and not _STRANDED.match(line)):
        return True
    if not text[-1:].isalnum():
        return False
    last = _QUOTED_BRACKET.sub("", text[text.rfind("\n\n") + 1 :].replace("```", ""))
    opened, closed = (sum(map(last.count, marks)) for marks in ("([（", ")]）"))
    quotes = re.sub(r'(?<=\d)"', "", last).count('"')  # not those of 5" wafers
    typographic = sum(map(last.count, "“”„"))
    return (
        opened > closed
        or any(n % 2 for n in (quotes, typographic, last.count("`")))
        or last.count("«") > last.count("»")
    )


def _end(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0


def _flat(text: str) -> str:
    return " ".join(cleaned(text).split()).casefold()


def _normal(text: str) -> str:
    """What two texts have in common that say the same: no label, quotes, bold, fence, case or closing punctuation."""
    plain = re.sub(r"```\w*\n|\*\*|__", "", cleaned(text)).strip().replace("’", "'")
    rest = plain[_end(_LABEL, plain) :]
    return _flat(rest).strip(" *_`~#>-\"'“”„«»‘.!?。！…,;:") or _flat(plain)
