import os
import threading

from harness.models.store.per_process import PerProcess


def test_all_threads_of_a_process_share_one_value():
    values, seen = PerProcess(object), []
    threads = [threading.Thread(target=lambda: seen.append(values.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {id(value) for value in seen} == {id(values.get())}


def test_another_process_has_its_own_and_the_first_keeps_its_value(monkeypatch):
    values = PerProcess(list)
    parents = values.get()
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    childs = values.get()
    monkeypatch.setattr(os, "getpid", lambda: here)

    assert childs is not parents
    assert values.get() is parents
