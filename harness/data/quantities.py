"""Numbers and units as annotators copied them from papers: one number, or nothing.

The float fields of a record hold one number. A range, a list, a bound ("more than 10 h"), a bare "10-3" (a lost
exponent, or a range?) and a word for no number ("overnight") are none, and stay words. A value given as about so much
or with its spread (28 ± 2) is the number it is about.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_COUNTED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORDS = {word: float(number) for number, word in enumerate(_COUNTED, 1)} | {"thirty": 30.0}

_DECIMAL = r"\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(rf"(?P<sign>-? ?)(?P<digits>{_DECIMAL})(?: ?x ?10 ?(?P<power>- ?\d+))?(?: ?(?:\+-|±) ?\d\S*)?")
_AMOUNT = re.compile(rf"(?P<number>{_NUMBER.pattern}|{'|'.join(_WORDS)})[ -]?(?P<unit>[^\d\s].*)?")
_ABOUT = re.compile(r"(?:~|∼|ca\.?|about|around|approximately|at|for|of|in)\s*(?=[\d.-])")
_LOST_DEGREE = re.compile(r"(?<=\d) 0C$")
"""The degree sign of the original became a zero: "750 0C"."""
_ZERO_FOR_DEGREE = re.compile(r"\d{3}0 ?C$")
"""It may have done so here too: "7000C" is 700 °C or 7000 °C."""
_DASHES = str.maketrans({"−": "-", "–": "-", "—": "-", "\u2010": "-", "×": "x", "\u200b": " ", "∘": "°", "◦": "°"})

_CELSIUS = r"(?:deg ?|°|º|˚| ̊|\\\x0e|\uf0b0|o)? ?C|degrees? C(?:elsius)?"
UNITS: dict[str, tuple[tuple[str, str, float], ...]] = {
    "temperature": ((_CELSIUS, "C", 1.0), (r"K", "K", 1.0), (r"(?:deg|°) ?F", "F", 1.0)),
    "duration": (
        (r"h|hs|hrs?|hours?", "h", 1.0),
        (r"min|mins|minutes?", "min", 1.0),
        (r"s|sec|secs|seconds?", "s", 1.0),
        (r"d|days?", "days", 1.0),
        (r"weeks?", "days", 7.0),
    ),
    "pressure": (
        (r"[Tt]orr", "torr", 1.0),
        (r"m[Tt]orr", "mtorr", 1.0),
        *((unit, unit, 1.0) for unit in ("Pa", "kPa", "MPa", "GPa", "bar", "mbar", "kbar", "atm", "psi")),
    ),
    "stirring_speed": ((r"rpm|r min-1|rev/min", "rpm", 1.0),),
    "ph": ((r"pH|PH", "", 1.0),),
    # What a material's amount may be measured in; purities (%), ratios, molar masses and sizes are no amounts.
    "quantity": (
        *((unit, unit, 1.0) for unit in ("mg", "g", "kg", "mmol", "mol", "drops", "equiv")),
        (r"m[lL]|cc|cm3", "mL", 1.0),
        (r"[uμ][lL]", "μL", 1.0),
        (r"[uμ]g", "μg", 1.0),
        (r"[uμ]mol", "μmol", 1.0),
        (r"[lL]", "L", 1.0),
    ),
    "concentration": (
        *((unit, unit, 1.0) for unit in ("M", "mM", "N", "mg/mL", "g/L", "mol/L", "vol%")),
        (r"wt\.? ?%", "wt%", 1.0),
        (r"mol\.? ?%", "mol%", 1.0),
        (r"at\.? ?%", "at%", 1.0),
        (r"mol (?:dm-3|L-1)", "mol/L", 1.0),
        (r"mg mL-1", "mg/mL", 1.0),
        (r"g L-1", "g/L", 1.0),
    ),
}
"""Kind to (spelling, the unit it means, factor into that unit). Symbols that Pint knows, where it knows one."""


def one_number(value: Any) -> float | None:
    """The one number that `value` states, else None.

    >>> [one_number(text) for text in ("700", "1,273", "two", "6.67 x 10- 1", "28 +- 2")]
    [700.0, 1273.0, 2.0, 0.667, 28.0]
    >>> [one_number(text) for text in ("70-80", ["3", "24"], "10-3", "overnight", None)]
    [None, None, None, None, None]
    """
    if not isinstance(value, str):
        return None
    text = _clean(value)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    match = _NUMBER.fullmatch(text)
    return None if match is None else _value(match)


def measure(value: Any, unit: Any, kind: str) -> tuple[float, str] | None:
    """(number, unit) of an annotation with a unit of its own, None where it is not one number in a unit of `kind`.

    >>> measure("2", "weeks", "duration")
    (14.0, 'days')
    >>> measure("99.9", "%", "quantity") is None
    True
    """
    number = one_number(value)
    if number is None or not isinstance(unit, str):
        return None
    for spelling, name, factor in UNITS[kind]:
        if re.fullmatch(spelling, _clean(unit)):
            return number * factor, name
    return None


def measure_text(text: str, kind: str) -> tuple[float, str] | None:
    """(number, unit) of an annotation that is one piece of text.

    >>> measure_text("about 1,073\\u2009K", "temperature"), measure_text("one week", "duration")
    ((1073.0, 'K'), (7.0, 'days'))
    >>> measure_text("600–800 °C", "temperature") is None
    True
    """
    found = _LOST_DEGREE.sub(" °C", _ABOUT.sub("", _clean(text), count=1))
    match = _AMOUNT.fullmatch(found)
    if match is None or _ZERO_FOR_DEGREE.search(found):
        return None
    return measure(match["number"], match["unit"], kind)


def _clean(text: str) -> str:
    # NFKC would turn the ring and the ordinal sign (wrong degree signs, both) into letters: see them first.
    text = text.translate(_DASHES).replace("º", "°").replace("˚", "°").replace(" ̊", "°")
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _value(match: re.Match[str]) -> float:
    digits = match["digits"].replace(",", "").replace(" ", "")
    sign = "-" if "-" in match["sign"] else ""
    power = (match["power"] or "0").replace(" ", "")
    return float(f"{sign}{digits}e{power}")
