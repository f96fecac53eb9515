"""Which name in one figure is which name in another: legends as papers write them and as models read them.

Two names are the same in one of four forms, the strictest first: as they are written; after Unicode, LaTeX and spaces;
without case and with one separator for all of them; with characters that look alike taken for each other (O and 0;
l, I and 1), so that "Pd/Zr02" is "Pd/ZrO2". A name that was found in a stricter form is taken and is no candidate in a
later one: in a figure with both "Co" and "CO", each is itself.

What stays different: other numbers ("0.4% TiO2", "0.5% TiO2"), other formulas ("Pd/ZrO2", "Pt/ZrO2"), another order
and another grouping of the elements ("Pd-Cu", "Cu-Pd" and "CuPd" are three catalysts), other words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from metrics.evaluators.composition import ELEMENTS
from metrics.evaluators.text import normalized, similarity

_LEAST_ALIKE = 0.8
"""Two spellings are alike above this. PEEK and PEKK, two polymers, are 0.75."""

_LONGEST = 300
"""Characters: what is longer is no name, and like nothing but itself."""

_FORMULA = re.compile(f"(?:(?:{'|'.join(sorted(ELEMENTS, key=len, reverse=True))})(?:\\d+\\.?\\d*)?)+")
_RUN = re.compile(r"[A-Za-z0-9.]+")
_LATEX = re.compile(r"\\(?:mathrm|mathit|mathbf|text|rm|it|bf|left|right)\b|</?su[bp]>|\\[,;!]|[${}^\\]")
_TOKEN = re.compile(r"(?<![\w)\]])-?(?:\d*\.\d+|\d+)|\d*\.\d+|\d+|[^\W\d_]+")
_LOOK_ALIKE = str.maketrans({"o": "0", "i": "1", "l": "1"})

Form = Callable[[str], Hashable]


def tidied(name: str) -> str:
    """The name in Unicode's normal form, without LaTeX and surplus white space, Greek letters spelled out.

    >>> tidied("$\\\\mathrm{CeO_2}$"), tidied(" γ-Al₂O₃ ")
    ('CeO_2', 'gamma-Al2O3')
    """
    if len(name) > _LONGEST:
        return name
    return " ".join("".join(map(_spelled, _LATEX.sub("", normalized(name)))).split())


def canonical(name: str) -> str:
    """The letters and numbers of a name, with "-" wherever a separator keeps two words or two numbers apart.

    >>> canonical("3Ru_10K_CaO") == canonical("3Ru/10K-CaO"), canonical("0.50 % PVA"), canonical("1bar")
    (True, '0.5pva', '1bar')
    >>> canonical("Pd-Cu/"), canonical("Cu-Pd/"), canonical("CuPd")
    ('pd-cu', 'cu-pd', 'cupd')
    """
    if len(name) > _LONGEST:
        return name
    written = ""
    end = -1
    text = tidied(name).casefold()
    for token in _TOKEN.finditer(text):
        word = _number(token.group())
        apart = bool(written) and token.start() > end and written[-1].isdigit() == word[-1].isdigit()
        written += f"-{word}" if apart else word
        end = token.end()
    return written or text


def look_alike(name: str) -> str:
    """The canonical form with characters that are taken for each other made one.

    >>> look_alike("Pd/Zr02") == look_alike("Pd/ZrO2"), look_alike("A12O3") == look_alike("Al2O3")
    (True, True)
    """
    return canonical(name).translate(_LOOK_ALIKE)


FORMS: tuple[Form, ...] = (str, tidied, canonical, look_alike)
"""From the strictest to the most tolerant."""


def name_similarity(first: str, second: str) -> float:
    """1 for the same name in any form, else the likeness of two spellings of what may be one name, else 0.

    >>> name_similarity("Pd/Zr02", "Pd/ZrO₂"), name_similarity("Pd-Cu/ZrO2", "CuPd/ZrO2")
    (1.0, 0.0)
    >>> round(name_similarity("ZrO2 nanorod", "ZrO2 nanorods"), 2), name_similarity("Pt/ZrO2", "Pd/ZrO2")
    (0.92, 0.0)
    """
    return float(name_matrix([first], [second])[0][0, 0])


def name_matrix(rows: Sequence[str], columns: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """`name_similarity` of every row with every column, and which pairs are the same name.

    The names of one figure exclude each other: what has its own name on the other side is like nothing else there.
    """
    alike = np.zeros((len(rows), len(columns)))
    same = np.zeros(alike.shape, dtype=bool)
    free_rows, free_columns = list(range(len(rows))), list(range(len(columns)))
    for form in FORMS:
        places: dict[Hashable, list[int]] = {}
        for column in free_columns:
            places.setdefault(form(columns[column]), []).append(column)
        for row in free_rows:
            same[row, places.get(form(rows[row]), [])] = True
        free_rows = [row for row in free_rows if not same[row].any()]
        free_columns = [column for column in free_columns if not same[:, column].any()]
        if not free_rows or not free_columns:
            break
    described = _described(columns, free_columns)
    for row, identity, form in _described(rows, free_rows):
        for column, other, other_form in described:
            likeness = similarity(form, other_form) if identity == other else 0.0
            alike[row, column] = likeness if likeness > _LEAST_ALIKE else 0.0
    alike[same] = 1.0
    return alike, same


def resolved(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Each name as `known` writes it, where one of `known` alone is the same in the strictest form that fits.

    >>> resolved(["Pd/Zr02", "blank", "Pd"], ["Pd/ZrO2", "Blank"])
    ['Pd/ZrO2', 'Blank', 'Pd']
    """
    tables: list[tuple[Form, dict[Hashable, set[str]]]] = []
    for form in FORMS:
        table: dict[Hashable, set[str]] = {}
        for name in known:
            table.setdefault(form(name), set()).add(name)
        tables.append((form, table))
    found: dict[str, str] = {}
    for name in set(names):
        fitting = next((table[form(name)] for form, table in tables if form(name) in table), set[str]())
        found[name] = next(iter(fitting)) if len(fitting) == 1 else name
    return [found[name] for name in names]


def _spelled(sign: str) -> str:
    if sign.isascii():
        return sign
    described = unicodedata.name(sign, "")
    return described.rpartition(" ")[2].lower() if re.fullmatch(r"GREEK SMALL LETTER \w+", described) else sign


def _number(token: str) -> str:
    """A number without surplus zeros behind its point; anything else as it is."""
    if "." not in token or len(token) > 30:
        return token
    return f"{float(token):.12g}"


Identity = tuple[list[float], list[str], list[str]]


def _described(names: Sequence[str], places: Sequence[int]) -> list[tuple[int, Identity, str]]:
    return [
        (place, _identity(names[place]), canonical(names[place])) for place in places if len(names[place]) <= _LONGEST
    ]


def _identity(name: str) -> Identity:
    """What two spellings of one name have in common: its numbers, its formulas, how its words begin."""
    text = tidied(name)
    tokens = [token.group() for token in _TOKEN.finditer(text.casefold())]
    numbers = [float(token) for token in tokens if token[-1].isdigit()]
    runs = [re.sub(r"(?<=[A-Za-z])0(?!\.)", "O", run) for run in _RUN.findall(text)]
    words = [token[0] for token in tokens if not token[-1].isdigit()]
    return numbers, [run for run in runs if _FORMULA.fullmatch(run)], words
