"""What a program promises, read off the program."""

import datetime
import enum
import math
from typing import Any, Literal

import dspy
import pydantic
import pytest

from programs.contract import OutputContract, ProgramDeclarationError, RecordError, output_contract, predictors_of


class Method(enum.Enum):
    SOL_GEL = "sol-gel"


class Conditions(pydantic.BaseModel):
    temperature: float | None = None


class Step(pydantic.BaseModel):
    conditions: Conditions = Conditions()


class Recipe(pydantic.BaseModel):
    method: Method
    day: datetime.date
    steps: list[Step] = []


def program(annotation, **members):
    """A program of one predictor whose output `result` has the given type."""

    class Mine(dspy.Module):
        output_field = "result"

        def __init__(self):
            super().__init__()
            fields = {"text": (str, dspy.InputField()), "result": (annotation, dspy.OutputField())}
            self.extract = dspy.Predict(dspy.Signature(fields, "Do."))

        def forward(self, text):
            return self.extract(text=text)

    for name, value in members.items():
        setattr(Mine, name, value)
    return Mine()


@pytest.mark.parametrize(
    ("annotation", "record", "value"),
    [
        (str, "x", "x"),
        (float, 1.5, 1.5),
        (int, 3, 3),
        (bool, True, True),
        (list[int], [1, 2], [1, 2]),
        (dict[str, float], {"Fe": 0.5}, {"Fe": 0.5}),
        (Literal["a", "b"], "a", "a"),
        (Method, "sol-gel", Method.SOL_GEL),
        (datetime.date, "2024-01-02", datetime.date(2024, 1, 2)),
        (Conditions | None, None, None),
        (
            Recipe,
            {"method": "sol-gel", "day": "2024-01-02", "steps": [{"conditions": {"temperature": 500.0}}]},
            Recipe(
                method=Method.SOL_GEL,
                day=datetime.date(2024, 1, 2),
                steps=[Step(conditions=Conditions(temperature=500.0))],
            ),
        ),
    ],
)
def test_any_typed_output_validates_and_comes_back_plain(annotation, record, value):
    contract = output_contract(program(annotation))
    assert contract.field == "result"
    assert contract.inputs == ("text",)
    assert contract.schema == pydantic.TypeAdapter(annotation).json_schema()
    assert contract.validate(record) == value
    assert contract.plain(value) == record


@pytest.mark.parametrize(
    ("annotation", "record", "path"),
    [
        (list[Step], [{"conditions": {"temperature": "hot"}}], "[0].conditions.temperature"),
        (Recipe, {"day": "2024-01-02"}, "method"),
        (list[int], [1, "x"], "[1]"),
        (Literal["a", "b"], "c", ""),
        (str, 3, ""),
        (float, math.nan, ""),
        (Any, object(), ""),
    ],
)
def test_a_record_that_does_not_fit_says_where(annotation, record, path):
    with pytest.raises(RecordError) as error:
        output_contract(program(annotation)).validate(record)
    assert error.value.path == path


def test_aliases_are_written_as_dspy_reads_them():
    class Aliased(pydantic.BaseModel):
        vendor: str = pydantic.Field(alias="sender")

    contract = output_contract(program(Aliased))
    assert contract.plain(contract.validate({"sender": "A"})) == {"sender": "A"}


@pytest.mark.parametrize("value", [math.inf, {"a": object()}])
def test_a_value_json_cannot_hold_is_an_error(value):
    with pytest.raises(RecordError, match="JSON cannot hold this value"):
        output_contract(program(Any)).plain(value)


def test_the_result_is_taken_from_the_prediction():
    contract = OutputContract("items", ("text",), {"type": "array"})
    assert contract.result(dspy.Prediction(items=[1])) == [1]
    with pytest.raises(RecordError, match=r"^the program returned list, not a dspy\.Prediction$"):
        contract.result([1])
    with pytest.raises(RecordError, match="the program's prediction has no 'items', its declared output field"):
        contract.result(dspy.Prediction(other=1))


def test_a_contract_made_of_a_schema_alone_validates():
    contract = OutputContract("record", ("text",), {"type": "object", "properties": {"n": {"type": "integer"}}})
    assert contract.validate({"n": 3}) == {"n": 3}
    with pytest.raises(RecordError, match=r"^n: 'x' is not of type 'integer'$"):
        contract.validate({"n": "x"})


