"""A diff that loses nothing and shows what a reader needs."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.tracking.prompt_diff import Block, Line, diff

lines = st.lists(st.text(st.characters(exclude_categories=["Zl", "Zp", "Cc", "Cs"]), max_size=30), max_size=25)


def text(blocks: list[Block], without: str) -> list[str]:
    return [
        "".join(span.text for span in line.spans) for block in blocks for line in block.lines if line.kind != without
    ]


@given(lines, lines)
def test_both_texts_can_be_read_back(before: list[str], after: list[str]) -> None:
    blocks = diff("\n".join(before), "\n".join(after))
    assert text(blocks, "added") == "\n".join(before).splitlines()
    assert text(blocks, "removed") == "\n".join(after).splitlines()


@given(lines, lines)
def test_only_unchanged_lines_are_folded(before: list[str], after: list[str]) -> None:
    blocks = diff("\n".join(before), "\n".join(after))
    assert all(line.kind == "same" for block in blocks if block.folded for line in block.lines)
    assert all(one.folded != two.folded for one, two in pairwise(blocks))


def test_three_lines_around_a_change_stay_open() -> None:
    before = [str(number) for number in range(20)]
    blocks = diff("\n".join(before), "\n".join([*before[:10], "new", *before[10:]]))
    assert [(block.folded, len(block.lines)) for block in blocks] == [(True, 7), (False, 7), (True, 7)]


def test_changed_words_are_marked_in_both_lines() -> None:
    (block,) = diff("Name the target compound.", "Name every target compound.")
    assert [[span.text for span in line.spans if span.changed] for line in block.lines] == [["the"], ["every"]]


def test_unrelated_and_huge_lines_are_shown_whole() -> None:
    for before, after in [("abc def", "XYZ 123 ???"), ("a " * 800, "b " * 800)]:
        (block,) = diff(before, after)
        assert [line.kind for line in block.lines] == ["removed", "added"]
        assert all(not span.changed for line in block.lines for span in line.spans)


def test_equal_texts_are_one_fold() -> None:
    assert diff("a\nb", "a\nb") == [
        Block(True, tuple(Line("same", line.spans) for line in diff("a\nb", "a\nb")[0].lines))
    ]
    assert diff("", "") == []
