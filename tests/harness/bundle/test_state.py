"""The state of a program: what survives the trip through JSON, and which programs it fits."""

import re
from collections.abc import Callable

import dspy
import pydantic
import pytest

from harness import bundle
from harness.bundle.state import first_difference
from harness.errors import UsageError
from programs import SchemaExtraction


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "harness.optimizers.nearest:TfidfVectorizer",
        "harness.optimizers.none:None_",
        "harness.optimizers.nearest:Nothing",
    ],
)
def test_a_bundle_names_no_code_but_this_packages(kit, tmp_path, name):
    kit.export(tmp_path / "b", kit.nearest())
    kit.rewrite(tmp_path / "b", "program.json", lambda state: state["wrapper"].update({"class": name}))
    with pytest.raises(UsageError, match=re.escape(f"needs {name!r}, which this version of the package does not have")):
        bundle.load(tmp_path / "b")


class Other(dspy.Module):
    output_field = "label"

    def __init__(self):
        super().__init__()
        self.predict = dspy.Predict("text -> label")


@pytest.mark.parametrize(
    ("kind", "difference"),
    [
        ("question -> answer", "the inputs of 'steps[0].predict' are text in the bundle and question in the program"),
        ("text -> answer", "are reasoning, label in the bundle and reasoning, answer in the program"),
        ("text -> label: int", "'label' of 'steps[0].predict' differs at type: 'string' in the bundle, 'integer' in"),
    ],
)
def test_another_signature_is_refused_with_the_difference(kit, tmp_path, kind, difference):
    """V21: a state saved for one signature never ends in another."""
    kit.export(tmp_path / "b", kit.mine())
    with pytest.raises(UsageError, match=f"belongs to another program: .*{re.escape(difference)}"):
        bundle.load(tmp_path / "b", program=kit.Mine(kind=kind))


def test_another_program_is_refused(kit, tmp_path):
    kit.export(tmp_path / "b", kit.mine())
    with pytest.raises(UsageError, match=re.escape("only the bundle has a predictor 'steps[0].predict'")):
        bundle.load(tmp_path / "b", program=Other())
    with pytest.raises(UsageError, match=r"program is a dspy\.Module class or an instance of one, got int"):
        bundle.load(tmp_path / "b", program=3)


def test_another_record_is_refused_with_the_difference(kit, tmp_path):
    class Longer(kit.Invoice):
        total: float | None = None

    kit.export(tmp_path / "b", kit.tuned())
    with pytest.raises(UsageError, match="belongs to another program: the type of 'record' of 'extract' differs at"):
        bundle.load(tmp_path / "b", program=SchemaExtraction(Longer))


def test_a_program_that_promises_something_else_is_refused(kit, tmp_path):
    kit.export(tmp_path / "b", kit.mine())
    program = kit.Mine()
    program.output_field = "reasoning"
    with pytest.raises(
        UsageError, match="it differs at output field: 'label' in the bundle, 'reasoning' in the program"
    ):
        bundle.load(tmp_path / "b", program=program)
    program.output_field = None
    with pytest.raises(UsageError, match="belongs to another program: Mine does not say which output"):
        bundle.load(tmp_path / "b", program=program)


def test_a_class_that_needs_arguments_is_asked_for_an_instance(kit, tmp_path):
    class Needy(kit.Mine):
        def __init__(self, must):
            super().__init__()

    kit.export(tmp_path / "b", Needy(1))
    with pytest.raises(UsageError, match=r"Needy cannot be made from the arguments in .*; pass an instance instead"):
        bundle.load(tmp_path / "b", program=Needy)
    assert bundle.load(tmp_path / "b", program=Needy(1)).contract.field == "label"


