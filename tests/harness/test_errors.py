import pytest

from harness.errors import ENDPOINT_KINDS, FAILURE_KINDS, HarnessError, ProgramFailure, RunStopped, StopReason


def test_a_failure_of_no_other_kind_is_invalid():
    assert ProgramFailure("does not parse").kind == "invalid"
    assert str(ProgramFailure("cut", "cut")) == "cut"
    assert isinstance(ProgramFailure("x"), HarnessError)


def test_trouble_of_the_place_is_apart_from_what_a_model_cannot_answer():
    assert set(FAILURE_KINDS) > ENDPOINT_KINDS
    assert set(FAILURE_KINDS) - ENDPOINT_KINDS == {"cut", "refusal", "context_length", "invalid"}


@pytest.mark.parametrize(
    ("reason", "code"),
    [(StopReason.METRIC, 1), (StopReason.MODEL, 1), (StopReason.BUDGET, 3), (StopReason.INTERRUPT, 130)],
)
def test_a_stop_is_no_exception_and_has_its_exit_code(reason, code):
    stop = RunStopped(reason, "why", "detail")

    assert not isinstance(stop, Exception)
    assert (stop.exit_code, str(stop), stop.detail) == (code, "why", "detail")
