"""Units as papers and models write them, and how much of what each is. Pint knows the units, this file the spellings.

    number in base units = number * factor + offset

Pint has no mass or mole percent, no drops and no equivalents: those are kinds of their own here, and nothing converts
into them. A word that is no unit is a kind of its own, too: "3 samples" compares with "4 samples" only.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from metrics.evaluators.text import normalized

if TYPE_CHECKING:
    from pint import UnitRegistry

_LONGEST = 60
_MOST_FACTORS = 6


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement.

    Attributes:
        name: as it was written.
        kind: what it measures, in words ("mass", "length / time"): only equal kinds compare.
        factor, offset: into the base unit of its kind.
        is_known: whether it is a unit rather than any other word.
    """

    name: str
    kind: str
    factor: float = 1.0
    offset: float = 0.0
    is_known: bool = True

    def in_base(self, number: float) -> float:
        """A number of these in base units."""
        return number * self.factor + self.offset


def _table(*rows: tuple[str, str]) -> MappingProxyType[str, str]:
    return MappingProxyType({spelling: name for name, spellings in rows for spelling in spellings.split()})


_WHOLE = _table(
    ("wt%", "wt% wt.% weight% mass% w% w/w% %w/w wtpercent weightpercent %wt %(w/w)"),
    ("mol%", "mol% mol.% mole% molpercent molepercent %mol"),
    ("at%", "at% at.% atomic% atom% atomicpercent"),
    ("vol%", "vol% vol.% volume% v/v% %v/v volumepercent %vol %(v/v)"),
    ("w/v%", "w/v% %w/v %(w/v)"),
    ("equiv", "equiv equiv. eq eq. equivalent equivalents"),
    ("meq", "meq meq."),
    ("drop", "drop drops"),
    ("pH", "ph"),
    ("sccm", "sccm s.c.c.m. s.c.c.m"),
    ("slm", "slm slpm"),
)
"""Units written as one piece, without white space and in lower case."""
_OWN = MappingProxyType(
    {
        "wt%": ("mass fraction", 0.01),
        "mol%": ("mole fraction", 0.01),
        "at%": ("atomic fraction", 0.01),
        "vol%": ("volume fraction", 0.01),
        "w/v%": ("mass per volume in percent", 0.01),
        "equiv": ("equivalents", 1.0),
        "meq": ("equivalents", 1e-3),
        "drop": ("drops", 1.0),
        "pH": ("pH", 1.0),
        "sccm": ("standard volume / time", 1e-3),
        "slm": ("standard volume / time", 1.0),
    }
)
_WORDS = _table(
    ("hour", "h hr hrs hs hour hours"),
    ("minute", "min mins minute minutes"),
    ("second", "s sec secs second seconds"),
    ("day", "d day days"),
    ("kelvin", "kelvin kelvins"),
    ("degC", "degc celsius centigrade"),
    ("degF", "degf fahrenheit"),
    ("degree", "° deg degree degrees"),
    ("torr", "torr"),
    ("millitorr", "mtorr"),
    ("gram", "gram grams gramme grammes"),
    ("milliliter", "ml mls cc ccm"),
    ("microliter", "ul μl"),
    ("micrometer", "um μm micron microns"),
    ("percent", "% percent pct"),
    ("angstrom", "å angstrom angstroms"),
)
"""Words for units that Pint spells otherwise; one letter keeps its case: S is not seconds."""
_TURNS = frozenset({"rpm", "rev", "revs", "revolution", "revolutions", "r"})
_TIMES = frozenset({"hour", "minute", "second", "day"})
_OF_TEMPERATURE = MappingProxyType({"degC": "delta_degC", "degF": "delta_degF"})

_KINDS = MappingProxyType(
    {
        "radian": "angle",
        "length ** 3": "volume",
        "mass / length ** 3": "density",
        "length ** 3 / time": "volume / time",
        "substance / length ** 3": "concentration",
        "mass / length / time ** 2": "pressure",
        "mass * length / time ** 2": "force",
        "mass * length ** 2 / time ** 2": "energy",
        "mass * length ** 2 / time ** 3": "power",
        "mass * length ** 2 / time ** 3 / current": "voltage",
        "mass * length ** 2 / time ** 3 / current ** 2": "resistance",
        "current * time": "charge",
        "1 / time": "frequency",
        "substance": "amount of substance",
    }
)
"""How people call what Pint writes in base dimensions."""

