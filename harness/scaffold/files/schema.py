"""The record to extract. Change the fields to your own: names and descriptions are what the model is told."""

from typing import Literal

from pydantic import BaseModel, Field


class Invoice(BaseModel):
    """One invoice."""

    vendor: str = Field(description="the company that wants to be paid")
    total: float = Field(description="the amount to pay, tax included")
    currency: Literal["EUR", "USD", "GBP"]
