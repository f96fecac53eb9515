import os
import shutil
import threading

import pytest
from filelock import lock_descriptor

from harness.errors import UsageError
from harness.models.store.key_locks import LONGEST, SHORTEST, KeyLocks


class GaveUp(BaseException):
    """As a stopped run raises it."""


def _never():
    raise AssertionError("nobody else holds this key")


@pytest.fixture
def locks(tmp_path):
    return KeyLocks(tmp_path / "locks")


def test_keys_do_not_wait_for_each_other(locks):
    with locks.held("a", _never), locks.held("b", _never):
        assert len(list(locks.folder.iterdir())) == 2


def test_a_free_key_leaves_no_file(locks):
    with locks.held("../a/b\0", _never):
        pass
    with pytest.raises(ZeroDivisionError), locks.held("a", _never):
        1 / 0  # noqa: B018

    assert list(locks.folder.iterdir()) == []


def test_a_held_key_is_waited_for_with_growing_pauses_until_the_caller_gives_up(tmp_path):
    pauses: list[float] = []
    locks = KeyLocks(tmp_path / "locks", wait=pauses.append)

    def give_up_at_last():
        if len(pauses) == 9:
            raise GaveUp

    with locks.held("a", _never):
        with pytest.raises(GaveUp), locks.held("a", give_up_at_last):
            pass
        with pytest.raises(GaveUp), locks.held("a", give_up_at_last):
            pass

    assert pauses[0] == SHORTEST
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST
    with locks.held("a", _never):
        pass


def test_one_thread_at_a_time_holds_a_key(tmp_path):
    inside, most, turns = [0], [], []
    locks = [KeyLocks(tmp_path / "locks", wait=lambda seconds: None) for _ in range(4)]

    def work(mine: KeyLocks):
        for _ in range(25):
            with mine.held("a", lambda: None):
                inside[0] += 1
                most.append(inside[0])
                inside[0] -= 1
            turns.append(mine)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert max(most) == 1
    assert len(turns) == 100
    assert list(locks[0].folder.iterdir()) == []


def test_what_killed_holders_left_is_swept_and_what_is_held_stays(locks):
    left = locks.folder / "left-by-a-killed-process"
    left.touch()
    (locks.folder / "a-folder").mkdir()
    with locks.held("a", _never):
        held = set(locks.folder.iterdir()) - {left}
        locks.sweep()
        assert set(locks.folder.iterdir()) == held
        with pytest.raises(GaveUp), locks.held("a", _give_up):
            pass


def _give_up():
    raise GaveUp


def test_a_file_removed_while_it_was_waited_for_is_no_lock(locks):
    with locks.held("a", _never):
        [path] = locks.folder.iterdir()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    assert lock_descriptor(descriptor, blocking=False)
    looks = []

    def the_holder_removes_it_and_lets_go():
        looks.append(path.exists())
        path.unlink()
        os.close(descriptor)

    with locks.held("a", the_holder_removes_it_and_lets_go):
        assert path.exists(), "it is a new file, which others find"
    assert looks == [True]


def test_a_folder_cleaned_up_under_the_run_is_made_again(locks):
    shutil.rmtree(locks.folder)
    with locks.held("a", _never):
        shutil.rmtree(locks.folder)
    with locks.held("a", _never):
        pass

    assert list(locks.folder.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_one_sentence(locks):
    shutil.rmtree(locks.folder)
    locks.folder.write_text("")

    with pytest.raises(UsageError, match=r"folder of locks .*locks cannot be used"), locks.held("a", _never):
        pass
    with pytest.raises(UsageError, match=r"cannot be used: Not a directory"):
        locks.sweep()
