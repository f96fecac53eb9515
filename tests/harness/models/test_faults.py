import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from dspy import lm15
from dspy.lm15 import Request
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ProgramFailure
from harness.models import faults
from harness.models.remote.wire import CONNECT_SECONDS

ALL = lm15.Config(max_tokens=9, temperature=0.0, seed=1, response_format={"type": "json_object"})


def _request(config=ALL):
    return Request(model="m", messages=(lm15.Message.user("q"),), config=config)


@pytest.mark.parametrize(
    ("error", "name", "at_first", "later"),
    [
        (lm15.RateLimitError("x"), "rate_limit", 8, 8),
        (lm15.TimeoutError("x"), "timeout", 2, 2),
        (lm15.ServerError("x"), "server_error", 4, 4),
        (lm15.TransportError("x"), "connection", 3, 3),
        (lm15.LockTimeoutError("x"), "connection", 3, 3),
        (lm15.ProviderError("the reply is not JSON", status=200), "unreadable_reply", 4, 4),
        (lm15.ProviderError("the reply is not a completion"), "unreadable_reply", 4, 4),
        (lm15.StreamAssemblyError("x"), "unreadable_reply", 4, 4),
        (lm15.AuthError("x"), "auth", 1, 4),
        (lm15.BillingError("x"), "auth", 1, 4),
        (lm15.NotConfiguredError("x"), "auth", 1, 4),
        (lm15.UnsupportedModelError("x"), "not_found", 1, 4),
        (lm15.UnknownModelError("x"), "not_found", 1, 4),
        (lm15.InvalidRequestError("no such path", status=404), "not_found", 1, 4),
        (lm15.InvalidRequestError("x", status=400), "bad_request", 1, 1),
        (lm15.UnsupportedFeatureError("no images"), "bad_request", 1, 1),
        (lm15.ConfigurationError("x"), "bad_request", 1, 1),
        (lm15.ProviderError("x", status=418), "bad_request", 1, 1),
        (lm15.ContextLengthError("x"), "context_length", 1, 1),
        (lm15.InvalidRequestError("no", provider_code="content_policy_violation"), "refusal", 1, 1),
    ],
)
def test_every_fault_has_a_name_and_its_number_of_attempts(error, name, at_first, later):
    assert faults.fault_name(error) == name
    assert faults.attempts(name, has_answered=False) == at_first
    assert faults.attempts(name, has_answered=True) == later


@pytest.mark.parametrize(
    ("name", "at_first", "later"),
    [
        ("cut", True, True),
        ("refusal", True, True),
        ("empty", True, True),
        ("error", True, True),
        ("context_length", True, True),
        ("bad_request", False, True),
        ("unreadable_reply", False, True),
        ("rate_limit", False, False),
        ("timeout", False, False),
        ("server_error", False, False),
        ("connection", False, False),
        ("auth", False, False),
        ("not_found", False, False),
    ],
)
def test_whose_fault_it_is(name, at_first, later):
    assert faults.concerns_one_request(name, has_answered=False) is at_first
    assert faults.concerns_one_request(name, has_answered=True) is later


@pytest.mark.parametrize(
    ("hint", "attempt", "seconds"),
    [
        (None, 1, 0.75),
        (None, 3, 3),
        (None, 30, 60),
        (0, 1, 0),
        (2.5, 3, 2.5),
        (86_400, 1, 60),
        (-1, 1, 0.75),
        (float("inf"), 2, 1.5),
    ],
)
def test_waiting(hint, attempt, seconds):
    assert faults.seconds_to_wait(lm15.RateLimitError("x", retry_after=hint), attempt, "0" * 64) == seconds


@given(st.integers(0, 2**256 - 1), st.integers(1, 3))
def test_waits_are_spread_by_the_request_alone(number, attempt):
    key = f"{number:064x}"
    seconds = faults.seconds_to_wait(None, attempt, key)

    assert 0.75 * 2 ** (attempt - 1) <= seconds <= 1.25 * 2 ** (attempt - 1)
    assert seconds == faults.seconds_to_wait(lm15.ServerError("x"), attempt, key)


