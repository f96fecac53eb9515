"""Roles, keys and rollouts stay with their call, whichever thread makes it."""

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import dspy

from harness.models.calls import calls_of_this_context
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.loopback import LoopbackServer
from harness.models.roles import Endpoints, build_role_lm
from harness.models.scripted import ScriptedProvider


def _says(text):
    return ScriptedProvider(lambda request: f'{{"a": "{text}"}}', f"scripted/{text}")


def test_a_judge_keeps_its_model_in_threads_of_its_own(scripted_lm, ledger):
    task, judge = scripted_lm(_says("task")), scripted_lm(_says("judge"), "judge")
    predictor = dspy.Predict("q -> a")

    def verdict(number, **settings):
        return predictor(q=f"is {number} right?", **settings).a

    with dspy.context(lm=task, adapter=dspy.JSONAdapter()):
        with ThreadPoolExecutor(4) as pool, dspy.context(lm=judge), calls_of_this_context() as calls:
            copied = [pool.submit(contextvars.copy_context().run, verdict, n) for n in range(8)]
            explicit = [pool.submit(contextvars.copy_context().run, verdict, n, lm=judge) for n in range(8, 16)]
            verdicts = [future.result() for future in [*copied, *explicit]]
        assert verdict(99) == "task"

    assert verdicts == ["judge"] * 16
    assert [call.role for call in calls] == ["judge"] * 16
    assert (ledger.usage()["judge"].calls, ledger.usage()["task"].calls) == (16, 1)


def test_an_explicit_model_needs_no_context_at_all(scripted_lm, ledger):
    judge = scripted_lm(ScriptedProvider(lambda request: "[[ ## a ## ]]\njudge\n\n[[ ## completed ## ]]"), "judge")
    predictor = dspy.Predict("q -> a")
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(lambda n=n: predictor(q=str(n), lm=judge).a) for n in range(8)]
        verdicts = [future.result() for future in futures]

    assert verdicts == ["judge"] * 8
    assert ledger.usage()["judge"].calls == 8


def test_rollouts_of_threads_are_their_own(scripted_lm):
    provider = ScriptedProvider(lambda request: str(request.config.seed))
    lm = scripted_lm(provider, config=ModelConfig(provider.model, temperature=0.7))

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda n: lm.copy()("q", rollout_id=n % 4), range(40)))

    assert len({seed for (seed,) in said}) == len(provider.requests) == 4
    assert said == said[:4] * 10


def test_two_keys_in_two_threads_never_mix(store):
    keys = {"A": "key-of-a", "B": "key-of-b"}
    with LoopbackServer(lambda received: received.body["model"]) as server, Endpoints(keys) as endpoints:
        lms = {
            name: build_role_lm(
                "task",
                ModelConfig(f"openai/model-{name}", api_base=server.api_base, api_key_env=name, response_schema=False),
                endpoints=endpoints,
                store=store,
                ledger=Ledger(),
            )
            for name in keys
        }
        together = threading.Barrier(2)

        def work(name):
            together.wait(10)
            return [lms[name](f"question {number}") for number in range(10)]

        with ThreadPoolExecutor(2) as pool:
            said = list(pool.map(work, keys))

    assert said == [[["model-A"]] * 10, [["model-B"]] * 10]
    sent = {(received.body["model"], received.headers["authorization"]) for received in server.requests}
    assert sent == {("model-A", "Bearer key-of-a"), ("model-B", "Bearer key-of-b")}
    assert len(server.requests) == 20


def test_a_key_that_the_model_says_is_nowhere(timed_lm, store, tmp_path):
    provider = ScriptedProvider(lambda _: "the key is sk-4f9aB27c, use it")
    provider.secrets = ("sk-4f9aB27c",)
    lm = timed_lm(provider)

    assert lm("q") == ["the key is ***, use it"]
    assert lm("q") == ["the key is ***, use it"], "from the store"
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sk-4f9aB27c" not in files
