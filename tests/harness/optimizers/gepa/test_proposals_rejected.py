"""Replies of the model that writes instructions which are none: named, counted, never measured."""

import json

import pytest

from harness.errors import RunStopped, StopReason
from harness.models.scripted import reply
from harness.optimizers import gepa_adapter
from harness.optimizers.gepa_search import GepaArguments, gepa

CURRENT = "Give the label of the `text`."
ERROR = "Error code: 401 - {'error': {'message': 'Incorrect API key provided'}}"
CUT = '{"new_instruction": "Give the label of the `text`, and always'


def said(text):
    return json.dumps({"new_instruction": text})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ERROR, "an error text"),
        (said(ERROR), "an error text"),
        (said("<!DOCTYPE html><html><body>502 Bad Gateway</body></html>"), "an error text"),
        (CUT, "cut"),
        (said("Give the label of the `text`:\n```json\n{"), "cut"),
        (said(""), "empty"),
        (said("  \n "), "empty"),
        (said(CURRENT), "unchanged"),
        (said(f"  {CURRENT.upper()}\n"), "unchanged"),
        (said("Give the label."), "drops a field name"),
        (said("I'm sorry, but I can't help with that text."), "a refusal"),
        (said("Read the text. " * 1000), "too long"),
        ("Here is a better instruction: give the label of the text.", "unreadable"),
        ('{"instruction": "Give the label of the text."}', "unreadable"),
        ('{"new_instruction": null}', "empty"),
    ],
)
def test_a_reply_that_is_no_better_instruction_is_rejected_and_five_in_a_row_end_the_search(bench, answer, reason):
    made = bench(lambda request: answer, temperature=1.0)
    result = gepa(made.job, GepaArguments(max_metric_calls=60))
    assert len(made.told) in (5, 10), "what cannot be read is asked for once more"
    assert [one.name for one in result.candidates] == ["as given"]
    assert result.program.extract.signature.instructions == CURRENT
    stalled = f"stalled: 5 proposals in a row could not be used: 5 {reason}; 41 of 60 metric calls were not spent"
    assert stalled in made.job.recorder.notes
    assert made.metric.applied == 4 + 8, "validation once, and what training examples the minibatches held"
    assert not [request for request in made.answered if "sorry" in str(request) or "Error code" in str(request)]


def test_a_reply_that_the_server_cut_is_rejected_even_when_it_can_be_read(bench):
    made = bench(lambda request: reply(said("Give the label of the text and"), finish_reason="length"), temperature=1.0)
    gepa(made.job, GepaArguments(max_metric_calls=60))
    assert any("could not be used: 5 cut" in note for note in made.job.recorder.notes)


def test_a_refusal_of_the_server_is_rejected(bench):
    made = bench(lambda request: reply("no", finish_reason="content_filter"), temperature=1.0)
    gepa(made.job, GepaArguments(max_metric_calls=60))
    assert any("could not be used: 5 refusal" in note for note in made.job.recorder.notes)


def test_one_usable_proposal_in_between_keeps_the_search_going(bench):
    count = iter(range(100))  # of requests: what cannot be read is asked for once more

    def mostly_cut(request):
        number = next(count)
        return said(f"Give the label of the text, attempt {number}.") if number % 8 == 7 else CUT

    made = bench(mostly_cut, temperature=1.0)
    gepa(made.job, GepaArguments(max_metric_calls=80))
    notes = made.job.recorder.notes
    assert not any("stalled" in note for note in notes)
    assert any("proposed instructions could be used (rejected:" in note for note in notes)
    assert notes[-1] == "fewer than half of the proposals could be used: a stronger model for models.prompt may help"


@pytest.mark.parametrize("reason", [StopReason.BUDGET, StopReason.MODEL])
def test_a_stop_while_an_instruction_is_written_passes_through(bench, reason):
    made = bench(lambda request: RunStopped(reason, "no more"))
    with pytest.raises(RunStopped, match="no more"):
        gepa(made.job, GepaArguments(max_metric_calls=60))
    assert len(made.told) == 1


def test_a_bug_in_the_proposing_is_no_rejected_proposal(bench, monkeypatch):
    def broken(**given):
        raise KeyError("no such thing")

    monkeypatch.setattr(gepa_adapter, "InstructionProposer", broken)
    made = bench()
    with pytest.raises(KeyError, match="no such thing"):
        gepa(made.job, GepaArguments(max_metric_calls=60))
    assert made.told == []
    assert len(made.answered) <= 7
