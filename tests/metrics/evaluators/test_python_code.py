"""python_code."""

import functools
import math
import operator
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators import MISSING, PythonCodeEvaluator, create_evaluator
from metrics.evaluators.python_code import PythonCodeError
from metrics.score import Score, UnscoredError


def close(extracted, expected, input_data=None, field_path=None):
    return 1 - abs(extracted - expected) / 10


def says(value):
    return PythonCodeEvaluator({"function": lambda extracted, expected, **_: value})


@pytest.mark.parametrize(("extracted", "value"), [(30, 1.0), (28, 0.8), (20, 0.0), (5, 0.0), (1_000, 0.0)])
def test_a_rule_of_ones_own(extracted, value):
    evaluator = create_evaluator("python_code", {"function": close})
    assert evaluator.evaluate(extracted, 30) == pytest.approx(value)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (True, 1.0), (False, 0.0), (np.bool_(True), 1.0), (1, 1.0), (0, 0.0), (0.5, 0.5), (7, 1.0), (-3, 0.0),
        (1e300, 1.0), (10**400, 1.0), (-(10**400), 0.0), (np.float32(0.25), 0.25), (np.int64(1), 1.0),
        (Decimal("0.5"), 0.5), (Fraction(1, 4), 0.25), (-0.0, 0.0),
    ],
)  # fmt: skip
def test_numbers_are_cut_to_zero_to_one(said, value):
    assert says(said).evaluate("a", "b") == value


@pytest.mark.parametrize(
    "said",
    [None, "0.5", "", math.nan, math.inf, -math.inf, Decimal("NaN"), [1.0], (1,), {"score": 1}, 1 + 0j, Score(1.0),
     np.array(1.0), np.array([1.0, 2.0]), object],
)  # fmt: skip
def test_what_is_no_number_is_no_score(said):
    score = says(said).score("a", "b", field_path="x")
    assert score.value is None
    assert score.error.startswith("x: the function ")
    assert "not a finite number" in score.error


def test_all_four_arguments_arrive_and_values_as_they_are():
    seen = []

    def rule(extracted, expected, input_data=None, field_path=None):
        seen.append((extracted, expected, input_data, field_path))
        return 1

    PythonCodeEvaluator({"function": rule}).evaluate(MISSING, None, {"id": "1"}, "a.b")
    assert seen == [(MISSING, None, {"id": "1"}, "a.b")]


class Rule:
    def __init__(self, tolerance=1):
        self.tolerance = tolerance

    def __call__(self, extracted, expected):
        return abs(extracted - expected) <= self.tolerance

    def rule(self, extracted, expected, *, field_path):
        return field_path == "x"


@pytest.mark.parametrize(
    "function",
    [
        lambda extracted, expected: 1,
        lambda *values: 1,
        lambda a, b, **given: set(given) == {"input_data", "field_path"},
        lambda extracted, expected, input_data: input_data is None,
        Rule(),
        Rule().rule,
        operator.eq,
        max,
        functools.partial(lambda factor, a, b: factor, 1),
    ],
)
def test_a_function_gets_what_it_takes(function):
    assert PythonCodeEvaluator({"function": function}).evaluate(2, 2, None, "x") == 1.0


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, "function: field required"),
        ({}, "function: field required"),
        ({"function": None}, "function: a function is needed, got null"),
        ({"function": 5}, "a function is needed, got 5"),
        ({"function": "lambda a, b: 1"}, "got the text 'lambda a, b: 1'; in a file it is named by its import path"),
        ({"function": lambda: 1}, "cannot be called with two values: too many positional arguments"),
        ({"function": lambda a: 1}, "cannot be called with two values"),
        ({"function": lambda a, b, c: 1}, "missing a required argument: 'c'"),
        ({"function": close, "code": "1"}, "unknown option 'code', known: function"),
    ],
)
def test_what_is_no_rule_is_refused_in_one_sentence(config, words):
    with pytest.raises(ValueError, match="python_code: ") as caught:
        PythonCodeEvaluator(config)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_it_raises_is_an_error_of_the_metric_and_never_a_score():
    evaluator = PythonCodeEvaluator({"function": close})
    with pytest.raises(
        RuntimeError, match=r"age: the function 'close' raised TypeError: .* \(test_python_code.py line"
    ):
        evaluator.score("thirty", 30, field_path="age")
    with pytest.raises(PythonCodeError) as caught:
        evaluator.evaluate(None, 30)
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_function_may_say_why_it_has_no_number():
    def rule(extracted, expected):
        raise UnscoredError("not in the catalogue")

    assert PythonCodeEvaluator({"function": rule}).score(1, 2, field_path="x").error == "x: not in the catalogue"


class Stopped(BaseException):
    pass


def test_what_stops_a_run_passes_through():
    def rule(extracted, expected):
        raise Stopped

    with pytest.raises(Stopped):
        PythonCodeEvaluator({"function": rule}).score(1, 2)


def test_the_version_covers_source_and_values_it_was_made_with():
    def within(tolerance):
        return lambda extracted, expected: abs(extracted - expected) <= tolerance

    def version(function):
        return PythonCodeEvaluator({"function": function}).version

    functions = [
        close, within(1), within(2), Rule(1), Rule(2), Rule(1).rule, functools.partial(close, field_path="a"),
        functools.partial(close, field_path="b"), operator.eq, lambda a, b, tolerance=1: 0, lambda a, b: 0,
    ]  # fmt: skip
    assert len({version(function) for function in functions}) == len(functions)
    assert version(within(1)) == version(within(1))
    assert version(Rule(1)) == version(Rule(1))
    assert " at 0x" not in repr([PythonCodeEvaluator({"function": function}) for function in functions])


def test_the_version_is_the_same_in_another_process(tmp_path):
    (tmp_path / "rules.py").write_text(
        "class Held:\n    pass\n\n\ndef made(held):\n    def rule(a, b):\n        return held is not None\n"
        "    return rule\n\n\nrule = made(Held())\n"
    )
    program = (
        f"import sys; sys.path[:0] = [{str(Path.cwd())!r}, {str(tmp_path)!r}]\n"
        "import rules\nfrom metrics.evaluators import PythonCodeEvaluator\n"
        "print(PythonCodeEvaluator({'function': rules.rule}).version)"
    )
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in "ab"]
    assert runs[0].stdout == runs[1].stdout != ""


def test_matching_lists_does_not_call_it():
    def rule(extracted, expected):
        raise AssertionError

    assert PythonCodeEvaluator({"function": rule}).similarities(["a", "b"], ["a"]).shape == (2, 1)


NUMBERS = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.fractions(), st.decimals().filter(lambda d: not d.is_snan())
)


@settings(max_examples=300)
@given(NUMBERS, st.text(), st.one_of(st.text(), st.none(), st.integers()))
def test_any_number_becomes_a_score_or_a_reason(said, extracted, expected):
    score = says(said).score(extracted, expected, field_path="f")
    finite = not isinstance(said, float | Decimal) or (said == said and math.isfinite(float(said)))
    assert (score.value is None) != finite
    assert score.value is None or 0.0 <= score.value <= 1.0
    if finite and 0 <= said <= 1:
        assert score.value == float(said)
