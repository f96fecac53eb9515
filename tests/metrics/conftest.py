"""A dspy LM that says what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable

import dspy
import pytest

from harness.models.scripted import ScriptedProvider


@pytest.fixture
def scripted_lm() -> Callable[..., tuple[dspy.LM, ScriptedProvider]]:
    """An LM on a script of `harness.models.scripted`, and the provider behind it."""

    def make(script, model: str = "scripted/judge", *, supports_response_schema: bool = True, **settings):
        provider = ScriptedProvider(script, model, supports_response_schema=supports_response_schema)
        return dspy.LM(model, engine=provider, cache=False, num_retries=0, **settings), provider

    return make
