"""Objects named in a file: found, or told in one sentence why not; a user's file never takes anyone's place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.__main__ import own_packages_first
from harness.errors import UsageError
from harness.references import check_own_packages, is_reference, load_object

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder; the import path and the modules loaded from it are as before afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def complaint(reference, folder, **kwargs):
    with pytest.raises(UsageError) as caught:
        load_object(reference, folder, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- found -----------------------------------------------------------------------------------------------------


def test_a_class_in_a_file_beside_the_experiment(folder):
    write(folder, "my-schema.py", "class Invoice:\n    class Line:\n        total = 1\n")
    invoice = load_object("my-schema.py:Invoice", folder)
    assert invoice.__name__ == "Invoice"
    assert load_object("my-schema.py:Invoice", folder) is invoice
    assert load_object("my-schema.py:Invoice.Line.total", folder) == 1


def test_files_in_a_subfolder_and_by_absolute_path(folder):
    path = write(folder, "code/schema.py", "x = 5")
    assert load_object("code/schema.py:x", folder) == 5
    assert load_object(f"{path}:x", folder / "elsewhere") == 5


def test_an_installed_module(folder):
    assert load_object("collections.abc:Mapping", folder).__name__ == "Mapping"


def test_a_package_beside_the_experiment(folder):
    write(folder, "my_package_x/__init__.py", "")
    write(folder, "my_package_x/code.py", "def read(): ...")
    assert load_object("my_package_x.code:read", folder).__module__ == "my_package_x.code"


def test_dataclasses_and_forward_references_find_their_module(folder):
    write(
        folder,
        "records.py",
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from pydantic import BaseModel\n"
        "@dataclass(slots=True)\nclass A:\n    b: B | None = None\n"
        "class M(BaseModel):\n    n: N | None = None\n"
        "@dataclass\nclass B: ...\n"
        "class N(BaseModel):\n    m: M | None = None\n",
    )
    model = load_object("records.py:M", folder)
    assert model(n={"m": {"n": None}}).n.m.n is None
    assert load_object("records.py:A", folder)().b is None


def test_the_folder_is_appended_once_and_files_beside_can_be_imported(folder):
    write(folder, "units_of_mine.py", "degree = 1")
    write(folder, "json.py", "raise RuntimeError('shadowed')")
    write(folder, "mine.py", "import json\nfrom units_of_mine import degree\n")
    before = list(sys.path)
    assert load_object("mine.py:degree", folder) == 1
    assert load_object("mine.py:json.dumps", folder)([1]) == "[1]"
    assert sys.path == [*before, str(folder.resolve())]


def test_a_users_metrics_file_is_loaded_as_itself_and_replaces_nothing(folder):
    write(folder, "metrics.py", "def mine(): return 'mine'")
    assert load_object("metrics.py:mine", folder)() == "mine"
    assert load_object("metrics.score:Score", folder).__module__ == "metrics.score"
    check_own_packages()


def test_module_names_follow_from_content_and_are_the_same_everywhere(folder):
    write(folder, "a/schema.py", "class C: ...")
    write(folder, "b/schema.py", "class C: ...")
    first = load_object("schema.py:C", folder / "a")
    second = load_object("schema.py:C", folder / "b")
    assert first is not second
    assert second.__module__ == f"{first.__module__}_2"
    assert str(folder) not in first.__module__


def test_a_changed_file_is_read_again(folder):
    write(folder, "schema.py", "x = 1")
    assert load_object("schema.py:x", folder) == 1
    write(folder, "schema.py", "x = 2")
    assert load_object("schema.py:x", folder) == 2


def test_the_kind_of_object_is_checked(folder):
    write(folder, "mine.py", "import json\nclass A: ...\nb = 5\n")
    assert load_object("mine.py:b", folder, accepts=lambda found: found == 5) == 5
    for name, kind in {"A": "the class A", "b": "of type int", "json": "a module"}.items():
        said = complaint(f"mine.py:{name}", folder, accepts=lambda _: False, wanted="a program")
        assert said == f"mine.py:{name} is {kind}, not a program"


# --- not found -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["schema.py", "exact", ":x", "a b:c", "x.py:", "x.py:1a", "x.py:a.", "x.txt/y:z", "x.py:a b"]
)
def test_what_is_no_reference(text, folder):
    assert not is_reference(text)
    assert complaint(text, folder) == f"{text!r} names no object; write FILE.py:NAME or PACKAGE.MODULE:NAME"


def test_a_missing_file_shows_the_nearest_one(folder):
    write(folder, "schema.py", "")
    assert complaint("shema.py:A", folder) == f"shema.py does not exist in {folder}; did you mean 'schema.py'?"
    assert complaint("nowhere/schema.py:A", folder) == f"nowhere/schema.py does not exist in {folder / 'nowhere'}"
    (folder / "d.py").mkdir()
    assert complaint("d.py:A", folder).startswith(f"d.py is a folder in {folder}")


def test_the_working_folder_has_no_path_in_sentences(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert complaint("schema.py:A", Path()) == "schema.py does not exist in the working folder"


def test_a_missing_name_shows_the_nearest_one(folder):
    write(folder, "schema.py", "class Invoice: ...\n_hidden = 1\nvalue = 5\n")
    assert complaint("schema.py:Invoise", folder) == "schema.py defines no 'Invoise'; did you mean 'Invoice'?"
    assert complaint("schema.py:zzz", folder) == "schema.py defines no 'zzz'; known: Invoice, value"
    assert complaint("schema.py:value.zzz", folder) == "schema.py defines no 'zzz'; it defines nothing"


def test_a_missing_module_shows_the_nearest_one(folder):
    assert complaint("metrics.scor:Score", folder) == (
        "there is no module 'metrics.scor'; did you mean 'score'? (in metrics)"
    )
    assert complaint("collectionz:x", folder) == "there is no module 'collectionz'; did you mean 'collections'?"
    assert complaint("zzzqqq:x", folder) == "there is no module 'zzzqqq'"
    assert complaint("zzzqqq.sub:x", folder) == "there is no module 'zzzqqq.sub'"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\ny = x / 0\n", "mine.py line 2: ZeroDivisionError: division by zero"),
        ("import json\n\njson.loads('{')\n", "mine.py line 3: JSONDecodeError: Expecting property name"),
        ("def f(:\n", "mine.py line 1: SyntaxError: invalid syntax"),
        ("import not_there_at_all\n", "mine.py line 1: ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("from beside import f\n\nf()\n", "beside.py line 2: ValueError: two"),
        ("raise SystemExit\n", "mine.py line 1: SystemExit"),
        ("raise ValueError('two\\nlines')\n", "mine.py line 1: ValueError: two"),
        ("x = 1\0", "source code string cannot contain null bytes"),
    ],
)
def test_an_error_inside_the_users_file_is_told_with_its_line(folder, text, sentence):
    write(folder, "beside.py", "def f():\n    raise ValueError('two')\n")
    write(folder, "mine.py", text)
    modules = {name for name in sys.modules if name.startswith("_user_")}
    said = complaint("mine.py:A", folder)
    assert said.startswith("mine.py cannot be loaded: ")
    assert sentence in said
    assert "None" not in said
    assert {name for name in sys.modules if name.startswith("_user_")} == modules


def test_an_error_inside_a_users_package_is_told_with_its_line(folder):
    write(folder, "broken_package_x/__init__.py", "")
    write(folder, "broken_package_x/one.py", "import not_there_at_all\n")
    write(folder, "broken_package_x/two.py", "\n1 / 0\n")
    assert complaint("broken_package_x.one:A", folder) == (
        "broken_package_x.one cannot be loaded: one.py line 1: ModuleNotFoundError: No module named 'not_there_at_all'"
    )
    assert "two.py line 2: ZeroDivisionError" in complaint("broken_package_x.two:A", folder)
    assert complaint("broken_package_x.two.three:A", folder).startswith("broken_package_x.two.three cannot be loaded")
    assert complaint("broken_package_x.for_:A", folder).endswith("known: one, two (in broken_package_x)")


def test_importing_a_hidden_metrics_file_is_explained(folder):
    write(folder, "metrics.py", "mine = 1")
    write(folder, "program.py", "from metrics import mine")
    said = complaint("program.py:A", folder)
    assert said.endswith("(metrics is this program's own package; rename metrics.py beside program.py)")
    (folder / "metrics.py").unlink()
    assert "own package" not in complaint("program.py:A", folder)


def test_a_file_that_cannot_be_read_is_one_sentence(folder, monkeypatch):
    write(folder, "mine.py", "")

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert complaint("mine.py:A", folder) == "mine.py cannot be read: Permission denied"


def test_a_file_without_a_loader_is_one_sentence(folder, monkeypatch):
    write(folder, "mine.py", "")
    monkeypatch.setattr("importlib.util.spec_from_file_location", lambda *_: None)
    assert complaint("mine.py:A", folder) == "mine.py is not a Python file"


# --- this distribution's own packages --------------------------------------------------------------------------


def test_own_packages_are_own():
    check_own_packages()


def test_a_shadowing_module_already_imported_is_named(monkeypatch, tmp_path):
    module = type(sys)("metrics")
    module.__file__ = str(tmp_path / "metrics.py")
    monkeypatch.setitem(sys.modules, "metrics", module)
    with pytest.raises(UsageError, match=r"metrics\.py hides this program's own package 'metrics'; rename that file"):
        check_own_packages()


def harness(folder, *arguments, module=True, **environment):
    """Run the command line in another folder, as `python -m harness` or as the installed command does."""
    start = ["-m", "harness"] if module else ["-c", "from harness.cli import main; main()"]
    options = [] if module else ["-P"]  # a console script has no working folder on its import path
    return subprocess.run(
        [sys.executable, *options, *start, *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "module"), [("metrics.py", True), ("metrics.py", False), ("programs/__init__.py", True)]
)
def test_a_users_file_of_that_name_beside_the_experiment_harms_nothing(tmp_path, name, module):
    write(tmp_path, name, "raise RuntimeError('imported in place of the package')")
    done = harness(tmp_path, "list", "readers", module=module)
    assert (done.returncode, done.stderr) == (0, "")
    assert "olivetti" in done.stdout


@pytest.mark.parametrize("module", [True, False])
def test_a_users_file_that_comes_first_on_the_path_is_named(tmp_path, module):
    write(tmp_path, "metrics.py", "raise RuntimeError('imported in place of the package')")
    done = harness(tmp_path, "list", "readers", module=module, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"error: {tmp_path / 'metrics.py'} hides this program's own package 'metrics'; rename that file "
        "(my_metrics.py, say), or keep its folder from coming first on the import path (PYTHONPATH, or a notebook's "
        "working folder)\n"
    )


def test_python_m_moves_the_working_folder_to_the_end_of_the_import_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for first, moved in ((str(tmp_path), True), ("", True), ("/elsewhere", False)):
        monkeypatch.setattr(sys, "path", [first, "/other"])
        own_packages_first()
        assert sys.path == (["/other", first] if moved else [first, "/other"])
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [str(ROOT), "/other"])
    own_packages_first()
    assert sys.path == [str(ROOT), "/other"]


def test_python_m_harness_works_in_the_checkout_and_with_a_safe_path():
    assert harness(ROOT, "--version", PYTHONPATH="").stdout.startswith("dspy-judge-harness ")
    assert harness(ROOT / "tests", "--version", PYTHONSAFEPATH="1").stdout.startswith("dspy-judge-harness ")
