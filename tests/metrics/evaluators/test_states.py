"""The table of states, as evaluators apply it."""

import itertools

import pytest

from metrics.evaluators import CATALOGUE, MISSING, State, create_evaluator, state_of
from metrics.evaluators.states import has_value

EXAMPLES = {State.MISSING: [MISSING], State.NULL: [None], State.EMPTY: ["", " \t", [], {}, ()]}
NOT_COMPARING = {"score_judge", "python_code", "predefined_score"}
"""What they say of a value is not whether it equals another one."""
OPTIONS = {
    "label_model_grader": {"allowed_labels": ["None", "0"]},
    "text_similarity": {"provider": "openai", "model": "m", "api_base": "http://127.0.0.1:1/v1"},
}
COMPARING = sorted(set(CATALOGUE) - NOT_COMPARING)
VALUES = [0, 0.0, False, True, "None", "0", [None], {"a": None}]


@pytest.mark.parametrize(("state", "value"), [(state, value) for state, some in EXAMPLES.items() for value in some])
def test_states_without_a_value(state, value):
    assert state_of(value) is state
    assert not has_value(value)


@pytest.mark.parametrize("value", VALUES)
def test_zero_false_and_the_word_none_are_values(value):
    assert state_of(value) is State.VALUE
    assert has_value(value)


@pytest.mark.parametrize("alias", COMPARING)
def test_absent_values_equal_their_own_state_only(alias):
    evaluator = create_evaluator(alias, OPTIONS.get(alias))
    some = [(state, value) for state, values in EXAMPLES.items() for value in values]

    for (first, extracted), (second, expected) in itertools.product(some, some):
        assert evaluator.evaluate(extracted, expected) == float(first is second)


@pytest.mark.parametrize("alias", COMPARING)
@pytest.mark.parametrize("absent", [MISSING, None, ""])
@pytest.mark.parametrize("value", ["None", "missing", "null", 0, "0", False])
def test_an_absent_value_is_never_equal_to_a_present_one(alias, absent, value):
    evaluator = create_evaluator(alias, OPTIONS.get(alias))

    assert evaluator.evaluate(absent, value) == 0.0
    assert evaluator.evaluate(value, absent) == 0.0


def test_missing_shows_as_a_word():
    assert repr(MISSING) == "MISSING"
