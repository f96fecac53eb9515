"""Numbers as people read them: the same digits on the terminal, in the report and on plots."""

from __future__ import annotations


def fixed(number: float, digits: int, *, signed: bool = False) -> str:
    """`number` with `digits` decimals; what rounds to zero is no `-0.000`, which says something that is not so.

    Args:
        number: finite.
        digits: decimals, from 0.
        signed: write a plus before what is not negative, as differences do.

    >>> fixed(0.12345, 3), fixed(0.12345, 3, signed=True), fixed(-0.12345, 2)
    ('0.123', '+0.123', '-0.12')
    >>> fixed(-0.0, 3), fixed(-0.0004, 3, signed=True), fixed(0.0004, 3, signed=True)
    ('0.000', '+0.000', '+0.000')
    """
    return f"{number:{'+' if signed else ''}z.{digits}f}"
