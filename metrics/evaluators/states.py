"""Missing, null, empty, value: the four states of a field, and which of them are equal. Declared here only.

Asked directly, an evaluator compares states before it compares values:

    expected \\ extracted   missing   null   empty   value
    missing                   1        0      0       0
    null                      0        1      0       0
    empty                     0        0      1       0
    value                     0        0      0       what the evaluator says

so None is not "None", "" is not 0, and a field that is not there is none of them. 0 and False are values.

In a record a field is *counted* when at least one side has a value. Where neither has one nothing was there to
be found and nothing was claimed: the field adds neither to the value nor to the number of fields, whether the
two sides say it by leaving it out, by null or by an empty text or list. A value on one side alone counts 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final


class State(Enum):
    """What a field holds."""

    MISSING = "missing"
    NULL = "null"
    EMPTY = "empty"
    VALUE = "value"


class _Missing(Enum):
    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing.MISSING
"""Stands for a field that is not there at all, which None (null) does not."""


def state_of(value: Any) -> State:
    """The state of one value; white space alone is empty text.

    >>> [state_of(value).value for value in (MISSING, None, "  ", [], 0, False, "None")]
    ['missing', 'null', 'empty', 'empty', 'value', 'value', 'value']
    """
    if value is None:
        return State.NULL
    if value is MISSING:
        return State.MISSING
    if isinstance(value, str):
        return State.EMPTY if not value or value.isspace() else State.VALUE
    if isinstance(value, int | float):
        return State.VALUE
    if isinstance(value, Mapping | list | tuple | set | frozenset) and not value:
        return State.EMPTY
    return State.VALUE


def is_container(value: Any) -> bool:
    """Whether `value` holds other values: a list or an object."""
    return isinstance(value, Mapping | list | tuple)


def has_value(value: Any) -> bool:
    """Whether `value` is something that can be right or wrong.

    >>> has_value(0), has_value(""), has_value(None)
    (True, False, False)
    """
    return state_of(value) is State.VALUE
