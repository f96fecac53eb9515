"""vectors: every text embedded once, in memory and in a file."""

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.evaluators.vectors import FILE, VectorFileError, VectorStore
from metrics.score import UnscoredError


class Counting:
    """Vectors by the text's characters, and everything that was asked."""

    def __init__(self, name="counting", fails=()):
        self.name, self.fails, self.batches = name, fails, []

    def identity(self):
        return self.name

    def check(self):
        if self.fails:
            raise ValueError("no such server")

    def embed(self, texts):
        self.batches.append(list(texts))
        if any(text in self.fails for text in texts):
            raise UnscoredError("it is away")
        return np.array([[len(text), sum(map(ord, text)), 1.0] for text in texts], dtype=np.float32)

    @property
    def texts(self):
        return [text for batch in self.batches for text in batch]


def test_each_text_is_embedded_once_in_one_batch_by_length():
    embedder = Counting()
    store = VectorStore(embedder)
    first = store.of(["abc", "a", "abc", "ab", "a"])
    assert embedder.batches == [["a", "ab", "abc"]]
    np.testing.assert_array_equal(first[0], first[2])
    np.testing.assert_array_equal(store.of(["ab", "a"]), first[[3, 1]])
    store.of(["abcd", "a"])
    assert embedder.batches == [["a", "ab", "abc"], ["abcd"]]


def test_threads_that_want_the_same_texts_embed_them_once():
    embedder = Counting()
    store = VectorStore(embedder)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: store.of([f"t{n % 10}", "same"]), range(200)))
    assert sorted(embedder.texts) == sorted({*(f"t{n}" for n in range(10)), "same"})
    assert all(rows.shape == (2, 3) for rows in found)


def test_a_folder_keeps_them_for_the_next_run(tmp_path):
    first = Counting()
    folder = tmp_path / "made" / "here"
    vectors = VectorStore(first, folder).of(["α", "b"])
    second = Counting()
    np.testing.assert_array_equal(VectorStore(second, folder).of(["b", "α"]), vectors[::-1])
    assert second.batches == []
    assert (folder / FILE).is_file()


def test_another_model_has_vectors_of_its_own(tmp_path):
    VectorStore(Counting("one"), tmp_path).of(["a"])
    other = Counting("two")
    VectorStore(other, tmp_path).of(["a"])
    assert other.batches == [["a"]]


def test_more_texts_than_one_query_takes(tmp_path):
    texts = [f"text {number}" for number in range(1_800)]
    vectors = VectorStore(Counting(), tmp_path).of(texts)
    again = Counting()
    np.testing.assert_array_equal(VectorStore(again, tmp_path).of(texts), vectors)
    assert again.batches == []


def test_what_could_not_be_had_is_asked_for_again(tmp_path):
    embedder = Counting(fails={"b"})
    store = VectorStore(embedder, tmp_path)
    with pytest.raises(UnscoredError, match="it is away"):
        store.of(["a", "b"])
    embedder.fails = ()
    assert store.of(["a", "b"]).shape == (2, 3)
    assert embedder.batches == [["a", "b"], ["a", "b"]]


def test_a_damaged_file_is_told_and_no_vector_made_up(tmp_path):
    (tmp_path / FILE).write_text("this is no database, and it is long enough to be looked at closely" * 50)
    with pytest.raises(VectorFileError, match=r"embeddings.db cannot be used .*; delete the file, it is made again"):
        VectorStore(Counting(), tmp_path).of(["a"])


def test_a_file_holds_no_text(tmp_path):
    VectorStore(Counting(), tmp_path).of(["a secret recipe"])
    with sqlite3.connect(tmp_path / FILE) as db:
        (row,) = db.execute("SELECT key, vector FROM vectors").fetchall()
    assert len(row[0]) == 32
    assert np.frombuffer(row[1], dtype="<f4").shape == (3,)
    assert b"secret" not in (tmp_path / FILE).read_bytes()


def fill(folder, start):
    VectorStore(Counting(), folder).of([f"t{number}" for number in range(start, start + 60)])


def test_processes_share_the_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=fill, args=(tmp_path, start)) for start in (0, 30)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    last = Counting()
    VectorStore(last, tmp_path).of([f"t{number}" for number in range(90)])
    assert last.batches == []


def test_checking_asks_the_embedder():
    VectorStore(Counting()).check()
    with pytest.raises(ValueError, match="no such server"):
        VectorStore(Counting(fails={"a"})).check()


@settings(max_examples=200)
@given(st.lists(st.text(st.characters(), max_size=5), min_size=1, max_size=8))
def test_rows_are_in_the_order_asked(texts):
    rows = VectorStore(Counting()).of(texts)
    np.testing.assert_array_equal(rows, Counting().embed(texts))
