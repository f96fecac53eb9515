"""Which proposed instructions are refused, and how that is counted."""

import json
import threading
from dataclasses import replace

import pytest

from harness.optimizers.proposals import LONGEST, QUOTED, Counts, Proposals, cleaned, unusable
from harness.optimizers.recorder import Recorder

CURRENT = "Read `text` and fill in `record`. Use `null` for what is missing."
HALF = "Name the label \ud800 of the sample\x00."


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
        ("502 Bad Gateway", "an error text"),
        ("Internal Server Error", "an error text"),
        ("Too Many Requests, slow down", "an error text"),
        ("upstream connect error or disconnect/reset before headers. reset reason: overflow", "an error text"),
        ("Request timed out.", "an error text"),
        ("The connection to the model server was refused.", "an error text"),
        ("The engine is currently overloaded, please try again later", "an error text"),
        ("**Error:** no quota is left", "an error text"),
        ("[ERROR] the worker died", "an error text"),
        ("```\nError: boom\n```", "an error text"),
        ("Fehler: keine Verbindung", "an error text"),
        ("openai.BadRequestError", "an error text"),
        ("CUDA out of memory. Tried to allocate 2 GiB", "an error text"),
        ("<?xml version='1.0'?>\n<Error><Code>AccessDenied</Code></Error>", "an error text"),
        ("<div>500</div>", "an error text"),
        ("data: [DONE]", "an error text"),
        ("I'm afraid that is not possible.", "a refusal"),
        ("I am not comfortable with this task.", "a refusal"),
        ("Unable to comply with this request.", "a refusal"),
        ("I won't write that.", "a refusal"),
        ("Sorry, no.", "a refusal"),
        ("Could you please provide the examples?", "a refusal"),
        ("Es tut mir leid, das geht nicht.", "a refusal"),
        ("Ich kann dabei leider nicht helfen.", "a refusal"),
        ("Désolé, je ne peux pas vous aider.", "a refusal"),
        ("Je ne peux pas répondre à cette demande.", "a refusal"),
        ("Lo siento, no puedo ayudar con eso.", "a refusal"),
        ("很抱歉，我无法满足您的请求。", "a refusal"),
        ("我不能协助完成这个任务。", "a refusal"),
        ("Read the text and extract the", "cut"),
        ("Read the text. Copy its title to", "cut"),
        ("Lies den Text und", "cut"),
        ("Lisez le texte avec", "cut"),
        ("Read the text. The fields are:", "cut"),
        ("**Output format:**", "cut"),
        ("阅读文本，", "cut"),
        ("Read (the text", "cut"),
        ('Read "the text', "cut"),
        ("Lies „den Text", "cut"),
        ("Use the field `text", "cut"),
        ("1. Read the text.\n2.", "cut"),
        ("- Read the text.\n-", "cut"),
        ("<think>The user wants a better one.", "cut"),
        ("Here is the new instruction:", "cut"),
        ("Sure! Here's an improved instruction", "empty"),
        ("### Instruction", "empty"),
        ("Instruction: none", "empty"),
        ("N/A.", "empty"),
        ("(none)", "empty"),
        ("undefined", "empty"),
        ("<new instruction>", "empty"),
        ("{text}", "empty"),
        ("<|im_end|>", "empty"),
        ("...", "empty"),
        ("12 + 3", "empty"),
        ("没有", "empty"),
        ("\x00\x07", "empty"),
        ("\u200b\u200d\ufeff", "empty"),
        ("\ud800", "empty"),
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
        "Name it.",
        "Extract the vendor and the total from the invoice",
        "Follow these steps:\n1. Read the text twice.\n2. Fill in every field.\n3. Leave out what is not there",
        "Read the text.\n\nFields:\n- vendor: who wrote the bill\n- unit: the unit that the total is given in",
        'Answer as in this example:\n\nText: Bill of Acme, 3 EUR.\nRecord: {"vendor": "Acme", "total": 3.0}',
        "Give JSON with the keys `vendor` (a string), `total` (a number) and `lines` (a list, maybe [])",
        '# Task\n\nYou fill in **one** record.\n\n## Output\n\n```json\n{"vendor": "Acme"}\n```',
        "Copy the value for temperatures in the interval (0, 100] and write null for others",
        'Classify the log line. "Request timed out" and "502 Bad Gateway" are outages; "Not Found" is a user error.',
        "Error handling: when a value cannot be read, write null.",
        "Errors and refusals in the text are data: copy them.",
        "As an AI assistant for chemists, read the paper and list the materials.",
        "As an expert in invoices, state whom the bill is addressed to",
        "Answer with A, B, C or D. When in doubt, answer with A",
        'Say which of the 5" and 8" wafers was used',
        'Begin with `{` and end with `}`; never open a bracket "(" that you do not close',
        "Think first, in <think> and </think>. Then give the record.",
        "Service level and price are two fields. Fill in both.",
        "The server is the person who served the meal. Copy the server's name.",
        'If the author writes "I\'m sorry" or "I cannot", the label is `refusal`.',
        "Lies den Text und trage jeden Wert ein",
        "Du bist Chemikerin. Gib alle Temperaturen in °C an; fehlt ein Wert, schreibe null",
        "Lisez le texte, puis remplissez tous les champs : « inconnu » est permis",
        "Lee el texto y rellena cada campo. Si falta un dato, escribe null",
        "阅读文本，提取所有字段。如果缺少某个值，请填写 null",
        "テキストを読み、すべての項目を埋めてください",
        "اقرأ النص واملأ جميع الحقول",
        "Прочитай текст и заполни все поля",
        "Read the text with care. " * 60 + "Note that totals carry their currency",
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


