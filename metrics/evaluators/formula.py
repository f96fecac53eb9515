"""formula: chemical formulas, equal when their compositions are."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from metrics.evaluators.base import EvaluatorConfig, ValueEvaluator
from metrics.evaluators.composition import Composition, composition_of
from metrics.evaluators.states import is_container
from metrics.evaluators.text import equal, equal_matrix, identity, normalized, same_matrix, shown

_LONGEST = 200
"""Characters of the longest text that is looked at for a formula."""
_MOST_NAMED = 6


class FormulaConfig(EvaluatorConfig):
    """Options of `formula`.

    Attributes:
        reduced: compare amounts per atom: Li2Co2O4 is LiCoO2 then, and C6H6 is C2H2.
        tolerance: two amounts of an element may differ by this much and count as equal: 0.005 lets 0.33 be 1/3.
        partial: "none": other compositions count 0. "overlap": the share of atoms that both have.
    """

    reduced: bool = False
    tolerance: float = Field(0.0, ge=0.0)
    partial: Literal["none", "overlap"] = "none"


class FormulaEvaluator(ValueEvaluator):
    """Whether two formulas are of the same composition, whatever the order, brackets and spelling.

        value = 1 where both have the same amount of every element and the same charge, else 0, or with partial
                "overlap"  1 - sum|a - b| / sum(a + b)    over elements, symbols and charge (J. Bray, J. Curtis,
                Ecological Monographs 27, 1957)

    See `metrics.evaluators.composition` for what is read and how. Isomers are equal, D2O and H2O are not; x in
    Li1-xCoO2 is a symbol and equals itself only; a phase (α-Fe2O3) counts where both sides give one. A name is not a
    formula: "water" is not H2O. Where neither side is a formula they are equal as text (in normal form, whatever the
    case) or 0, and the feedback says so; where one side is, the value is 0. A list or an object cannot be compared:
    where one is expected the result is unscored.

    >>> formula = FormulaEvaluator()
    >>> [formula.evaluate(text, "LiCoO2") for text in ("CoLiO2", "LiCoO₂", "LiCoO3", "lithium cobalt oxide")]
    [1.0, 1.0, 0.0, 0.0]
    >>> formula.score("LiCo2O4", "LiCoO2", field_path="target").feedback
    "target: expected 'LiCoO2', got 'LiCo2O4' (differs in Co: 2 for 1, O: 4 for 2)"
    >>> FormulaEvaluator({"partial": "overlap"}).evaluate("LiCoO3", "LiCoO2")
    0.8888888888888888
    """

    alias: ClassVar[str] = "formula"
    config_model: ClassVar[type[BaseModel]] = FormulaConfig

    def compare(self, extracted: Any, expected: Any) -> tuple[float | None, str]:
        if is_container(expected):
            return None, "formula compares formulas, not lists or objects; name the values inside"
        first, second = self._composition(extracted), self._composition(expected)
        if first is not None and second is not None:
            value = self._value(first, second)
            return value, _difference(first, second) if value < 1.0 else ""
        if first is None and second is None:
            same = equal(identity(extracted, _plain), identity(expected, _plain))
            return float(same), "neither is a formula; compared as text"
        return 0.0, f"{shown(expected if second is None else extracted)} is no formula"

    def similarities(self, extracted: Sequence[Any], expected: Sequence[Any]) -> NDArray[np.float64]:
        rows, columns = ([self._composition(value) for value in side] for side in (extracted, expected))
        texts = [
            [identity(value, _plain) if read is None else (("formula", index), None) for index, value, read in side]
            for side in (
                zip(range(len(rows)), extracted, rows, strict=True),
                zip(range(-1, -1 - len(columns), -1), expected, columns, strict=True),
            )
        ]
        values = equal_matrix(*texts).astype(np.float64)
        if self._options.partial == "none" and not self._options.tolerance:
            keys = [[None if one is None else (one.key(), one.charge) for one in side] for side in (rows, columns)]
            phases = [["" if one is None else one.phase for one in side] for side in (rows, columns)]
            agree = same_matrix(*phases) | np.array([not phase for phase in phases[0]])[:, None]
            values[same_matrix(*keys) & (agree | np.array([not phase for phase in phases[1]]))] = 1.0
        else:
            for row, first in enumerate(rows):
                for column, second in enumerate(columns):
                    if first is not None and second is not None:
                        values[row, column] = self._value(first, second)
        values[:, [is_container(value) for value in expected]] = np.nan
        return values

    @property
    def _options(self) -> FormulaConfig:
        return cast(FormulaConfig, self.config)

    def _composition(self, value: Any) -> Composition | None:
        if not isinstance(value, str) or len(value) > _LONGEST:
            return None
        found = composition_of(value.strip())
        return found.reduced() if found is not None and self._options.reduced else found

    def _value(self, first: Composition, second: Composition) -> float:
        if first.phase and second.phase and first.phase != second.phase:
            return 0.0
        options, pairs = self._options, _pairs(first, second)
        if first.charge == second.charge and all(
            one == other or (one and other and abs(one - other) <= options.tolerance) for one, other in pairs.values()
        ):
            return 1.0
        if options.partial == "none":
            return 0.0
        apart = sum((abs(one - other) for one, other in pairs.values()), Fraction(abs(first.charge - second.charge)))
        total = sum((abs(one) + abs(other) for one, other in pairs.values()), Fraction(0))
        return float(1 - apart / (total + abs(first.charge) + abs(second.charge)))


def _plain(text: str) -> str:
    return " ".join(normalized(text).split()).casefold()


def _pairs(first: Composition, second: Composition) -> dict[tuple[str, tuple[str, ...]], tuple[Fraction, Fraction]]:
    """Both amounts of every element and product of symbols that either has."""
    nothing = Fraction(0)
    return {
        (element, product): (
            first.amounts.get(element, {}).get(product, nothing),
            second.amounts.get(element, {}).get(product, nothing),
        )
        for element in dict.fromkeys([*second.amounts, *first.amounts])
        for product in dict.fromkeys([*second.amounts.get(element, {}), *first.amounts.get(element, {})])
    }


def _difference(extracted: Composition, expected: Composition) -> str:
    if extracted.phase and expected.phase and extracted.phase != expected.phase:
        return f"phase {extracted.phase} for {expected.phase}"
    differing = [
        f"{''.join((element, *product))}: {_short(got)} for {_short(wanted)}"
        for (element, product), (got, wanted) in _pairs(extracted, expected).items()
        if got != wanted
    ]
    if extracted.charge != expected.charge:
        differing.append(f"charge: {extracted.charge:+d} for {expected.charge:+d}")
    more = ["…"] if len(differing) > _MOST_NAMED else []
    return "differs in " + ", ".join(differing[:_MOST_NAMED] + more)


def _short(number: Fraction) -> str:
    try:
        return f"{float(number):.4g}"
    except OverflowError:
        return "a huge number"
