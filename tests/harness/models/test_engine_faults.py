"""What a failing provider means for a run: waited out, one example lost, or nothing goes on."""

import traceback

import dspy
import pytest
from dspy import lm15

from harness.errors import ProgramFailure, RunStopped, StopReason, UsageError
from harness.models.ledger import Ledger
from harness.models.scripted import ScriptedProvider, reply
from harness.results import RoleUsage

KEY = "sk-very-secret-value"


def _ask(lm, question="q", **settings):
    return lm(question, **settings)


def test_a_429_is_waited_out_as_the_server_asks(scripted_lm, waits, ledger):
    provider = ScriptedProvider([lm15.RateLimitError("slow down", retry_after=7), lm15.ServerError("oops"), "fine"])

    assert _ask(scripted_lm(provider)) == ["fine"]
    assert waits == [7.0, 2.0]
    assert ledger.usage()["task"] == RoleUsage(3, 0, 10, 5, None)


def test_an_endpoint_that_stays_away_stops_the_run(scripted_lm, waits, ledger):
    provider = ScriptedProvider([lm15.TransportError("connection refused")] * 9)
    lm = scripted_lm(provider, "judge")

    with pytest.raises(RunStopped, match=r"judge model 'scripted/model': connection refused \(4 attempts\)") as caught:
        _ask(lm)
    assert caught.value.reason is StopReason.MODEL
    assert caught.value.exit_code == 1
    assert waits == [1.0, 2.0, 4.0]
    with pytest.raises(RunStopped, match="connection refused"):
        _ask(lm, "another question")
    assert len(provider.requests) == 4
    assert ledger.stopped is not None


@pytest.mark.parametrize(
    "error",
    [
        lm15.AuthError("Incorrect API key provided"),
        lm15.UnsupportedModelError("The model does not exist"),
        lm15.BillingError("You exceeded your quota"),
        lm15.InvalidRequestError("temperature is not supported"),
        lm15.UnsupportedFeatureError("no images here"),
    ],
)
def test_a_model_that_cannot_work_stops_the_run_at_its_first_call(scripted_lm, ledger, waits, error):
    provider = ScriptedProvider([error] * 9)

    with pytest.raises(RunStopped, match=str(error).splitlines()[0]):
        _ask(scripted_lm(provider, "judge"))
    with pytest.raises(RunStopped, match=str(error).splitlines()[0]):
        _ask(scripted_lm(ScriptedProvider(["1", "2"]), "task"))
    assert (len(provider.requests), waits) == (1, [])
    assert ledger.usage()["judge"].calls == 1
    assert "task" not in ledger.usage()


def test_a_bad_request_after_good_answers_fails_one_example(scripted_lm, ledger):
    lm = scripted_lm(ScriptedProvider(["fine", lm15.InvalidRequestError("image too large"), "fine too"]))

    assert _ask(lm, "a") == ["fine"]
    with pytest.raises(ProgramFailure, match="image too large"):
        _ask(lm, "b")
    assert _ask(lm, "c") == ["fine too"]


def test_a_stored_answer_shows_that_the_endpoint_works(scripted_lm):
    _ask(scripted_lm(ScriptedProvider(["1", "2"])), "a")
    lm = scripted_lm(ScriptedProvider([lm15.InvalidRequestError("image too large")]))
    _ask(lm, "a")

    with pytest.raises(ProgramFailure, match="image too large"):
        _ask(lm, "b")


def test_too_long_an_input_fails_one_example(scripted_lm, store, waits):
    lm = scripted_lm(ScriptedProvider([lm15.ContextLengthError("9031 tokens, the context has 8192"), "fine"]))

    with pytest.raises(ProgramFailure, match="9031 tokens, the context has 8192"):
        _ask(lm, "long")
    assert store.failures()[0][1] == "context_length"
    assert _ask(lm, "short") == ["fine"]
    assert waits == []


def test_a_bug_in_a_provider_is_no_score(scripted_lm):
    def script(request):
        raise KeyError("choices")

    with pytest.raises(RunStopped, match="'choices'") as caught:
        _ask(scripted_lm(ScriptedProvider(script)))
    assert "in script" in caught.value.detail, "the traceback is there for whoever fixes it"