def test_a_program_without_output_field_is_told_what_to_add():
    with pytest.raises(ProgramDeclarationError, match=r"Mine does not say .* output_field = 'result'"):
        output_contract(program(str, output_field=None))


@pytest.mark.parametrize(
    ("name", "sentence"), [("reslt", "did you mean 'result'?"), ("zzz", "or declare output_type if forward assembles")]
)
def test_an_output_field_nothing_produces_is_told(name, sentence):
    with pytest.raises(ProgramDeclarationError) as error:
        output_contract(program(str, output_field=name))
    assert f"no predictor produces its output_field {name!r}, they produce result; {sentence}" in str(error.value)


def test_a_program_without_predictors():
    class Bare(dspy.Module):
        output_field = "result"

    with pytest.raises(ProgramDeclarationError, match="produces its output_field 'result', it has none"):
        output_contract(Bare())
    Bare.output_type = str
    with pytest.raises(ProgramDeclarationError, match="Bare takes no input"):
        output_contract(Bare())
    del Bare.output_field
    with pytest.raises(ProgramDeclarationError, match="output_field = 'record'"):
        output_contract(Bare())


def test_an_assembled_result_has_a_declared_type():
    contract = output_contract(program(str, output_type=list[str], output_field="all"))
    assert contract.schema == {"type": "array", "items": {"type": "string"}}


def test_a_type_without_schema_is_refused():
    with pytest.raises(ProgramDeclarationError, match="the type of 'result' has no JSON Schema"):
        output_contract(program(str, output_type=slice))


class Chain(dspy.Module):
    output_field = "record"

    def __init__(self):
        super().__init__()
        self.draft = dspy.Predict("page: str -> record: str")
        self.refine = dspy.Predict("draft: str -> record: int")

    def forward(self, **inputs):
        return self.refine(draft=self.draft(**inputs).record)


def test_the_last_predictor_decides_the_type_and_the_first_the_inputs():
    contract = output_contract(Chain())
    assert contract.schema == {"type": "integer"}
    assert contract.inputs == ("page",)


def test_declared_inputs_and_those_forward_needs():
    assert output_contract(program(str, input_fields=("a", "b"))).inputs == ("a", "b")

    def forward(self, document, target=None, *rest, hint, **more):
        return self.extract(text=document)

    assert output_contract(program(str, forward=forward)).inputs == ("document", "hint")
    assert output_contract(program(str, forward=lambda self, text="": None)).inputs == ("text",)


def test_a_compiled_part_is_still_part_of_the_program():
    class Outer(dspy.Module):
        output_field = "record"

        def __init__(self):
            super().__init__()
            self.inner = Chain()
            self.inner._compiled = True

        def forward(self, page):
            return self.inner(page=page)

    assert Outer().named_predictors() == []
    assert [name for name, _ in predictors_of(Outer())] == ["inner.draft", "inner.refine"]
    assert output_contract(Outer()).inputs == ("page",)


def test_a_predictor_can_be_the_program():
    predictor = dspy.Predict("text -> label")
    predictor.output_field = "label"
    assert [name for name, _ in predictors_of(predictor)] == ["self"]
    assert output_contract(predictor).inputs == ("text",)


def test_predictors_are_found_where_dspy_finds_them_and_nowhere_else():
    class Nested(dspy.Module):
        def __init__(self):
            super().__init__()
            self.one = dspy.Predict("a -> b")
            self.again = self.one
            self.listed = [dspy.ChainOfThought("a -> b"), dspy.Predict("a -> c"), "text"]
            self.named = {"k": Chain(), 3: dspy.Predict("a -> d")}
            self.itself = self

    program = Nested()
    expected = [name for name, _ in dspy.Module.named_predictors(_without_loop(Nested()))]
    assert [name for name, _ in predictors_of(program)] == expected
    program.candidate_programs = [{"score": 1.0, "program": Nested()}, (0.5, Nested())]
    program.trial_logs = {1: {"full_eval_program": Nested()}}
    assert [name for name, _ in predictors_of(program)] == expected


def _without_loop(program):
    del program.itself
    return program
