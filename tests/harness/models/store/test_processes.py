"""The store under several real processes: one request each, one story, nobody held up by the dead."""

import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from harness.models.loopback import LoopbackServer, Received, Reply, answer
from harness.models.store import AnswerStore

PROCESSES, THREADS, REQUESTS, DISTINCT = 4, 32, 250, 100

ASKING = f"""
    import json, sys
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    from harness.models.config import ModelConfig
    from harness.models.ledger import Ledger
    from harness.models.roles import Endpoints, build_role_lm
    from harness.models.store import AnswerStore
    store, ledger = AnswerStore(Path(sys.argv[1])), Ledger()
    with Endpoints({{}}) as endpoints, ThreadPoolExecutor({THREADS}) as pool:
        lm = build_role_lm("task", ModelConfig("openai/x", api_base=sys.argv[2]), endpoints=endpoints, store=store,
                           ledger=ledger)
        print("ready", flush=True)
        sys.stdin.readline()
        questions = [f"question {{n % {DISTINCT}}}" for n in range({REQUESTS})]
        answers = list(pool.map(lambda question: lm(question)[0], questions))
    store.close()
    print(json.dumps([ledger.usage()["task"].calls, answers]))
"""
HOLDING = """
    import sys
    from pathlib import Path
    from harness.models.store import AnswerStore
    def call():
        print("holding", flush=True)
        sys.stdin.readline()
        store.put("k", "e", {"by": "the holder"})
    store = AnswerStore(Path(sys.argv[1]))
    store.once("k", call, waiting=lambda: None)
    store.close()
"""
STORING = """
    import sys
    from pathlib import Path
    from harness.models.store import AnswerStore
    store = AnswerStore(Path(sys.argv[1]))
    for number in range(100):
        store.put(f"{number}", "e", {"by": sys.argv[2]})
        store.put(f"{sys.argv[2]}-{number}", "e", {"by": sys.argv[2]})
    store.close()
"""


class GaveUp(BaseException):
    """As a stopped run raises it."""


def _start(program: str, *arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.db"


@pytest.fixture
def holder(path):
    """A process that holds the key "k"; one line on its stdin and it stores an answer and ends."""
    process = _start(HOLDING, path)
    assert process.stdout.readline() == "holding\n", process.communicate()[1]
    yield process
    process.kill()
    process.communicate()


def test_equal_requests_of_many_threads_in_several_processes_are_sent_once(path):
    def reply(received: Received) -> Reply:
        return answer(f"answer to {received.body['messages'][-1]['content']}")

    with LoopbackServer(reply) as server:
        workers = [_start(ASKING, path, server.api_base) for _ in range(PROCESSES)]
        for worker in workers:
            assert worker.stdout.readline() == "ready\n", worker.communicate()[1]
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
        ended = [worker.communicate(timeout=120) for worker in workers]

    assert [worker.returncode for worker in workers] == [0] * PROCESSES, ended
    told = [json.loads(output) for output, _ in ended]
    assert len(server.requests) == DISTINCT
    assert sum(calls for calls, _ in told) == DISTINCT
    expected = [f"answer to question {number % DISTINCT}" for number in range(REQUESTS)]
    assert all(answers == expected for _, answers in told)
    assert list(path.with_name("answers.db-locks").iterdir()) == []


def test_a_killed_process_holds_nobody_up(path, holder):
    store, waits, results = AnswerStore(path), threading.Event(), []
    thread = threading.Thread(target=lambda: results.append(store.once("k", lambda: store.get("k"), waiting=waits.set)))
    thread.start()
    assert waits.wait(10)
    assert results == []
    holder.kill()
    thread.join(10)

    assert results == [(None, True)]
    store.close()


def test_who_waits_for_another_process_finds_its_answer(path, holder):
    store, waits, results = AnswerStore(path), threading.Event(), []
    thread = threading.Thread(
        target=lambda: results.append(store.once("k", lambda: store.get("k").response, waiting=waits.set))
    )
    thread.start()
    assert waits.wait(10)
    holder.communicate("\n")
    thread.join(10)

    assert results == [({"by": "the holder"}, True)]
    store.close()


def test_who_waits_for_another_process_may_give_up(path, holder):
    store = AnswerStore(path)

    def give_up():
        raise GaveUp

    with pytest.raises(GaveUp):
        store.once("k", lambda: None, waiting=give_up)
    assert store.once("other", lambda: 1, waiting=give_up) == (1, True), "other keys are free"
    store.close()


def test_two_processes_that_store_the_same_keys_tell_one_story(path):
    workers = [_start(STORING, path, name) for name in "ab"]
    errors = [worker.communicate(timeout=60)[1] for worker in workers]

    assert [worker.returncode for worker in workers] == [0, 0], errors
    readers = [AnswerStore(path) for _ in range(2)]
    stories = [[reader.get(str(number)).response["by"] for number in range(100)] for reader in readers]
    assert stories[0] == stories[1]
    assert set(stories[0]) <= {"a", "b"}
    assert all(readers[0].get(f"{name}-{number}").response == {"by": name} for name in "ab" for number in range(100))
    for reader in readers:
        reader.close()


def test_a_forked_child_waits_for_nothing_of_its_parents(path):
    """The child inherits a call in flight that will never land in it, and works all the same."""
    store = AnswerStore(path)
    store.put("stored", "e", {"n": 1})
    started, go = threading.Event(), threading.Event()

    def call():
        started.set()
        assert go.wait(10)

    thread = threading.Thread(target=lambda: store.once("k", call, waiting=lambda: None))
    thread.start()
    assert started.wait(10)
    child = os.fork()
    if child == 0:
        try:
            store.once("k", lambda: None, waiting=_give_up)
        except GaveUp:  # it sees that its parent holds the key
            store.put("childs", "e", {"n": 2})
            os._exit(0 if store.get("stored").response == {"n": 1} else 1)
        os._exit(2)
    status = os.waitpid(child, 0)[1]
    go.set()
    thread.join()

    assert os.waitstatus_to_exitcode(status) == 0
    assert store.get("childs").response == {"n": 2}
    store.close()


def _give_up():
    raise GaveUp