_LOST = r"\\\x00-\x08\x0e-\x1f\ue000-\uf8ff"
"""What stands for the degree sign where a text was taken from a file without its font."""
_DEGREES = re.compile(
    rf"(?:°|deg(?:rees?)?\b\.?|(?<![^\W\d_])o(?= ?C\b)|[{_LOST}]+|^0(?=C$)) ?"
    r"(C|F|K|c\b|[Cc]elsius|[Ff]ahrenheit|[Kk]elvin)\b"
)
_SPLIT_PASCAL = re.compile(r"\b([kMGmh]?) ?P ?a\b")
_SPACED_POWER = re.compile(r"(?<=[^\W\d_])- (?=\d)")
_PER = re.compile(r"\s*(?:/|\bper\b)\s*", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{4,}")
_TOKEN = re.compile(r"(?P<name>[^\W\d_]+\.?|[°%])(?:\*\*|\^)?\(?(?P<power>[+-]?\d)?\)?(?!\d)")


@lru_cache(maxsize=4096)
def unit_of(spelling: str, *, is_difference: bool = False) -> Unit:
    """The unit that `spelling` is.

    A bare C or F is a degree, and over a time a difference of degrees; after a slash everything stands below it, so
    that J/mol K is J/(mol K).

    Args:
        spelling: any text.
        is_difference: take degrees for differences of temperature, so that 10 °C are 10 K.

    >>> unit_of("min").factor, unit_of("degC").offset, unit_of("°C/min").kind
    (60.0, 273.15, 'temperature / time')
    >>> unit_of("hours").kind == unit_of("h").kind, unit_of("samples").is_known
    (True, False)
    """
    text = _SPACED_POWER.sub("-", " ".join(normalized(spelling).split()))
    unknown = Unit(text, repr(_WORD.sub(lambda word: word[0].lower(), text).rstrip(".")), is_known=False)
    if not text or len(text) > _LONGEST:
        return unknown
    whole = _WHOLE.get(text.replace(" ", "").lower())
    if whole is not None:
        kind, factor = _OWN[whole]
        return Unit(text, kind, factor)
    factors = _factors(_SPLIT_PASCAL.sub(r"\1Pa", _DEGREES.sub(_one_degree, text)))
    return (_measured(text, factors, is_difference) if factors else None) or unknown


def _one_degree(found: re.Match[str]) -> str:
    return {"c": "degC", "f": "degF", "k": "K"}[found[1][0].lower()]


def _factors(text: str) -> list[tuple[str, int]] | None:
    """The (name, power) of a unit's factors, None where something in it is none."""
    factors: list[tuple[str, int]] = []
    for below, part in enumerate(_PER.split(text)):
        part = part.strip()
        if below and part.startswith("(") and part.endswith(")"):
            part = part[1:-1]
        if below == 0 and part == "1":
            continue
        for piece in re.split(r"\s*[·*]\s*|\s+", part):
            token = _TOKEN.fullmatch(piece)
            if token is None or len(factors) == _MOST_FACTORS:
                return None
            power = int(token["power"] or 1)
            factors.append((_name(token["name"].rstrip(".")), -power if below else power))
    return factors


def _name(word: str) -> str:
    known = _WORDS.get(word)
    if known is None and len(word) > 1:
        known = _WORDS.get(word.lower())
    return known or word


def _measured(text: str, factors: list[tuple[str, int]], is_difference: bool) -> Unit | None:
    """The unit of these factors by Pint; None where it does not know one of them, or counts it in no line."""
    import pint  # takes most of a second to import; most records hold no unit

    registry = _registry()
    factors = _with_degrees(factors)
    unit = registry.Unit("dimensionless")
    try:
        for name, power in factors:
            if name in _TURNS:  # turns, not radians; rpm is short for turns a minute
                unit = unit * (registry.Unit("minute") ** -power if name == "rpm" else registry.Unit("dimensionless"))
                continue
            found = registry.parse_unit_name(_OF_TEMPERATURE.get(name, name))
            if not found:
                return None
            unit = unit * registry.Unit("".join(found[0][:2])) ** power
        one, two = (registry.Quantity(number, unit).to_root_units() for number in (1.0, 2.0))
        offset = 0.0
        if not is_difference and factors[0][0] in _OF_TEMPERATURE and len(factors) == 1 and factors[0][1] == 1:
            offset = float(registry.Quantity(0.0, factors[0][0]).to_root_units().magnitude)
    except (pint.PintError, ArithmeticError, AttributeError, ValueError, TypeError):
        return None
    factor = float(one.magnitude)
    is_linear = math.isclose(two.magnitude, 2.0 * factor, rel_tol=1e-9)  # decibels are not
    return Unit(text, _kind(one), factor, offset) if is_linear and 0.0 < factor < math.inf else None


def _with_degrees(factors: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """C and F alone, or over nothing but times, are degrees; elsewhere coulombs and farads."""
    others = [(name, power) for name, power in factors if name not in ("C", "F")]
    if len(factors) != len(others) + 1 or not all(name in _TIMES and power < 0 for name, power in others):
        return factors
    return [("deg" + name if name in ("C", "F") else name, power) for name, power in factors]


def _kind(quantity: Any) -> str:
    # What has no dimension still counts something: an angle is no percentage and neither are bits.
    measured = str(quantity.dimensionality if quantity.dimensionality else quantity.units)
    dimensions = measured.replace("[", "").replace("]", "")
    return _KINDS.get(dimensions, dimensions)


@lru_cache(maxsize=1)  # half a second to make, and never changed
def _registry() -> UnitRegistry:
    import pint

    return pint.UnitRegistry()
