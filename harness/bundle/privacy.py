"""What a bundle must not give away: keys, endpoints, where files lay on this machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.secrecy import is_recognisable

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)S?$")
_SHORTEST_SECRET = 12
_LONG = 16
"""From here on a secret gives itself away inside a longer word too."""
_FOLDERS = re.compile(r"(?:^|(?<=^local/))(?:/|~/|[A-Za-z]:\\).*[/\\]")


def without_folders(value: Any) -> Any:
    """The same JSON data with absolute paths cut to their last part.

    >>> without_folders({"model": "local//home/me/models/small.gguf", "schema": "/home/me/invoice.json"})
    {'model': 'local/small.gguf', 'schema': 'invoice.json'}
    """
    if isinstance(value, Mapping):
        return {key: without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(item) for item in value]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return _FOLDERS.sub("", value) if isinstance(value, str) else value


def refuse_private(
    files: Mapping[str, str], forbidden: Iterable[str], *, without_paths: Iterable[str], environ: Mapping[str, str]
) -> None:
    """Refuse texts that hold a secret; the error names where it comes from, never the value.

    A key that is a word of everyday language is not looked for: the run has said at its start that it cannot be
    protected (`harness.secrecy`).

    Args:
        files: name -> text.
        forbidden: keys and addresses that may appear nowhere.
        without_paths: the files in which the working folder and the home folder may not appear either. Others
            quote the user's own examples, where such a text is no leak.
        environ: its variables that are named like secrets are looked for, from twelve characters on.

    Raises:
        UsageError: something would be given away.
    """
    named = {value: f"the value of {name}" for name, value in environ.items() if _SECRET_NAME.search(name.upper())}
    named = {value: what for value, what in named.items() if len(value) >= _SHORTEST_SECRET}
    named |= {value: "a key or an endpoint" for value in forbidden}
    for value, what in named.items():
        if "://" not in value and not is_recognisable(value):
            continue
        pattern = _standing_alone(value.strip())
        for file, text in files.items():
            if pattern.search(text) or _standing_alone(json.dumps(value.strip())[1:-1]).search(text):
                raise UsageError(f"the bundle is not written: its {file} would hold {what}")
    places = [f"{place}/" for place in (Path.cwd(), Path.home()) if len(place.parts) > 1]
    for file in without_paths:
        if any(place in files[file] for place in places):
            raise UsageError(f"the bundle is not written: its {file} would hold a path of this machine")


def _standing_alone(value: str) -> re.Pattern[str]:
    """The value, unless a short one is only part of a longer word or number."""
    if len(value) >= _LONG:
        return re.compile(re.escape(value))
    return re.compile(rf"(?<![^\W_]){re.escape(value)}(?![^\W_])")
