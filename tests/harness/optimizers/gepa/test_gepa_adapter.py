"""What the model that writes instructions is shown, and how candidates are run."""

import json
import zlib

import dspy
import pydantic
import pytest

from harness.models.scripted import reply, request_text
from harness.optimizers.feedback import AsFeedback
from harness.optimizers.gepa_adapter import LONGEST_VALUE, ProgramAdapter
from harness.optimizers.gepa_search import GepaArguments, gepa
from harness.optimizers.proposals import Proposals
from metrics import RecordMetric
from metrics.score import Score


class Reading(pydantic.BaseModel):
    sample: str
    temperature: float


class Extraction(dspy.Module):
    output_field = "record"

    def __init__(self):
        super().__init__()
        self.extract = dspy.Predict(
            dspy.Signature("text -> record: Reading", "Read.", custom_types={"Reading": Reading})
        )

    def forward(self, text):
        return self.extract(text=text)


class TwoSteps(dspy.Module):
    output_field = "label"

    def __init__(self):
        super().__init__()
        self.find = dspy.Predict(dspy.Signature("text -> clue", "Find the clue."))
        self.name = dspy.Predict(dspy.Signature("clue -> label", "Name the label."))

    def forward(self, text):
        return self.name(clue=self.find(text=text).clue)


def reading(number):
    expected = {"sample": f"S{number}", "temperature": 900.0}
    return dspy.Example(id=f"r{number}", group=None, expected=expected, text=f"sample-{number}").with_inputs("text")


def adapter_for(made, **given):
    return ProgramAdapter(
        made.job.program, runtime=made.job.runtime, metric=AsFeedback(made.job.measure.scoring),
        lm=made.job.prompt, proposals=Proposals(["text", "label"]), seed=0, **given,
    )  # fmt: skip


def answers_at(temperature):
    def script(request):
        number = request_text(request).rsplit("sample-", 1)[1].split()[0].strip('"]}')
        return json.dumps({"record": {"sample": f"S{number}", "temperature": temperature}})

    return script


def test_the_writing_model_sees_the_place_and_both_values(bench):
    made = bench(answer=answers_at(90.0), program=Extraction(), examples=reading, metric=RecordMetric())
    gepa(made.job, GepaArguments(max_metric_calls=14))
    shown = request_text(made.told[0])
    assert "temperature: expected 900.0, got 90.0" in shown
    assert "Score 0.50 of 1." in shown
    assert "sample-" in shown
    assert not any(f"sample-{number}" in shown for number in range(20, 24)), "validation is never shown"


def test_it_sees_answers_that_could_not_be_read(bench):
    made = bench(answer=lambda request: "It is 900 degrees.", program=Extraction(), examples=reading)
    result = gepa(made.job, GepaArguments(max_metric_calls=14))
    shown = request_text(made.told[0])
    assert "could not be used (invalid)" in shown
    assert "It is 900 degrees." in shown
    assert result.candidates[0].score == 0.0
    assert any("answers while tuning could not be used and counted as 0" in note for note in made.job.recorder.notes)


def test_it_sees_that_answers_were_cut_and_is_not_told_where_the_model_is(bench):
    made = bench(answer=lambda request: reply('{"label": "L', finish_reason="length"))
    gepa(made.job, GepaArguments(max_metric_calls=14))
    shown = request_text(made.told[0])
    assert "could not be used (cut): it was too long and was cut off before its end" in shown
    assert "scripted/model" not in shown


def test_the_names_an_instruction_must_keep_are_told(bench):
    made = bench()
    gepa(made.job, GepaArguments(max_metric_calls=14))
    assert "must name these fields as they are written here: `text`" in request_text(made.told[0])


def test_both_predictors_of_a_program_are_tuned_and_merged(bench):
    """Their numbers name them: the engine walks over a set of names."""

    def answer(request):
        said = zlib.crc32(request_text(request).encode()) % 97
        return json.dumps({"label": f"L{said}", "clue": f"clue {said}"})

    count = iter(range(1000))
    made = bench(
        lambda request: json.dumps({"new_instruction": f"Do it well, version {next(count)}."}),
        answer,
        program=TwoSteps(),
        temperature=1.0,
    )
    made.metric.judge = lambda expected, got: Score(int(got[1:]) / 97, f"expected {expected}")
    result = gepa(made.job, GepaArguments(max_metric_calls=200))
    described = " ".join(one.description for one in result.candidates)
    assert "instructions of find rewritten" in described
    assert "instructions of find, name rewritten" in described
    adapter = adapter_for(made)
    assert list(adapter.seed_candidate) == [0, 1]
    assert adapter.predictors == ["find", "name"]


def test_a_candidate_is_built_on_a_copy(bench):
    made = bench()
    built = adapter_for(made).build({0: "Another instruction."})
    assert built.extract.signature.instructions == "Another instruction."
    assert made.job.program.extract.signature.instructions == "Give the label of the `text`."


@pytest.mark.parametrize("threads", [1, 3])
def test_answers_come_back_in_the_order_of_the_examples(bench, threads):
    made = bench(threads=threads)
    adapter = adapter_for(made)
    batch = adapter.evaluate(made.job.train, {0: "Follow rule 1 and rule 3."}, capture_traces=True)
    assert [round(score) for score in batch.scores] == [0, 1, 0, 1, 0, 1, 0, 1]
    assert batch.num_metric_calls == 8
    assert min(batch.scores) > 0, "the engine cannot draw among candidates whose scores are all 0"
    records = adapter.make_reflective_dataset({0: ""}, batch, [0])[0]
    assert [record["Inputs"]["text"] for record in records] == [f"sample-{number}" for number in range(8)]
    assert records[1]["Generated Outputs"] == {"label": "L1"}


def test_long_values_lose_their_middle_and_pictures_are_only_named(bench):
    class Looking(dspy.Module):
        output_field = "label"

        def __init__(self):
            super().__init__()
            self.extract = dspy.Predict("text, picture: dspy.Image -> label")

        def forward(self, text, picture):
            return self.extract(text=text, picture=picture)

    picture = dspy.Image("data:image/png;base64,iVBORw0KGgo=")

    def looking(number):
        return dspy.Example(
            id=f"p{number}", group=None, expected="L", text=f"{number} " + "word " * 5000, picture=picture
        ).with_inputs("text", "picture")

    made = bench(answer=lambda request: '{"label": "x"}', program=Looking(), examples=looking)
    gepa(made.job, GepaArguments(max_metric_calls=14))
    shown = request_text(made.told[0])
    assert "(Image, not shown)" in shown
    assert "base64" not in shown
    assert "characters left out" in shown
    assert len(shown) < 3 * (LONGEST_VALUE + 1000) + 5000


def test_an_instruction_is_not_proposed_for_a_predictor_that_was_never_called(bench):
    made = bench()
    adapter = adapter_for(made)
    batch = adapter.evaluate([], {0: "x"}, capture_traces=True)
    assert adapter.propose_new_texts({0: "x"}, adapter.make_reflective_dataset({0: "x"}, batch, [0]), [0]) == {}
    assert made.told == []
