"""Numbers with units inside a text, recognised so that text similarity keeps its hands off them.

Only recognised, not converted: "5 h" and "50 h" look alike as text and mean different things, which is for the
`quantity` evaluator to judge.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

from metrics.evaluators.text import normalized

_LONGEST = 60
_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+| ?[x×] ?10 ?\^?[+-]?\d+)?"
_AMOUNT = re.compile(
    rf"(?P<sign><|>|≤|≥|~|≈|ca\.? |about )? ?(?P<first>{_NUMBER})"
    rf"(?: ?(?P<link>-|to|±|\+/-) ?(?P<second>{_NUMBER}))? ?(?P<unit>[^\W\d_].*|[%°€$£].*)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+\.?")

_SYMBOLS = frozenset(
    {"g", "t", "L", "l", "m", "s", "h", "d", "K", "N", "V", "W", "A", "J", "C", "F", "M", "T", "S", "Ω", "Pa", "bar"}
    | {"atm", "torr", "psi", "mol", "eV", "Hz", "Wh", "Ah", "cal", "rpm", "ppm", "ppb", "equiv", "eq", "min"}
    | {"wt", "vol", "at", "%"}
)
_SPELLED = {
    "h": "hr hrs hour hours",
    "min": "mins minute minutes",
    "s": "sec secs second seconds",
    "d": "day days",
    "week": "weeks",
    "°C": "degc deg.c ℃ celsius",
    "°F": "degf",
    "K": "kelvin kelvins",
    "g": "gram grams gramme grammes",
    "L": "l liter liters litre litres",
    "mol": "mole moles",
    "drop": "drops",
    "°": "deg degree degrees",
    "Å": "angstrom angstroms",
}
_CANONICAL = {word: unit for unit, words in _SPELLED.items() for word in [unit, *words.split()]}
_FACTOR = re.compile(
    r"(?:{whole}|[YZEPTGMkhdcmμnpf]?(?:{symbols}))(?:\^?-?\d)?".format(
        whole="|".join(sorted(map(re.escape, _CANONICAL), key=len, reverse=True)),
        symbols="|".join(sorted(map(re.escape, _SYMBOLS), key=len, reverse=True)),
    )
)
_BETWEEN_FACTORS = re.compile(r" ?[/·*] ?| |(?<=wt|at)\.? ?(?=%)|(?<=ol)\.? ?(?=%)")


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, or a range, with what is counted. Equal amounts are written the same but for spelling.

    Attributes:
        sign: "<", "~" and the like, "" without one.
        link: what stands between two numbers: "-", "±"; "" with one number.
        numbers: one or two.
        unit: in one spelling.
        is_unit: whether `unit` is a unit of measurement rather than any other word ("12 samples").
    """

    sign: str
    link: str
    numbers: tuple[str, ...]
    unit: str
    is_unit: bool

    @property
    def without_sign(self) -> tuple[Hashable, ...]:
        """The amount as if it were exact."""
        return self.numbers, self.link, self.unit


def amount_in(text: str) -> Amount | None:
    """The amount that `text` is, or None when it is anything else.

    >>> amount_in("800–900 ℃")
    Amount(sign='', link='-', numbers=('800', '900'), unit='°C', is_unit=True)
    >>> amount_in("5.0hours") == amount_in("5 h")
    True
    >>> amount_in("12 Main Street") is None
    True
    """
    text = " ".join(normalized(text).split())
    if len(text) > _LONGEST or (found := _AMOUNT.fullmatch(text)) is None:
        return None
    unit = _unit(found["unit"])
    if unit is None and not _WORD.fullmatch(found["unit"]):
        return None
    numbers = [_plain_number(number) for number in (found["first"], found["second"]) if number]
    sign, link = (found["sign"] or "").strip().lower(), (found["link"] or "").lower()
    return Amount(
        sign="~" if sign in ("≈", "ca", "ca.", "about") else sign,
        link={"to": "-", "+/-": "±"}.get(link, link),
        numbers=tuple(numbers),
        unit=unit or found["unit"].rstrip("."),
        is_unit=unit is not None,
    )


def are_comparable(first: Amount, second: Amount) -> bool:
    """Whether two amounts count the same kind of thing, or both are measurements: then text says nothing."""
    return first.unit == second.unit or (first.is_unit and second.is_unit)


def _unit(text: str) -> str | None:
    """`text` with its units in one spelling; None when something in it is no unit."""
    factors = _BETWEEN_FACTORS.split(text)
    spelled: list[str] = []
    for factor in factors:
        # "Hours" is hours, but S is not seconds: one letter keeps its case.
        known = _CANONICAL.get(factor if len(factor) == 1 else factor.lower()) or _CANONICAL.get(factor)
        if known is None and not _FACTOR.fullmatch(factor):
            return None
        spelled.append(known or factor)
    separators = ["/" if "/" in between else " " for between in _BETWEEN_FACTORS.findall(text)]
    joined = spelled[0] + "".join(between + factor for between, factor in zip(separators, spelled[1:], strict=True))
    return joined.replace("° ", "°")


def _plain_number(text: str) -> str:
    """Equal numbers in equal spelling, where the spelling is a plain one."""
    text = text.replace(",", "").replace(" ", "").lower()
    try:
        return f"{float(text):.15g}"
    except ValueError:  # 2x10-4: compared as written
        return text