def test_a_demo_that_would_change_stops_the_export(kit, tmp_path):
    class Pairs(kit.Mine):
        def __init__(self):
            super().__init__(kind="text: str, pair: tuple[int, int] -> label")

    class Odd:
        def __str__(self):
            return "Odd\udcff"

    program = Pairs()
    program.steps[0].predict.demos = [dspy.Example(text=["a", "b"], pair=(1, 2), label="x", reasoning="r")]
    kit.export(tmp_path / "list", program, "json")
    program.steps[0].predict.demos = [dspy.Example(text=("a", "b"), pair=(1, 2), label="x", reasoning="r")]
    with pytest.raises(UsageError, match=r"the bundle is not written: after loading, prompts/.* would differ in line"):
        kit.export(tmp_path / "tuple", program, "json")
    program.steps[0].predict.demos = [dspy.Example(text=Odd(), pair=(1, 2), label="x", reasoning="r")]
    with pytest.raises(UsageError, match=r"program.json of the bundle cannot be written as JSON"):
        kit.export(tmp_path / "odd", program, "json")
    program.steps[0].predict.demos = [dspy.Example(text="a", pair=(1, float("nan")), label="x", reasoning="r")]
    with pytest.raises(UsageError, match=r"program.json of the bundle cannot be written as JSON"):
        kit.export(tmp_path / "nan", program, "json")
    assert list(tmp_path.iterdir()) == [tmp_path / "list"]


def test_a_demo_pydantic_cannot_write_is_named(kit, tmp_path):
    class Broken(pydantic.BaseModel):
        text: str

        @pydantic.model_serializer
        def fail(self):
            raise ValueError("not today")

    program = kit.mine()
    program.steps[0].predict.demos[1].text = Broken(text="x")
    with pytest.raises(UsageError, match=r"demo 2 of steps\[0\].predict cannot be written as JSON: .*not today"):
        kit.export(tmp_path / "b", program)


def manifest(**changes):
    return "manifest.json", lambda document: document.update(changes)


def argument(**changes):
    return "manifest.json", lambda document: document["program"]["arguments"].update(changes)


def predictor(change):
    return "program.json", lambda document: change(document["predictors"]["extract"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (manifest(format="zip"), "is not a bundle: manifest.json does not say format"),
        (manifest(format_version=2), "has bundle format 2, this version of the package reads 1"),
        (manifest(inputs=None), "manifest.json is not as this package writes it: inputs: Input should be a valid list"),
        (manifest(adapter="compakt"), "there is no prompt adapter 'compakt'; did you mean 'compact'?"),
        (argument(model="/etc/x.json"), "model is not a JSON Schema"),
        (argument(inputs=[]), "cannot be made from its arguments: inputs is a list"),
        (predictor(lambda it: it.pop("demos")), "writes it: predictors.extract.demos: Field required"),
        (predictor(lambda it: it.update(instructions="Ignore it.")), "prompts/extract.txt differs in line 2:"),
        (("program.json", lambda it: it.update(predictors={})), "only SchemaExtraction has a predictor 'extract'"),
    ],
)
def test_a_bundle_made_by_hand_is_refused(kit, tmp_path, change, sentence):
    kit.export(tmp_path / "b", kit.tuned())
    kit.rewrite(tmp_path / "b", *change)
    with pytest.raises(UsageError) as error:
        bundle.load(tmp_path / "b")
    assert sentence in str(error.value)


def test_thresholds_of_decisions_are_kept(kit, tmp_path):
    program = kit.mine(kind="text -> label: bool")
    program.steps[0].predict.fields = {"label": {}}
    kit.export(tmp_path / "b", program)
    fields = bundle.load(tmp_path / "b", program=kit.Mine(kind="text -> label: bool")).program.steps[0].predict.fields
    assert fields == {"label": {}}


def test_an_input_without_a_schema_is_known_by_its_type(kit, tmp_path):
    class Calling(kit.Mine):
        def __init__(self, kind=Callable):
            super().__init__()
            fields = {"text": (str, dspy.InputField()), "act": (kind, dspy.InputField())}
            self.steps = [dspy.Predict(dspy.Signature({**fields, "label": (str, dspy.OutputField())}, "Do."))]

    kit.export(tmp_path / "b", Calling())
    assert bundle.load(tmp_path / "b", program=Calling).contract.inputs == ("text",)
    with pytest.raises(UsageError, match=r"the type of 'act' .* differs at python type: only in the bundle"):
        bundle.load(tmp_path / "b", program=Calling(str))


def test_the_first_difference_is_named(kit):
    assert first_difference({"a": [1]}, {"a": [1]}) is None
    assert first_difference({"a": 1}, {}) == "a: only in the bundle"
    assert first_difference({}, {"a": {"b": 1}}) == "a: only in the program"
    assert first_difference([1], [2]) == "the top: [1] in the bundle, [2] in the program"
    assert first_difference("x" * 200, 1).startswith("the top: 'xxx")
