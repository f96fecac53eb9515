"""A model that says what a test tells it to: the public test double for programs, metrics and judges.

>>> provider = ScriptedProvider({"melting point": '{"answer": 1414}'})
>>> question = Request(model="scripted/x", messages=(lm15.Message.user("the melting point of Si?"),))
>>> provider.complete(question).text
'{"answer": 1414}'
>>> len(provider.requests)
1
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dspy import lm15
from dspy.lm15 import Request, Response

from harness.models.config import ModelConfig, endpoint_digest

Reply = str | Response | BaseException
"""A text, a whole Response (`reply` makes one), or something to raise."""
Script = Callable[[Request], Reply] | Mapping[str, Reply] | Sequence[Reply]


class ScriptedProvider:
    """Answers from a script and remembers what it was asked. Safe under threads.

    Args:
        script: a function of the request; or a mapping whose first key found in the request's text wins; or a
            sequence of replies in order.
        model: its name; another name is another endpoint.
        concurrency: requests at once.
        supports_response_schema: whether adapters send a JSON Schema.

    Attributes:
        requests: all requests, in the order they arrived.
    """

    host = ""
    secrets: tuple[str, ...] = ()
    needs_probe = False

    def __init__(
        self,
        script: Script,
        model: str = "scripted/model",
        *,
        concurrency: int = 8,
        supports_response_schema: bool = True,
    ) -> None:
        self.model = model
        self.concurrency = concurrency
        self.supports_response_schema = supports_response_schema
        self.supported_params = frozenset({"temperature", "max_tokens", "seed", "response_format"})
        self.endpoint = endpoint_digest(ModelConfig(model))
        self.requests: list[Request] = []
        self._script = script
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        """The scripted reply.

        Raises:
            LookupError: the script has no reply to this request.
        """
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        said = self._reply(request, number)
        if isinstance(said, BaseException):
            raise said
        return reply(said, model=request.model) if isinstance(said, str) else said

    def give_up(self, setting: str) -> bool:
        """False: a script takes every setting."""
        return False

    def adopt(self, facts: Mapping[str, Any]) -> None:
        """Nothing to take over."""

    def facts(self) -> dict[str, Any]:
        """Nothing was found out."""
        return {}

    def close(self) -> None:
        """Nothing to let go of."""

    def _reply(self, request: Request, number: int) -> Reply:
        script = self._script
        if callable(script):
            return script(request)
        if isinstance(script, Mapping):
            asked = request_text(request)
            for part, said in script.items():
                if part in asked:
                    return said
            raise LookupError(f"the script answers {sorted(script)}, and none of them is in: {asked[-200:]!r}")
        if number >= len(script):
            raise LookupError(f"the script has {len(script)} replies and was asked once more")
        return script[number]


def reply(
    text: str,
    *,
    model: str = "scripted/model",
    finish_reason: lm15.FinishReason = "stop",
    input_tokens: int | None = 10,
    output_tokens: int | None = 5,
) -> Response:
    """A Response with this text, finish reason and usage."""
    return Response(
        id=None,
        model=model,
        message=lm15.Message.assistant([lm15.TextPart(text)]),
        finish_reason=finish_reason,
        usage=lm15.Usage(input_tokens=input_tokens, output_tokens=output_tokens),
    )


def request_text(request: Request) -> str:
    """All text of a request: system, then every message; images and other parts are passed over."""
    system = request.system if isinstance(request.system, str) else ""
    said = ["\n".join(part.text for part in message.parts_of(lm15.TextPart)) for message in request.messages]
    return "\n\n".join([system, *said])
