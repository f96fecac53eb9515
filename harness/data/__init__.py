"""The user's data: readers, splits, the leak check, the digest."""

from harness.data.digest import dataset_digest
from harness.data.leaks import Leak, check_leaks, find_leaks
from harness.data.reading import READERS, labelled, read
from harness.data.record import Reader, Record
from harness.data.splits import Splits, split

__all__ = [
    "READERS",
    "Leak",
    "Reader",
    "Record",
    "Splits",
    "check_leaks",
    "dataset_digest",
    "find_leaks",
    "labelled",
    "read",
    "split",
]
