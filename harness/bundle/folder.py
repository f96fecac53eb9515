"""A bundle as a folder: text files and a list of their hashes, written whole or not at all.

`HASHES` has the lines of `sha256sum`, so `sha256sum -c HASHES` checks a bundle without this package. The digest of
that list is the bundle's identity.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harness.errors import UsageError
from harness.files import kind_of, refusal
from programs.json_schema import short

MANIFEST = "manifest.json"
HASHES = "HASHES"
MOST_BYTES = 256 << 20
"""All files of a bundle together; it holds instructions and examples, not data."""


def write_folder(folder: Path, files: Mapping[str, str], *, overwrite: bool = False) -> str:
    """Write the files of a bundle; readers see the old folder or the new one, never half of one.

    Args:
        folder: where; its parents are made.
        files: relative path with forward slashes -> text.
        overwrite: put a bundle that is there aside first. Anything that is not a bundle is never replaced.

    Returns:
        The bundle's digest, sha256 in hex.

    Raises:
        UsageError: something is there already, it may not be written there, or it is larger than a bundle can be.
        HarnessError: the disk is full or failed.
    """
    _refuse_existing(folder, overwrite)
    size = sum(len(text.encode()) for text in files.values())
    if size > MOST_BYTES:
        raise UsageError(f"the bundle is not written: it would be larger than {MOST_BYTES >> 20} MB")
    hashes = "".join(f"{_sha256(text.encode())}  {name}\n" for name, text in sorted(files.items()))
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        for name, text in {**files, HASHES: hashes}.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        _put_in_place(beside, folder)
    except OSError as error:
        raise refusal(f"the bundle cannot be written to {folder}", error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return _sha256(hashes.encode())


def _refuse_existing(folder: Path, overwrite: bool) -> None:
    kind = kind_of(folder)
    if folder.is_symlink() or kind in ("file", "special"):
        raise UsageError(f"{folder} exists and is not a folder; choose another place for the bundle")
    try:
        is_taken = kind == "folder" and any(folder.iterdir())
    except OSError as error:
        raise refusal(f"{folder} cannot be used for the bundle", error) from error
    if not is_taken:
        return
    if not overwrite:
        raise UsageError(f"{folder} exists and is not empty; choose another place for the bundle or remove it first")
    if kind_of(folder / MANIFEST) != "file":
        raise UsageError(f"{folder} holds something that is not a bundle; choose another place for the bundle")


def _put_in_place(beside: Path, folder: Path) -> None:
    if not folder.exists():
        os.rename(beside, folder)
        return
    old = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    os.rename(folder, old)
    try:
        os.rename(beside, folder)
    except OSError:
        os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def read_folder(folder: Path) -> tuple[dict[str, str], str]:
    """The files of a bundle by name, and its digest. Files that are not in `HASHES` are not read.

    Raises:
        UsageError: not a bundle, a file is missing, no regular file, too large, not text, or changed after the export.
        HarnessError: the disk failed.
    """
    _refuse_no_bundle(folder)
    listed = _text(_content(folder, HASHES, MOST_BYTES), folder, HASHES)
    files: dict[str, str] = {}
    left = MOST_BYTES
    for line in listed.removesuffix("\n").split("\n") if listed else ():
        expected, name = _entry(folder, line, files)
        content = _content(folder, name, left)
        left -= len(content)
        if _sha256(content) != expected:
            raise UsageError(f"{folder} was changed after it was exported: {name} has another hash than in {HASHES}")
        files[name] = _text(content, folder, name)
    if MANIFEST not in files:
        raise UsageError(f"{folder} was changed after it was exported: {HASHES} does not list {MANIFEST}")
    return files, _sha256(listed.encode())


def _refuse_no_bundle(folder: Path) -> None:
    kind = kind_of(folder)
    if kind == "folder" and kind_of(folder / MANIFEST) != "missing":
        return
    inside = [name for name in ("bundle", "bundle-baseline") if kind_of(folder / name / MANIFEST) == "file"]
    hint = f"; did you mean {folder / inside[0]}?" if inside else ""
    what = {"folder": f"it has no {MANIFEST}", "missing": "there is no such folder"}.get(kind, "it is no folder")
    raise UsageError(f"{folder} is not a bundle: {what}{hint}")


def _entry(folder: Path, line: str, seen: Mapping[str, str]) -> tuple[str, str]:
    """(hash, name) of one line of `HASHES`."""
    expected, _, name = line.partition("  ")
    path = PurePosixPath(name)
    if not name.isprintable() or not name or name in seen or path.is_absolute() or {"..", ""} & set(name.split("/")):
        raise UsageError(f"{folder} was changed after it was exported: {HASHES} has the line {short(repr(line))}")
    return expected, name


def _content(folder: Path, name: str, most: int) -> bytes:
    """The bytes of one file of the bundle: a regular file inside the folder, of at most `most` bytes."""
    path = folder
    try:
        for part in PurePosixPath(name).parts:
            path /= part
            if stat.S_ISLNK(path.lstat().st_mode):
                raise UsageError(f"{folder}: {name} is a link; a bundle holds its files itself")
        facts = path.lstat()
        if not stat.S_ISREG(facts.st_mode):
            raise UsageError(f"{folder}: {name} is not a regular file")
        if facts.st_size > most:
            raise UsageError(f"{folder}: with {name} it is larger than {MOST_BYTES >> 20} MB; that is no bundle")
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{folder} is not complete: {name} is missing") from None
    except (OSError, ValueError, MemoryError) as error:
        raise refusal(f"{folder}: {name} cannot be read", error) from error


def _text(content: bytes, folder: Path, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{folder}: {name} cannot be read: it is not UTF-8 text ({error.reason})") from error


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
