"""nearest_demos: the most similar labelled examples, nearest last, the same for the same question."""

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.optimizers.nearest import NearestDemos

POOL = [
    {"id": "b", "text": "LiCoO2 was calcined at 850 C", "record": {"target": "LiCoO2"}},
    {"id": "a", "text": "ZnO was precipitated with ammonia", "record": {"target": "ZnO"}},
    {"id": "c", "text": "LiMn2O4 was calcined at 750 C", "record": {"target": "LiMn2O4"}},
]


class Program(dspy.Module):
    output_field = "record"

    def __init__(self):
        super().__init__()
        self.summarise = dspy.Predict("text -> summary")
        self.extract = dspy.Predict("text -> record: dict[str, str]")

    def forward(self, text):
        return dspy.Prediction(record=[demo.text for demo in self.extract.demos])

    async def aforward(self, text):
        return self.forward(text)


def module(k=2, pool=POOL):
    return NearestDemos(Program(), pool, k, ("text",))


def test_the_nearest_comes_last():
    nearest = module().nearest({"text": "LiNiO2 was calcined at 800 C"})
    assert {demo["id"] for demo in nearest} == {"b", "c"}
    assert module(1).nearest({"text": "ZnO precipitated"})[0]["id"] == "a"
    assert module(3).nearest({"text": "ZnO precipitated"})[-1]["id"] == "a"


def test_the_wrapped_program_is_left_as_it_was():
    wrapped = module()
    assert wrapped(text="LiCoO2 calcined").record[-1] == POOL[0]["text"]
    assert wrapped.program.extract.demos == []


def test_only_predictors_whose_every_field_is_labelled_get_demos():
    program = module().with_demos({"text": "LiCoO2"})
    assert len(program.extract.demos) == 2
    assert program.summarise.demos == []


def test_ties_are_broken_by_id_and_the_order_given_does_not_matter():
    same = [{"id": name, "text": "equal", "record": {}} for name in "cab"]
    forward = [demo["id"] for demo in module(2, same).nearest({"text": "equal"})]
    backward = [demo["id"] for demo in module(2, same[::-1]).nearest({"text": "equal"})]
    assert forward == backward == ["b", "a"]


@given(st.text(max_size=60), st.integers(1, 5))
def test_any_question_gets_k_different_demos(text, k):
    nearest = module(k).nearest({"text": text})
    assert len({demo["id"] for demo in nearest}) == min(k, len(POOL))


def test_its_state_makes_the_same_module_again():
    state = module().dump_bundle()
    again = NearestDemos.load_bundle(Program(), state)
    question = {"text": "LiFePO4 calcined"}
    assert again.nearest(question) == module().nearest(question)
    assert again.dump_bundle() == state


@pytest.mark.parametrize(("k", "pool", "words"), [(0, POOL, "at least 1, got 0"), (1, [], "got none")])
def test_nothing_to_show_is_refused(k, pool, words):
    with pytest.raises(ValueError, match=words):
        module(k, pool)


def test_texts_without_a_letter_are_compared_too():
    assert (
        len(
            module(2, [{"id": "1", "text": "", "record": {}}, {"id": "2", "text": " ", "record": {}}]).nearest(
                {"text": ""}
            )
        )
        == 2
    )


def test_it_can_be_awaited():
    import asyncio

    assert len(asyncio.run(module().acall(text="LiCoO2")).record) == 2


def test_an_output_that_examples_lack_is_left_out_of_the_demo():
    class Reasoning(Program):
        def __init__(self):
            super().__init__()
            self.extract = dspy.ChainOfThought("text -> record: dict[str, str]")

    program = NearestDemos(Reasoning(), POOL, 2, ("text",)).with_demos({"text": "LiCoO2"})
    assert [set(demo.keys()) for demo in program.extract.predict.demos] == [{"text", "record"}] * 2
