"""Whose failure an exception is, and under which name."""

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from harness.errors import ENDPOINT_KINDS, FAILURE_KINDS, ProgramFailure
from harness.failures import failure_of


@pytest.mark.parametrize("kind", FAILURE_KINDS)
def test_every_kind_is_the_programs_or_the_places(kind):
    wrapped = RuntimeError("an adapter wrapped it")
    wrapped.__cause__ = ProgramFailure("why", kind)
    failure = failure_of(wrapped)
    assert (failure.kind, failure.sentence) == (kind, "why")
    assert failure.side == ("endpoint" if kind in ENDPOINT_KINDS else "unreadable")


def test_what_an_adapter_of_ones_own_cannot_read_is_invalid():
    signature = dspy.Signature("text -> label, note")
    failure = failure_of(AdapterParseError("Own", signature, "12", parsed_result={"note": "n"}))
    assert (failure.side, failure.kind) == ("unreadable", "invalid")
    assert failure.sentence == "the answer could not be read: the answer lacks label"


@pytest.mark.parametrize(("error", "sentence"), [(ValueError(), "ValueError: no message"), (KeyError("a\nb"), None)])
def test_anything_else_is_the_programs_own(error, sentence):
    failure = failure_of(error)
    assert (failure.side, failure.kind) == ("program", None)
    assert sentence is None or failure.sentence == sentence
    assert "\n" not in failure.sentence
