"""A value together with the fields beside it, for evaluators that cannot judge it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metrics.evaluators.states import MISSING
from metrics.evaluators.text import shown


@dataclass(frozen=True, slots=True)
class WithSiblings:
    """A value of a record and what stands beside it, as a record metric hands it to an evaluator with `siblings`.

    Attributes:
        value: the value itself.
        siblings: the fields the evaluator asked for, by name; MISSING where the record has none.

    >>> WithSiblings(900, {"temp_unit": "C"})
    900 [temp_unit: 'C']
    """

    value: Any
    siblings: Mapping[str, Any]

    def __repr__(self) -> str:
        beside = ", ".join(
            f"{name}: {'nothing' if value is MISSING else shown(value)}" for name, value in self.siblings.items()
        )
        return f"{shown(self.value)} [{beside}]"
