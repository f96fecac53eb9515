"""What a failing provider means for a run: waited out, one example lost, or nothing goes on."""

import threading
import traceback
from base64 import b64encode
from urllib.parse import quote_plus

import dspy
import pytest
from dspy import lm15

from harness.errors import ENDPOINT_KINDS, ProgramFailure, RunStopped, StopReason, UsageError
from harness.models.ledger import Ledger
from harness.models.limits import EndpointLimits
from harness.models.scripted import ScriptedProvider, reply

KEY = "sk-very/secret-value"
IN_BASE64, IN_AN_ADDRESS = b64encode(f"me:{KEY}".encode()).decode(), quote_plus(KEY)


def _ask(lm, question="q", **settings):
    return lm(question, **settings)


OVERLOADED, AWAY = lm15.ServerError("overloaded"), lm15.TransportError("connection refused")
LATE, HTML = lm15.TimeoutError("no answer within 120 seconds"), lm15.ProviderError("not JSON", status=200)
BUSY, EMPTY = lm15.RateLimitError("slow down"), reply("")


@pytest.mark.parametrize(
    ("script", "failures"),
    [
        ([OVERLOADED] * 3, {"server_error": 3}),
        ([AWAY] * 2, {"connection": 2}),
        ([LATE], {"timeout": 1}),
        ([HTML] * 3, {"unreadable_reply": 3}),
        ([BUSY] * 7, {"rate_limit": 7}),
        ([EMPTY] * 2, {"empty": 2}),
        ([reply("half", finish_reason="error")] * 2, {"error": 2}),
        ([OVERLOADED, BUSY, LATE, AWAY, EMPTY, HTML, BUSY, OVERLOADED], None),
    ],
)
def test_what_passes_is_waited_out_and_counted_by_its_name(timed_lm, ledger, time, script, failures):
    provider = ScriptedProvider([*script, "fine"])

    assert _ask(timed_lm(provider)) == ["fine"]
    usage = ledger.usage()["task"]
    assert usage.calls == len(provider.requests) == len(script) + 1
    assert sum(usage.failures.values()) == len(script)
    assert failures in (None, usage.failures)
    assert len(time.waits) == len(script)


@pytest.mark.parametrize(
    ("error", "attempts"), [(OVERLOADED, 4), (AWAY, 3), (LATE, 2), (HTML, 4), (BUSY, 8)], ids=lambda value: str(value)
)
def test_an_endpoint_that_stays_in_trouble_stops_the_run(timed_lm, ledger, time, error, attempts):
    provider = ScriptedProvider([error] * 20)
    lm = timed_lm(provider, "judge")
    words = str(error).partition("\n\n")[0].replace("(", r"\(").replace(")", r"\)")

    with pytest.raises(RunStopped, match=rf"judge model 'scripted/model': {words} \({attempts} attempts\)") as caught:
        _ask(lm)
    assert caught.value.reason is StopReason.MODEL
    assert caught.value.exit_code == 1
    assert len(provider.requests) == attempts
    with pytest.raises(RunStopped):
        _ask(lm, "another question")
    assert len(provider.requests) == attempts
    assert ledger.stopped is not None


def test_a_dead_model_is_known_within_ten_seconds(timed_lm, time):
    for number in range(20):
        began = time.now
        with pytest.raises(RunStopped):
            _ask(timed_lm(ScriptedProvider([AWAY] * 9), ledger=Ledger()), f"q{number}")
        assert 2 < time.now - began < 4, "with 2 seconds for each of three connections it stays below 10"


def test_a_retry_after_is_kept_to_by_all_requests_of_the_endpoint(timed_lm, time, ledger):
    provider = ScriptedProvider([lm15.RateLimitError("slow down", retry_after=7), OVERLOADED, "fine", "fine too"])
    limits = EndpointLimits(8, clock=time.clock, wait=time.wait)
    sent = []
    provider.complete = lambda request, answer=provider.complete: sent.append(time.now) or answer(request)

    assert _ask(timed_lm(provider, limits=limits)) == ["fine"]
    assert _ask(timed_lm(provider, "judge", limits=limits), "other") == ["fine too"]
    assert sent[:2] == [0.0, 7.0]
    assert 8.4 < sent[2] == sent[3] < 9.6
    assert ledger.usage()["task"].failures == {"rate_limit": 1, "server_error": 1}


