"""From `my_file.py:Name` or `package.module:Name` to the object.

A user's file is loaded under a name of its own, never as `metrics` or `schema`, so that it cannot take the place of
a module that anything else imports. Its folder is appended to `sys.path`, so that files beside it can be imported
without coming before anything installed.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.errors import RunStopped, UsageError, nearest
from harness.files import kind_of, named_path, names_beside, read_file
from harness.foreign import foreign_code, told

OWN_PACKAGES = ("metrics", "programs")
"""Packages of this distribution whose names are so generic that a user's file may have the same one."""

_REFERENCE = re.compile(r"^(?P<module>.+):(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)$")
_PASSED_ON = (KeyboardInterrupt, RunStopped)
"""What means the whole run, not the file that is being loaded."""
_MODULE = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")


def is_reference(text: str) -> bool:
    """True for what `load_object` takes, judged by its form alone.

    >>> [is_reference(text) for text in ("schema.py:Invoice", "programs.schema:SchemaExtraction", "exact", "a b:c")]
    [True, True, False, False]
    """
    match = _REFERENCE.match(text)
    return bool(match and (match["module"].endswith(".py") or _MODULE.match(match["module"])))


def load_object(
    reference: str,
    folder: Path,
    *,
    accepts: Callable[[Any], bool] | None = None,
    wanted: str = "",
) -> Any:
    """The object a file names.

    Args:
        reference: `FILE.py:NAME`, the file relative to `folder`, or `PACKAGE.MODULE:NAME`. NAME may be dotted.
        folder: the folder of the experiment file.
        accepts: says whether the object is of the right kind.
        wanted: what that kind is called in the error: "a pydantic model class".

    Raises:
        UsageError: no such file, module or name (the nearest one shown), the file cannot be run, or the object is of
            another kind.

    >>> load_object("pathlib:PurePath.joinpath", Path()).__name__
    'joinpath'
    """
    match = _REFERENCE.match(reference)
    if match is None or not is_reference(reference):
        raise UsageError(f"{reference!r} names no object; write FILE.py:NAME or PACKAGE.MODULE:NAME")
    if match["module"].endswith(".py"):
        module = _load_file(named_path(match["module"], folder), folder, match["module"])
    else:
        module = _import_module(match["module"], folder)
    found = _attribute(module, match["name"], match["module"])
    if accepts is not None and not accepts(found):
        raise UsageError(f"{reference} is {_kind(found)}, not {wanted or 'of the kind that is needed here'}")
    return found


def check_own_packages() -> None:
    """Make sure that `metrics` and `programs` are this distribution's own.

    Raises:
        UsageError: a file of that name comes first on the import path; it is named, and how to go on.
    """
    home = Path(__file__).resolve().parents[1]
    for name in OWN_PACKAGES:
        origin = _origin(name)
        if origin is not None and home / name not in (origin, origin.parent):
            raise UsageError(
                f"{origin} hides this program's own package {name!r}; rename that file (my_{name}.py, say), or keep "
                "its folder from coming first on the import path (PYTHONPATH, or a notebook's working folder)"
            )


def _origin(name: str) -> Path | None:
    """The file or folder that `import name` reads; None when there is none."""
    loaded = sys.modules.get(name)
    spec = getattr(loaded, "__spec__", None) if loaded is not None else importlib.util.find_spec(name)
    origin = getattr(loaded, "__file__", None) or getattr(spec, "origin", None)
    if origin is None:
        origin = next(iter(getattr(spec, "submodule_search_locations", None) or ()), None)
    return None if origin is None else Path(origin).resolve()


def _load_file(file: Path, folder: Path, label: str) -> ModuleType:
    kind = kind_of(file)
    if kind in ("folder", "missing"):
        what = "is a folder" if kind == "folder" else "does not exist"
        raise UsageError(f"{label} {what} in {_folder_name(file.parent)}{_nearest_file(file)}")
    content = read_file(file, label)
    file = file.resolve()
    name = _module_name(file, content)
    if name in sys.modules:
        return sys.modules[name]
    for beside in (file.parent, folder):
        _append_to_path(beside)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{label} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pydantic look their module up here
    try:
        spec.loader.exec_module(module)
    except _PASSED_ON:
        del sys.modules[name]
        raise
    except BaseException as error:  # whatever a user's file raises is the user's to see
        del sys.modules[name]
        raise UsageError(_cannot_run(error, label, file)) from error
    return module


