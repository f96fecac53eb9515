"""A chemical formula as text, read into how many of each element it has.

Amounts are polynomials in the symbols of the formula with rational coefficients, so that Li1-xCoO2 has 1 - x lithium
and LiNi1/3Co1/3Mn1/3O2 a third of a nickel, exactly. Read are subscripts, LaTeX and HTML of them, brackets, charges,
hydrates and other parts joined by a dot, coefficients, decimals and fractions, isotopes (D, ¹³C), a few groups of
organic chemistry (Me, Et, Ph, Bu, OAc, acac), a phase before it (α-Fe2O3) and a value of a symbol after it
("(x = 0.2)"). Where flat text is ambiguous:

- "Fe3+" has a charge of three, "NH4+" of one, "SO42-" of two: of an ion of one element all digits before the sign are
  the charge, else the last of several.
- ".7H2O" is seven water after a dot, in "LaCl3.7H2O" too; any other ".7" after a digit is a decimal.
- Ac alone is actinium.

Everything else is no formula: names, mixtures and composites ("Ni/Al2O3"), families ("x = 0, 0.1"), zeros for the
letter O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from metrics.evaluators.text import normalized

_LONGEST = 200
_DEEPEST = 8
_MOST_TERMS = 64

_SYMBOLS = """
H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc
Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi
Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og
"""
ELEMENTS = frozenset(_SYMBOLS.split())
"""The 118 elements of the periodic table of IUPAC."""

Amount = Mapping[tuple[str, ...], Fraction]
"""A polynomial: product of symbols -> coefficient; the empty product is the constant."""

_GROUPS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "Me": {"C": 1, "H": 3},
        "Et": {"C": 2, "H": 5},
        "Ph": {"C": 6, "H": 5},
        "Bu": {"C": 4, "H": 9},
        "OAc": {"C": 2, "H": 3, "O": 2},
        "AcO": {"C": 2, "H": 3, "O": 2},
        "acac": {"C": 5, "H": 7, "O": 2},
    }
)
_GREEK = MappingProxyType({"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ"})
_OPENING, _CLOSING = "([{", ")]}"

_LOST = r"?\\\x00-\x08\x0e-\x1f\ue000-\uf8ff"
"""What stands for a dot where a text was taken from a file without its font."""
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_MARKUP = re.compile(r"</?sub>|\\mathrm|\$|\\,")
_LOW_BRACES, _HIGH_BRACES = re.compile(r"_\{([^{}]*)\}"), re.compile(r"\^\{([^{}]*)\}|<sup>([^<]*)</sup>")
_WATER = r"\(?[HD]2O\b"
_DOT_BEFORE_WATER = re.compile(rf" ?(?:\.| [x×]|×|:|\[\?\]|[{_LOST}]+) ?(?=(?:\d+(?:\.\d+)?|\d+/\d+|[nxy])? ?{_WATER})")
_SPACE_BEFORE_WATER = re.compile(rf"(?<=[\w)\]]) (?=(?:\d+(?:\.\d+)?|\d+/\d+)? ?{_WATER})")
_DOT_BETWEEN = re.compile(r"\s*[·*]\s*|\s+\.\s+|\.(?=[A-Z(\[])")
_SPACE_BEFORE_GROUP = re.compile(r"(?<=[\w)\]]) (?=[(\[][A-Z][^\s]*[)\]]\d)")
_DETACHED_SUBSCRIPT = re.compile(r"[A-Za-z)\]] (?=[\d.])")
_GIVEN = re.compile(r"[ ,;]*\(?\b(x|y|z|δ) ?= ?(\d+(?:\.\d+)?|\.\d+)\)?$")
_PHASE = re.compile(rf"([αβγδεηθκλσ]|{'|'.join(_GREEK)})-(?=[A-Z(\[])")
_CHARGE = re.compile(
    r"(?P<caret>\^)?\(?(?P<digits>\d*)(?P<sign>[+-])\)?$|\^?(?P<sign_first>[+-])(?P<digits_last>\d+)$|"
    r" (?P<apart>\d*)(?P<sign_apart>[+-])$"
)

_NUMBER = r"(?:0|[1-9]\d*)(?:\.\d+)?|\.\d+"
_SYMBOL = r"[xyzuvwδεξ]|delta"
_TERM = rf"(?:(?:{_NUMBER})(?:/[1-9]\d*)?(?:{_SYMBOL})?|(?:{_SYMBOL})(?:/[1-9]\d*)?)"
_SYMBOLIC_TERM = rf"(?:(?:{_NUMBER})(?:/[1-9]\d*)?)?(?:{_SYMBOL}|d)(?![a-z])"
_SUM = rf"{_TERM}(?:(?:[+-]|±){_SYMBOLIC_TERM})*"
_SPACED_SIGN = re.compile(rf"(?<=\d) ?([+-]|±) ?(?=(?:\d*\.?\d+)?(?:{_SYMBOL})(?![a-z]))")
_COUNT = re.compile(rf"(?P<times>{_NUMBER})?\((?P<inner>{_SUM})\)(?:/(?P<under>[1-9]\d*))?(?=[^\d.]|$)|(?P<sum>{_SUM})")
_COEFFICIENT = re.compile(rf"\((?P<inner>{_SUM})\)(?=[A-Z(\[])|(?P<sum>{_SUM}|n)(?=[A-Z(\[])")
_ONE_TERM = re.compile(rf"([+-]|±)?({_NUMBER})?(?:/(\d+))?({_SYMBOL}|d|n)?(?:/(\d+))?")
_ATOM = re.compile(r"OAc|AcO|acac|\^(?P<isotope>\d{1,3})(?P<of>[A-Z][a-z]?)|\[(?P<mass>\d{1,3})(?P<in>[A-Z][a-z]?)\]")


@dataclass(frozen=True, slots=True)
class Composition:
    """What a formula says.

    Attributes:
        amounts: element or isotope -> how many.
        charge: in elementary charges.
        phase: the Greek letter before it, "" without one.
    """

    amounts: Mapping[str, Amount]
    charge: int = 0
    phase: str = ""

    def reduced(self) -> Composition:
        """The same per atom, symbols counted 0: what is alike in Li2Co2O4 and LiCoO2. The charge stays.

        >>> composition_of("C6H6").reduced() == composition_of("C2H2").reduced()
        True
        """
        atoms = sum((amount.get((), Fraction(0)) for amount in self.amounts.values()), Fraction(0))
        if atoms <= 0:
            return self
        amounts = {
            element: {product: number / atoms for product, number in amount.items()}
            for element, amount in self.amounts.items()
        }
        return Composition(amounts, self.charge, self.phase)

    def key(self) -> frozenset[tuple[str, tuple[str, ...], Fraction]]:
        """The amounts as something that can be hashed: equal for equal compositions."""
        return frozenset(
            (element, product, number) for element, amount in self.amounts.items() for product, number in amount.items()
        )


class _NotAFormula(Exception):
    """The text is something else."""


@lru_cache(maxsize=4096)
def composition_of(text: str) -> Composition | None:
    """The composition that `text` is the formula of, or None when it is anything else.

    Args:
        text: any text; one longer than 200 characters is no formula.

    >>> composition_of("LiCoO₂") == composition_of("CoLiO2")
    True
    >>> {element: str(amount[()]) for element, amount in composition_of("CuSO4·5H2O").amounts.items()}
    {'Cu': '1', 'S': '1', 'O': '9', 'H': '10'}
    >>> composition_of("water"), composition_of("Ni/Al2O3")
    (None, None)
    """
    if len(text) > _LONGEST:
        return None
    cleaned, given = _GIVEN.subn("", _cleaned(text))
    values = {found[1]: found[2] for found in _GIVEN.finditer(_cleaned(text))} if given else {}
    phase = _PHASE.match(cleaned)
    if phase is not None:
        cleaned = cleaned[phase.end() :]
    for spelled in dict.fromkeys((_with_dots(cleaned), _with_dots(cleaned, before_water=False))):
        try:
            amounts, charge = _charged(spelled)
            amounts = {element: _with_values(amount, values) for element, amount in amounts.items()}
        except _NotAFormula:
            continue
        kept = {element: amount for element, amount in amounts.items() if amount}
        symbols = {symbol for amount in kept.values() for product in amount for symbol in product}
        if kept and not (symbols and len(kept) == 1):  # "Six" is a number
            return Composition(kept, charge, _GREEK.get(phase[1], phase[1]) if phase else "")
    return None


def _cleaned(text: str) -> str:
    text = _RAISED.sub(lambda raised: "^" + normalized(raised[0]), text)
    text = _MARKUP.sub("", normalized(text).replace("⁄", "/"))
    text = _HIGH_BRACES.sub(lambda high: "^" + (high[1] or high[2] or ""), _LOW_BRACES.sub(r"\1", text))
    return " ".join(text.replace("_", "").split())


def _with_dots(text: str, *, before_water: bool = True) -> str:
    """The formula with "·" between its parts and without the white space that subscripts leave behind."""
    if before_water:
        text = _SPACE_BEFORE_WATER.sub("·", _DOT_BEFORE_WATER.sub("·", text, count=1))
    text = _SPACED_SIGN.sub(r"\1", _SPACE_BEFORE_GROUP.sub("", _DOT_BETWEEN.sub("·", text)))
    if _DETACHED_SUBSCRIPT.search(text) and not _CHARGE.search(text):
        text = text.replace(" ", "")
    return re.sub(r"(?<=·)(\d+) (?=[A-Z(\[])", r"\1", text)


def _charged(text: str) -> tuple[dict[str, Amount], int]:
    try:
        return _parts(text), 0
    except _NotAFormula:
        found = _CHARGE.search(text)
        if found is None:
            raise
    body = text[: found.start()]
    sign = found["sign"] or found["sign_first"] or found["sign_apart"]
    digits = found["digits"] or found["digits_last"] or found["apart"] or ""
    is_flat = bool(found["sign"]) and not found["caret"] and "(" not in found[0]
    if is_flat and digits and body not in ELEMENTS and not body.endswith("]"):
        body, digits = body + (digits[:-1] or digits), digits[-1] if len(digits) > 1 else ""
    if len(digits) > 2:
        raise _NotAFormula
    return _parts(body), int(f"{sign}{digits or 1}")


def _parts(text: str) -> dict[str, Amount]:
    total: dict[str, dict[tuple[str, ...], Fraction]] = {}
    for part in text.split("·"):
        found, times = _COEFFICIENT.match(part), {(): Fraction(1)}
        if found is not None:
            part, times = part[found.end() :], _sum(found["inner"] or found["sum"])
        _add(total, _times(_group(part), times))
    return {**total}


def _group(text: str) -> dict[str, Amount]:
    """The amounts of a run of elements and brackets, each with its count."""
    stack: list[tuple[str, dict[str, dict[tuple[str, ...], Fraction]]]] = [("", {})]
    place = 0
    if not text:
        raise _NotAFormula
    while place < len(text):
        found = _ATOM.match(text, place)
        inner: Mapping[str, Amount]
        if found is None and text[place] in _OPENING:
            if len(stack) > _DEEPEST:
                raise _NotAFormula
            stack.append((_CLOSING[_OPENING.index(text[place])], {}))
            place += 1
            continue
        if found is None and text[place] in _CLOSING:
            closing, inner = stack.pop()
            if closing != text[place] or not inner:
                raise _NotAFormula
            place += 1
        else:
            inner, place = _atom(text, place, found)
        count = _COUNT.match(text, place)
        if count is not None:
            place = count.end()
            inner = _times(inner, _sum(count["inner"] or count["sum"], count["times"], count["under"]))
        _add(stack[-1][1], inner)
    if len(stack) > 1:
        raise _NotAFormula
    return {**stack[0][1]}


def _atom(text: str, place: int, found: re.Match[str] | None) -> tuple[Mapping[str, Amount], int]:
    one = {(): Fraction(1)}
    if found is not None:
        mass, element = found["isotope"] or found["mass"], found["of"] or found["in"]
        if mass is None:
            return _whole(_GROUPS[found[0]]), found.end()
        if element not in ELEMENTS:
            raise _NotAFormula
        return {"D" if mass + element == "2H" else mass + element: one}, found.end()
    for length in (2, 1):
        name = text[place : place + length]
        if name in ELEMENTS or name == "D":
            return {name: one}, place + length
        if name in _GROUPS:
            return _whole(_GROUPS[name]), place + length
    raise _NotAFormula


def _whole(group: Mapping[str, int]) -> dict[str, Amount]:
    return {element: {(): Fraction(number)} for element, number in group.items()}


def _sum(text: str, times: str | None = None, under: str | None = None) -> Amount:
    """The polynomial that a count is: "1-x", "0.5x", "1/3", times one number over another."""
    total: dict[tuple[str, ...], Fraction] = {}
    for sign, number, over, symbol, below in _ONE_TERM.findall(text):
        if not (number or symbol):
            continue
        value = Fraction(number or 1) / Fraction(over or 1) / Fraction(below or 1)
        value *= Fraction(times or 1) / Fraction(under or 1)
        symbol = {"delta": "δ", "d": "δ"}.get(symbol, symbol)
        product = () if not symbol else ("±" + symbol if sign == "±" else symbol,)
        total[product] = total.get(product, Fraction(0)) + (-value if sign == "-" else value)
    return total


def _times(amounts: Mapping[str, Amount], factor: Amount) -> dict[str, Amount]:
    return {element: _product(amount, factor) for element, amount in amounts.items()}


def _product(first: Amount, second: Amount) -> Amount:
    if len(first) * len(second) > _MOST_TERMS:
        raise _NotAFormula
    total: dict[tuple[str, ...], Fraction] = {}
    for one, number in first.items():
        for other, times in second.items():
            product = tuple(sorted((*one, *other)))
            total[product] = total.get(product, Fraction(0)) + number * times
    return {product: number for product, number in total.items() if number}


def _add(total: dict[str, dict[tuple[str, ...], Fraction]], amounts: Mapping[str, Amount]) -> None:
    for element, amount in amounts.items():
        held = total.setdefault(element, {})
        for product, number in amount.items():
            held[product] = held.get(product, Fraction(0)) + number


def _with_values(amount: Amount, values: Mapping[str, str]) -> Amount:
    """The amount with the symbols put in whose value is given, and without what cancels out."""
    total: dict[tuple[str, ...], Fraction] = {}
    for product, number in amount.items():
        for symbol in product:
            number *= Fraction(values.get(symbol, 1))
        rest = tuple(symbol for symbol in product if symbol not in values)
        total[rest] = total.get(rest, Fraction(0)) + number
    return {product: number for product, number in total.items() if number}
