"""The metric a file names: built in or of the user's own, with its evaluators, tried on the records before a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from harness.data import Record
from harness.errors import UsageError, nearest
from harness.evaluator_choice import EvaluatorChoice
from harness.foreign import foreign_code, whole
from harness.judge_choice import JUDGES, judge_metric
from harness.references import is_reference, load_object
from harness.spec import ExperimentSpec, Named
from metrics import (
    BaseEvaluator,
    CompositeMetric,
    FigureMetric,
    GroundedMetric,
    LinkingMetric,
    RecordMetric,
    ScaledMetric,
)
from metrics.composite import checked_weight
from metrics.grounded import SOURCES
from metrics.record.fields import FieldError
from metrics.score import Metric
from programs.contract import OutputContract
from programs.json_schema import short

METRICS: Mapping[str, Callable[..., Metric]] = {
    "record": RecordMetric,
    "composite": CompositeMetric,
    "figure": FigureMetric,
    "linking": LinkingMetric,
    "grounded": GroundedMetric,
}
"""Name in an experiment file to metric."""

Keys = tuple[str, ...]
"""Where in the file something stands: ("metric", "record", "fields", "total")."""

_SCALE = ("minimize", "scale")
"""Arguments that stand beside a user's own metric and declare its direction and scale, unless its class names them."""


def build_metric(
    named: Named | None,
    contract: OutputContract,
    spec: ExperimentSpec,
    records: Sequence[Record],
    place: tuple[str, ...] = ("metric",),
) -> Metric:
    """The metric a file names; without one, a record metric with evaluators by type.

    Raises:
        UsageError: an unknown metric, evaluator or argument, or a path that matches nothing in the whole dataset; one
            line for each part of a composite that is wrong.
    """
    named = named or Named(name="record", arguments={})
    # An audit's arguments stand below its name, a metric's below a key of their own.
    keys = place if place[-1:] == (named.name,) else (*place, named.name)
    return _Builder(contract, spec, records).build(named, keys)


