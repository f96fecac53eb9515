import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ProgramFailure
from harness.models import faults


@pytest.mark.parametrize(
    "error",
    [
        lm15.RateLimitError("x"),
        lm15.TimeoutError("x"),
        lm15.ServerError("x"),
        lm15.TransportError("x"),
        lm15.LockTimeoutError("x"),
        lm15.ProviderError("the reply is not JSON", status=200),
        lm15.ProviderError("the reply is not a completion"),
    ],
)
def test_what_may_pass_is_retried(error):
    assert faults.is_retryable(error)


@pytest.mark.parametrize(
    "error",
    [
        lm15.AuthError("x"),
        lm15.BillingError("x"),
        lm15.UnsupportedModelError("x"),
        lm15.InvalidRequestError("x"),
        lm15.ContextLengthError("x"),
        lm15.ProviderError("x", status=418),
        ValueError("x"),
    ],
)
def test_what_stays_is_not_retried(error):
    assert not faults.is_retryable(error)


@pytest.mark.parametrize(
    ("error", "at_first", "later"),
    [
        (lm15.ContextLengthError("too long"), True, True),
        (lm15.InvalidRequestError("no", provider_code="content_policy_violation"), True, True),
        (lm15.InvalidRequestError("temperature"), False, True),
        (lm15.ProviderError("not JSON"), False, True),
        (lm15.UnsupportedModelError("no such model"), False, False),
        (lm15.AuthError("key"), False, False),
        (lm15.ServerError("down"), False, False),
    ],
)
def test_whose_fault_it_is(error, at_first, later):
    assert faults.concerns_one_request(error, has_answered=False) is at_first
    assert faults.concerns_one_request(error, has_answered=True) is later


@pytest.mark.parametrize(
    ("hint", "attempt", "seconds"),
    [
        (None, 1, 1),
        (None, 3, 4),
        (None, 30, 60),
        (0, 1, 0),
        (2.5, 3, 2.5),
        (86_400, 1, 60),
        (-1, 1, 1),
        (float("inf"), 2, 2),
    ],
)
def test_waiting(hint, attempt, seconds):
    assert faults.seconds_to_wait(lm15.RateLimitError("x", retry_after=hint), attempt) == seconds


@given(st.text(min_size=4), st.text(), st.text())
def test_a_secret_never_survives(secret, before, after):
    assert secret not in faults.scrub(f"{before}{secret}{after}", [secret, "", secret[:2]]).replace("***", "")


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
