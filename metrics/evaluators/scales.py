"""Scales that a text names: "on a scale of 1-5", "0.0 to 1.0", "out of 10"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from metrics.evaluators.text import normalized

Scale = tuple[float, float]

_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(
    rf"(?<![\w.,/-])(?P<low>{_NUMBER})(?P<join>\s*(?:-|\.\.\.?)\s*|\s+(?:to|through|and|up to)\s+)(?P<high>{_NUMBER})"
    r"(?![\w-]*\d)(?!\.\d)"
)
_RATING = r"scale|scor(?:e|es|ed|ing)|rat(?:e|es|ed|ing)|grad(?:e|es|ed|ing)|marks?|points?|stars?"
_BEFORE = re.compile(rf"\b(?:{_RATING})\b[^.;\n]{{0,40}}$", re.IGNORECASE)
_SCALE_BEFORE = re.compile(r"\bscale\s*(?:of|from|between|:|is|=)?\s*[(\[]?\s*(?:from|between)?\s*$", re.IGNORECASE)
_AFTER = re.compile(r"^[)\]]?[\s-]*(?:point\s+)?(?:scale|points?|stars?|rating|score)\b", re.IGNORECASE)
_UNIT_AFTER = re.compile(
    r"^\s*(?:°|K\b|h\b|hours?\b|min(?:utes?)?\b|s\b|m?[LM]\b|[mµk]?g\b|m?mol\b|[nµm]?m\b|wt|at\.?%|eV)"
)
_TOP = re.compile(
    rf"\b(?:{_RATING})\b[^.;\n]{{0,30}}?(?:\bout of|/)\s*(?P<first>{_NUMBER})"
    rf"|(?P<second>{_NUMBER})[\s-]*(?:point|star)\s+(?:scale|rating)",
    re.IGNORECASE,
)
_LARGEST = 1000.0


def other_scale(text: str, scale: Scale) -> str | None:
    """The words of `text` that name another scale than `scale`, None where there are none.

    Ranges of quantities ("800-900 °C") are no scales. A text that names several scales must name the right one only.

    >>> other_scale("Rate the purity from 1 to 5.", (0, 1)), other_scale("Rate the purity on a scale of 0-1", (0, 1))
    ('1 to 5', None)
    >>> other_scale("0.0 to 1.0, where 1.0 is best", (1, 5)), other_scale("Heating at 800-900 °C is right", (1, 5))
    ('0.0 to 1.0', None)
    >>> other_scale("Give a score out of 10", (0, 1)), other_scale("Give a score out of 10", (0, 10))
    ('10', None)
    """
    plain = normalized(text)
    return next((words for words, named in _named(plain) if not _agree(named, scale)), None)


def _named(text: str) -> Iterator[tuple[str, tuple[float | None, float]]]:
    for match in _RANGE.finditer(text):
        low, high = float(match["low"]), float(match["high"])
        if low < high <= _LARGEST and _is_scale(match, text, low, high):
            yield match[0], (low, high)
    for match in _TOP.finditer(text):
        words = match["first"] or match["second"]
        yield words, (None, float(words))


def _is_scale(match: re.Match[str], text: str, low: float, high: float) -> bool:
    before, after = text[: match.start()], text[match.end() :]
    if _SCALE_BEFORE.search(before):
        return True
    if _UNIT_AFTER.match(after) or low not in (0.0, 1.0, -1.0):
        return False
    if (low, high) == (0.0, 1.0) and "." in match["high"]:
        return True
    enclosed = before.rstrip().endswith(("(", "[")) and after.lstrip().startswith((")", "]"))
    return enclosed or bool(_BEFORE.search(before) or _AFTER.match(after))


def _agree(named: tuple[float | None, float], scale: Scale) -> bool:
    low, high = named
    return high == scale[1] and low in (None, scale[0])
