"""A bundle as a folder: text files and a list of their hashes, written whole or not at all.

`HASHES` has the lines of `sha256sum`, so `sha256sum -c HASHES` checks a bundle without this package. The digest of
that list is the bundle's identity.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harness.errors import UsageError

MANIFEST = "manifest.json"
HASHES = "HASHES"


def write_folder(folder: Path, files: Mapping[str, str], *, overwrite: bool = False) -> str:
    """Write the files of a bundle; readers see the old folder or the new one, never half of one.

    Args:
        folder: where; its parents are made.
        files: relative path with forward slashes -> text.
        overwrite: put a bundle that is there aside first. Anything that is not a bundle is never replaced.

    Returns:
        The bundle's digest, sha256 in hex.

    Raises:
        UsageError: something is there already, or the folder cannot be written.
    """
    _refuse_existing(folder, overwrite)
    hashes = "".join(f"{_sha256(text.encode())}  {name}\n" for name, text in sorted(files.items()))
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        for name, text in {**files, HASHES: hashes}.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        _put_in_place(beside, folder)
    except OSError as error:
        raise UsageError(f"the bundle cannot be written to {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return _sha256(hashes.encode())


def _refuse_existing(folder: Path, overwrite: bool) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} exists and is not a folder; choose another place for the bundle")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not overwrite:
        raise UsageError(f"{folder} exists and is not empty; choose another place for the bundle or remove it first")
    if not (folder / MANIFEST).is_file():
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
        UsageError: not a bundle, a file is missing, or one was changed after the export.
    """
    if not (folder / MANIFEST).is_file():
        inside = [name for name in ("bundle", "bundle-baseline") if (folder / name / MANIFEST).is_file()]
        hint = f"; did you mean {folder / inside[0]}?" if inside else ""
        what = f"it has no {MANIFEST}" if folder.is_dir() else "there is no such folder"
        raise UsageError(f"{folder} is not a bundle: {what}{hint}")
    try:
        listed = (folder / HASHES).read_text(encoding="utf-8")
        files = dict(_checked_file(folder, line) for line in listed.splitlines())
    except FileNotFoundError as error:
        missing = Path(str(error.filename)).relative_to(folder).as_posix()
        raise UsageError(f"{folder} is not complete: {missing} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder} cannot be read: {error}") from error
    if MANIFEST not in files:
        raise UsageError(f"{folder} was changed after it was exported: {HASHES} does not list {MANIFEST}")
    return files, _sha256(listed.encode())


def _checked_file(folder: Path, line: str) -> tuple[str, str]:
    expected, _, name = line.partition("  ")
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts:
        raise UsageError(f"{folder} was changed after it was exported: {HASHES} has the line {line!r}")
    content = (folder / name).read_bytes()
    if _sha256(content) != expected:
        raise UsageError(f"{folder} was changed after it was exported: {name} has another hash than in {HASHES}")
    return name, content.decode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
