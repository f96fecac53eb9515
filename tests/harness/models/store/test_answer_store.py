import json
import sqlite3
import threading
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.models.store import AnswerStore, StoredAnswer


def test_an_answer_comes_back_as_it_was_put(store):
    response = {"message": {"parts": [{"type": "text", "text": "α-Fe₂O₃ ℃ \ud800"}]}, "usage": {"input_tokens": 3}}

    assert store.get("k") is None
    store.put("k", "endpoint", response, usd=0.25)

    assert store.get("k") == StoredAnswer(response, 0.25)


def test_a_cost_nobody_knows_is_unknown_and_not_zero(store):
    store.put("unknown", "e", {})
    store.put("free", "e", {}, usd=0.0)

    assert store.get("unknown").usd is None
    assert store.get("free").usd == 0.0


def test_the_first_answer_stays(store):
    store.put("k", "e", {"text": "first"}, usd=1.0)
    store.put("k", "e", {"text": "second"}, usd=2.0)

    assert store.get("k") == StoredAnswer({"text": "first"}, 1.0)


def test_failures_are_recorded_in_order_and_never_served(store):
    store.put_failure("k", "e", "empty", "nothing")
    assert store.cut_answer("k") is None
    store.put_failure("k", "e", "cut", "cut at 512 \ud800")

    assert store.get("k") is None
    assert store.cut_answer("k") == "cut at 512 ?"
    assert store.failures() == [("k", "empty", "nothing"), ("k", "cut", "cut at 512 ?")]


def test_what_was_found_out_about_an_endpoint_is_there_for_the_next_run(tmp_path):
    first = AnswerStore(tmp_path / "answers.db")
    assert first.facts("e") is None
    first.put_facts("e", {"schema": "json_object", "note": "ℹ"})
    first.put_facts("e", {"schema": "none"})
    first.close()

    second = AnswerStore(tmp_path / "answers.db")
    assert second.facts("e") == {"schema": "none"}
    assert second.facts("f") is None
    second.close()


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
    assert second.get("k").response == {"n": 1}
    second.close()
    assert second.get("k").response == {"n": 1}, "a closed store opens again"
    second.close()


def test_eight_threads_write_and_read_at_once(store):
    errors = []

    def work(worker: int):
        try:
            for number in range(25):
                store.put(f"{worker}-{number}", "e", {"n": number})
                assert store.get(f"{worker}-{number}").response == {"n": number}
        except BaseException as error:  # noqa: BLE001  # a thread's failure must reach the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert store.get("7-24").response == {"n": 24}


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
    assert store.get("k").response == {"n": 1}
    store.close()


def test_the_locks_lie_beside_the_file_and_leave_nothing(tmp_path):
    (tmp_path / "mlruns").mkdir()
    store = AnswerStore(tmp_path / "mlruns" / "answers.db")
    locks = tmp_path / "mlruns" / "answers.db-locks"

    seen = store.once("k", lambda: list(locks.iterdir()), waiting=lambda: None)[0]
    store.close()

    assert len(seen) == 1
    assert list(locks.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["mlruns"]


def test_a_file_in_the_place_of_the_locks(tmp_path):
    (tmp_path / "answers.db-locks").write_text("")

    with pytest.raises(UsageError, match=r"folder of locks .*answers\.db-locks cannot be used: File exists"):
        AnswerStore(tmp_path / "answers.db")


def test_two_stores_of_one_process_do_not_send_the_same_request(tmp_path):
    stores = [AnswerStore(tmp_path / "answers.db") for _ in range(2)]
    sent, results = [], []

    def work(store):
        def call():
            if store.get("k") is None:
                sent.append(store)
                store.put("k", "e", {"n": len(sent)})
            return store.get("k").response

        results.append(store.once("k", call, waiting=lambda: None)[0])

    threads = [threading.Thread(target=work, args=(store,)) for store in stores * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()

    assert len(sent) == 1
    assert results == [{"n": 1}] * 16


def test_the_file_holds_json_and_no_pickle(store, tmp_path: Path):
    store.put("k", "e", {"text": "plain"})
    store.close()

    with sqlite3.connect(tmp_path / "answers.db") as db:
        stored = [row[0] for row in db.execute("SELECT response FROM answers")]
    db.close()
    assert [json.loads(text) for text in stored]
