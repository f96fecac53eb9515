"""What a text says as a number with a unit: "~800 to 900 ℃", "2 × 10-4 Pa", "half an hour".

Read as papers and models write, and as the extraction of text from papers leaves it: degree signs that became a zero,
a letter o or an unprintable character, exponents that lost their place, minus signs with a space. What can be read
in more than one way is read as stated here; what is not one amount ("5 h and 3 samples", "792 mg, 2.1 mmol") is not
read at all.

- "10-3 Pa" is a power of ten where the second number is no larger than ten, since as a range it would fall.
- "800 0C" is 800 °C; "8000C", without the space, is 8000 °C.
- "1,000" and "1 000" are a thousand; a comma before anything but three digits is not read.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType

from metrics.evaluators.text import normalized
from metrics.evaluators.units import Unit, unit_of


@dataclass(frozen=True, slots=True)
class Reading:
    """One amount.

    Attributes:
        low, high: its ends, equal for a single number.
        unit: None where none is given.
        bound: "<" for at most, ">" for at least, "" for neither.
        spread: what stands after ±, in `unit`; None without.
        word: the word it is the meaning of, "" where it is written as a number.
    """

    low: float
    high: float
    unit: Unit | None = None
    bound: str = ""
    spread: float | None = None
    word: str = ""


_NUMBER_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety
"""
_ONES, _TENS = _NUMBER_WORDS.split()[:20], _NUMBER_WORDS.split()[20:]
_SPELLED = MappingProxyType(
    {word: str(number) for number, word in enumerate(_ONES)}
    | {word: str(ten) for ten, word in zip(range(20, 100, 10), _TENS, strict=True)}
    | {
        f"{word}{joint}{one}": str(ten + number)
        for ten, word in zip(range(20, 100, 10), _TENS, strict=True)
        for number, one in enumerate(_ONES[1:10], 1)
        for joint in ("-", " ")
    }
)
_WORDS = "|".join(sorted(_SPELLED, key=len, reverse=True))
_AND_A_HALF = re.compile(rf"\b(?P<number>{_WORDS}|\d+) and (?:a|one) half\b", re.IGNORECASE)
_HALF = re.compile(r"\b(?:a |one )?half(?: an?| of an?)?\b", re.IGNORECASE)
_ONE = re.compile(r"(?:an?) (?=[^\W\d_])", re.IGNORECASE)
_WORD = re.compile(rf"\b(?:{_WORDS})\b", re.IGNORECASE)

_FRACTION_SIGN = re.compile("[¼-¾⅐-⅞]")
_LOST_DEGREE = re.compile(r"(?:[\\\x00-\x08\x0e-\x1f\ue000-\uf8ff]+ ?|(?<=[\d\s])\u030a)(?=[CFK]\b)")
_ZERO_FOR_DEGREE = re.compile(r"(?<=\d) 0 ?C\b")
_PH = re.compile(r"^pH(?: of)? ?[=:]? ?(?=[\d.~<>])(.+)$")
_RINGS = str.maketrans({"∘": "°", "◦": "°", "∼": "~", "≃": "~", "≅": "~", "≈": "~", "⩽": "≤", "⩾": "≥", "…": " to "})