def test_a_store_that_goes_away_is_no_score(scripted_lm, store):
    def script(request):
        store.path.unlink()
        store.path.with_name("answers.db-wal").unlink(missing_ok=True)
        store.close()
        store.path.mkdir()
        return "x"

    with pytest.raises(RunStopped, match=r"answers\.db cannot be used"):
        _ask(scripted_lm(ScriptedProvider(script)))


def test_usage_errors_of_a_provider_stop_with_their_sentence(scripted_lm):
    lm = scripted_lm(ScriptedProvider([UsageError("install the runtime")]))

    with pytest.raises(RunStopped) as caught:
        _ask(lm)
    assert caught.value.message == "install the runtime"
    assert caught.value.detail == ""


def test_a_stop_passes_through_dspys_evaluate(scripted_lm):
    lm = scripted_lm(ScriptedProvider([lm15.AuthError("bad key")] * 9))
    devset = [dspy.Example(q=str(n), a="yes").with_inputs("q") for n in range(4)]

    with dspy.context(lm=lm), pytest.raises(RunStopped, match="bad key"):
        dspy.Evaluate(devset=devset, metric=lambda e, p: 1.0, num_threads=1)(dspy.Predict("q -> a"))


def test_ctrl_c_in_a_call_leaves_a_usable_engine(scripted_lm, ledger):
    lm = scripted_lm(ScriptedProvider([KeyboardInterrupt(), "fine"]))

    with pytest.raises(KeyboardInterrupt):
        _ask(lm)
    assert ledger.stopped is None
    assert _ask(lm) == ["fine"]


def test_a_spent_budget_refuses_the_next_call_but_not_what_is_stored(scripted_lm):
    lm = scripted_lm(ScriptedProvider(["1", "2"]), ledger=Ledger(max_calls=1))

    assert _ask(lm, "a") == ["1"]
    with pytest.raises(RunStopped, match="the budget of 1 calls is spent") as caught:
        _ask(lm, "b")
    assert caught.value.exit_code == 3
    assert _ask(lm, "a") == ["1"]


def test_a_known_key_is_in_no_message_traceback_or_file(scripted_lm, store, ledger, tmp_path):
    class Talkative(ScriptedProvider):
        secrets = (KEY,)

    scripts = [
        [lm15.AuthError(f"Incorrect API key: {KEY}")],
        [lm15.ContextLengthError(f"too long for {KEY}")],
        [ValueError(f"bug with {KEY}")],
        [lm15.ServerError(f"oops {KEY}")] * 9,
    ]
    seen = []
    for script in scripts:
        try:
            _ask(scripted_lm(Talkative(script), ledger=Ledger()), str(script[0]))
        except (RunStopped, ProgramFailure) as error:
            seen.append("".join(traceback.format_exception(error)))
            seen.append(getattr(error, "detail", ""))
    store.close()
    seen += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]

    assert len(seen) == 9
    # The question itself quotes the key here; the key table holds only its digest.
    assert [text for text in seen if KEY in text] == []


@pytest.mark.parametrize(
    "trouble",
    [lm15.InvalidRequestError("Your credit balance is too low"), reply(""), reply("x", finish_reason="error")],
)
def test_trouble_in_a_row_after_good_answers_stops_the_run(scripted_lm, store, ledger, trouble):
    lm = scripted_lm(ScriptedProvider(["good", trouble, trouble, trouble]))
    assert _ask(lm, "a") == ["good"]
    for question in "bc":
        with pytest.raises(ProgramFailure):
            _ask(lm, question)
    with pytest.raises(RunStopped, match="3 such answers in a row") as stopped:
        _ask(lm, "d")
    assert stopped.value.reason is StopReason.MODEL
    assert ledger.stopped is not None


def test_a_good_answer_between_starts_the_count_anew(scripted_lm):
    lm = scripted_lm(ScriptedProvider(["1", reply(""), reply(""), "2", reply(""), reply(""), "3"]))
    said = []
    for question in "abcdefg":
        try:
            said += _ask(lm, question)
        except ProgramFailure:
            said.append(None)
    assert said == ["1", None, None, "2", None, None, "3"]


def test_cut_answers_in_a_row_are_the_questions_own(scripted_lm, ledger):
    lm = scripted_lm(ScriptedProvider([reply("x", finish_reason="length")] * 5))
    for question in "abcde":
        with pytest.raises(ProgramFailure):
            _ask(lm, question)
    assert ledger.stopped is None
