"""No number anybody reads is a minus zero: terminal, report and MLflow."""

import re

import pytest

from harness.decimals import fixed
from harness.tracking.names import usable_metrics
from harness.tracking.sentences import change, difference, interval, score
from metrics.statistics import PairedDifference


@pytest.mark.parametrize("number", [-0.0, -0.0004, -1e-12, 0.0])
def test_what_rounds_to_zero_has_no_minus(number):
    assert (fixed(number, 3), fixed(number, 3, signed=True)) == ("0.000", "+0.000")
    delta = PairedDifference(number, (number, number), None, 30, 30)
    for text in (score(number), interval((number, number)), difference(delta), change(0.0, number)):
        assert not re.search(r"-0\.0+(?![0-9])", text), text


def test_other_numbers_keep_their_sign():
    assert [fixed(number, 3, signed=True) for number in (-0.0006, 0.1, -1.0)] == ["-0.001", "+0.100", "-1.000"]


def test_mlflow_gets_a_plain_zero():
    assert str(usable_metrics({"delta": -0.0}).values["delta"]) == "0.0"
