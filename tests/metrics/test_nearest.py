"""The name that was meant."""

import pytest

from metrics.nearest import nearest


@pytest.mark.parametrize(
    ("name", "known", "sentence"),
    [
        ("case_sensitve", ["case_sensitive", "strip_whitespace"], "did you mean 'case_sensitive'?"),
        ("", ["b", "a"], "known: a, b"),
        ("x", [], "there are none"),
    ],
)
def test_nearest_names_one_or_lists_all(name, known, sentence):
    assert nearest(name, known) == sentence
