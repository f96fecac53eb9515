"""One short name for the whole content of a data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from harness.data.record import Record


def dataset_digest(records: Iterable[Record]) -> str:
    """SHA-256 (64 hex digits) over ids, fields, expected records and groups.

    The order of the records, the order of keys and the place in the file make no difference; any value does.

    >>> first = Record("1", {"text": "a"}, {"n": 1}, None, "a.csv line 2")
    >>> second = Record("2", {"text": "b"}, {"n": 2}, None, "a.csv line 3")
    >>> dataset_digest([first, second]) == dataset_digest([second, first])
    True
    """
    digest = hashlib.sha256()
    for record in sorted(records, key=lambda record: record.id):
        content = [record.id, dict(record.fields), record.expected, record.group]
        # ASCII, one line each: no two lists of records give the same bytes.
        digest.update(json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":")).encode() + b"\n")
    return digest.hexdigest()
