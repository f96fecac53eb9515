"""How a program becomes messages and an answer becomes fields."""

from harness.models.prompt.adapters import (
    CompactAdapter,
    MapAwareJSONAdapter,
    ReAskingChatAdapter,
    decoding_schema,
    prompt_adapter,
    prompt_text,
)

__all__ = [
    "CompactAdapter",
    "MapAwareJSONAdapter",
    "ReAskingChatAdapter",
    "decoding_schema",
    "prompt_adapter",
    "prompt_text",
]
