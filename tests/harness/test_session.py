import pytest

from harness.assembly import load_experiment
from harness.errors import UsageError
from harness.progress import SilentProgress
from harness.session import endpoint_digests, open_session, open_store


@pytest.mark.parametrize("given", ["", "4GB", "-1", "0", "1.5", "١"])
def test_a_size_of_the_store_that_is_no_number_is_refused(project, monkeypatch, given):
    monkeypatch.setenv("HARNESS_STORE_BYTES", given)
    with pytest.raises(UsageError, match="HARNESS_STORE_BYTES must be a number of bytes from 1 upwards, such as"):
        open_store()


@pytest.mark.parametrize(("given", "asked"), [(None, {}), (" 5000000 ", {"limit_bytes": 5_000_000})])
def test_the_size_of_the_store_comes_from_the_environment(monkeypatch, given, asked):
    monkeypatch.delenv("HARNESS_STORE_BYTES", raising=False)
    if given is not None:
        monkeypatch.setenv("HARNESS_STORE_BYTES", given)
    monkeypatch.setattr("harness.session.AnswerStore", lambda path, **options: options)
    assert open_store() == asked


@pytest.mark.parametrize(("price", "max_usd"), [("{input: 0, output: 0}", None), ("{input: 1, output: 0}", 3.0)])
def test_the_budget_reaches_the_ledger_and_free_models_exceed_none(project, scripted, price, max_usd):
    endpoints, _ = scripted()
    models = f"models={{task: {{model: scripted/model, price: {price}}}}}"
    experiment = load_experiment("experiment.yaml", [models, "budget={calls: 99, tokens: 5000, usd: 3, minutes: 2}"])
    digests = endpoint_digests(experiment, endpoints)
    with open_session(experiment, SilentProgress(), endpoints=endpoints) as session:
        ledger = session.ledger
        assert (ledger.max_calls, ledger.max_tokens, ledger.max_minutes) == (99, 5000, 2.0)
        assert ledger.max_usd == max_usd
        assert digests == {"task": session.lms["task"].engine.provider.endpoint}