def test_a_host_that_accepts_no_connection_ends_the_run_within_ten_seconds():
    tries = faults.attempts("connection", has_answered=False)
    away = lm15.TransportError("no connection")
    waits = sum(faults.seconds_to_wait(away, attempt, "f" * 64) for attempt in range(1, tries))

    assert tries * CONNECT_SECONDS + waits < 10


@pytest.mark.parametrize(
    ("error", "setting"),
    [
        (lm15.InvalidRequestError("'temperature' does not support 0.0 with this model"), "temperature"),
        (lm15.InvalidRequestError("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'"), "max_tokens"),
        (lm15.InvalidRequestError("max_completion_tokens: extra fields not permitted"), "max_tokens"),
        (lm15.InvalidRequestError("Unrecognized request argument: seed"), "seed"),
        (lm15.InvalidRequestError("response_format is not supported"), "response_format"),
        (lm15.InvalidRequestError("json_schema is unavailable now"), "response_format"),
        (lm15.InvalidRequestError("no support for Structured Outputs"), "response_format"),
        (lm15.UnsupportedFeatureError("cannot be sent", feature="config.seed"), "seed"),
        (lm15.InvalidRequestError("max_tokens is too large: 9. This model supports at most 5"), None),
        (lm15.InvalidRequestError("image too large"), None),
        (lm15.InvalidRequestError("the seeds are wet"), None),
        (lm15.InvalidRequestError("temperature", status=404), None),
        (lm15.ContextLengthError("max_tokens and the prompt exceed the context"), None),
        (lm15.UnsupportedModelError("json_schema is for other models"), None),
        (lm15.AuthError("temperature"), None),
        (ValueError("temperature"), None),
        (None, None),
    ],
)
def test_the_setting_that_was_refused(error, setting):
    assert faults.refused_setting(error, _request()) == setting
    assert faults.refused_setting(error, _request(lm15.Config())) is None, "it was not in the request"


SECRETS = st.text(st.characters(exclude_characters="*", codec="utf-8"), min_size=6)
FORMS = {
    "plain": lambda secret: secret,
    "json": lambda secret: json.dumps(secret)[1:-1],
    "json in utf-8": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "url": lambda secret: quote(secret, safe=""),
    "path": quote,
    "form": quote_plus,
    "lower": lambda secret: re.sub("%..", lambda escape: escape[0].lower(), quote(secret, safe="")),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64url": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(secret=SECRETS, before=st.text("ab "), after=st.text("ab "))
def test_a_secret_survives_in_no_form(form, secret, before, after):
    shown = faults.scrub(f"{before}{form(secret)}{after}", [secret, ""])

    assert form(secret) not in shown
    assert "***" in shown


@given(SECRETS, st.binary(max_size=5), st.binary(max_size=5))
def test_a_secret_inside_something_in_base64(secret, before, after):
    inside = base64.b64encode(before + secret.encode() + after).decode()
    shown = faults.scrub(f"Authorization: Basic {inside}", [secret]).removeprefix("Authorization: Basic ")

    assert "***" in shown
    assert len(shown.replace("***", "")) <= len(inside) - 8 * len(secret.encode()) // 6 + 2


def test_the_longest_secret_goes_first():
    assert faults.scrub("key sk-12345", ["sk-1", "sk-12345"]) == "key ***"


def test_words_are_one_line_without_the_librarys_advice():
    assert faults.words(lm15.AuthError("bad\n key")) == "bad key"
    assert faults.words(ValueError()) == "ValueError"
    assert len(faults.words(ValueError("x" * 10_000))) == 500


def test_a_program_failure_is_found_under_any_wrapping():
    failure = ProgramFailure("cut")
    try:
        try:
            raise failure
        except ProgramFailure as error:
            raise KeyError("adapter") from error
    except KeyError as error:
        wrapped = RuntimeError("outer")
        wrapped.__cause__ = error

    assert faults.program_failure(wrapped) is failure
    assert faults.program_failure(ValueError("x")) is None
    assert faults.program_failure(None) is None


def test_a_circle_of_causes_ends():
    one, two = ValueError(), ValueError()
    one.__cause__, two.__cause__ = two, one

    assert faults.program_failure(one) is None