def _module_name(file: Path, content: bytes) -> str:
    """A name that follows from the file's name and content, the same on every machine.

    A changed file is a new module; the same content in two folders is two modules, since what they import differs.
    """
    digest = hashlib.sha256(content).hexdigest()[:12]
    stem = re.sub(r"\W", "_", file.stem)
    base = f"_user_{stem}_{digest}"
    name, copies = base, 1
    while name in sys.modules and sys.modules[name].__file__ != str(file):
        copies += 1
        name = f"{base}_{copies}"
    return name


def _import_module(name: str, folder: Path) -> ModuleType:
    _append_to_path(folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"there is no module {name!r}{_nearest_module(name)}") from None
        raise UsageError(_cannot_run(error, name, None)) from error
    except _PASSED_ON:
        raise
    except BaseException as error:  # whatever a user's module raises is the user's to see
        raise UsageError(_cannot_run(error, name, None)) from error


def _append_to_path(folder: Path) -> None:
    path = str(folder.resolve())
    if path not in sys.path:
        sys.path.append(path)


def _attribute(module: ModuleType, name: str, label: str) -> Any:
    found: Any = module
    for part in name.split("."):
        try:
            with foreign_code(f"{label}: {part!r} cannot be read"):
                found = getattr(found, part)
        except UsageError as error:
            if not isinstance(error.__cause__, AttributeError):
                raise
            public = [known for known in getattr(found, "__dict__", ()) if not known.startswith("_")]
            hint = nearest(part, public) if public else "it defines nothing"
            raise UsageError(f"{label} defines no {part!r}; {hint}") from None
    return found


def _cannot_run(error: BaseException, label: str, file: Path | None) -> str:
    """The error in one line and where it happened, preferably in the user's own files."""
    what = told(error)
    if isinstance(error, SyntaxError):
        line = f" line {error.lineno}" if error.lineno else ""
        where = f"{Path(error.filename or label).name}{line}: "
        what = f"{type(error).__name__}: {error.msg}"
    else:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "<frozen" not in frame.filename]
        frames = [frame for frame in frames if Path(frame.filename) != Path(__file__)]
        own = [frame for frame in frames if file is not None and Path(frame.filename).parent == file.parent]
        where = "".join(f"{Path(frame.filename).name} line {frame.lineno}: " for frame in (own or frames)[-1:])
    return f"{label} cannot be loaded: {where}{what}{_shadow_hint(error, file)}"


def _shadow_hint(error: BaseException, file: Path | None) -> str:
    """A word on `from metrics import mine` that finds this distribution's package instead of the file beside."""
    name = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ImportError) or file is None or name not in ("harness", *OWN_PACKAGES):
        return ""
    rival = file.with_name(f"{name}.py")
    return f" ({name} is this program's own package; rename {rival.name} beside {file.name})" if rival.exists() else ""


def _kind(found: Any) -> str:
    if isinstance(found, type):
        return f"the class {found.__name__}"
    if isinstance(found, ModuleType):
        return "a module"
    return f"of type {type(found).__name__}"


def _folder_name(folder: Path) -> str:
    return "the working folder" if folder == Path() else str(folder)


def _nearest_file(file: Path) -> str:
    return _hint(file.name, (name for name in names_beside(file) if name.endswith(".py")))


def _nearest_module(name: str) -> str:
    parent, _, last = name.rpartition(".")
    if not parent:
        return _hint(last, (module.name for module in pkgutil.iter_modules()), listed=False)
    try:
        package = importlib.import_module(parent)
    except Exception:  # noqa: BLE001  # only a hint is lost
        return ""
    found = (module.name for module in pkgutil.iter_modules(getattr(package, "__path__", ())))
    hint = _hint(last, found)
    return f"{hint} (in {parent})" if hint else ""


def _hint(name: str, known: Iterable[str], *, listed: bool = True) -> str:
    """Half a sentence with the nearest name, or with all of them where that is not too many."""
    names = set(known)
    text = nearest(name, names) if names else ""
    return f"; {text}" if text and (listed or not text.startswith("known")) else ""
