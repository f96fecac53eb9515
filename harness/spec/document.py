"""An experiment file before it is validated: its keys, where each was written, overrides and the environment.

Problems are collected, not raised one by one, so that `harness check` can show all of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError, nearest
from harness.files import kind_of, names_in, read_file
from harness.foreign import whole
from harness.spec.marked_yaml import KeyPath, parse_yaml

_ENDINGS = (".yaml", ".yml")
_VARIABLE = re.compile(r"(\$?)\$\{([^}]*)\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SECRET_KEYS = frozenset({"apikey", "api_key", "api-key", "x-api-key", "authorization", "access_token", "password"})


@dataclass(slots=True)
class SpecDocument:
    """The keys of an experiment file and where each of them was written.

    Attributes:
        source: the file as the user named it.
        data: the keys, as plain data.
        places: "FILE line 12" or "in --set data.path", for every key and list item.
        problems: (path, sentence) of everything found wrong so far; sentences start with their place.
    """

    source: str
    data: dict[str, Any]
    places: dict[KeyPath, str]
    problems: list[tuple[KeyPath, str]] = field(default_factory=list)

    def place(self, path: KeyPath) -> str:
        """Where the value at `path` was written, or its closest parent; the file when there is none."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.source

    def value(self, path: KeyPath) -> Any:
        """The value at `path` as it was written; None when there is none."""
        here: Any = self.data
        for key in path:
            try:
                here = here[key]
            except (KeyError, IndexError, TypeError):
                return None
        return here

    def report(self, path: KeyPath, sentence: str) -> None:
        """Add a problem at `path`."""
        self.problems.append((path, f"{self.place(path)}: {sentence}"))

    def sentences(self) -> list[str]:
        """Every problem once, in the order of the file."""
        order = {path: rank for rank, path in enumerate(self.places)}

        def rank(problem: tuple[KeyPath, str]) -> int:
            path = problem[0]
            return max((order.get(path[:length], -1) for length in range(len(path) + 1)), default=-1)

        return list(dict.fromkeys(sentence for _, sentence in sorted(self.problems, key=rank)))

    def refuse_secrets(self) -> None:
        """Report every key that would put a secret into the file. Its value is never shown."""
        for path, _ in _walk(self.data, ()):
            key = path[-1] if path else ""
            if isinstance(key, str) and key.lower() in _SECRET_KEYS:
                self.report(
                    path,
                    f"{key!r} does not belong in a file; put the key into an environment variable and name it: "
                    "api_key_env: NAME_OF_THE_VARIABLE",
                )

    def substituted(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """The keys with every `${NAME}` in a value replaced; `$${NAME}` stands for the text `${NAME}`.

        A variable that holds a role's key is never put into a text, whatever its name is.
        """
        keys = self._key_variables(environ)
        data = _map_texts(self.data, (), lambda path, text: self._substitute(path, text, environ, keys))
        for path, value in _walk(data, ()):
            for text in (value, path[-1] if path else ""):
                if isinstance(text, str) and "\0" in text:
                    name = dotted(path).replace("\0", "?")
                    self.report(path, f"{name} holds the character NUL, which no path and no text needs")
        return data

    def _key_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The variables that roles take their keys from, each with the role that does."""
        models = self.data.get("models")
        named: dict[str, str] = {}
        for role, model in _items(models):
            name = model.get("api_key_env") if isinstance(model, dict) else None
            if isinstance(name, str):
                name = _VARIABLE.sub(lambda match: environ.get(match.group(2), ""), name)
                named[name] = f"models.{role}"
        return named

    def _substitute(self, path: KeyPath, text: str, environ: Mapping[str, str], keys: Mapping[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            escaped, name = match.groups()
            if escaped:
                return match.group()[1:]
            if not _VARIABLE_NAME.fullmatch(name):
                self.report(path, f"{match.group()!r} in {dotted(path)} does not name an environment variable")
            elif name in keys:
                self.report(
                    path,
                    f"{dotted(path)}: {name} holds the key of {keys[name]}, which would get into the run's records; "
                    "only api_key_env may name it",
                )
            elif _SECRET_NAME.search(name):
                self.report(
                    path, f"{dotted(path)}: {name} would put a secret into the run's records; name it in api_key_env"
                )
            elif name not in environ:
                self.report(path, f"the environment variable {name} of {dotted(path)} is not set{_near(name, environ)}")
            elif whole(environ[name]) != environ[name]:
                self.report(path, f"the environment variable {name} of {dotted(path)} is not text in UTF-8")
            else:
                return environ[name]
            return match.group()

        return _VARIABLE.sub(value, text)


def read_document(path: Path, source: str) -> SpecDocument:
    """Read an experiment file.

    Raises:
        UsageError: there is no such file (nearest name shown), or it is not a YAML mapping of keys.
    """
    text = _read_text(path, source)
    marked = parse_yaml(text, source)
    if marked.data is None and not marked.problems:
        raise UsageError(f"{source} is empty; an experiment needs at least program, data and models")
    if not isinstance(marked.data, dict):
        raise UsageError(f"{source} is not a mapping of keys such as program, data and models")
    document = SpecDocument(
        source, marked.data, {where: f"{source} line {line}" for where, line in marked.lines.items()}
    )
    document.problems.extend(((), f"{source} line {line}: {sentence}") for line, sentence in marked.problems)
    return document


def dotted(path: KeyPath) -> str:
    """A path as people write it.

    >>> dotted(("metric", "record", "fields", 0))
    'metric.record.fields[0]'
    """
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}"
    return text.removeprefix(".")


def _read_text(path: Path, source: str) -> str:
    kind = kind_of(path)
    if kind == "missing":
        raise UsageError(f"there is no file {source}{_near_file(path)}")
    if kind == "folder":
        files = [name for name in names_in(path) if name.endswith(_ENDINGS)]
        inside = f"one of: {', '.join(files)}" if files else "it holds none"
        raise UsageError(f"{source} is a folder; name an experiment file in it ({inside})")
    content = read_file(path, source)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{source} is not a text file in UTF-8, so it is not an experiment file") from None
    if "\0" in text:
        raise UsageError(f"{source} is a binary file, not an experiment file")
    return text


def _near_file(path: Path) -> str:
    if kind_of(path.parent) != "folder":
        return f"; there is no folder {path.parent} either"
    names = [name for name in names_in(path.parent) if name.endswith(_ENDINGS)]
    return f"; {nearest(path.name, names)}" if names else "; the folder holds no .yaml file"


def _near(name: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else ""


def _walk(value: Any, path: KeyPath) -> list[tuple[KeyPath, Any]]:
    found = [(path, value)]
    for key, item in _items(value):
        found.extend(_walk(item, (*path, key)))
    return found


def _items(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _map_texts(value: Any, path: KeyPath, change: Callable[[KeyPath, str], str]) -> Any:
    if isinstance(value, str):
        return change(path, value)
    if isinstance(value, dict):
        return {key: _map_texts(item, (*path, key), change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map_texts(item, (*path, index), change) for index, item in enumerate(value)]
    return value
