"""What all suites have in common: the object under test, questions asked of it, a suite in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from metrics.score import Score

_Suite = TypeVar("_Suite", bound="Conformance")


class Conformance:
    """A suite of checks for one object; its subclasses hold the checks, and `make`, which gives the object."""

    def _needs_make(self) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} needs make, which gives the object to be tested")


def conformance(suite: type[_Suite], make: Callable[..., Any], **declared: Any) -> type[_Suite]:
    """A suite in one line, for `TestMine = conformance(EvaluatorConformance, Mine, examples=[...])`.

    Args:
        suite: one of the suites of this package.
        make: gives the object under test; for a judge, `make(answer)`.
        declared: class attributes of the suite; None switches a check off.

    Raises:
        AttributeError: the suite has no such attribute or check.

    >>> from metrics import StringCheckEvaluator
    >>> from metrics.testing import EvaluatorConformance
    >>> TestExact = conformance(EvaluatorConformance, StringCheckEvaluator, examples=[("A1", " A1 ", "B2")])
    >>> TestExact().test_right_beats_wrong()
    """
    for name in declared:
        if not hasattr(suite, name):
            raise AttributeError(f"{suite.__name__} has no attribute and no check {name!r}")
    members = {"make": lambda self, *args: make(*args), **declared}
    return cast(type[_Suite], type(suite.__name__, (suite,), members))


def sound(score: object) -> Score:
    """A Score that keeps the contract; anything else fails the check that asked.

    >>> sound(0.5)
    Traceback (most recent call last):
    AssertionError: the result is float, not a metrics.Score
    """
    assert isinstance(score, Score), f"the result is {type(score).__name__}, not a metrics.Score"
    assert score.value is None or 0.0 <= score.value <= 1.0, f"out of 0..1: {score.value}"
    assert (score.value is None) == bool(score.error), "unscored and error go together"
    for name, part in score.parts.items():
        assert isinstance(name, str), f"a part's name is {name!r}"
        sound(part)
    return score


def number(score: object, about: str) -> float:
    """The value of a sound Score that has one."""
    value = sound(score).value
    assert value is not None, f"{about}: no score: {sound(score).error}"
    return value
