import math
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pytest
from pydantic import BaseModel

from harness.data.record import DEEPEST, plain
from harness.errors import UsageError


class Invoice(BaseModel):
    vendor: str
    due: date


def test_plain_turns_what_readers_produce_into_json_data():
    value = {
        "model": Invoice(vendor="Acme", due=date(2024, 5, 1)),
        "tuple": (1, "a"),
        "numpy": [np.int64(3), np.float64(0.5), np.str_("x"), np.bool_(True)],
        "decimals": [Decimal("12.50"), Decimal("3")],
        "times": [datetime(2024, 5, 1, 12, 30), time(8, 15)],
        "nothing": None,
    }
    assert plain(value, "row 1") == {
        "model": {"vendor": "Acme", "due": "2024-05-01"},
        "tuple": [1, "a"],
        "numpy": [3, 0.5, "x", True],
        "decimals": [12.5, 3],
        "times": ["2024-05-01T12:30:00", "08:15:00"],
        "nothing": None,
    }


def test_plain_leaves_its_input_alone():
    value = {"a": [1, {"b": (2,)}]}
    plain(value, "row 1")
    assert value == {"a": [1, {"b": (2,)}]}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"total": math.nan}, "row 1, total: nan is not a number"),
        ({"items": [{"n": math.inf}]}, r"row 1, items\[0\].n: inf is not a number"),
        ({"n": Decimal("NaN")}, "row 1, n: nan is not a number"),
        ({"image": b"\x89PNG"}, "row 1, image: .* is of type bytes"),
        (
            {"text": "half \ud800 of it"},
            r"row 1, text: character 6 of the text is half a Unicode character \('\\ud800'\)",
        ),
        ({"a": {1: "x"}}, "row 1, a: 1 is of type int"),
    ],
)
def test_plain_refuses_what_json_cannot_hold(value, sentence):
    with pytest.raises(UsageError, match=sentence):
        plain(value, "row 1")


def test_plain_refuses_bottomless_nesting_before_the_stack_ends():
    value: list = []
    for _ in range(DEEPEST + 1):
        value = [value]
    with pytest.raises(UsageError, match="nested more than 100 levels deep"):
        plain(value, "row 1")
    assert plain(value[0], "row 1") == value[0]
