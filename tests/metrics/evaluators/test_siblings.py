"""A value with the fields beside it."""

from metrics.evaluators import StringCheckEvaluator, WithSiblings
from metrics.evaluators.states import MISSING


def test_it_shows_the_value_and_what_stands_beside_it():
    assert repr(WithSiblings(900, {"unit": "C"})) == "900 [unit: 'C']"
    assert repr(WithSiblings("5", {"unit": MISSING, "other": None})) == "'5' [unit: nothing, other: null]"


def test_evaluators_ask_for_none_unless_they_say_so():
    assert StringCheckEvaluator().siblings == ()
