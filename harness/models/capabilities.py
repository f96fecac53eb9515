"""How an endpoint can be asked for JSON, found out once by asking it.

Lists of what models can do are wrong for every gateway, quantisation and server flag. One tiny request tells: its
free answer is a word, so only a server that decodes under the schema can answer with the record.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dspy import lm15
from dspy.lm15 import Request, Response

from harness.models.answers import normalised

SchemaMode = Literal["json_schema", "json_object", "none"]
"""An endpoint decodes under a JSON Schema; or into some JSON object; or the prompt alone asks for JSON."""

_QUESTION = "Say hello in one plain word. Do not write JSON."  # OpenAI's JSON mode wants to read the word JSON
_WORD = "k7q"
_SCHEMA = {
    "type": "object",
    "properties": {"probe": {"type": "string", "enum": [_WORD]}},
    "required": ["probe"],
    "additionalProperties": False,
}
_FORMATS: dict[SchemaMode, dict[str, Any]] = {
    "json_schema": {"type": "json_schema", "name": "probe", "schema": _SCHEMA, "strict": True},
    "json_object": {"type": "json_object"},
}
_OUTPUT_LIMIT = 1024
"""Tokens: room for a model that thinks first, an end for one that fills JSON mode with white space."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the probe found.

    Attributes:
        schema: the best way to ask for JSON.
        note: why it is not the schema, in words for people; empty when it is.
    """

    schema: SchemaMode
    note: str = ""


def probe(send: Callable[[Request], Response]) -> Capabilities:
    """Ask for JSON by schema, then by JSON mode; a way the endpoint refuses is passed over.

    Args:
        send: answers one request, with whatever retries and accounts it keeps. What it raises, other than a
            refusal of the request (`InvalidRequestError`, `UnsupportedFeatureError`), ends the probe.

    >>> from harness.models.scripted import ScriptedProvider
    >>> probe(ScriptedProvider(['{"probe": "k7q"}']).complete)
    Capabilities(schema='json_schema', note='')
    >>> probe(ScriptedProvider(["Hello!"]).complete)
    Capabilities(schema='none', note='json_schema is accepted and ignored')
    """
    refused: list[str] = []
    for mode, form in _FORMATS.items():
        try:
            response = send(_request(form))
        except (lm15.ContextLengthError, lm15.UnsupportedModelError):
            raise
        except (lm15.InvalidRequestError, lm15.UnsupportedFeatureError) as error:
            if getattr(error, "status", None) == 404:  # no such model or path: nothing was said about the format
                raise
            refused.append(mode)
            continue
        before = [f"{refused[0]} is refused"] if refused else []
        if _honoured(mode, response):
            return Capabilities(mode, *before)
        cut = response.finish_reason == "length"
        after = f"the answer under {mode} was cut before it could tell" if cut else f"{mode} is accepted and ignored"
        return Capabilities("none", "; ".join([*before, after]))
    return Capabilities("none", f"{' and '.join(refused)} are refused")


def _request(form: dict[str, Any]) -> Request:
    return Request(
        model="probe",
        messages=(lm15.Message.user(_QUESTION),),
        config=lm15.Config(temperature=0.0, max_tokens=_OUTPUT_LIMIT, response_format=form),
    )


def _honoured(mode: SchemaMode, response: Response) -> bool:
    text = (normalised(response).text or "").strip()
    if mode == "json_object":  # a cut object shows the mode as well as a whole one
        return text.startswith("{")
    try:
        return json.loads(text) == {"probe": _WORD}
    except ValueError:
        return False
