"""Paths and the patterns they stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.record.paths import EVERY, parse, written

NAMES = st.text(st.characters(blacklist_characters=".[]"), min_size=1, max_size=4).filter(lambda name: name.strip())
PATTERNS = st.lists(NAMES | st.just(EVERY), min_size=1, max_size=5).map(tuple).filter(lambda pattern: pattern != ("$",))


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("vendor", ("vendor",)),
        ("a.b", ("a", "b")),
        ("steps[*].action", ("steps", EVERY, "action")),
        ("tags[*]", ("tags", EVERY)),
        ("series[*][*]", ("series", EVERY, EVERY)),
        ("[*].name", (EVERY, "name")),
        ("[*]", (EVERY,)),
        ("$", ()),
        ("total amount (€)", ("total amount (€)",)),
    ],
)
def test_paths_and_back(path, pattern):
    assert parse(path) == pattern
    assert written(pattern) == path


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("steps[0].action", r"items are not named by position; for every item write 'steps\[\*\].action'"),
        ("steps[]", r"write 'steps\[\*\]'"),
        ("steps[*]action", r"write 'steps\[\*\].action'"),
        ("steps[*", r"brackets stand only in \[\*\]"),
        ("steps[a].b", r"brackets stand only in \[\*\]"),
        ("a..b", "a name is empty between two dots"),
        ("a.", "a name is empty between two dots"),
        (".a", "a name is empty between two dots"),
        ("steps.[*]", "a name is empty between two dots"),
        ("", "a path is text such as 'vendor'"),
        (5, "a path is text such as 'vendor' or .*, got 5"),
    ],
)
def test_what_is_no_path_is_refused_with_what_to_write(path, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse(path)


@given(PATTERNS)
def test_every_pattern_is_read_back(pattern):
    assert parse(written(pattern)) == pattern


def test_every_item_shows_as_a_word():
    assert repr(EVERY) == "EVERY"
