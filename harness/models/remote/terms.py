"""On which terms an endpoint takes requests: what is known, what it refused, and requests changed accordingly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from dspy.lm15 import Request

from harness.models.capabilities import SchemaMode

_SAMPLING = ("temperature", "seed")
_MODES: tuple[SchemaMode, ...] = get_args(SchemaMode)


@dataclass(frozen=True, slots=True)
class Terms:
    """What one endpoint takes. Immutable; a refusal makes another one.

    Attributes:
        schema: how it is asked for JSON; None while nobody knows, and then requests are left as they are.
        note: why it is no better, in words for people.
        json_object: it takes the mode that only asks for some JSON object.
        refused: sampling settings it refused, which are not sent any more.
        limit_field: the name under which the output limit is sent instead of the usual one.
        other_limit_field: the name that is left to try.

    >>> terms = Terms("none")
    >>> terms.without("temperature").without("temperature") is None
    True
    """

    schema: SchemaMode | None = None
    note: str = ""
    json_object: bool = True
    refused: frozenset[str] = frozenset()
    limit_field: str | None = None
    other_limit_field: str | None = None

    def adapted(self, request: Request) -> Request:
        """The request as this endpoint takes it."""
        config = request.config
        changes: dict[str, Any] = {name: None for name in self.refused if getattr(config, name) is not None}
        form = self._form(config.response_format)
        if form is not config.response_format:
            changes["response_format"] = form
        if self.limit_field and config.max_tokens is not None:
            changes["extensions"] = {**(config.extensions or {}), self.limit_field: config.max_tokens}
            changes["max_tokens"] = None
        return replace(request, config=replace(config, **changes)) if changes else request

    def _form(self, asked: Any) -> Any:
        if asked is None or self.schema is None:
            return asked
        if self.schema == "none":
            return None
        if asked["type"] == "json_schema" and self.schema != "json_object":
            return asked
        return {"type": "json_object"} if self.json_object else None

    def part(self, setting: str) -> Any:
        """What of these terms concerns one setting."""
        if setting in _SAMPLING:
            return setting in self.refused
        return self.limit_field if setting == "max_tokens" else (self.schema, self.json_object)

    def without(self, setting: str, asked: str | None = None) -> Terms | None:
        """The terms after a refusal; None when nothing is left to change.

        Args:
            setting: temperature, seed, max_tokens or response_format.
            asked: the type of the response format that was refused.
        """
        if setting in _SAMPLING and setting not in self.refused:
            return replace(self, refused=self.refused | {setting})
        if setting == "max_tokens" and self.limit_field is None and self.other_limit_field:
            return replace(self, limit_field=self.other_limit_field)
        if setting == "response_format" and self.schema is not None:
            if asked == "json_object":
                worse = "json_schema" if self.schema == "json_schema" else "none"
                return replace(self, schema=worse, json_object=False)
            if asked == "json_schema":
                return replace(
                    self, schema="json_object" if self.json_object else "none", note="json_schema is refused"
                )
        return None

    def adopting(self, facts: Mapping[str, Any], *, schema: bool) -> Terms:
        """These terms with what was found out before; what cannot be read is passed over.

        Args:
            facts: as `facts` gives them, whole or in part.
            schema: False keeps the way to ask for JSON as it is.
        """
        terms = self
        if schema and facts.get("schema") in _MODES:
            terms = replace(terms, schema=facts["schema"], note=str(facts.get("note") or ""))
        if facts.get("json_object") is False:
            terms = replace(terms, json_object=False)
        found = facts.get("refused")
        refused = {name for name in found if name in _SAMPLING} if isinstance(found, list | tuple) else set()
        if self.other_limit_field and facts.get("max_tokens_field") == self.other_limit_field:
            terms = replace(terms, limit_field=self.other_limit_field)
        return replace(terms, refused=terms.refused | refused)

    def facts(self, at_first: Terms) -> dict[str, Any]:
        """What was found out since `at_first`, as JSON data; empty when nothing was."""
        facts: dict[str, Any] = {}
        if self.schema != at_first.schema:
            facts |= {"schema": self.schema, "note": self.note}
        if self.json_object != at_first.json_object:
            facts["json_object"] = self.json_object
        if self.refused:
            facts["refused"] = sorted(self.refused)
        if self.limit_field:
            facts["max_tokens_field"] = self.limit_field
        return facts
