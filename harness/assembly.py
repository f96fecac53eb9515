"""The only place where names in a file become objects.

`assemble` reads everything a run needs, short of loading a model: program, records, splits, metric, optimizer.
Whatever is wrong with the file or the data is found here, before anything is spent.
"""

from __future__ import annotations

import inspect
import itertools
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import dspy

from harness.data import Record, Splits, dataset_digest
from harness.errors import UsageError, nearest
from harness.examples import first_misfit, load_examples
from harness.files import kind_of
from harness.foreign import first_line, foreign_code, whole
from harness.metric_calls import calls_of_scoring
from harness.metric_choice import build_metric, named_object
from harness.models.config import ModelConfig
from harness.models.prompt import prompt_adapter
from harness.models.schema_bounds import SchemaBounds, bounds_from_records
from harness.optimizers.catalogue import Arguments, Optimizer, find_optimizer
from harness.optimizers.nearest import can_show
from harness.references import is_reference, load_object
from harness.secrecy import is_recognisable
from harness.spec import CardSpec, ExperimentSpec, ModelSpec, Named, load_spec
from metrics.score import Metric
from programs.contract import OutputContract, ProgramDeclarationError, output_contract, predictors_of

PROGRAMS: Mapping[str, tuple[str, str]] = {
    "programs.schema:SchemaExtraction": ("schema", "text -> a record of your own pydantic class or JSON Schema"),
    "programs.synthesis:SynthesisExtraction": ("synthesis", "text -> GeneralSynthesisOntology"),
}
_T = TypeVar("_T")
_SHOWN = 3
_UNUSED = "models.{} is declared, but nothing in this experiment calls it"


@dataclass(frozen=True)
class Experiment:
    """Everything a run needs, as objects; no model is loaded yet.

    Attributes:
        spec: the file.
        program: the program as it is before tuning; its constructor arguments are in `program_reference`.
        program_reference: how a bundle names the program: {"class": ..., "arguments": {...}} or a user's class path.
        contract: the program's output.
        adapter: the prompt adapter, by name.
        splits: records per split.
        examples: the same as dspy.Example per split, with `id`, `group`, `expected`, the inputs and, where the
            record fits the schema, the output field.
        metric, audits: what is measured.
        optimizer, arguments: the catalogue entry and its validated arguments.
        models: configuration per role.
        bounds: limits on lists and strings of the schema that local models decode under; None for remote ones.
        data_digest: digest of all records.
        notes: what a reader of the results must know.
        idle: declared roles that nothing here calls.
    """

    spec: ExperimentSpec
    program: dspy.Module
    program_reference: Mapping[str, Any]
    contract: OutputContract
    adapter: str
    splits: Splits
    examples: Mapping[str, Sequence[dspy.Example]]
    metric: Metric
    audits: Mapping[str, Metric]
    optimizer: Optimizer
    arguments: Arguments
    models: Mapping[str, ModelConfig]
    bounds: SchemaBounds | None
    data_digest: str
    notes: Sequence[str] = field(default_factory=tuple)
    idle: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.spec.name

    @property
    def labelled(self) -> list[dspy.Example]:
        """Training examples whose record fits the schema: usable as demos."""
        return [example for example in self.examples["train"] if self.contract.field in example]

    def dspy_adapter(self) -> dspy.Adapter:
        """A fresh prompt adapter."""
        return prompt_adapter(self.adapter)


