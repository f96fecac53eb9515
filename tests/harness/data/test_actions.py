import pytest

from harness.data.actions import is_generic, normal, verb

SUGGESTED = [
    *("add", "mix", "heat", "cool", "reflux", "age", "filter", "wash", "dry", "reduce", "calcine", "dissolve"),
    *("precipitate", "centrifuge", "sonicate", "anneal", "ion exchange", "impregnate"),
]


@pytest.mark.parametrize("word", SUGGESTED)
def test_the_ontologys_verbs_are_their_own(word):
    assert verb(word) == word


@pytest.mark.parametrize(
    ("word", "action"),
    [
        ("Stirred", "mix"),
        ("addition", "add"),
        ("ball-milled", "mill"),
        ("re- ground", "grind"),
        ("pel- leted", "press"),
        ("cooled\\rdown", "cool"),
        ("slowly cooled down", "cool"),
        ("subsequently quenched", "cool"),
        ("furnace cooling", "cool"),
        ("thermally treated", "heat"),
        ("hydrothermally treated", "heat"),
        ("ultrasonically treated", "sonicate"),
        ("placed  into", "place"),
        ("arc-melting", "melt"),
        ("spin-coated", "spin-coated"),
        ("galvanically replaced", "galvanically replaced"),
    ],
)
def test_words_become_verbs(word, action):
    assert verb(word) == action


@pytest.mark.parametrize(
    "word",
    [
        *("used", "Purchased", "obtained", "prepared", "synthesized", "denoted", "anal. calcd.", "→", "carried out"),
        *(
            "solid-state reaction",
            "conventional solid state reaction method",
            "arc-melting technique",
            "HPHT technology",
        ),
        "pre- pared",
    ],
)
def test_what_is_no_operation_is_none(word):
    assert verb(word) is None


@pytest.mark.parametrize(
    "name", ["samples", "the resultant sample", "prod- uct", "Starting materials", "mixed powders", "them"]
)
def test_words_that_point_elsewhere_are_generic(name):
    assert is_generic(name)


@pytest.mark.parametrize("name", ["MgB2", "carbon powder", "metal salt solution", "silica gel", "ethanol"])
def test_names_are_not_generic(name):
    assert not is_generic(name)


def test_normal_joins_what_a_line_break_cut():
    assert normal("Homo- geneous\\rMixture ") == "homogeneous mixture"
