"""What MLflow accepts: names of metrics, params and tags, values of metrics, texts and their lengths.

A name MLflow refuses fails the whole batch it is in, NaN is stored as if it were a measurement, and a long param
is cut without a word. Everything that goes to MLflow passes through here first.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

MAX_NAME = 250
MAX_PARAM = 6000
MAX_TAG = 8000
MAX_DIGEST = 36

_INDEX = re.compile(r"\[(\d+)\]")
_REFUSED = re.compile(r"[^/\w.\- ]+")
_SURROGATES = re.compile("[\ud800-\udfff]")


class Usable(NamedTuple):
    """The metrics that are numbers, and the names of those that are not."""

    values: dict[str, float]
    skipped: list[str]


def clean_name(name: str) -> str:
    """A name that MLflow takes for a metric, a param or a tag on every platform: its path, without odd characters.

    Field paths keep their shape: `[*]` is dropped and `[3]` becomes a path step. Other refused characters become
    an underscore, too long a name ends in a digest of the whole.

    >>> clean_name("audit/steps[*].action")
    'audit/steps.action'
    >>> clean_name("steps[0].temp (°C)")
    'steps.0.temp _C_'
    >>> clean_name("../a//b/")
    'a/b'
    """
    text = _REFUSED.sub("_", _INDEX.sub(r".\1", name.replace("[*]", "")))
    steps = [step for step in text.split("/") if step.strip() and step not in (".", "..")]
    cleaned = "/".join(steps) or "_"
    if len(cleaned) <= MAX_NAME:
        return cleaned
    return f"{cleaned[: MAX_NAME - 9].rstrip('/')}-{_digest(name)}"


def clean_names(names: Iterable[str]) -> dict[str, str]:
    """Original name -> clean name, no two alike: names that become the same carry a digest of the original.

    >>> clean_names(["a", "temp (K)", "temp [K]"])
    {'a': 'a', 'temp (K)': 'temp _K_-e1a64247', 'temp [K]': 'temp _K_-99593561'}
    """
    cleaned = {name: clean_name(name) for name in names}
    taken: dict[str, int] = {}
    for clean in cleaned.values():
        taken[clean] = taken.get(clean, 0) + 1
    return {
        name: clean if taken[clean] == 1 else f"{clean[: MAX_NAME - 9].rstrip('/')}-{_digest(name)}"
        for name, clean in cleaned.items()
    }


def usable_metrics(values: Mapping[str, object]) -> Usable:
    """Finite numbers under clean names, floats rounded to six digits; None, NaN, infinity and non-numbers skipped.

    MLflow shows floats in full, so 0.1 + 0.2 would be read as 0.30000000000000004 on every page.

    >>> usable_metrics({"test/score": 0.1 + 0.2, "n": 12345678, "usd": None, "x": float("nan")})
    Usable(values={'test/score': 0.3, 'n': 12345678.0}, skipped=['usd', 'x'])
    """
    usable: dict[str, float] = {}
    skipped: list[str] = []
    for name, clean in clean_names(values).items():
        number = _number(values[name])
        if number is None:
            skipped.append(name)
        else:
            usable[clean] = number
    return Usable(usable, skipped)


def param_text(value: object) -> str:
    """A param as text: strings as they are, the rest as JSON, so that no Python type name is searched for.

    >>> param_text(True), param_text({"auto": "light"}), param_text("json")
    ('true', '{"auto": "light"}', 'json')
    """
    if isinstance(value, str):
        return storable(value)
    return storable(json.dumps(value, ensure_ascii=False, default=str))


def shortened(text: str, limit: int, where: str = "") -> str:
    """`text` within `limit` characters; what is cut is said, and where the whole is, when it is kept.

    >>> shortened("abc", 10)
    'abc'
    >>> shortened("a" * 100, 40, "p.txt")
    'aaaaa... (100 characters, all in p.txt)'
    """
    if len(text) <= limit:
        return text
    note = f"... ({len(text):,} characters" + (f", all in {where})" if where else ")")
    return text[: max(0, limit - len(note) - 1)] + note


def storable(text: str) -> str:
    """Text that can be written as UTF-8 and put into a database: lone surrogates and NUL become U+FFFD."""
    return _SURROGATES.sub("�", text).replace("\x00", "�")


def file_name(name: str) -> str:
    """A file name from any text, the same on every platform.

    >>> file_name("optimizer.args/../x: y")
    'optimizer.args_.._x_y'
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip(".") or "_"
    return plain if len(plain) <= 100 else f"{plain[:90]}-{_digest(name)}"


def plain_json(value: Any) -> str:
    """A record as readable JSON, or text as it is; what JSON does not know is written by its `str`."""
    if isinstance(value, str):
        return storable(value)
    return storable(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def rounded(number: float) -> float | None:
    """The number with six digits, or whole from a million on; None for NaN and infinity.

    >>> rounded(1 / 3), rounded(1234567.8), rounded(float("inf"))
    (0.333333, 1234568.0, None)
    """
    if not math.isfinite(number):
        return None
    return float(f"{number:.6g}") if abs(number) < 1e6 else float(round(number))


def _number(value: object) -> float | None:
    if not isinstance(value, Real):
        return None
    number = float(value)
    return number + 0.0 if number.is_integer() else rounded(number)  # a zero without sign


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