def load_experiment(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Experiment:
    """The experiment a file describes.

    Args:
        path: an experiment file.
        overrides: `key=value` strings, as `--set` takes them.

    Raises:
        UsageError: anything wrong with the file, what it names or its data.
    """
    return assemble(load_spec(Path(path), tuple(overrides)))


def assemble(spec: ExperimentSpec) -> Experiment:
    """Objects for everything a file names.

    Raises:
        UsageError: one line per thing that is wrong: what, where, and the nearest valid thing.
    """
    notes: list[str] = []
    wrong = _Problems()
    models = wrong.collect(lambda: model_configs(spec, notes))
    found = wrong.collect(
        lambda: find_optimizer(spec.optimizer.name, spec.optimizer.arguments, spec.where("optimizer"))
    )
    built = wrong.collect(lambda: _program_with_contract(spec))
    contract = built[2] if built else None
    data = wrong.collect(lambda: load_examples(spec, contract, notes)) if contract else None
    records = data.records if data else ()
    metrics = wrong.collect(lambda: _metrics(spec, contract, records)) if contract else None
    wrong.refuse()
    if not (models and found and built and contract and data and metrics):
        raise AssertionError("a part is missing although nothing was wrong with it")
    entry, arguments = found
    experiment = Experiment(
        spec=spec,
        program=built[0],
        program_reference=built[1],
        contract=contract,
        adapter=spec.adapter,
        splits=data.splits,
        examples=data.examples,
        metric=metrics[0],
        audits=metrics[1],
        optimizer=entry,
        arguments=arguments,
        models=models,
        bounds=_bounds(models, data.splits.train, contract.field, notes),
        data_digest=dataset_digest(records),
        notes=notes,
    )
    sizes = len(experiment.examples["train"]), len(experiment.examples["validation"])
    problem = entry.problem(arguments, *sizes)
    if problem:
        raise UsageError(f"{spec.where('optimizer')}: {entry.name}: {problem}")
    judging = _judging(experiment)
    experiment = replace(experiment, idle=_idle(models, entry.calls(arguments, *sizes, 1), judging))
    notes.extend(_UNUSED.format(role) for role in experiment.idle)
    notes.extend(_own_judges(models, judging))
    if entry.needs_labelled_demos and not experiment.labelled:
        raise UsageError(
            f"{spec.where('optimizer')}: {entry.name} shows labelled examples, but no training record fits the "
            f"schema ({first_misfit(data.splits.train, contract)}); use bootstrap_few_shot or complete the records"
        )
    if entry.needs_labelled_demos and not any(
        can_show(predictor, experiment.labelled[0].keys()) for _, predictor in predictors_of(built[0])
    ):
        raise UsageError(
            f"{spec.where('optimizer')}: {entry.name} cannot show labelled examples to {spec.program.name}: none "
            "of its predictors has only inputs that an example holds and the program's output; use bootstrap_few_shot, "
            "which makes demonstrations for every predictor"
        )
    return experiment


def _idle(models: Collection[str], asked: Mapping[str, int], judging: Collection[str]) -> list[str]:
    """Of the roles that only optimizers and metrics call, the declared ones that none of this experiment's does."""
    called = {*judging, "teacher"} if asked.get("teacher") else {*judging}
    if asked.get("prompt"):
        called |= {next((role for role in ("prompt", "teacher") if role in models), "task")}
    return [role for role in models if role != "task" and role not in called]


def _judging(experiment: Experiment) -> list[str]:
    """The roles that the metrics ask.

    Raises:
        UsageError: a role without a model.
    """
    where = f"{experiment.spec.where('metric')}: the metrics"
    with foreign_code(f"{where} cannot tell which models they ask"):
        examples = itertools.chain(*experiment.examples.values())
        asked = list(calls_of_scoring([experiment.metric, *experiment.audits.values()], examples))
    missing = [role for role in asked if role not in experiment.models]
    if missing:
        raise UsageError(f"{where} ask models.{missing[0]}, which is not declared")
    return asked


def _own_judges(models: Mapping[str, ModelConfig], judging: Collection[str]) -> list[str]:
    """A word on a model that grades its own answers."""
    task = models["task"]
    return [
        f"models.{role} is the task's own model ({task.model}): it grades its own answers, and models like their own"
        for role in judging
        if (models[role].model, models[role].api_base) == (task.model, task.api_base)
    ]


class _Problems:
    """Sentences about parts that do not depend on each other, so that all of them are told at once."""

    def __init__(self) -> None:
        self._sentences: list[str] = []

    def collect(self, make: Callable[[], _T]) -> _T | None:
        """What `make` gives, or None and its sentences kept."""
        try:
            return make()
        except UsageError as error:
            self._sentences += str(error).splitlines()
            return None

    def refuse(self) -> None:
        """Raise everything that was collected."""
        if self._sentences:
            raise UsageError("\n".join(self._sentences))


def _program_with_contract(spec: ExperimentSpec) -> tuple[dspy.Module, dict[str, Any], OutputContract]:
    program, reference = build_program(spec.program, spec)
    return program, reference, _contract(program, spec)


def _metrics(
    spec: ExperimentSpec, contract: OutputContract, records: Sequence[Record]
) -> tuple[Metric, dict[str, Metric]]:
    """The metric and the audits by name."""
    return build_metric(spec.metric, contract, spec, records), {
        name: build_metric(Named(name=name, arguments=arguments), contract, spec, records, ("audit", name))
        for name, arguments in spec.audit.items()
    }


def model_configs(spec: ExperimentSpec | CardSpec, notes: list[str]) -> dict[str, ModelConfig]:
    """Configuration per declared role."""
    roles = spec.models.given()
    for role, model in roles.items():
        if model.api_key_env and model.api_key_env not in os.environ:
            raise UsageError(
                f"{spec.where('models', role, 'api_key_env')}: models.{role} ({model.model}) takes its key from the "
                f"environment variable {model.api_key_env}, which is not set"
            )
        key = os.environ.get(model.api_key_env or "", "")
        if key and not is_recognisable(key):
            notes.append(
                f"the key of models.{role} ({model.api_key_env}) is short or an ordinary word: it cannot be told from "
                "text, so it is not looked for in what this run writes"
            )
    return {role: model_config(model) for role, model in roles.items()}


def model_config(model: ModelSpec) -> ModelConfig:
    """The plain configuration of one role's model."""
    given = model.model_dump(exclude_none=True)
    price = given.pop("price", None)
    if price is not None:
        given["price"] = (price["input"], price["output"])
    return ModelConfig(**given)


def build_program(named: Named, spec: ExperimentSpec) -> tuple[dspy.Module, dict[str, Any]]:
    """The program a file names, and how a bundle refers to it.

    Arguments that look like objects (`schema.py:Invoice`) or schema files (`invoice.json`) are resolved relative to
    the file.
    """
    where = spec.where("program")
    path = next((path for path, (alias, _) in PROGRAMS.items() if named.name in (alias, path)), named.name)
    program_class = named_object(path, spec, where)
    if not (isinstance(program_class, type) and issubclass(program_class, dspy.Module)):
        raise UsageError(f"{where}: {named.name} is not a dspy.Module class")
    arguments = {key: _resolved(value, spec, f"{where}: {key}") for key, value in named.arguments.items()}
    known = inspect.signature(program_class).parameters
    for name in arguments:
        if name not in known and not any(part.kind is part.VAR_KEYWORD for part in known.values()):
            raise UsageError(f"{where}: {named.name} has no argument {name!r}; {nearest(name, known)}")
    reference = {"class": path, "arguments": dict(named.arguments)}
    cannot = f"{where}: {named.name} cannot be made from {sorted(arguments)}"
    if path not in PROGRAMS:
        with foreign_code(cannot):
            return program_class(**arguments), reference
    try:
        return program_class(**arguments), reference
    except (TypeError, ValueError) as error:
        raise UsageError(f"{cannot}: {first_line(error)}") from error


def _resolved(value: Any, spec: ExperimentSpec, where: str) -> Any:
    if isinstance(value, str) and is_reference(value):
        return load_object(value, spec.folder)
    if isinstance(value, str) and value.endswith(".json"):
        try:
            path = spec.resolve(value)
            is_special = kind_of(path) == "special"
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None
        if is_special:
            raise UsageError(f"{where}: {value} is a pipe or a device where a file is needed")
        return path
    return value


def _contract(program: dspy.Module, spec: ExperimentSpec) -> OutputContract:
    where = spec.where("program")
    with foreign_code(f"{where}: what {spec.program.name} puts out cannot be read"):
        try:
            contract = output_contract(program)
        except ProgramDeclarationError as error:
            raise UsageError(f"{where}: {error}") from error
    _refuse_half_characters(program, where)
    try:
        json.dumps(contract.schema, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise UsageError(
            f"{where}: the JSON Schema of {contract.field!r} holds a value JSON does not have ({first_line(error)}); "
            "look for a default of NaN or infinity, or half a Unicode character in a description"
        ) from error
    return contract


def _refuse_half_characters(program: dspy.Module, where: str) -> None:
    """Every text of a program is sent and kept, so none may hold what cannot be written."""
    for name, predictor in predictors_of(program):
        fields = predictor.signature.fields
        texts = {"the instructions": predictor.signature.instructions}
        texts |= {
            f"the description of {field!r}": (info.json_schema_extra or {}).get("desc")
            for field, info in fields.items()
        }
        for what, text in texts.items():
            if isinstance(text, str) and whole(text) != text:
                raise UsageError(f"{where}: {what} of the predictor {name!r} holds half a Unicode character")


def _bounds(
    models: Mapping[str, ModelConfig], train: Sequence[Record], output_field: str, notes: list[str]
) -> SchemaBounds | None:
    """Small models loop inside open-ended lists and strings, so the schema they decode under is bounded.

    An adapter asks either for the bare record or for it under its field's name, so both paths are bounded.
    """
    if not any(config.is_local for config in models.values()):
        return None
    records = [record.expected for record in train]
    bare, named = bounds_from_records(records), bounds_from_records(records, output_field)
    bounds = replace(bare, items={**bare.items, **named.items}, lengths={**bare.lengths, **named.lengths})
    notes.append(bounds.describe())
    return bounds
