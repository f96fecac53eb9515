"""The metric a file names: built in or of the user's own, with its evaluators, tried on the records before a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.data import Record
from harness.errors import UsageError, nearest
from harness.foreign import foreign_code, whole
from harness.references import is_reference, load_object
from harness.spec import ExperimentSpec, Named
from metrics import BaseEvaluator, RecordMetric
from metrics.score import Metric
from programs.contract import OutputContract
from programs.json_schema import short

METRICS: Mapping[str, Callable[..., Metric]] = {"record": RecordMetric}
"""Name in an experiment file to metric."""


def build_metric(
    named: Named | None,
    contract: OutputContract,
    spec: ExperimentSpec,
    records: Sequence[Record],
    place: tuple[str, ...] = ("metric",),
) -> Metric:
    """The metric a file names; without one, a record metric with evaluators by type.

    Raises:
        UsageError: an unknown metric, evaluator or argument, or a path that matches nothing in the whole dataset.
    """
    named = named or Named(name="record", arguments={})
    where = f"{spec.where(*place)}: metric {named.name}"
    maker = METRICS.get(named.name)
    if maker is None:
        if not is_reference(named.name):
            raise UsageError(f"{where}: there is no metric of this name; {nearest(named.name, METRICS)}")
        maker = named_object(named.name, spec, where)
        if not _is_metric_class(maker):  # before it is made: a file must not call whatever it names
            raise UsageError(f"{where}: {named.name} is not a metric class: it needs __call__ and compare")
    arguments = dict(named.arguments)
    if maker is RecordMetric:
        arguments = {
            "fields": _evaluator_objects(arguments.pop("fields", {}), spec, where),
            "schema": contract.schema,
            "output_field": contract.field,
            **arguments,
        }
    metric = _made_metric(maker, arguments, where)
    if isinstance(metric, RecordMetric) and records:
        _check_paths(metric, records, where)
        _check_evaluators(metric, records, where)
    return metric


def _made_metric(maker: Callable[..., Metric], arguments: Mapping[str, Any], where: str) -> Metric:
    if maker in METRICS.values():
        try:
            return maker(**arguments)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{where}: {error}") from error
    with foreign_code(f"{where}: it cannot be made from {sorted(arguments)}"):
        metric = maker(**arguments)
    _refuse_nameless(metric, where)
    return metric


def _refuse_nameless(measure: Metric | BaseEvaluator, where: str) -> None:
    """Ask for name and version, which a user's own class may work out, before anything depends on them."""
    with foreign_code(f"{where}: its name and version cannot be read"):
        if not hasattr(measure, "name") or not hasattr(measure, "version"):
            raise UsageError(f"{where} is not a metric: it has no name or no version")
        for what, value in (("name", measure.name), ("version", measure.version)):
            if not isinstance(value, str) or not value or whole(value) != value:
                raise UsageError(f"{where}: its {what} is {short(repr(value))}, where text is needed")


def named_object(reference: str, spec: ExperimentSpec, where: str) -> Any:
    """What a reference of the file names; the place in the file is part of the error."""
    if not is_reference(reference):
        raise UsageError(f"{where}: {reference!r} names no object; write my_file.py:Name or package.module:Name")
    return load_object(reference, spec.folder)


def _evaluator_objects(fields: Any, spec: ExperimentSpec, where: str) -> Any:
    """Evaluators named by import path become classes; everything else is the record metric's to check."""
    if not isinstance(fields, Mapping):
        raise UsageError(f"{where}: fields is a mapping of paths to evaluators, got {type(fields).__name__}")
    return {path: _evaluator_object(value, spec, where) for path, value in fields.items()}


def _evaluator_object(value: Any, spec: ExperimentSpec, where: str) -> Any:
    if isinstance(value, str) and is_reference(value):
        return _own_evaluator(value, {}, spec, where)
    if isinstance(value, Mapping):
        named = [key for key in value if isinstance(key, str) and is_reference(key)]
        if len(named) == 1:
            rest = {key: option for key, option in value.items() if key != named[0]}
            return {"evaluator": _own_evaluator(named[0], value[named[0]], spec, where), **rest}
    return value


def _own_evaluator(reference: str, config: Any, spec: ExperimentSpec, where: str) -> BaseEvaluator:
    """A user's evaluator; nothing but an evaluator class is ever called with what a file says."""
    made = load_object(reference, spec.folder)
    if not (isinstance(made, type) and issubclass(made, BaseEvaluator)):
        raise UsageError(
            f"{where}: {reference} is not an evaluator: make it a class derived from metrics.BaseEvaluator"
        )
    with foreign_code(f"{where}: {reference} cannot be made from {short(repr(config))}"):
        evaluator = made(config)
    _refuse_nameless(evaluator, f"{where}: {reference}")
    return evaluator


def _is_metric_class(made: Any) -> bool:
    return (
        isinstance(made, type) and hasattr(made, "compare") and any("__call__" in vars(base) for base in made.__mro__)
    )


def _check_evaluators(metric: RecordMetric, records: Sequence[Record], where: str) -> None:
    """Ask every evaluator once, so that a broken one is found now and not at the first answer that has its field."""
    for record in records:
        with foreign_code(f"{where}: comparing the record of {record.where} with itself failed"):
            metric.compare(record.expected, record.expected)


def _check_paths(metric: RecordMetric, records: Sequence[Record], where: str) -> None:
    expected = [record.expected for record in records]
    unmatched = metric.unmatched_paths(expected)
    if unmatched:
        known = metric.known_paths(expected)
        raise UsageError(
            f"{where}: the path {unmatched[0]!r} matches nothing in any of the {len(records)} records; "
            f"{nearest(unmatched[0], known)}"
        )