@dataclass(frozen=True)
class _Builder:
    """What every metric of a file is made from and tried on."""

    contract: OutputContract
    spec: ExperimentSpec
    records: Sequence[Record]

    def build(self, named: Named, keys: Keys) -> Metric:
        """The metric `named`, whose arguments stand at `keys`."""
        where = self._where(keys, named)
        if named.name == "composite":
            return self._composite(named, keys)
        if named.name in JUDGES:
            return self._judged(named, keys)
        maker = METRICS.get(named.name)
        if maker is None:
            if not is_reference(named.name):
                known = [*METRICS, *JUDGES]
                raise UsageError(f"{where}: there is no metric of this name; {nearest(named.name, known)}")
            return self._own(named, where)
        arguments = {key: value for key, value in named.arguments.items() if value is not None}
        if maker is RecordMetric:
            arguments = {
                "fields": self._evaluators(arguments.pop("fields", {}), named, keys),
                "schema": self.contract.schema,
                "output_field": self.contract.field,
                **arguments,
            }
        if maker is GroundedMetric:
            arguments = {
                "schema": self.contract.schema or None,
                "source": self._source(),
                "output_field": self.contract.field,
                **arguments,
            }
        if maker in (FigureMetric, LinkingMetric):
            arguments = {"output_field": self.contract.field, **arguments}
        metric = self._made(maker, arguments, named, keys)
        if isinstance(metric, FigureMetric | LinkingMetric):
            self._check_content(metric, where)
        if isinstance(metric, GroundedMetric):
            self._check_shown(metric, where)
        if isinstance(metric, RecordMetric) and self.records:
            self._check_paths(metric, named, keys)
            self._check_evaluators(metric, where)
        return metric

    def _judged(self, named: Named, keys: Keys) -> Metric:
        def gate(given: Any) -> Metric:
            return self.build(Named.model_validate(given), (*keys, "gate"))

        metric = judge_metric(
            named.name,
            named.arguments,
            self.spec,
            self._where(keys, named),
            output_field=self.contract.field,
            source=self._source(),
            gate=gate,
        )
        self._check_shown(metric, self._where(keys, named))
        return metric

    def _source(self) -> str | None:
        """The program's only input, where it is not called as the metrics expect; they find the others themselves."""
        inputs = list(self.contract.inputs)
        return inputs[0] if len(inputs) == 1 and inputs[0] not in SOURCES else None

    def _check_shown(self, metric: Metric, where: str) -> None:
        """Put together what the judge would be shown of every record, so that a missing field is told beforehand."""
        for record in self.records:
            inputs = {name: record.fields[name] for name in self.contract.inputs if name in record.fields}
            example = {**inputs, "id": record.id, "group": record.group, "expected": record.expected}
            try:
                metric(example, {self.contract.field: record.expected})
            except ValueError as error:
                raise UsageError(f"{where}: {record.where}: {error}") from error

    def _where(self, keys: Keys, named: Named) -> str:
        return f"{self.spec.where(*keys)}: metric {named.name}"

    def _made(self, maker: Callable[..., Metric], arguments: Mapping[str, Any], named: Named, keys: Keys) -> Metric:
        known = inspect.signature(maker).parameters
        for name in arguments:
            if name not in known:
                raise UsageError(
                    f"{self._where((*keys, str(name)), named)}: there is no argument {name!r}; "
                    f"{nearest(str(name), known)}"
                )
        try:
            metric = maker(**arguments)
        except FieldError as error:
            raise UsageError(f"{self._where((*keys, *error.keys), named)}: {error}") from error
        except (TypeError, ValueError, ImportError) as error:  # ImportError: a library of an extra is not installed
            raise UsageError(f"{self._where(keys, named)}: {error}") from error
        _refuse_nameless(metric, self._where(keys, named))
        return metric

    def _own(self, named: Named, where: str) -> Metric:
        """A user's metric, on the scale that stands beside its arguments."""
        maker = named_object(named.name, self.spec, where)
        if not _is_metric_class(maker):  # before it is made: a file must not call whatever it names
            raise UsageError(f"{where}: {named.name} is not a metric class: it needs __call__ and compare")
        arguments = dict(named.arguments)
        scale = {key: arguments.pop(key) for key in _SCALE if key in arguments and key not in _named_by(maker)}
        with foreign_code(f"{where}: it cannot be made from {sorted(arguments)}"):
            metric = maker(**arguments)
        _refuse_nameless(metric, where)
        if not scale:
            return metric
        try:
            return ScaledMetric(metric, **scale)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from error

    def _composite(self, named: Named, keys: Keys) -> Metric:
        """The parts, each with its weight; everything that is wrong with any of them is told at once."""
        given = dict(named.arguments)
        options = {key: value for key in ("missing", "name") if (value := given.pop(key, None)) is not None}
        parts: dict[str, Metric] = {}
        weights: dict[str, float] = {}
        wrong: list[str] = []
        for key, value in given.items():
            try:
                part, weight, place = self._part(str(key), value, (*keys, str(key)))
                metric = self.build(part, place)
                name = metric.name if is_reference(str(key)) else str(key)
                if name in parts:
                    raise UsageError(
                        f"{self.spec.where(*place)}: two parts of the composite are called {name!r}; "
                        "name one yourself: my_name: {weight: ..., metric: ...}"
                    )
                parts[name], weights[name] = metric, weight
            except UsageError as error:
                wrong += str(error).splitlines()
        if wrong:
            raise UsageError("\n".join(wrong))
        return self._made(CompositeMetric, {"parts": parts, "weights": weights, **options}, named, keys)

    def _part(self, key: str, value: Any, keys: Keys) -> tuple[Named, float, Keys]:
        """What a part is called, its weight, and where its arguments stand."""
        arguments = {} if value is None else value
        if not isinstance(arguments, Mapping):
            raise UsageError(
                f"{self.spec.where(*keys)}: a part of a composite is NAME: {{weight: ..., its arguments}}, "
                f"got {short(repr(value))} for {key}"
            )
        rest = {name: argument for name, argument in arguments.items() if name != "weight"}
        try:
            weight = checked_weight(key, arguments.get("weight", 1.0))
        except ValueError as error:
            raise UsageError(f"{self.spec.where(*keys, 'weight')}: {error}") from None
        if key in METRICS or key in JUDGES or is_reference(key) or "metric" not in rest:
            return Named(name=key, arguments=rest), weight, keys
        if len(rest) > 1:
            other = next(name for name in rest if name != "metric")
            raise UsageError(f"{self.spec.where(*keys, other)}: beside metric only weight can stand, not {other!r}")
        try:
            named = Named.model_validate(rest["metric"])
        except ValidationError as error:
            sentence = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise UsageError(f"{self.spec.where(*keys, 'metric')}: metric {sentence}") from None
        return named, weight, (*keys, "metric", named.name)

    def _evaluators(self, fields: Any, named: Named, keys: Keys) -> Any:
        """Evaluators named by import path become objects; everything else is the record metric's to check."""
        if not isinstance(fields, Mapping):
            where = self._where((*keys, "fields"), named)
            raise UsageError(f"{where}: fields is a mapping of paths to evaluators, got {type(fields).__name__}")
        return {
            path: self._evaluator(value, self._where((*keys, "fields", str(path)), named))
            for path, value in fields.items()
        }

    def _evaluator(self, value: Any, where: str) -> Any:
        if isinstance(value, str) and is_reference(value):
            return self._own_evaluator(value, {}, where)
        if isinstance(value, Mapping):
            named = [key for key in value if isinstance(key, str) and is_reference(key)]
            if len(named) == 1:
                rest = {key: option for key, option in value.items() if key != named[0]}
                return {"evaluator": self._own_evaluator(named[0], value[named[0]], where), **rest}
        return EvaluatorChoice(self.spec, self.records).completed(value, where)

    def _own_evaluator(self, reference: str, config: Any, where: str) -> BaseEvaluator:
        """A user's evaluator; nothing but an evaluator class is ever called with what a file says."""
        made = named_object(reference, self.spec, where)
        if not (isinstance(made, type) and issubclass(made, BaseEvaluator)):
            raise UsageError(
                f"{where}: {reference} is not an evaluator: make it a class derived from metrics.BaseEvaluator"
            )
        with foreign_code(f"{where}: {reference} cannot be made from {short(repr(config))}"):
            evaluator = made(config)
            evaluator = EvaluatorChoice(self.spec, self.records).with_judge(evaluator, f"{where}: {reference}")
        _refuse_nameless(evaluator, f"{where}: {reference}")
        return evaluator

    def _check_paths(self, metric: RecordMetric, named: Named, keys: Keys) -> None:
        expected = [record.expected for record in self.records]
        unmatched = metric.unmatched_paths(expected)
        if unmatched:
            known = metric.known_paths(expected)
            raise UsageError(
                f"{self._where((*keys, *_option_with(unmatched[0], named)), named)}: the path {unmatched[0]!r} matches "
                f"nothing in any of the {len(self.records)} records; {nearest(unmatched[0], known)}"
            )

    def _check_content(self, metric: FigureMetric | LinkingMetric, where: str) -> None:
        """Refuse records of another kind: they hold nothing to this metric, and an empty answer would be right."""
        counted, what = (
            ("n_series", "series (name_to_coordinates)") if isinstance(metric, FigureMetric) else ("n", "links")
        )
        scores = (metric.compare(record.expected, record.expected) for record in self.records)
        if self.records and not any(score.details[counted] for score in scores):
            raise UsageError(f"{where}: none of the {len(self.records)} records holds {what}")

    def _check_evaluators(self, metric: RecordMetric, where: str) -> None:
        """Ask every evaluator once, so that a broken one is found now, not at the first answer that has its field.

        Nothing is spent: evaluators that ask a model have none yet, and those that embed wait for the run.
        """
        counted = 0
        for record in self.records:
            inputs = {name: record.fields[name] for name in self.contract.inputs if name in record.fields}
            example = {**inputs, "id": record.id, "group": record.group, "expected": record.expected}
            answer = {metric.output_field or self.contract.field: record.expected}
            with foreign_code(f"{where}: comparing the record of {record.where} with itself failed"):
                score = metric(example, answer)
            counted += score.details.get("n_fields", 1)
        if not counted:
            raise UsageError(f"{where}: no value of any of the {len(self.records)} records counts; look at exclude")


