"""`harness init`: the files of a first project, ready to run."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

from harness.errors import UsageError
from harness.files import kind_of, refusal

FILES = ("schema.py", "invoices.csv", "experiment.yaml", "README.md")


def write_project(folder: Path) -> list[Path]:
    """Write a project into `folder`, which is made when it is not there.

    Returns:
        The files written.

    Raises:
        UsageError: one of the files is already there (nothing is written then), or nothing may be written there.
        HarnessError: the disk is full.
    """
    taken = [name for name in FILES if kind_of(folder / name) != "missing" or (folder / name).is_symlink()]
    if taken:
        where = "this folder" if folder == Path() else str(folder)
        raise UsageError(f"{where} already holds {', '.join(taken)}; nothing was written, name another folder")
    source = files("harness.scaffold") / "files"
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
                file.write((source / name).read_text(encoding="utf-8"))
            written.append(folder / name)
    except OSError as error:
        raise refusal(f"cannot write into {folder}", error) from None
    return written


def next_commands(folder: Path) -> list[str]:
    """What to type after `write_project`.

    >>> next_commands(Path("my project"))
    ["  cd 'my project'", '  harness check experiment.yaml', '  harness run experiment.yaml', '  harness ui']
    """
    commands = ["harness check experiment.yaml", "harness run experiment.yaml", "harness ui"]
    if folder != Path():
        commands.insert(0, f"cd {shlex.quote(str(folder))}")
    return [f"  {command}" for command in commands]
