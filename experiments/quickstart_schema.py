"""The record the quickstart reaches for, and the rules its expected records follow.

The descriptions of `Synthesis` go into the prompt of a very small model, so each is a few words. The rules in full:

- target: the product as first written, name or formula, without words for its form (powder, films, rods).
- method: how it is made. A gel that burns is combustion, a gel that is calcined is sol-gel; milling that makes the
  product or activates its precursors is ball milling, grinding before a furnace is solid-state.
- precursors: every starting material that supplies an element of the target other than oxygen and hydrogen, as
  written, hydrate water included, without amounts. No solvents, fuels, chelators, pH agents, templates or gases.
- temperature: of the main heat treatment, which is the hottest step that is neither drying, evaporation nor washing.
  Number and unit as written; never converted. null for a range, for room temperature, and when nothing is heated.
- duration: how long that same step lasts, as written, in digits or words ("2 h", "two hours"). null for "overnight",
  when no time is given, and when nothing is heated (a milling time is not a heating time).
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Synthesis(BaseModel):
    """One synthesis from a short description."""

    model_config = ConfigDict(extra="forbid")

    target: str = Field(description="the product")
    method: Literal["solid-state", "sol-gel", "hydrothermal", "coprecipitation", "ball milling", "combustion"] = Field(
        description="how it is made"
    )
    precursors: list[str] = Field(description="starting materials, as written")
    temperature: str | None = Field(description="of the hottest step, with unit")
    duration: str | None = Field(description="time of the hottest step, with unit")
