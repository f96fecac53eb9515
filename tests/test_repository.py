"""What holds for the whole tree: what is shipped, who may import whom, and what no file may do."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("harness", "metrics", "programs")
PACKAGE_FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
SOURCE_FILES = PACKAGE_FILES + [
    path for folder in ("tests", "benchmarks", "experiments") for path in sorted((ROOT / folder).rglob("*.py"))
]
MAX_LINES = 400
FORBIDDEN_NAME = re.compile(r"(?:^|_)(?:manager|helper|util|common|misc|handler)s?(?:_|$)")
PICKLES = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
TELEPROMPTERS = {
    "teleprompt", "LabeledFewShot", "BootstrapFewShot", "BootstrapFewShotWithRandomSearch", "MIPROv2", "COPRO",
    "GEPA", "SIMBA", "KNNFewShot", "BootstrapFinetune", "BetterTogether", "InferRules", "Ensemble",
}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=name_of(path))


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Every absolute module name imported anywhere in the tree, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def top_level_imports(path: Path) -> set[str]:
    return {module.partition(".")[0] for module in imported_modules(tree_of(path))}


def importers(module: str) -> set[str]:
    """The package files that import the module or something below it."""
    return {
        name_of(path)
        for path in PACKAGE_FILES
        if any(found == module or found.startswith(f"{module}.") for found in imported_modules(tree_of(path)))
    }


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_wheel_is_declared_to_hold_the_three_packages() -> None:
    build = project()["tool"]["hatch"]["build"]["targets"]["wheel"]  # type: ignore[index]
    assert sorted(build["packages"]) == sorted(PACKAGES)


def test_a_built_wheel_holds_exactly_the_three_packages_with_their_type_marks(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed here")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.partition("/")[0] for name in names}
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    shipped = {name for name in names if name.endswith(".py")}
    assert shipped == {name_of(path) for path in PACKAGE_FILES}


def test_metrics_do_not_import_the_harness_and_programs_import_neither() -> None:
    forbidden = {"metrics": {"harness"}, "programs": {"harness", "metrics"}, "harness": set[str]()}
    wrong = {
        name_of(path): sorted(top_level_imports(path) & forbidden[path.relative_to(ROOT).parts[0]])
        for path in PACKAGE_FILES
    }
    assert {name: modules for name, modules in wrong.items() if modules} == {}


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("mlflow", "harness/tracking/"),
        ("optuna", "harness/studies.py"),
        ("xllamacpp", "harness/models/llama_cpp.py"),
        ("dspy.teleprompt", "harness/optimizers/"),
    ],
)
def test_one_place_alone_imports(module: str, allowed: str) -> None:
    assert {name for name in importers(module) if not name.startswith(allowed)} == set()


def test_only_the_optimizers_name_a_teleprompter() -> None:
    named = {
        name_of(path)
        for path in PACKAGE_FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and node.attr in TELEPROMPTERS
        and isinstance(node.value, ast.Name)
        and node.value.id == "dspy"
    }
    assert {name for name in named if not name.startswith("harness/optimizers/")} == set()


@pytest.mark.parametrize("module", ["harness.errors", "harness.spec", "harness.cli"])
def test_the_command_line_starts_without_the_heavy_libraries(module: str) -> None:
    program = (
        f"import sys, {module}\n"
        "heavy = {'dspy', 'mlflow', 'optuna', 'litellm', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (answer.stdout.strip(), answer.returncode) == ("[]", 0), answer.stderr


def test_no_file_is_too_long() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE_FILES}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_no_package_imports_a_pickle() -> None:
    wrong = {name_of(path): sorted(top_level_imports(path) & PICKLES) for path in PACKAGE_FILES}
    assert {name: modules for name, modules in wrong.items() if modules} == {}


def is_environ(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def environment_writes(tree: ast.AST) -> Iterator[int]:
    """Lines that change this process's environment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and is_environ(node.value) and not isinstance(node.ctx, ast.Load):
            yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changes = node.func.attr in {"update", "setdefault", "pop", "popitem", "clear"}
            if node.func.attr in {"putenv", "unsetenv"} or (changes and is_environ(node.func.value)):
                yield node.lineno


def test_environment_writes_are_found() -> None:
    text = (
        "import os\nos.environ['A'] = '1'\nos.environ.setdefault('A', '1')\ndel os.environ['A']\nos.putenv('A', '1')\n"
    )
    assert sorted(environment_writes(ast.parse(text))) == [2, 3, 4, 5]
    assert list(environment_writes(ast.parse("import os\na = os.environ['A']\nb = os.environ.get('B')\n"))) == []


def test_no_file_changes_the_environment_of_its_process() -> None:
    # The command line owns its process and speaks to libraries that listen to nothing else; see `_NO_CALLS_HOME`.
    files = [path for path in SOURCE_FILES if name_of(path) != "harness/cli.py"]
    writes = {name_of(path): list(environment_writes(tree_of(path))) for path in files}
    assert {name: lines for name, lines in writes.items() if lines} == {}


def test_no_name_says_nothing() -> None:
    parts = {part for path in SOURCE_FILES for part in Path(name_of(path)).with_suffix("").parts}
    assert sorted(part for part in parts if FORBIDDEN_NAME.search(part)) == []


def test_tests_have_no_init_files() -> None:
    assert [name_of(path) for path in (ROOT / "tests").rglob("__init__.py")] == []


def test_constraints_pin_every_line_and_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9.-]+==[0-9][\w.]*(?: ; [^:@]+)?", line)] == []
    names = [pin.partition("==")[0] for pin in pins]
    assert names == sorted(set(names), key=names.index), "a package is pinned twice"


def test_every_declared_requirement_is_pinned() -> None:
    declared = project()["project"]
    wanted = [*declared["dependencies"]]  # type: ignore[index]
    for extra in declared["optional-dependencies"].values():  # type: ignore[index]
        wanted += extra
    pinned = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE))
    names = {re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-") for requirement in wanted}
    assert names - pinned == set()


def test_the_packages_import_by_their_own_names() -> None:
    for package in PACKAGES:
        assert Path(importlib.import_module(package).__file__ or "").parent == ROOT / package
