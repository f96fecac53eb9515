"""The files of this package: read with its lines, overridden, validated, every problem told with its place."""

from harness.spec.card_file import CardSpec, load_card_spec
from harness.spec.experiment_file import (
    BudgetSpec,
    DataSpec,
    ExperimentSpec,
    ModelSpec,
    Named,
    PriceSpec,
    RolesSpec,
    SplitSpec,
    json_schema,
    load_spec,
)

__all__ = [
    "BudgetSpec",
    "CardSpec",
    "DataSpec",
    "ExperimentSpec",
    "ModelSpec",
    "Named",
    "PriceSpec",
    "RolesSpec",
    "SplitSpec",
    "json_schema",
    "load_card_spec",
    "load_spec",
]