def named_object(reference: str, spec: ExperimentSpec, where: str) -> Any:
    """What a reference of the file names; the place in the file is part of the error."""
    if not is_reference(reference):
        raise UsageError(f"{where}: {reference!r} names no object; write my_file.py:Name or package.module:Name")
    try:
        return load_object(reference, spec.folder)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _option_with(path: str, named: Named) -> Keys:
    """The keys below a record metric where a path of it was written; `steps` is where `steps[*]` was meant, too."""
    for written in (path, path.removesuffix("[*]")):
        if written in (named.arguments.get("fields") or ()):
            return ("fields", written)
    return next(((option,) for option in ("include", "exclude") if path in (named.arguments.get(option) or ())), ())


def _refuse_nameless(measure: Metric | BaseEvaluator, where: str) -> None:
    """Ask for name and version, which a user's own class may work out, before anything depends on them."""
    with foreign_code(f"{where}: its name and version cannot be read"):
        if not hasattr(measure, "name") or not hasattr(measure, "version"):
            raise UsageError(f"{where} is not a metric: it has no name or no version")
        for what, value in (("name", measure.name), ("version", measure.version)):
            if not isinstance(value, str) or not value or whole(value) != value:
                raise UsageError(f"{where}: its {what} is {short(repr(value))}, where text is needed")


def _is_metric_class(made: Any) -> bool:
    return (
        isinstance(made, type) and hasattr(made, "compare") and any("__call__" in vars(base) for base in made.__mro__)
    )


def _named_by(maker: Callable[..., Metric]) -> Sequence[str]:
    """The arguments that a user's class names itself."""
    try:
        return list(inspect.signature(maker).parameters)
    except (TypeError, ValueError):
        return []
