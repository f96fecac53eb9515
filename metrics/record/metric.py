"""RecordMetric: an extracted record against the expected one, field by field."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from metrics.evaluators.base import BaseEvaluator
from metrics.nearest import nearest
from metrics.record.asking import bound_fields, calls_by_role
from metrics.record.fields import read_fields
from metrics.record.findings import Finding, Findings, collect, rate_parts, rates
from metrics.record.items import add_places, plain, read_item
from metrics.record.matching import match
from metrics.record.paths import EVERY, Pattern, written
from metrics.score import Score, config_version

_FORMULA = 1
"""Part of the version: raised whenever the same configuration would score differently than before."""
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class RecordMetric:
    """How much of a record was extracted rightly, 0..1, by an evaluator per field.

    A leaf is a single value at a place in the record. It counts when at least one side has a value there (null,
    empty and missing are no value; see `metrics.evaluators.states`):

        value = sum(weight * credit) / sum(weight)     over all leaves that count

    The credit of a leaf that both sides have is what its evaluator says; a leaf of the expected record alone (a
    miss) or of the predicted one alone (a false find) earns 0. So leaving out and inventing both cost, and an empty
    prediction against a full record is 0. Two records without any value are 1.0, with `n_fields` 0 in the details.

    Items of lists are matched one to one, in any order, so that this value is as high as any matching makes it;
    `ordered: true` on a list allows only matchings that keep the order. A pair that earns nothing is no match: all
    leaves of both count 0. Permuting items, or adding an item that resembles nothing, never raises the value.
    Dropping a right item lowers it, unless another predicted item can stand in for it nearly as well.

    A leaf whose evaluator gives no number makes the whole record unscored, unless its weight is 0.

    Args:
        fields: path -> evaluator. Paths are `a.b`, `list[*].field`, `list[*]` (lists of single values), `$` (a record
            that is one value). An evaluator is an alias, `{alias: {options}}`, or a `BaseEvaluator`; beside the
            alias stand `weight` (1.0; 0 only reports) and, for the path of a list, `ordered`; `{ordered: true}` alone
            is enough there. With an evaluator beside a weight: `{"evaluator": mine, "weight": 2}`. Only the places
            named count, and those of `include`. A path that names a list or an object gives it to its evaluator whole.
            Without any evaluator in `fields` every value counts, by `schema` or else by the type of the expected
            value: numbers `numeric`, text `levenshtein` with threshold 0.5, everything else `exact`.
        name: what reports call this metric.
        output_field: the prediction's field that holds the record; None: its only one (`reasoning` aside).
        schema: JSON Schema of the record, or a pydantic class: chooses evaluators (choices and formats `exact`).
        include: paths that count with everything inside them, beside those in `fields`: by schema or type where
            `fields` names no evaluator. `["$"]` is the whole record.
        exclude: paths that do not count, with everything inside them.

    Raises:
        ValueError: a path, an evaluator, an option that is none; the sentence names it and the nearest valid one.

    >>> metric = RecordMetric({"target": {"exact": {}, "weight": 2}, "steps[*].action": "levenshtein"})
    >>> expected = {"target": "LiCoO2", "steps": [{"action": "mix"}, {"action": "heat"}]}
    >>> score = metric.compare(expected, {"target": "LiCoO₂", "steps": [{"action": "heat"}]})
    >>> score.value, score.feedback
    (0.75, "steps[0]: missing, expected action 'mix'")
    >>> score.parts["steps[*].action"].value
    0.5
    >>> score.parts["steps[*]"].parts["recall"].value
    0.5
    >>> RecordMetric(exclude=["steps[*].note"]).compare({"steps": [{"n": 1}]}, {"steps": [{"n": 1, "note": "?"}]}).value
    1.0
    >>> RecordMetric({"steps.[*]": "exact"})
    Traceback (most recent call last):
    metrics.record.fields.FieldError: path 'steps.[*]': a name is empty between two dots
    """

    def __init__(
        self,
        fields: Mapping[str, str | Mapping[str, Any] | BaseEvaluator] = _NO_FIELDS,
        name: str = "record",
        output_field: str | None = None,
        schema: Mapping[str, Any] | type[BaseModel] | None = None,
        include: Collection[str] = (),
        exclude: Collection[str] = (),
    ) -> None:
        if isinstance(schema, type):
            schema = schema.model_json_schema()
        self._fields = read_fields(fields, schema, include, exclude)
        self._name = name
        self.output_field = output_field

    def __repr__(self) -> str:
        return f"RecordMetric(name={self._name!r}, fields={[written(pattern) for pattern in self._fields.named()]})"

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._name

    @property
    def version(self) -> str:
        """A digest of everything that can change a score."""
        return config_version("record", {"formula": _FORMULA, **self._fields.options()})

    def __call__(self, example: Any, prediction: Any) -> Score:
        """Compare `example.expected` with the record in `prediction`; a prediction of None holds nothing.

        Raises:
            ValueError: the example has no `expected`, or the prediction not the field (the nearest one is named).
        """
        held = _columns(example)
        if "expected" not in held:
            raise ValueError(f"an example holds the record to reach in 'expected'; this one has {sorted(held)}")
        shown = held.keys() & _inputs_of(example, held, self.output_field)
        inputs = {name: value for name, value in held.items() if name in shown}
        return self._compare(held["expected"], self._record_in(prediction), inputs)

    def compare(self, expected: Any, predicted: Any) -> Score:
        """Compare two records: models, plain data or None, in any combination. Neither is changed.

        Returns:
            A Score with one part per place ("steps[*].action"), whose details hold `n` (leaves present on either
            side), `n_expected`, `n_predicted`, and inside lists precision, recall, F1; and one part per list
            ("steps[*]"), whose own parts are `precision`, `recall` and `f1` of its items, a matched item counting by
            its own value, and unscored where there is no item to divide by. Its details hold `n_fields`, the rates of
            the record, and per list the counts of its items. Unscored when a leaf is, and when the prediction refers
            to itself or is nested too deeply to read.

        Raises:
            ValueError: the expected record cannot be read.
        """
        return self._compare(expected, predicted, None)

    def model_calls(self, expected: Any) -> Mapping[str, int]:
        """Calls by role that scoring against this record takes at most; empty without evaluators that ask a role.

        Raises:
            ValueError: the expected record cannot be read.
        """
        return calls_by_role(self._fields, expected)

    def bind(self, lms: Mapping[str, Any]) -> RecordMetric:
        """The same metric, of the same version, with the LMs of a run in its evaluators and all they need at hand.

        Raises:
            ValueError, ImportError: something is not there; one sentence.
        """
        ready = copy.copy(self)
        ready._fields = bound_fields(self._fields, lms)
        return ready

    def unmatched_paths(self, expected_records: Iterable[Any]) -> list[str]:
        """The configured paths that no record has: misspelled, since they would measure nothing."""
        leaves, others = _all_places(expected_records)
        return [written(pattern) for pattern in self._fields.named() if pattern not in leaves | others]

    def known_paths(self, records: Iterable[Any]) -> set[str]:
        """The paths of all single values in the records.

        >>> sorted(RecordMetric().known_paths([{"a": 1, "steps": [{"action": "mix"}]}]))
        ['a', 'steps[*].action']
        """
        return {written(pattern) for pattern in _all_places(records)[0]}

    def _compare(self, expected: Any, predicted: Any, input_data: Mapping[str, Any] | None) -> Score:
        wanted = read_item(plain(expected), self._fields)
        try:
            found = read_item(plain(predicted), self._fields)
        except ValueError as error:
            return Score.unscored(f"the prediction cannot be read: {error}")
        rules = functools.cache(self._fields.rule)
        return _scored(collect(match(wanted, found, rules, self._fields.ordered), rules, input_data))

    def _record_in(self, prediction: Any) -> Any:
        if prediction is None:
            return None
        columns = _columns(prediction)
        names = [name for name in columns if name != "reasoning"] or list(columns)
        field = self.output_field
        if field is None:
            if len(names) != 1:
                held = ", ".join(names) or "none"
                raise ValueError(f"a prediction has one field, or the metric an output_field; the fields are: {held}")
            field = names[0]
        if field not in columns:
            raise ValueError(f"the prediction has no field {field!r}, {nearest(field, columns)}")
        return columns[field]


def _columns(row: Any) -> dict[str, Any]:
    """The fields of a dspy.Example or dspy.Prediction, of a mapping, or of any object with attributes."""
    return dict(row.items()) if hasattr(row, "items") else dict(vars(row))


def _inputs_of(example: Any, held: Mapping[str, Any], output_field: str | None) -> set[str]:
    """The names of what evaluators are shown of an example: id, group and the program's inputs, never the answer."""
    try:
        names = set(example.inputs().keys())
    except (AttributeError, TypeError, ValueError):  # not a dspy.Example, or one that does not declare its inputs
        names = set(held) - {"expected", output_field}
    return names | {"id", "group"}