@pytest.mark.parametrize(
    "again",
    [
        "read  the text",
        "'Read the text.'",
        "“Read the text.”",
        "**Read the text.**",
        "```\nRead the text.\n```",
        "Instruction: Read the text.",
        "### New instruction\nRead the text!",
        "Here is the improved instruction: Read the text.",
        "- Read the text.\u200b",
    ],
)
def test_other_wrapping_makes_no_other_instruction(again):
    assert Proposals([]).check("Read the text.", again) == "unchanged"
    assert Proposals([], ["Read the text."]).check("Fill in the record.", again) == "tried before"


def test_what_no_request_can_carry_is_taken_out():
    assert cleaned("Read\x00 it.\r\n\tStop \ud83d\u200b.") == "Read it.\n\tStop \ufffd."
    assert cleaned("می‌خواهم 👩‍🔬") == "می‌خواهم 👩‍🔬", "joiners belong to the script"


@pytest.mark.parametrize("optimizer", ["miprov2", "simba"])
def test_half_a_character_in_a_proposal_ends_no_run(job, scripts, compiled, optimizer):
    made = job(scripts.right_when(lambda asked, number: "Name" in asked or number % 2), prompt=scripts.says(HALF))
    sizes = {"simba": {"num_candidates": 2, "max_steps": 2, "bsize": 3, "max_demos": 0}}
    result = compiled(made, optimizer, **sizes.get(optimizer, {}))
    assert result.candidates
    result.program.extract.signature.instructions.encode()


@pytest.mark.parametrize("said", [HALF, "\ud800"])
def test_half_a_character_in_a_reflection_ends_no_run(job, scripts, compiled, said):
    made = job(
        scripts.right_when(lambda asked, number: "Name" in asked or number % 2),
        prompt=lambda request: json.dumps({"new_instruction": said}),
    )
    made.job = replace(made.job, recorder=Recorder(made.job.program, made.job.validation))
    result = compiled(made, "gepa", max_metric_calls=40)
    assert (result.program.extract.signature.instructions == "Name the label \ufffd of the sample.") == (said == HALF)


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
