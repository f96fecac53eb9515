"""LinkingMetric: links of series and materials, figure by figure."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from metrics import LinkingMetric, Metric


class SeriesMapping(BaseModel):
    series_name: str
    material_name: str
    confidence: str = "medium"
    reasoning: str = ""


class PlotMaterialMapping(BaseModel):
    plot_index: int
    figure_reference: str = ""
    mappings: list[SeriesMapping]
    unmatched_series: list[str] = []


def link(series, material, **more):
    return {"series_name": series, "material_name": material, **more}


def figure(index, *pairs, **more):
    return {"plot_index": index, "mappings": [link(*pair) for pair in pairs], **more}


GOLD = [figure(0, ("S1", "Pd/ZrO2"), ("S2", "Ni/ZrO2")), figure(3, ("S1", "Ni/Al2O3"))]


def score(predicted, gold=GOLD):
    return LinkingMetric().compare(gold, predicted)


def value(predicted, gold=GOLD):
    return score(predicted, gold).value


def test_the_rates():
    found = score([figure(0, ("S1", "Pd/ZrO2"), ("S2", "Pd")), figure(3)])
    assert {name: part.value for name, part in found.parts.items()} == pytest.approx(
        {"precision": 1 / 2, "recall": 1 / 3, "f1": 2 / 5}
    )
    assert found.value == found.parts["f1"].value
    assert {name: found.details[name] for name in ("n", "n_expected", "n_predicted", "n_right")} == {
        "n": 4, "n_expected": 3, "n_predicted": 2, "n_right": 1,
    }  # fmt: skip
    assert found.details["false"] == [["0", "S2", "Pd"]]
    assert found.feedback.splitlines() == [
        "figure 0: the link of series 'S2' to material 'Ni/ZrO2' is missing",
        "figure 3: the link of series 'S1' to material 'Ni/Al2O3' is missing",
        "figure 0: the link of series 'S2' to material 'Pd' is false",
    ]


def test_a_link_in_another_figure_is_false():
    assert value([figure(1, ("S1", "Pd/ZrO2"))]) == 0.0


def test_names_are_compared_as_names():
    gold = [figure(0, ("Pd/Zr02", "Pd/ZrO2"), ("Pd-Cu", "Pd-Cu/ZrO2"), ("Cu-Pd", "Cu-Pd/ZrO2"))]
    assert value([figure(0, ("Pd/ZrO₂", "pd/zro₂"), ("Pd–Cu", "Pd-Cu/ZrO2"), ("cu-pd", "Cu-Pd/ZrO2"))], gold) == 1.0
    assert value([figure(0, ("CuPd", "Pd-Cu/ZrO2"), ("Pd-Cu", "Cu-Pd/ZrO2"))], gold) == 0.0


def test_one_to_many_and_many_to_one():
    gold = [figure(0, ("a", "X"), ("a", "Y"), ("b", "X"))]
    assert value(gold, gold) == 1.0
    assert value([figure(0, ("a", "X"), ("b", "Y"))], gold) == pytest.approx(2 / 5)


def test_a_link_said_twice_counts_once():
    twice = [figure(0, ("S1", "Pd/ZrO2"), ("s1", "Pd/ZrO₂")), figure(0, ("S1", "Pd/ZrO2"))]
    assert score(twice).details["n_predicted"] == 1
    assert score(twice).value == 0.5


def test_nothing_to_link():
    found = score([], [])
    assert (found.value, found.details["n"], found.feedback) == (1.0, 0, "nothing was to be linked and nothing was")
    assert found.parts["precision"].value is None
    assert value([figure(0)], []) == value(None, [{"plot_index": 1, "unmatched_series": ["a"]}]) == 1.0
    assert value([figure(0, ("a", "b"))], []) == 0.0
    assert value([]) == value(None) == 0.0
    assert score([]).parts["precision"].value is None
    assert score([]).parts["recall"].value == 0.0


@pytest.mark.parametrize(
    "written",
    [
        {"mappings": GOLD, "performance_per_material": {"Pd/ZrO2": {}}},
        [PlotMaterialMapping.model_validate(one) for one in GOLD],
        {"mappings": [PlotMaterialMapping.model_validate(one) for one in GOLD]},
        [{**one, "plot_index": str(one["plot_index"])} for one in GOLD],
        [{**one, "plot_index": float(one["plot_index"])} for one in GOLD],
        [{**entry, "plot_index": one["plot_index"]} for one in GOLD for entry in one["mappings"]],
        tuple(GOLD),
    ],
)  # fmt: skip
def test_ways_to_write_links(written):
    assert value(written) == 1.0


def test_a_figure_without_index_is_known_by_its_reference():
    by_reference = [{"figure_reference": "Fig. 2a", "mappings": [link("a", "X")]}]
    assert value([{"figure_reference": "fig 2a", "mappings": [link("a", "X")]}], by_reference) == 1.0
    assert value([{"figure_reference": "Fig. 2b", "mappings": [link("a", "X")]}], by_reference) == 0.0
    assert value(link("a", "X"), [link("a", "X")]) == value({"mappings": [link("a", "X")]}, [link("a", "X")]) == 1.0


@pytest.mark.parametrize("entry", [None, 3, "S1: Ru", {}, {"series_name": "S1"}, link("", "X"), link(1, 2), [1]])
def test_an_entry_that_is_no_link_is_a_false_one(entry):
    found = score([*GOLD, {"plot_index": 0, "mappings": [entry]}])
    assert found.value == pytest.approx(6 / 7)
    assert found.feedback == "1 entry names no series and material"


@pytest.mark.parametrize("predicted", ["text", 7, [1, "a"], {"foo": 1}, [figure(0) | {"mappings": "x"}]])
def test_what_is_no_list_of_links_is_false(predicted):
    assert value(predicted) == 0.0
    assert value(predicted, []) == 0.0


def test_confidence_and_reasons_decide_nothing():
    spoken = [
        {**one, "mappings": [{**entry, "confidence": "low", "reasoning": "?"} for entry in one["mappings"]]}
        for one in GOLD
    ]
    assert value(spoken) == 1.0


def test_feedback_is_short_whatever_was_linked():
    feedback = score([], [figure(0, *((f"series {n}", "x" * 90) for n in range(300)))]).feedback
    assert len(feedback) < 4100
    assert feedback.endswith("more lines")


def test_it_is_a_metric_of_examples_and_predictions():
    metric = LinkingMetric(output_field="links")
    assert isinstance(metric, Metric)
    assert metric({"expected": GOLD}, {"links": GOLD, "reasoning": ""}).value == 1.0
    assert metric({"expected": GOLD}, None).value == 0.0
    assert LinkingMetric()({"expected": GOLD}, {"reasoning": "", "mappings": GOLD}).value == 1.0
    with pytest.raises(ValueError, match="no field 'links'"):
        metric({"expected": GOLD}, {"mappings": GOLD})
    assert (metric.name, metric.version) == ("linking", LinkingMetric(name="x").version)


NAMES = st.sampled_from(["a", "A", "Pd-Cu", "CuPd", "ZrO2", "Zr02", "γ", "1"])
LINKS = st.lists(
    st.builds(
        lambda index, pairs: figure(index, *pairs), st.integers(0, 2), st.lists(st.tuples(NAMES, NAMES), max_size=3)
    ),
    max_size=3,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["mappings", "plot_index", "series_name", "material_name", "x"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)
thorough = settings(max_examples=200)


@thorough
@given(JSON | LINKS, JSON | LINKS)
def test_anything_has_a_score_in_bounds(gold, predicted):
    found = score(predicted, gold)
    assert 0.0 <= found.value <= 1.0
    json.dumps(found.to_dict(), allow_nan=False)


@thorough
@given(LINKS)
def test_links_against_themselves_are_one(gold):
    assert value(gold, gold) == 1.0


@thorough
@given(LINKS, LINKS, st.randoms(use_true_random=False))
def test_order_changes_nothing(gold, predicted, rng):
    def mixed(figures):
        return [
            {**one, "mappings": rng.sample(one["mappings"], len(one["mappings"]))}
            for one in rng.sample(figures, len(figures))
        ]

    assert value(mixed(predicted), mixed(gold)) == value(predicted, gold)


@thorough
@given(LINKS, LINKS, st.data())
def test_false_links_never_pay_and_right_ones_are_missed(gold, predicted, data):
    assert value([*predicted, figure(0, ("false series", "false material"))], gold) <= value(predicted, gold)
    places = [(i, j) for i, one in enumerate(gold) for j in range(len(one["mappings"]))]
    if places:
        i, j = data.draw(st.sampled_from(places))
        fewer = [
            {**one, "mappings": [entry for at, entry in enumerate(one["mappings"]) if (n, at) != (i, j)]}
            for n, one in enumerate(gold)
        ]
        assert value(fewer, gold) <= value(gold, gold)
