"""Which proposed instructions are refused, and how that is counted."""

import threading

import pytest

from harness.optimizers.proposals import LONGEST, QUOTED, Counts, Proposals, unusable

CURRENT = "Read `text` and fill in `record`. Use `null` for what is missing."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("None", "empty"),
        ("Error code: 401 - {'error': {'message': 'Incorrect API key provided: sk-***'}}", "an error text"),
        ("Error: model not found", "an error text"),
        ("openai.RateLimitError: Rate limit reached for gpt", "an error text"),
        ("HTTP/1.1 502 Bad Gateway", "an error text"),
        ("503 Service Unavailable: server error", "an error text"),
        ("Traceback (most recent call last):\n  File", "an error text"),
        ("<html>\n<head><title>502 Bad Gateway</title></head>", "an error text"),
        ("<!DOCTYPE html>", "an error text"),
        ('{"error": {"message": "quota"}}', "an error text"),
        ("An internal server error occurred.", "an error text"),
        ("You exceeded your current quota, please check your plan.", "an error text"),
        ("I cannot help with this request.", "a refusal"),
        ("I can’t assist with that.", "a refusal"),
        ("I'm sorry, but I cannot do that.", "a refusal"),
        ("Sorry, I am unable to write this.", "a refusal"),
        ("Unfortunately I cannot write instructions for this.", "a refusal"),
        ("As an AI language model, I do not", "a refusal"),
        ('{"new_instruction": "Read the te', "cut"),
        ("Read the text. Example:\n```json\n{}\n", "cut"),
        ('Answer like this: {"a": {"b": 1}', "cut"),
        ("Read the text, then the table,", "cut"),
        ('{"new_instruction": "Read the text."}', "JSON instead of text"),
        ('["Read the text."]', "JSON instead of text"),
    ],
)
def test_what_is_no_instruction_is_named(text, reason):
    assert unusable(text) == reason


@pytest.mark.parametrize(
    "text",
    [
        "Read the text. Where a value is missing, write null.",
        "Errors in the text are to be copied as they are.",
        "Extract the HTTP status, for example 404, from the log line.",
        "I am a careful reader of invoices. You give me text, I fill in the record.",
        "Your answer begins with `{` and holds no fence.",
        'Answer so:\n```json\n{"a": 1}\n```\nNothing else.',
        "Extract <html> elements named in the text.",
        "Do not apologise. You cannot leave out a field.",
        "{text} is a paper. Fill in the record.",
        "Lies den Text; fülle alle Felder aus („unbekannt“ ist erlaubt).",
        "[Role] You are a chemist.",
    ],
)
def test_an_instruction_is_let_through(text):
    assert unusable(text) is None


@pytest.mark.parametrize(
    ("proposed", "reason"),
    [
        ("Fill in `record` from `text`, value by value.", None),
        ("Fill in the record from the text, value by value.", None),
        (CURRENT, "unchanged"),
        (f"\n {CURRENT.lower()}  ", "unchanged"),
        ("Fill in the record.", "drops a field name"),
        ("Read the texts and fill in the records.", "drops a field name"),
        ("Read the text into the record. " * 400, "too long"),
    ],
)
def test_a_proposal_is_compared_with_the_current_instruction(proposed, reason):
    assert Proposals(["text", "record"]).check(CURRENT, proposed) == reason


def test_names_in_backticks_or_braces_are_kept_when_the_signature_has_them():
    proposals = Proposals(["text", "record"])
    assert proposals.names_to_keep(CURRENT) == ["text", "record"]
    assert proposals.names_to_keep("Read {text}, `{record}`, `other` and {}.") == ["text", "record"]
    assert proposals.names_to_keep("Given the fields `text`, produce the fields `record`.") == []
    assert proposals.names_to_keep("Read the text.") == []


def test_an_instruction_that_was_long_before_may_stay_so():
    long = "Read the text, word by word. " * (LONGEST // 20)
    proposals = Proposals(["text"])
    assert proposals.check(long, long[: len(long) - 40]) is None
    assert proposals.check(long, f"{long} And again.") == "too long"


def test_the_same_proposal_is_tried_once():
    proposals = Proposals([], ["Do it well."])
    assert proposals.check("Do it.", "do it  WELL.") == "tried before"
    assert proposals.check("Do it.", "Do it better.") is None
    assert proposals.check("Do it.", "Do it better.") == "tried before"


def test_an_example_that_must_stay_hidden_is_not_quoted():
    page = "The sample was heated to 900 degrees for two hours, cooled, ground and weighed again. " * 3
    hidden, shown = f"Terms of use. {page} Sample 17 lost mass.", "Terms of use."
    proposals = Proposals([], hidden=[hidden], shown=[shown])
    assert proposals.check("Read.", f"Read carefully. For example: {hidden}") == "quotes an example"
    assert proposals.check("Read.", "Read carefully. Samples are heated and weighed.") is None
    common = "word " * QUOTED
    assert Proposals([], hidden=[common], shown=[f"Before. {common}"]).check("Read.", f"Read. {common}") is None
    assert Proposals([], hidden=["short"]).check("Read.", "Read short texts.") is None


def test_counts_say_what_was_rejected_and_why():
    proposals = Proposals([])
    assert str(proposals.counts) == "0 of 0 proposed instructions could be used"
    assert proposals.reject("cut") == "cut"
    proposals.check("Read.", "")
    proposals.check("Read.", "Read well.")
    proposals.reject("cut")
    assert proposals.counts == Counts(4, 1, {"cut": 2, "empty": 1})
    assert str(Counts(1, 1, {})) == "1 of 1 proposed instruction could be used"


def test_it_is_stalled_when_the_last_ones_in_a_row_were_rejected():
    proposals = Proposals([])
    for _ in range(2):
        proposals.reject("cut")
    proposals.check("Read.", "")
    assert proposals.stalled(3)
    assert not proposals.stalled(4)
    assert proposals.rejected_in_a_row == {"cut": 2, "empty": 1}
    proposals.check("Read.", "Read well.")
    assert not proposals.stalled(1)
    assert proposals.rejected_in_a_row == {}


def test_threads_cannot_use_one_text_twice():
    proposals = Proposals([])
    given = []
    threads = [threading.Thread(target=lambda: given.append(proposals.check("Read.", "Read well."))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given, key=str) == [None] + ["tried before"] * 7
    assert proposals.counts.proposed == 8
