"""Money and faults in words, the same on the terminal, in a log and in the report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.results import RoleUsage

TOTAL = "all"
"""What the sum of all roles is called in tables; no role has this name."""


def dollars(usd: float | None) -> str:
    """US dollars; an unknown price is unknown, not zero, and a small one is not rounded to zero.

    >>> dollars(None), dollars(0.0), dollars(0.0000123), dollars(3.4)
    ('unknown', '$0', '$0.000012', '$3.40')
    """
    if usd is None:
        return "unknown"
    if usd == 0:
        return "$0"
    return f"${usd:,.{2 if usd >= 0.1 else 1 - math.floor(math.log10(usd))}f}"


def fault_words(failures: Mapping[str, int]) -> str:
    """Names of faults with how often each was met, the most frequent first; empty when there was none.

    >>> fault_words({"server_error": 1, "rate_limit": 12})
    '12 rate_limit, 1 server_error'
    """
    ordered = sorted(failures.items(), key=lambda named: (-named[1], named[0]))
    return ", ".join(f"{times} {name}" for name, times in ordered)


def with_total(ledger: Mapping[str, RoleUsage]) -> dict[str, RoleUsage]:
    """Every role, and below several their sum under `TOTAL`; one unknown amount makes the sum unknown."""
    if len(ledger) < 2:
        return dict(ledger)
    roles = list(ledger.values())
    total = replace(
        roles[0],
        calls=sum(role.calls for role in roles),
        cached=sum(role.cached for role in roles),
        input_tokens=sum(role.input_tokens for role in roles),
        output_tokens=sum(role.output_tokens for role in roles),
        usd=_sum(role.usd for role in roles),
        failures=sum((Counter(role.failures) for role in roles), Counter[str]()),
        replayed_input_tokens=sum(role.replayed_input_tokens for role in roles),
        replayed_output_tokens=sum(role.replayed_output_tokens for role in roles),
        replayed_usd=_sum(role.replayed_usd for role in roles if role.cached),
        estimated=sum(role.estimated for role in roles),
    )
    return {**ledger, TOTAL: total}


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = list(amounts)
    return None if None in known else sum(amount for amount in known if amount is not None)
