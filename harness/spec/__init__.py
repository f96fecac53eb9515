"""The experiment file: read with its lines, overridden, validated, every problem told with its place."""

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
    "DataSpec",
    "ExperimentSpec",
    "ModelSpec",
    "Named",
    "PriceSpec",
    "RolesSpec",
    "SplitSpec",
    "json_schema",
    "load_spec",
]
