"""The part of a synthesis record that the olivetti corpus annotates; names are those of GeneralSynthesisOntology.

The whole ontology asks for much that the corpus does not say, so its records would not fit and could not be shown as
demonstrations, and a small model rarely reaches the end of an answer that long. For the same reason the lists have a
limit: longer records are scored against, but not shown.
"""

from pydantic import BaseModel, Field


class Material(BaseModel):
    """A starting material."""

    name: str


class Conditions(BaseModel):
    """Conditions of a step."""

    temperature: float | None = Field(None, description="number only")


class Step(BaseModel):
    """One operation."""

    action: str = Field(description="one verb")
    conditions: Conditions | None = None


class Synthesis(BaseModel):
    """One synthesis from a paper."""

    target_compound: str = Field(description="what is made")
    starting_materials: list[Material] = Field([], max_length=8, description="what it is made from")
    steps: list[Step] = Field([], max_length=12, description="operations in order")
