"""What answers requests, as the engine sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dspy.lm15 import Request, Response

from harness.models.limits import EndpointLimits


class Provider(Protocol):
    """One place that answers requests: a server, a model in this process, a script.

    Attributes:
        model: the name people know it by.
        host: where it is, for people; no credentials; empty when that is no place to look.
        endpoint: a digest of all that decides its answers (`config.endpoint_digest`).
        concurrency: requests it takes at once, at least 1.
        secrets: values that must never be seen in a message.
    """

    model: str
    host: str
    endpoint: str
    concurrency: int
    secrets: tuple[str, ...]

    @property
    def supports_response_schema(self) -> bool:
        """It decodes under a JSON Schema, as far as is known by now."""
        ...

    @property
    def supported_params(self) -> frozenset[str]:
        """OpenAI's names of the settings it heeds; "seed" decides whether samples are seeded."""
        ...

    @property
    def needs_probe(self) -> bool:
        """Nobody knows yet how it can be asked for JSON; `adopt` takes what `capabilities.probe` finds."""
        ...

    def complete(self, request: Request) -> Response:
        """One attempt. Raises dspy.lm15 errors; keeps no cache, retries nothing."""
        ...

    def give_up(self, setting: str) -> bool:
        """Do without temperature, max_tokens, seed or response_format: this thread's last request was refused for it.

        False when there is no other way to send it.
        """
        ...

    def adopt(self, facts: Mapping[str, Any]) -> None:
        """Take over what was found out about the endpoint, now or by an earlier run."""
        ...

    def facts(self) -> dict[str, Any]:
        """What was found out about the endpoint, as JSON data."""
        ...

    def close(self) -> None:
        """Let go of connections and memory."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider with the limits all its roles share."""

    provider: Provider
    limits: EndpointLimits