def test_too_many_requests_in_many_threads_are_no_score(timed_lm, time, ledger):
    lock, taken = threading.Lock(), [0]

    def script(request):
        with lock:
            taken[0] += 1
            return lm15.RateLimitError("slow down") if 1 < taken[0] < 6 else request.messages[0].text

    provider = ScriptedProvider(script)
    lm = timed_lm(provider)
    said = {}
    threads = [threading.Thread(target=lambda n=n: said.update({n: _ask(lm.copy(), f"q{n}")})) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert said == {n: [f"q{n}"] for n in range(20)}
    assert ledger.usage()["task"].failures == {"rate_limit": 4}


@pytest.mark.parametrize("error", [lm15.AuthError("bad key"), lm15.UnsupportedModelError("no such model"), AWAY])
def test_a_dead_model_costs_one_request_however_many_threads(timed_lm, ledger, error):
    provider = ScriptedProvider([error] * 99)
    lm = timed_lm(provider)
    everyone, stops = threading.Barrier(8), []

    def work(number):
        everyone.wait(10)
        with pytest.raises(RunStopped) as caught:
            _ask(lm.copy(), f"q{number}")
        stops.append(caught.value.message)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(stops)) == 1
    assert len(provider.requests) == (3 if error is AWAY else 1)
    assert len({request.messages[0].text for request in provider.requests}) == 1


@pytest.mark.parametrize("error", [lm15.AuthError("bad key"), lm15.InvalidRequestError("no route", status=404)])
def test_a_key_or_a_model_that_is_refused_after_answers_may_come_back(timed_lm, ledger, time, error):
    lm = timed_lm(ScriptedProvider(["1", error, error, error, "2", *[error] * 4]))

    assert [_ask(lm, "a"), _ask(lm, "b")] == [["1"], ["2"]]
    assert len(time.waits) == 3
    with pytest.raises(RunStopped, match=rf"{error.message.splitlines()[0]}.* \(4 attempts\)"):
        _ask(lm, "c")


