"""quantity: numbers with units, whatever unit each is given in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, field_validator

from metrics.evaluators.base import ValueEvaluator
from metrics.evaluators.readings import Reading, reading_of
from metrics.evaluators.siblings import WithSiblings
from metrics.evaluators.states import has_value, is_container
from metrics.evaluators.text import Identity, equal_matrix, identity, is_number, normalized, same_matrix, shown
from metrics.evaluators.tolerance import ToleranceConfig
from metrics.evaluators.units import Unit, unit_of

WORDS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("room temperature", "room temp", "rt", "r.t.", "r.t"), "20 to 25 °C"),
        **dict.fromkeys(("ambient temperature", "ambient"), "20 to 25 °C"),
        **dict.fromkeys(("ambient pressure", "atmospheric pressure", "normal pressure"), "0.95 to 1.05 atm"),
        "overnight": "12 to 16 h",
    }
)
"""Words for amounts, and the range each means. Room temperature is the controlled room temperature of the United
States Pharmacopeia; overnight and the pressures are a choice of this package, wide enough for how papers use them."""

_LONGEST = 120
"""Characters of the longest text that is looked at for an amount."""
_BOUNDS: Mapping[str, str] = MappingProxyType({"": "an amount", "<": "an upper bound", ">": "a lower bound"})
_ROUNDING = 1e-9
"""Share by which converting one unit into another may be off in floating point."""


class QuantityConfig(ToleranceConfig):
    """Options of `quantity`.

    Attributes:
        absolute_tolerance: a difference up to this counts 1, in the unit of the expected value.
        relative_tolerance: a difference up to this share of the expected value counts 1; of a temperature in kelvin,
            since a share of degrees depends on where their zero lies. The default lets 773 K be 500 °C.
        unit_field: name of the field beside the value that holds its unit.
        default_unit: unit of values that give none.
        missing_unit: where one side gives no unit and nothing above supplies one: "refuse" to compare them, or
            "assume" the other side's unit.
        difference: the values are differences of temperature, of which 10 °C are 10 K.
        words: word -> the amount it means, beside those in `WORDS`; null takes a word out.
    """

    relative_tolerance: float = Field(1e-3, ge=0.0)
    unit_field: str | None = Field(None, min_length=1, pattern=r"^[^.\[\]]+$")
    default_unit: str | None = None
    missing_unit: Literal["refuse", "assume"] = "refuse"
    difference: bool = False
    words: dict[str, str | None] = Field(default_factory=lambda: dict(WORDS))

    @field_validator("default_unit")
    @classmethod
    def _is_a_unit(cls, unit: str | None) -> str | None:
        if unit is not None and not unit_of(unit).is_known:
            raise ValueError(f"{unit!r} is no unit; write it as in 'h', 'degC' or 'mol/L'")
        return unit

    @field_validator("words")
    @classmethod
    def _are_amounts(cls, words: dict[str, str | None]) -> dict[str, str | None]:
        for word, amount in words.items():
            if amount is not None and WORDS.get(word) != amount and reading_of(amount) is None:
                raise ValueError(f"{word!r} means an amount such as '12 to 16 h', not {amount!r}")
        merged = {**WORDS, **{_plain(word): amount for word, amount in words.items()}}
        return {word: amount for word, amount in merged.items() if amount is not None}


@dataclass(frozen=True, slots=True)
class _Operand:
    """One side: what it reads as, and what it is as text where it reads as nothing.

    Attributes:
        identity, unit_written: what equality goes by where there is no amount.
        problem: why it can be compared with nothing; "" where it can.
    """

    reading: Reading | None
    identity: Identity
    unit_written: str = ""
    problem: str = ""


class QuantityEvaluator(ValueEvaluator):
    """Whether two amounts are the same, in whatever units; Pint converts.

        tolerance = max(absolute_tolerance, relative_tolerance * |expected|)      both in base units
        value     = 1 up to the tolerance; beyond it 0, or falling as `numeric` falls with partial "linear"

    Of two ranges both ends count, and the value is that of the worse one; a single number is a range without width,
    and so is not equal to a range. Where both sides state a spread (±) it counts as a third number. "~" changes
    nothing; "<" and ">" are equal only to their like. Different kinds (mass and volume, mol% and wt%) count 0.

    A word of the table means any amount in its range: it equals amounts within it, and the feedback says what it was
    read as. What is no amount on one side ("several times") is compared as text. A bare number equals a bare number;
    beside an amount with a unit it is refused: an extracted one counts 0, an expected one leaves the result unscored.
    A list or an object cannot be compared: where one is expected the result is unscored.

    Args:
        config: see `QuantityConfig`.

    Raises:
        ValueError: an option that is none, a default_unit that is no unit, a word that means no amount.

    >>> quantity = QuantityEvaluator()
    >>> quantity.evaluate("773.15 K", "500 °C"), quantity.evaluate("90 min", "1.5 h")
    (1.0, 1.0)
    >>> quantity.score("1 mmol", "1 mol").feedback
    "expected '1 mol', got '1 mmol' (off by 0.999 mol)"
    >>> quantity.score("100 min", "1.5 h", field_path="time").feedback
    "time: expected '1.5 h', got '100 min' (off by 0.166667 h)"
    >>> quantity.score("5 g", "5 mL").feedback
    "expected '5 mL', got '5 g' (mL is volume, g is mass)"
    """

    alias: ClassVar[str] = "quantity"
    config_model: ClassVar[type[BaseModel]] = QuantityConfig

    @property
    def siblings(self) -> tuple[str, ...]:
        field = self._options.unit_field
        return () if field is None else (field,)

    def compare(self, extracted: Any, expected: Any) -> tuple[float | None, str]:
        first, second = self._operand(extracted), self._operand(expected)
        if not second.problem and type(extracted) is type(expected) and extracted == expected:
            return 1.0, ""
        value = float(self._values([first], [second])[0, 0])
        if math.isnan(value):
            return None, second.problem or (
                "the expected value has no unit and the extracted one has; give unit_field, default_unit or "
                "missing_unit: assume"
            )
        return value, self._note(first, second, value)

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        rows, columns = ([self._operand(value) for value in side] for side in (extracted, expected))
        return self._values(rows, columns)

    @property
    def _options(self) -> QuantityConfig:
        return cast(QuantityConfig, self.config)

    def _operand(self, value: Any) -> _Operand:
        beside = None
        if isinstance(value, WithSiblings):
            beside, value = value.siblings.get(self._options.unit_field or ""), value.value
        known = identity(value, _plain)
        if is_container(value):
            return _Operand(None, known, problem="quantity compares amounts, not lists or objects; name the values")
        reading = self._reading(value)
        unit = unit_of(str(beside)[:_LONGEST], is_difference=self._options.difference) if has_value(beside) else None
        if reading is not None and unit is not None and not reading.word:
            if reading.unit is not None and not _is_same(reading.unit, unit):
                problem = f"two units: {reading.unit.name!r} in the value and {unit.name!r} in {self.siblings[0]}"
                return _Operand(None, known, problem=problem)
            reading = replace(reading, unit=unit)
        if reading is not None and reading.unit is None and self._options.default_unit is not None:
            default = unit_of(self._options.default_unit, is_difference=self._options.difference)
            reading = replace(reading, unit=default)
        return _Operand(_finite(reading), known, "" if unit is None else unit.name)

    def _reading(self, value: Any) -> Reading | None:
        is_difference = self._options.difference
        if isinstance(value, str):
            word = _plain(value)
            meaning = self._options.words.get(word)
            if meaning is None:
                return _read(value, is_difference) if len(value) <= _LONGEST else None
            found = _read(meaning, is_difference)
            return None if found is None else replace(found, word=word)
        if not is_number(value):
            return None
        try:
            return Reading(float(value), float(value))
        except (OverflowError, ValueError):
            return None

    def _values(self, rows: Sequence[_Operand], columns: Sequence[_Operand]) -> NDArray[np.float64]:
        """The value of every extracted operand (row) with every expected one (column), NaN where there is none."""
        values = equal_matrix([row.identity for row in rows], [column.identity for column in columns]).astype(float)
        values *= same_matrix([row.unit_written for row in rows], [column.unit_written for column in columns])
        read = _indices(rows), _indices(columns)
        cells = np.ix_(*read)
        if values[cells].size:
            side = [[cast(Reading, one.reading) for one in side if one.reading is not None] for side in (rows, columns)]
            values[cells] = self._of_readings(*side)
        values[[index for index, row in enumerate(rows) if row.problem]] = 0.0
        values[:, [index for index, column in enumerate(columns) if column.problem]] = math.nan
        return values

    def _of_readings(self, rows: Sequence[Reading], columns: Sequence[Reading]) -> NDArray[np.float64]:
        extracted, expected = _Arrays(rows), _Arrays(columns)
        lent = extracted.is_bare[:, None] != expected.is_bare[None, :]
        comparable = same_matrix([_kind(row) for row in rows], [_kind(column) for column in columns]) | lent
        comparable &= same_matrix([row.bound for row in rows], [column.bound for column in columns])
        with np.errstate(over="ignore", invalid="ignore"):  # infinitely far apart is an answer
            values = np.where(comparable, self._closeness(extracted, expected, lent), 0.0)
        if self._options.missing_unit == "refuse":
            values[lent] = np.where(expected.is_bare[None, :], math.nan, 0.0).repeat(len(rows), axis=0)[lent]
        return values

    def _closeness(self, extracted: _Arrays, expected: _Arrays, lent: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The value of every pair as if all were of one kind; where one has no unit it borrows the other's."""
        lent_rows, lent_columns = lent & extracted.is_bare[:, None], lent & expected.is_bare[None, :]
        factor = np.where(lent_columns, extracted.factor[:, None], expected.factor[None, :])
        ends: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        for name in ("low", "high"):
            first, second = getattr(extracted, name)[:, None], getattr(expected, name)[None, :]
            first = first * np.where(lent_rows, factor, extracted.factor[:, None]) + np.where(
                lent_rows, expected.offset[None, :], extracted.offset[:, None]
            )
            second = second * factor + np.where(lent_columns, extracted.offset[:, None], expected.offset[None, :])
            ends.append((first, second))
        (low, wanted_low), (high, wanted_high) = ends
        below, above = low - wanted_low, wanted_high - high  # how far the expected range reaches further than ours
        row_is_word, column_is_word = extracted.is_word[:, None], expected.is_word[None, :]
        inward, outward = column_is_word & ~row_is_word, row_is_word & ~column_is_word
        value = np.ones(lent.shape)
        for gap, wanted, got in ((below, wanted_low, low), (above, wanted_high, high)):
            difference = np.where(inward, np.maximum(-gap, 0.0), np.where(outward, np.maximum(gap, 0.0), np.abs(gap)))
            value = np.minimum(value, self._credit(difference, wanted, got, factor))
        spread, wanted = extracted.spread[:, None] * extracted.factor[:, None], expected.spread[None, :] * factor
        stated = ~np.isnan(spread) & ~np.isnan(wanted)
        of_spread = self._credit(np.abs(spread - wanted), wanted, spread, factor)
        return np.where(stated, np.minimum(value, of_spread), value)

    def _credit(
        self,
        difference: NDArray[np.float64],
        wanted: NDArray[np.float64],
        got: NDArray[np.float64],
        factor: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        options = self._options
        stated = np.maximum(options.absolute_tolerance * factor, options.relative_tolerance * np.abs(wanted))
        rounding = _ROUNDING * np.maximum(np.abs(wanted), np.abs(got))
        return options.credit(difference, np.maximum(stated, rounding))

    def _note(self, extracted: _Operand, expected: _Operand, value: float) -> str:
        first, second = extracted.reading, expected.reading
        if extracted.problem:
            return extracted.problem
        if first is None or second is None:
            return "" if value else "not both are amounts; compared as text"
        notes = [f"{one.word!r} is read as {_shown(one)}" for one in (first, second) if one.word]
        if first.word == second.word:
            notes = []
        if value < 1.0:
            notes.insert(0, _difference(first, second, is_lent=self._options.missing_unit == "assume"))
        elif (first.unit is None) != (second.unit is None):
            notes.append(f"taken to be in {_unit_of_either(first, second).name}")
        return "; ".join(notes)


class _Arrays:
    """Readings as columns of numbers, in the units they are given in; spread NaN where there is none."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self.low, self.high, self.spread, self.factor, self.offset = np.array(
            [
                (
                    one.low,
                    one.high,
                    math.nan if one.spread is None else one.spread,
                    1.0 if one.unit is None else one.unit.factor,
                    0.0 if one.unit is None else one.unit.offset,
                )
                for one in readings
            ],
            dtype=np.float64,
        ).T
        self.is_bare = np.array([one.unit is None for one in readings])
        self.is_word = np.array([bool(one.word) for one in readings])


@lru_cache(maxsize=4096)
def _read(text: str, is_difference: bool) -> Reading | None:
    return reading_of(text, is_difference=is_difference)


def _plain(text: str) -> str:
    """The form in which words and other texts are compared here."""
    return " ".join(normalized(text).split()).casefold()


def _finite(reading: Reading | None) -> Reading | None:
    """The reading, unless one of its ends is no finite number in base units."""
    if reading is None:
        return None
    ends = (reading.low, reading.high)
    in_base = ends if reading.unit is None else [reading.unit.in_base(end) for end in ends]
    return reading if all(map(math.isfinite, in_base)) else None


def _is_same(first: Unit, second: Unit) -> bool:
    return (first.kind, first.factor, first.offset) == (second.kind, second.factor, second.offset)


def _indices(operands: Sequence[_Operand]) -> list[int]:
    return [index for index, one in enumerate(operands) if one.reading is not None]


def _kind(reading: Reading) -> str:
    return "" if reading.unit is None else reading.unit.kind


def _unit_of_either(first: Reading, second: Reading) -> Unit:
    return cast(Unit, first.unit or second.unit)


def _shown(reading: Reading) -> str:
    ends = dict.fromkeys((reading.low, reading.high))
    number = " to ".join(f"{end:.6g}" for end in ends)
    return number if reading.unit is None else f"{number} {reading.unit.name}"


def _difference(first: Reading, second: Reading, *, is_lent: bool) -> str:
    """Why an extracted amount is not the expected one, in the expected one's unit."""
    if (first.unit is None) != (second.unit is None) and not is_lent:
        return f"no unit, where {_unit_of_either(first, second).name} was expected"
    units = first.unit or second.unit, second.unit or first.unit
    if units[0] is not None and units[1] is not None and units[0].kind != units[1].kind:
        return ", ".join(_described(unit) for unit in (units[1], units[0]))
    if first.bound != second.bound:
        return f"{_BOUNDS[first.bound]}, where {_BOUNDS[second.bound]} was expected"
    wanted = units[1] or Unit("", "")
    gaps = [
        abs((units[0] or wanted).in_base(got) - wanted.in_base(end)) / wanted.factor
        for got, end in ((first.low, second.low), (first.high, second.high))
    ]
    numbers = dict.fromkeys(f"{gap:.6g}" for gap in gaps)
    note = f"off by {' and '.join(numbers)} {wanted.name}".rstrip()
    return note if any(gaps) else f"{note}, and in what stands after ±"


def _described(unit: Unit) -> str:
    return f"{unit.name} is {unit.kind}" if unit.is_known else f"{shown(unit.name)} is no unit"
