"""GeneralSynthesisOntology: what a synthesis description says, as a record.

Field names, types and defaults are the established ones of the field, so that data and programs can be
exchanged. The descriptions reach the prompt. None always means "not reported".
"""

from __future__ import annotations

from collections.abc import KeysView
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

TargetCompoundType = Literal[
    "metals & alloys",
    "ceramics & glasses",
    "polymers & soft matter",
    "composites",
    "semiconductors & electronic",
    "nanomaterials",
    "two-dimensional materials",
    "framework & porous materials",
    "biomaterials & biological",
    "liquid materials",
    "hybrid & organic-inorganic",
    "functional materials & catalysts",
    "energy & sustainability",
    "smart & responsive materials",
    "emerging & quantum materials",
    "other",
]

SynthesisMethod = Literal[
    "PVD",
    "CVD",
    "arc discharge",
    "ball milling",
    "spray pyrolysis",
    "electrospinning",
    "sol-gel",
    "hydrothermal",
    "solvothermal",
    "precipitation",
    "coprecipitation",
    "combustion",
    "microwave-assisted",
    "sonochemical",
    "template-directed",
    "solid-state",
    "flux growth",
    "float zone & Bridgman",
    "arc melting & induction melting",
    "spark plasma sintering",
    "electrochemical deposition",
    "chemical bath deposition",
    "liquid-phase epitaxy",
    "self-assembly",
    "atomic layer deposition",
    "molecular beam epitaxy",
    "pulsed laser deposition",
    "ion implantation",
    "lithographic patterning",
    "wet impregnation",
    "incipient wetness impregnation",
    "mechanical mixing",
    "solution-based",
    "mechanochemical",
    "other",
]


class Material(BaseModel):
    """A precursor, reagent, solvent or gas."""

    name: str = Field(description="as the text names it")
    vendor: str | None = Field(None, description="supplier")
    amount: float | None = Field(None, description="bare number; null for 'in excess' or 'until completion'")
    unit: str | None = Field(
        None,
        description="of the amount: g, mg, kg, mL, L, drops, mol, mmol, M, mM, wt%, mol%, at%, vol%, w/w, v/v, ppm, "
        "a pressure, mA, V, equiv; or excess, stoichiometric, catalytic amount, trace",
    )
    purity: str | None = Field(None, description="such as 99.9% or ACS grade")


class Equipment(BaseModel):
    """An apparatus."""

    name: str = Field(description="such as autoclave or tube furnace")
    instrument_vendor: str | None = Field(None, description="maker or model")
    settings: str | None = Field(None, description="such as 500 rpm or a heating rate of 5 °C/min")


class Conditions(BaseModel):
    """Conditions of one step; ranges, rates and words such as overnight go into the step's description."""

    temperature: float | None = Field(None, description="number only")
    temp_unit: str | None = Field(None, description="C, K or F")
    duration: float | None = Field(None, description="number only")
    time_unit: str | None = Field(None, description="h, min, s or days")
    pressure: float | None = Field(None, description="number only")
    pressure_unit: str | None = Field(None, description="atm, bar, Pa, torr or psi")
    atmosphere: str | None = Field(None, description="air, N2, H2, Ar, O2 or vacuum")
    stirring: bool | None = Field(None, description="whether it is stirred")
    stirring_speed: float | None = Field(None, description="in rpm")
    ph: float | None = Field(None, description="pH")


class ProcessStep(BaseModel):
    """One action of the procedure."""

    step_number: int = Field(description="counted from 1")
    action: str = Field(
        description="one verb: add, mix, heat, cool, reflux, age, filter, wash, dry, reduce, calcine, dissolve, "
        "precipitate, centrifuge, sonicate, anneal, ion exchange or impregnate, or another if none fits"
    )
    description: str | None = Field(None, description="what the other fields cannot hold")
    materials: list[Material] = Field(default_factory=list, description="what goes in at this step")
    equipment: list[Equipment] = Field(default_factory=list, description="what this step uses")
    conditions: Conditions | None = Field(None, description="of this step")

    @field_validator("materials", "equipment", mode="before")
    @classmethod
    def _none_is_empty(cls, value: Any) -> Any:
        return [] if value is None else value


class GeneralSynthesisOntology(BaseModel):
    """The synthesis of one material. Also reads like a mapping: `keys()`, `[]` and `dict(...)`.

    >>> synthesis = GeneralSynthesisOntology(
    ...     target_compound="TiO2", target_compound_type="ceramics & glasses", synthesis_method="sol-gel"
    ... )
    >>> synthesis["synthesis_method"], dict(synthesis)["steps"]
    ('sol-gel', [])
    """

    target_compound: str = Field(description="what is made: composition, and form where it is given")
    target_compound_type: TargetCompoundType = Field(description="the class it belongs to")
    synthesis_method: SynthesisMethod = Field(description="the method that names the whole synthesis")
    starting_materials: list[Material] = Field(default_factory=list, description="every precursor and reagent")
    steps: list[ProcessStep] = Field(default_factory=list, description="the procedure in order")
    equipment: list[Equipment] = Field(default_factory=list, description="main apparatus of the whole synthesis")
    notes: str | None = Field(None, description="other observations and variants")

    @field_validator("starting_materials", "equipment", mode="before")
    @classmethod
    def _none_is_empty(cls, value: Any) -> Any:
        return [] if value is None else value

    def keys(self) -> KeysView[str]:
        """Field names, as a mapping has them."""
        return self.model_dump().keys()

    def __getitem__(self, name: str) -> Any:
        return self.model_dump()[name]
