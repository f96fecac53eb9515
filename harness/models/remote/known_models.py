"""What is publicly known of remote models, from the table inside the installed dspy: no network, no litellm."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from harness.models.config import ModelConfig


def list_price(config: ModelConfig) -> tuple[float, float] | None:
    """USD per million input and output tokens by the provider's list; None when unknown.

    Unknown is everything behind an address of its own: a gateway or a private server sets its own price.

    >>> list_price(ModelConfig("openai/a-model-nobody-knows")) is None
    True
    """
    facts = _facts(config)
    prices = [facts.get("input_cost_per_token"), facts.get("output_cost_per_token")]
    if not all(isinstance(price, (int, float)) for price in prices):
        return None
    return (prices[0] * 1e6, prices[1] * 1e6)  # type: ignore[operator]  # both checked in the line above


def decodes_under_schema(config: ModelConfig) -> bool | None:
    """Whether the model is known to decode under a JSON Schema; None when nothing is known."""
    known = _facts(config).get("supports_response_schema")
    return known if isinstance(known, bool) else None


def _facts(config: ModelConfig) -> Mapping[str, Any]:
    if config.api_base is not None or config.is_local:
        return {}
    provider, _, name = config.model.partition("/")
    if not name:
        return {}
    table = json.loads(gzip.decompress(files("dspy.clients.model_metadata").joinpath("snapshot.json.gz").read_bytes()))
    full = table.get(config.model)
    if isinstance(full, dict):
        return full
    bare = table.get(name)
    # The table lists OpenAI's and Anthropic's models without a prefix; the same name elsewhere is another offer.
    return bare if isinstance(bare, dict) and bare.get("litellm_provider") == provider else {}
