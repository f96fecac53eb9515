"""Grounded: which values of an extraction stand in its source. No model and no expected record is needed.

    value = sum(credit) / n      over the values of the extraction that a source can hold

It catches what was made up, not what was left out: an extraction of one right value is fully grounded. So it is a check
beside a metric, an audit or a gate, and nothing to tune on by itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from metrics.evaluators.composition import composition_of
from metrics.evaluators.quantity import QuantityEvaluator
from metrics.evaluators.readings import reading_of
from metrics.evaluators.states import has_value
from metrics.evaluators.text import is_number, normalized, number_in, shown
from metrics.inputs import columns, predicted_in
from metrics.nearest import nearest
from metrics.record.items import plain
from metrics.record.paths import EVERY, Pattern, parse, written
from metrics.score import Score, config_version

SOURCES = ("source_text", "text")

_NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?(?:\s*[x×]\s*10\s*\^?\s*[-−]?\d+|e[-+]?\d+)?"
_AMOUNTS = re.compile(
    rf"(?<![\w.]){_NUMBER}(?:\s*(?:-|–|to)\s*{_NUMBER})?\s*(?:°\s*)?[^\W\d_/%]{{0,6}}[%]?(?:/[^\W\d_]{{1,5}})?"
)
_DIGITS = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\d+(?:\.\d+)?")
_POWERS = re.compile(r"(?<![\w.])(?:\d+(?:\.\d+)?\s*[x×]\s*)?10\s*\^?\s*[-−+]?\d{1,2}(?!\d)")
_WORDS = re.compile(r"[^\W_]+")
_TOKENS = re.compile(r"[^\s,;]+")
_SPELLED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SPELLED_NUMBER = re.compile(rf"\b(?:{'|'.join(_SPELLED)})\b", re.IGNORECASE)
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MOST = 4_000
_SHORTEST_WORD = 3


class GroundedMetric:
    """The share of an extraction's values that stand in the source.

    A number stands there when the source holds that number. A text does when it is there (Unicode forms, case and
    white space aside), as an amount of the same size in another unit, or as a formula of the same composition; else
    it gets the share of its words that are there. Yes-or-no values and those that a schema takes from a list of
    choices are passed over: no source spells them.

    Args:
        exclude: places that no source holds, such as `steps[*].step_number`.
        schema: JSON Schema of the record; an extraction that does not fit it scores 0.
        source: the example's field with the source; None takes `source_text`, else `text`.
        output_field: of the prediction; None takes its only one.

    >>> metric = GroundedMetric()
    >>> score = metric({"text": "LiCoO2 was heated to 900 °C for 5 h."}, {"record": {"material": "CoLiO2",
    ...                "temperature": 900, "time": "300 min", "furnace": "tube furnace"}})
    >>> score.value, score.feedback
    (0.75, "furnace: 'tube furnace' is not in the source")
    """

    def __init__(
        self,
        exclude: Collection[str] = (),
        schema: Mapping[str, Any] | None = None,
        source: str | None = None,
        output_field: str | None = None,
        name: str = "grounded",
    ) -> None:
        self._exclude = frozenset(parse(path) for path in exclude)
        self._schema = dict(schema) if schema is not None else None
        self._source = source
        self.output_field = output_field
        self._name = name

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._name

    @property
    def version(self) -> str:
        """A digest of what can change a score."""
        excluded = sorted(written(pattern) for pattern in self._exclude)
        return config_version("grounded", {"exclude": excluded, "schema": self._schema, "source": self._source})

    def __call__(self, example: Any, prediction: Any) -> Score:
        """Look for every value of the extraction in the example's source.

        Raises:
            ValueError: the example has no source, or the prediction not the field.
        """
        source = _Source(self._text(columns(example)))
        given = predicted_in(prediction, self.output_field)
        try:
            record = plain(given)
        except ValueError as error:
            return Score.unscored(f"{self.name}: the extraction cannot be read: {error}")
        problem = self._misfit(record)
        found = {
            path: (value, source.credit(value))
            for path, value in _leaves(record)
            if not self._is_passed_over(path, value)
        }
        parts = {"schema": Score(0.0 if problem else 1.0, problem)} if self._schema is not None else {}
        details = {"n": len(found), "ungrounded": [_shown(path) for path, (_, credit) in found.items() if credit < 1.0]}
        if problem:
            return Score(0.0, problem, parts, details=details)
        if not found:
            return Score(0.0, "nothing was extracted that a source could hold", parts, details=details)
        credits = [credit for _, credit in found.values()]
        lines = [
            f"{_shown(path)}: {shown(value)} is {'not' if not credit else 'only in part'} in the source"
            for path, (value, credit) in sorted(found.items(), key=lambda item: item[1][1])
            if credit < 1.0
        ]
        said = "\n".join(lines)[:_MOST] or "every value stands in the source"
        return Score(math.fsum(credits) / len(credits), said, parts, details=details)

    def compare(self, expected: Any, predicted: Any) -> Score:
        """Not without the source.

        Raises:
            NotImplementedError: always, as a composite expects of a metric that needs the example.
        """
        raise NotImplementedError(f"{self.name} needs the source of an extraction, not only the record")

    def _text(self, held: Mapping[str, Any]) -> str:
        name = self._source or next((key for key in SOURCES if key in held), SOURCES[0])
        if not isinstance(held.get(name), str):
            raise ValueError(
                f"{self.name} looks values up in {name!r}, which the example does not hold as text; "
                f"{nearest(name, held)}"
            )
        return held[name]

    def _misfit(self, record: Any) -> str:
        if self._schema is None:
            return ""
        error = next(iter(Draft202012Validator(self._schema).iter_errors(record)), None)
        return "" if error is None else f"the record does not fit the schema: {error.message}"[:_MOST]

    def _is_passed_over(self, path: tuple[str | int, ...], value: Any) -> bool:
        if isinstance(value, bool):
            return True
        pattern: Pattern = tuple(EVERY if isinstance(key, int) else key for key in path)
        if any(pattern[: len(left_out)] == left_out for left_out in self._exclude):
            return True
        return self._schema is not None and _is_choice(self._schema, self._schema, path)


class _Source:
    """A text, ready to be asked what it holds."""

    def __init__(self, text: str) -> None:
        # "two hours" is 2 h, "1,200" is 1200.
        digits = _SPELLED_NUMBER.sub(lambda word: str(_SPELLED.index(word[0].lower()) + 1), normalized(text))
        self._text = _GROUPED.sub("", digits)
        self._squeezed = "".join(normalized(text).casefold().split())
        self._words = frozenset(_WORDS.findall(normalized(text).casefold()))
        self._numbers: frozenset[float] | None = None
        self._amounts: list[str] | None = None
        self._quantity = QuantityEvaluator()

    def credit(self, value: Any) -> float:
        """From 0 to 1: how far the value stands here."""
        if is_number(value):
            return float(any(math.isclose(float(value), number, rel_tol=1e-9) for number in self.numbers()))
        text = normalized(str(value))
        squeezed = "".join(text.casefold().split())
        if squeezed in self._words or (len(squeezed) >= _SHORTEST_WORD and self._holds(squeezed)):
            return 1.0
        number = number_in(text)
        if number is not None:
            return self.credit(number)
        if reading_of(text) is not None:
            return float(self._says_amount(text))
        formula = _composition(text)
        if formula is not None:
            return float(any(_composition(token) == formula for token in _TOKENS.findall(self._text)))
        words = [word for word in _WORDS.findall(text.casefold()) if len(word) >= _SHORTEST_WORD]
        return sum(word in self._words for word in words) / len(words) if words else 0.0

    def numbers(self) -> frozenset[float]:
        """All numbers of the text, powers of ten among them."""
        if self._numbers is None:
            plain_ones = (number_in(part) for part in _DIGITS.findall(self._text))
            powers = (reading_of(part) for part in _POWERS.findall(self._text))
            self._numbers = frozenset(
                [float(number) for number in plain_ones if number is not None]
                + [float(power.low) for power in powers if power is not None and power.low == power.high]
            )
        return self._numbers

    def _holds(self, squeezed: str) -> bool:
        """Whether the text holds it, a number not inside a longer one."""
        start = self._squeezed.find(squeezed)
        while start >= 0:
            before, after = self._squeezed[start - 1 : start], self._squeezed[start + len(squeezed) :][:1]
            inside = (squeezed[0].isdigit() and (before.isdigit() or before == ".")) or (
                squeezed[-1].isdigit() and after.isdigit()
            )
            if not inside:
                return True
            start = self._squeezed.find(squeezed, start + 1)
        return False

    def _says_amount(self, text: str) -> bool:
        if self._amounts is None:
            self._amounts = list(dict.fromkeys(match[0].strip(" .,") for match in _AMOUNTS.finditer(self._text)))
        return any(self._quantity.compare(text, amount)[0] == 1.0 for amount in self._amounts)


@lru_cache(maxsize=4096)
def _composition(text: str) -> Any:
    return composition_of(text.strip("().,;"))


def _leaves(record: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(record, dict):
        for name, inner in record.items():
            yield from _leaves(inner, (*path, str(name)))
    elif isinstance(record, list):
        for index, inner in enumerate(record):
            yield from _leaves(inner, (*path, index))
    elif has_value(record):
        yield path, record


def _shown(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".") or "$"


def _is_choice(schema: Any, root: Mapping[str, Any], path: tuple[str | int, ...]) -> bool:
    """Whether the schema takes the value at the path from a list of choices."""
    if not isinstance(schema, Mapping):
        return False
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        inner: Any = root
        for key in reference[2:].split("/"):
            inner = inner.get(key, {}) if isinstance(inner, Mapping) else {}
        return _is_choice(inner, root, path)
    if not path:
        if "enum" in schema or "const" in schema:
            return True
    elif isinstance(path[0], int):
        if _is_choice(schema.get("items"), root, path[1:]):
            return True
    else:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and _is_choice(properties.get(path[0]), root, path[1:]):
            return True
    choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    return any(_is_choice(choice, root, path) for choice in choices)