_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+(?![\d.])|\d+(?:\.\d*)?|\.\d+"
_POWER = r"[eE][+-]?\d{1,3}|(?: ?[x×*·] ?)10(?:(?: ?\^ ?|\*\*)\{?(?:[+-] ?)?\d{1,3}\}?| ?[+-] ?\d{1,2}| ?[1-9]\d?)"
_BEFORE_POWER = re.compile(r"^[eE]|^[^1eE]*10|[ ^*{}]")
_AMOUNT = re.compile(
    rf"(?P<sign>[+-] ?)?(?:"
    rf"(?:(?P<whole>\d{{1,4}}) )?(?P<over>\d{{1,4}}) ?[/⁄] ?(?P<under>\d{{1,4}})(?![\d.])|"
    rf"10(?: ?\^ ?|\*\*)\{{?(?P<raised>(?:[+-] ?)?\d{{1,3}})\}}?|"
    rf"10 ?- ?(?P<flat>\d|10)(?![\d.])(?! ?[eE]\d)|"
    rf"(?P<digits>{_DIGITS})(?P<power>{_POWER})?(?![\d.,])"
    rf")[ -]?(?P<unit>[^\d\s+-].*)?"
)
_SPREAD = re.compile(rf" ?± ?(?P<spread>{_DIGITS})(?P<unit>.*)")
_LINK = re.compile(r" ?(?:-|\bto\b|\bthrough\b) ?", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:between (?P<first>.+?) and|from (?P<second>.+?) to) (?P<last>.+)", re.IGNORECASE)
_BEFORE = re.compile(r"(?:at|for|of|in)\s+(?=[\d.+~<>≤≥-]|[a-z]+ )", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:~|ca\.?(?![^\W\d_])|c\.|circa\b|about\b|around\b|approx(?:\.|imately)?(?![^\W\d_])|roughly\b|nearly\b)\s*",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:(?P<below><=?|≤|(?:less|lower) than|below|under|up to|at most|(?:not|no) more than|max\.|maximum)|"
    r"(?P<above>>=?|≥|(?:more|greater|higher|longer|better) than|over|above|at least|(?:not|no) less than|min\.|"
    r"minimum))\s*",
    re.IGNORECASE,
)
_PIECES = re.compile(r"(?:\d+(?:\.\d+)? ?[^\W\d_]+(?:, | and |,| |$)?){2,4}")
_PIECE = re.compile(r"(\d+(?:\.\d+)?) ?([^\W\d_]+)")


def reading_of(text: str, *, is_difference: bool = False) -> Reading | None:
    """The amount that `text` is, or None when it is anything else. The number may stand without a unit.

    Args:
        text: any text, of a line's length at most: the time grows with the square of it.
        is_difference: take degrees for differences of temperature.

    >>> found = reading_of("about 800 to 900 ℃")
    >>> found.low, found.high, found.unit.kind
    (800.0, 900.0, 'temperature')
    >>> reading_of("6.67 x 10- 1 Pa").low, reading_of("half an hour").low, reading_of("12 Main Street")
    (0.667, 0.5, None)
    """
    text, bound = _digits_for_words(_cleaned(text)), ""
    if (found := _BOUND.match(text)) is not None:
        text, bound = text[found.end() :], "<" if found["below"] else ">"
    text = _without(_ABOUT, _without(_BEFORE, text))
    read = (
        _range(text, is_difference, both_units=True)
        or _single(text, is_difference)
        or _range(text, is_difference)
        or _pieces(text)
    )
    return replace(read, bound=bound) if read is not None and bound else read


