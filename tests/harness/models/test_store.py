import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.models.store import AnswerStore


def test_an_answer_comes_back_as_it_was_put(store):
    response = {"message": {"parts": [{"type": "text", "text": "α-Fe₂O₃ ℃ \ud800"}]}, "usage": {"input_tokens": 3}}

    assert store.get("k") is None
    store.put("k", "endpoint", response)

    assert store.get("k") == response


def test_the_first_answer_stays(store):
    store.put("k", "e", {"text": "first"})
    store.put("k", "e", {"text": "second"})

    assert store.get("k") == {"text": "first"}


def test_failures_are_recorded_in_order_and_never_served(store):
    store.put_failure("k", "e", "length", "cut at 512 \ud800")
    store.put_failure("k", "e", "empty", "nothing")

    assert store.get("k") is None
    assert store.failures() == [("k", "length", "cut at 512 ?"), ("k", "empty", "nothing")]


def test_reads_of_a_test_split_count_distinct_experiments(store):
    store.mark_read("split", "run-a")
    store.mark_read("split", "run-a")
    store.mark_read("split", "run-b")
    store.mark_read("other", "run-a")

    assert store.times_read("split") == 2
    assert store.times_read("never") == 0


def test_what_was_put_is_there_for_the_next_process(tmp_path):
    path = tmp_path / "folder" / "answers.db"
    first = AnswerStore(path)
    first.put("k", "e", {"n": 1})
    first.close()

    second = AnswerStore(path)
    assert second.get("k") == {"n": 1}
    second.close()
    assert second.get("k") == {"n": 1}, "a closed store opens again"
    second.close()


def test_eight_threads_write_and_read_at_once(store):
    errors = []

    def work(worker: int):
        try:
            for number in range(25):
                store.put(f"{worker}-{number}", "e", {"n": number})
                assert store.get(f"{worker}-{number}") == {"n": number}
        except BaseException as error:  # noqa: BLE001  # a thread's failure must reach the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert store.get("7-24") == {"n": 24}


def test_two_processes_share_one_store(tmp_path):
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from harness.models.store import AnswerStore
        store = AnswerStore(Path(sys.argv[1]))
        for number in range(100):
            store.put(f"{number}", "e", {"by": sys.argv[2]})
            store.put(f"{sys.argv[2]}-{number}", "e", {"by": sys.argv[2]})
        store.close()
    """)
    path = tmp_path / "answers.db"
    workers = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], stderr=subprocess.PIPE) for name in "ab"
    ]
    errors = [worker.communicate(timeout=60)[1] for worker in workers]

    assert [worker.returncode for worker in workers] == [0, 0], errors
    store = AnswerStore(path)
    assert {store.get(str(number))["by"] for number in range(100)} <= {"a", "b"}
    assert all(store.get(f"{name}-{number}") == {"by": name} for name in "ab" for number in range(100))
    store.close()


def test_a_forked_child_opens_its_own_connection(store):
    store.put("k", "e", {"n": 1})
    child = os.fork()
    if child == 0:
        os._exit(0 if store.get("k") == {"n": 1} else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert store.get("k") == {"n": 1}


def test_connections_of_a_parent_process_are_left_alone(store, monkeypatch):
    store.put("k", "e", {"n": 1})
    parents = list(store._idle)
    monkeypatch.setattr(os, "getpid", lambda: -1)

    assert store.get("k") == {"n": 1}
    assert not set(map(id, parents)) & set(map(id, store._idle))
    for connection in parents:
        connection.close()


def test_a_damaged_file_is_one_sentence_that_names_it(tmp_path):
    path = tmp_path / "answers.db"
    path.write_bytes(b"this is not a database, it is a text " * 200)

    with pytest.raises(UsageError, match=r"answers\.db is damaged .*move it away"):
        AnswerStore(path)


def test_a_folder_in_the_files_place(tmp_path):
    (tmp_path / "answers.db").mkdir()

    with pytest.raises(UsageError, match=r"answers\.db cannot be used"):
        AnswerStore(tmp_path / "answers.db")


def test_a_file_in_the_folders_place(tmp_path):
    (tmp_path / "mlruns").write_text("")

    with pytest.raises(UsageError, match=r"folder of the answer store .*mlruns/answers\.db cannot be made"):
        AnswerStore(tmp_path / "mlruns" / "answers.db")


def test_a_file_locked_by_another_process_for_too_long(tmp_path):
    path = tmp_path / "answers.db"
    store = AnswerStore(path, busy_seconds=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(UsageError, match=r"answers\.db stayed locked by another process for 0\.05 seconds"):
        store.put("k", "e", {})

    other.execute("ROLLBACK")
    other.close()
    store.put("k", "e", {"n": 1})
    assert store.get("k") == {"n": 1}
    store.close()


def test_the_file_holds_json_and_no_pickle(store, tmp_path: Path):
    store.put("k", "e", {"text": "plain"})
    store.close()

    with sqlite3.connect(tmp_path / "answers.db") as db:
        stored = [row[0] for row in db.execute("SELECT response FROM answers")]
    db.close()
    assert [json.loads(text) for text in stored]
