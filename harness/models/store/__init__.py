"""Every answer once: the only cache, a SQLite file that threads and processes share."""

from harness.models.store.answer_store import STORE, AnswerStore, StoredAnswer

__all__ = ["STORE", "AnswerStore", "StoredAnswer"]