def _all_places(records: Iterable[Any]) -> tuple[set[Pattern], set[Pattern]]:
    leaves: set[Pattern] = set()
    others: set[Pattern] = set()
    for record in records:
        add_places(plain(record), leaves, others)
    return leaves, others


def _scored(findings: Findings) -> Score:
    counted = [leaf for leaf in findings.leaves if leaf.weight]
    details = {
        "n_fields": len(counted),
        **_rates(counted),
        "lists": {written(pattern): count.to_details() for pattern, count in findings.lists.items()},
    }
    by_pattern: dict[Pattern, list[Finding]] = {}
    for leaf in findings.leaves:
        by_pattern.setdefault(leaf.pattern, []).append(leaf)
    parts = {written(pattern): _part(pattern, leaves) for pattern, leaves in by_pattern.items()}
    # A list of single values has a part already, with the same rates; the items of all other lists get theirs.
    parts |= {
        written(pattern): count.to_score() for pattern, count in findings.lists.items() if pattern not in by_pattern
    }
    unscored = next((leaf.score.error for leaf in counted if leaf.score.error), None)
    if unscored is not None:
        return Score.unscored(unscored, feedback=findings.feedback(), parts=parts, details=details)
    if not counted:
        return Score(1.0, "nothing was expected and nothing was extracted", parts, details=details)
    return Score(findings.value, findings.feedback() or "all values are right", parts, details=details)


def _part(pattern: Pattern, leaves: list[Finding]) -> Score:
    details: dict[str, Any] = {
        "n": len(leaves),
        "n_expected": sum(leaf.is_expected for leaf in leaves),
        "n_predicted": sum(leaf.is_predicted for leaf in leaves),
    }
    error = next((leaf.score.error for leaf in leaves if leaf.score.error), None)
    if error is not None:
        return Score.unscored(error, details=details)
    values = [leaf.score.value or 0.0 for leaf in leaves]
    parts: Mapping[str, Score] = {}
    if EVERY in pattern:
        found = rates(math.fsum(values), details["n_predicted"], details["n_expected"])
        details |= found
        parts = rate_parts(found) if pattern[-1:] == (EVERY,) else {}
    n_right = sum(value >= 1.0 for value in values)
    return Score(math.fsum(values) / len(values), f"{n_right} of {len(values)} right", parts, details=details)


def _rates(leaves: list[Finding]) -> dict[str, float | None]:
    credit = math.fsum(leaf.credit for leaf in leaves)
    sides = [
        math.fsum(leaf.weight for leaf in leaves if leaf.is_predicted),
        math.fsum(leaf.weight for leaf in leaves if leaf.is_expected),
    ]
    return rates(credit, *sides)