def _without(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.match(text)
    return text[found.end() :] if found else text


def _cleaned(text: str) -> str:
    text = _FRACTION_SIGN.sub(lambda sign: f" {Fraction(unicodedata.numeric(sign[0])).limit_denominator(10)}", text)
    text = normalized(_LOST_DEGREE.sub("°", text).translate(_RINGS)).translate(_RINGS)
    text = _PH.sub(r"\1 pH", _ZERO_FOR_DEGREE.sub(" °C", " ".join(text.split())))
    return text.replace("+/-", "±").replace("+-", "±")


def _digits_for_words(text: str) -> str:
    if not re.match(r"[^\W\d_]|[~<>≤≥]|\d+ and", text):
        return text
    text = _AND_A_HALF.sub(lambda found: _SPELLED.get(found["number"].lower(), found["number"]) + ".5", text)
    text = _WORD.sub(lambda found: _SPELLED[found[0].lower()], _HALF.sub("0.5", text))
    one = _ONE.match(text)
    return "1 " + text[one.end() :] if one and unit_of(text[one.end() :]).is_known else text  # an hour, not a while


def _single(text: str, is_difference: bool) -> Reading | None:
    """One number, with a unit or without, with a spread or without."""
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return None
    number, rest = _number(found), found["unit"]
    spread = _SPREAD.fullmatch(rest) if rest else None
    if spread is not None:
        rest = spread["unit"].strip()
    elif rest and "±" in rest:  # 500 °C ± 5 °C
        rest, _, second = rest.partition("±")
        spread = _AMOUNT.fullmatch(second.strip())
        if spread is None or (spread["unit"] or rest).strip() != rest.strip():
            return None
    unit = _unit(rest, is_difference)
    if number is None or (rest and unit is None):
        return None
    width = None if spread is None else _plain(spread["spread" if "spread" in spread.re.groupindex else "digits"])
    return Reading(number, number, unit, spread=width)


def _number(found: re.Match[str]) -> float | None:
    sign = -1.0 if (found["sign"] or "").startswith("-") else 1.0
    if found["over"]:
        if not int(found["under"]):
            return None
        return sign * (int(found["whole"] or 0) + int(found["over"]) / int(found["under"]))
    if found["flat"] and found["sign"]:  # -10-5: from minus ten to five
        return None
    raised = found["raised"] or (f"-{found['flat']}" if found["flat"] else None)
    if raised:
        number = float(f"1e{raised.replace(' ', '')}")
    else:
        power = _BEFORE_POWER.sub("", found["power"] or "0")
        number = _plain(found["digits"], power)
    return sign * number if number is not None and math.isfinite(number) else None


def _plain(digits: str | None, power: str = "0") -> float | None:
    return None if digits is None else float(f"{digits.replace(',', '').replace(' ', '')}e{power}")


def _unit(text: str | None, is_difference: bool) -> Unit | None:
    """The unit after a number: a known one, or one word of any kind; a letter or two are a symbol ("2x")."""
    text = (text or "").strip()
    if not text:
        return None
    unit = unit_of(text, is_difference=is_difference)
    return unit if unit.is_known or re.fullmatch(r"[^\W\d_]{3,}\.?", text) else None


def _range(text: str, is_difference: bool, *, both_units: bool = False) -> Reading | None:
    """Two amounts with a link between them; "30 min-1 h" has units on both sides, and is no power of a minute."""
    between = _BETWEEN.fullmatch(text)
    if between is not None:
        return _joined(between["first"] or between["second"], between["last"], is_difference)
    for link in _LINK.finditer(text):
        first, second = text[: link.start()], text[link.end() :]
        if first and not (both_units and _is_bare(first, second)):
            read = _joined(first, second, is_difference)
            if read is not None:
                return read
    return None


def _is_bare(*numbers: str) -> bool:
    return any(number[-1:].isdigit() for number in numbers)


def _joined(first: str, second: str, is_difference: bool) -> Reading | None:
    """The range between two amounts; the first takes the second's unit where it has none of its own."""
    ends = _single(first, is_difference), _single(_without(_ABOUT, second), is_difference)
    if ends[0] is None or ends[1] is None or (ends[1].unit is None and ends[0].unit is not None):
        return None
    unit, low = ends[1].unit, ends[0].low
    if ends[0].unit is not None and unit is not None:
        if ends[0].unit.kind != unit.kind:
            return None
        low = (ends[0].unit.in_base(low) - unit.offset) / unit.factor if ends[0].unit.factor != unit.factor else low
    return Reading(min(low, ends[1].low), max(low, ends[1].low), unit)


def _pieces(text: str) -> Reading | None:
    """A duration in pieces, from the largest unit down: "1 h 30 min"."""
    if not _PIECES.fullmatch(text):
        return None
    pieces = [(float(number), unit_of(unit)) for number, unit in _PIECE.findall(text)]
    units = [unit for _, unit in pieces]
    falling = all(first.factor > second.factor for first, second in pairwise(units))
    if not falling or any(unit.kind != "time" for unit in units):
        return None
    total = sum(unit.in_base(number) for number, unit in pieces) / units[0].factor
    return Reading(total, total, units[0])