@pytest.mark.parametrize(
    "error",
    [
        lm15.AuthError("Incorrect API key provided"),
        lm15.UnsupportedModelError("The model does not exist"),
        lm15.BillingError("You exceeded your quota"),
        lm15.InvalidRequestError("the image is too large"),
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


def test_a_bug_in_a_provider_is_no_score(scripted_lm, ledger):
    def script(request):
        raise KeyError("choices")

    with pytest.raises(RunStopped, match="'choices'") as caught:
        _ask(scripted_lm(ScriptedProvider(script)))
    assert ledger.usage()["task"].failures == {"error": 1}, "its place in flight is free again"
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


def test_a_known_key_is_in_no_message_traceback_or_file(scripted_lm, store, tmp_path):
    class Talkative(ScriptedProvider):
        secrets = (KEY,)

    refusal = lm15.Message.assistant([lm15.RefusalPart(f"I do not know {KEY}.")])
    scripts = [
        [lm15.AuthError(f"Incorrect API key: {KEY}")],
        [lm15.ContextLengthError(f"too long for {KEY}")],
        [ValueError(f"bug with {KEY}")],
        [lm15.ServerError(f"oops {KEY}")] * 9,
        [lm15.AuthError(f"Basic {IN_BASE64}")],
        [lm15.AuthError(f"http://x/?key={IN_AN_ADDRESS}")],
        [lm15.Response(None, "m", refusal, "stop", lm15.Usage())],
    ]
    seen = []
    for number, script in enumerate(scripts):
        with pytest.raises((RunStopped, ProgramFailure)) as caught:
            _ask(scripted_lm(Talkative(script), ledger=Ledger()), f"q{number}")
        seen += ["".join(traceback.format_exception(caught.value)), getattr(caught.value, "detail", "")]
        assert "***" in str(caught.value)
    store.close()
    files = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert any("***" in text for text in files), "failures are recorded"

    assert [text for text in seen + files if any(form in text for form in (KEY, IN_BASE64, IN_AN_ADDRESS))] == []


@pytest.mark.parametrize(
    ("trouble", "sent"),
    [
        (lm15.InvalidRequestError("Your credit balance is too low"), 1),
        (HTML, 4),
        (EMPTY, 3),
        (reply("x", finish_reason="error"), 3),
    ],
)
def test_trouble_in_a_row_after_good_answers_stops_the_run(timed_lm, ledger, trouble, sent):
    provider = ScriptedProvider(["good", *[trouble] * 4 * sent])
    lm = timed_lm(provider)
    assert _ask(lm, "a") == ["good"]
    for question in "bc":
        with pytest.raises(ProgramFailure) as lost:
            _ask(lm, question)
        assert lost.value.kind in ENDPOINT_KINDS
    with pytest.raises(RunStopped, match="3 such answers in a row") as stopped:
        _ask(lm, "d")
    assert stopped.value.reason is StopReason.MODEL
    assert ledger.stopped is not None
    assert len(provider.requests) == 1 + 3 * sent + 1, "the question that was answered is asked again before the stop"
    assert provider.requests[-1] == provider.requests[0]


def test_a_good_answer_between_starts_the_count_anew(timed_lm):
    lost = [EMPTY] * 3
    lm = timed_lm(ScriptedProvider(["1", *lost, *lost, "2", *lost, *lost, "3"]))
    said = []
    for question in "abcdefg":
        try:
            said += _ask(lm, question)
        except ProgramFailure:
            said.append(None)
    assert said == ["1", None, None, "2", None, None, "3"]


def test_questions_that_stay_hopeless_are_not_the_endpoints_trouble(timed_lm, ledger, store):
    def script(request):
        return lm15.InvalidRequestError("image too large") if "bad" in request.messages[0].text else "fine"

    questions = [*(f"good {n}" for n in range(5)), *(f"bad {n}" for n in range(5))]
    for sent_good, checks in ((5, 1), (0, 1)):  # in the second run all good answers are stored
        provider, lost = ScriptedProvider(script), 0
        lm = timed_lm(provider, ledger=Ledger())
        for question in questions:
            try:
                assert _ask(lm, question) == ["fine"]
            except ProgramFailure:
                lost += 1
        assert lost == 5
        assert [request.messages[0].text for request in provider.requests].count("good 4") == sent_good // 5 + checks
        assert len(provider.requests) == sent_good + 5 + checks


def test_a_stop_reaches_those_who_wait_for_the_first_answer(timed_lm, ledger):
    asked, stopped = threading.Event(), threading.Event()

    def script(request):
        asked.set()
        stopped.wait(10)
        return "late"

    provider = ScriptedProvider(script)
    lm = timed_lm(provider)
    stops = []

    def second():
        with pytest.raises(RunStopped, match="interrupted") as caught:
            _ask(lm.copy(), "second")
        stops.append(caught.value.reason)

    threads = [threading.Thread(target=_ask, args=(lm.copy(), "first")), threading.Thread(target=second)]
    threads[0].start()
    asked.wait(10)
    threads[1].start()
    ledger.stop(RunStopped(StopReason.INTERRUPT, "interrupted"))
    threads[1].join()
    stopped.set()
    threads[0].join()
    assert stops == [StopReason.INTERRUPT]
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("trouble", "kind", "attempts"),
    [
        (lm15.ServerError("worker died"), "server_error", 4),
        (lm15.TimeoutError("no answer in time"), "timeout", 2),
    ],
)
def test_one_question_a_server_always_fails_on_is_lost_alone(timed_lm, ledger, trouble, kind, attempts):
    provider = ScriptedProvider({"bad": trouble, "good": "fine"})
    lm = timed_lm(provider)
    assert _ask(lm, "good 1") == ["fine"]
    with pytest.raises(ProgramFailure) as lost:
        _ask(lm, "bad")

    assert lost.value.kind == kind
    assert ledger.stopped is None
    assert _ask(lm, "good 2") == ["fine"]
    assert len(provider.requests) == 1 + attempts + 1 + 1, "one known question tells whether the server is there"


def test_a_server_that_died_is_not_taken_for_one_bad_question(timed_lm, ledger):
    lm = timed_lm(ScriptedProvider(["fine", *[lm15.ServerError("worker died")] * 5]))
    assert _ask(lm, "good") == ["fine"]
    with pytest.raises(RunStopped, match="worker died"):
        _ask(lm, "next")
