"""What an evaluator of a file needs and cannot say itself: the judge's model, a function, the dataset's ids, a folder.

A file names things; here the names become what the evaluator's constructor takes. Options that are right as they stand,
and wrong ones, are left to the evaluator.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from harness.data import Record
from harness.errors import UsageError
from harness.models.store import STORE
from harness.references import is_reference, load_object
from harness.spec import ExperimentSpec
from metrics.asking import RoleModel
from metrics.evaluators import CATALOGUE, BaseEvaluator
from programs.json_schema import short

JUDGE = "judge"
_RULE = "def rule(extracted, expected, input_data=None, field_path=None)"


@dataclass(frozen=True)
class EvaluatorChoice:
    """Fills in the options of the evaluators that one experiment file names.

    Attributes:
        spec: the file.
        records: the dataset, in its order.
    """

    spec: ExperimentSpec
    records: Sequence[Record]

    def completed(self, value: Any, where: str) -> Any:
        """An entry of `fields` with the options that a file cannot write.

        Args:
            value: an alias, a mapping with one, or anything else, which stays as it is.
            where: the place in the file, for the error.

        Raises:
            UsageError: no judge is declared, a function that cannot be used, an option that a file may not have.
        """
        if isinstance(value, str):
            options = self._options(value, {}, where)
            return {value: options} if options else value
        if not isinstance(value, Mapping):
            return value
        return {key: self._options(key, given, where) if key in CATALOGUE else given for key, given in value.items()}

    def with_judge(self, evaluator: BaseEvaluator, where: str) -> BaseEvaluator:
        """A user's own evaluator on the judge's model, where it asks a model.

        Raises:
            UsageError: no judge is declared.
        """
        if not evaluator.needs_lm:
            return evaluator
        return evaluator.with_lm(self._judge(evaluator.name, where))  # pyright: ignore[reportAttributeAccessIssue]

    def _options(self, alias: str, given: Any, where: str) -> Any:
        if alias not in CATALOGUE or not isinstance(given, Mapping | None):
            return given
        options = dict(given or {})
        if CATALOGUE[alias].needs_lm:
            if "lm" in options:
                raise UsageError(f"{where}: {alias} takes its model from models.{JUDGE}; leave lm out")
            options["lm"] = self._judge(alias, where)
        if alias == "python_code" and "function" in options:
            options["function"] = self._function(options["function"], where)
        if alias == "predefined_score" and isinstance(options.get("scores"), list):
            options.setdefault("ids", [record.id for record in self.records])
        if alias == "text_similarity":
            options = {"cache_folder": STORE.parent, "deferred": True, **options}
        return options

    def _judge(self, name: str, where: str) -> RoleModel:
        model = self.spec.models.given().get(JUDGE)
        if model is None:
            raise UsageError(f"{where}: {name} asks a model; name it: models: {{{JUDGE}: ...}}")
        return RoleModel(JUDGE, model.model)

    def _function(self, named: Any, where: str) -> Callable[..., Any]:
        if not isinstance(named, str) or not is_reference(named):
            raise UsageError(
                f"{where}: python_code: function is named by its import path, such as my_rules.py:rule; it is not "
                f"written out, got {short(repr(named))}"
            )
        try:
            function = load_object(named, self.spec.folder)
        except UsageError as error:
            raise UsageError(f"{where}: python_code: {error}") from error
        if not _is_rule(function):  # a file must not call whatever it names with what a model wrote
            raise UsageError(f"{where}: python_code: {named} is no rule; write {_RULE} that returns a number")
        return function


def _is_rule(function: Any) -> bool:
    """Whether it is a Python function that names what a rule is given; no function of another purpose does."""
    if not isinstance(function, FunctionType):
        return False
    names = inspect.signature(function).parameters
    return {"input_data", "field_path"} <= set(names)
