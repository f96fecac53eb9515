"""text_similarity: meaning over wording."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from metrics.evaluators.embedders import EndpointEmbedder, LocalEmbedder
from metrics.evaluators.likeness import LikenessConfig, LikenessEvaluator
from metrics.evaluators.vectors import VectorStore
from metrics.score import UnscoredError

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_DIGITS = 6
"""Of a cosine: what a text is batched with changes the seventh."""


class TextSimilarityConfig(LikenessConfig):
    """Options of `text_similarity`.

    Attributes:
        model: a sentence-transformers model, by its name on the hub or its folder; with `provider: openai` the name
            that the server knows.
        provider: "sentence-transformers" on this machine, or "openai": any server with OpenAI's embeddings.
        api_base: that server's address, up to and with /v1; None is OpenAI's own.
        api_key: its key; a file names it in `api_key_env` instead. Neither is part of the version.
        api_key_env: the environment variable that holds the key; None is OPENAI_API_KEY for OpenAI's own address, and
            no key for any other.
        cache_folder: where vectors are kept from run to run; None keeps them in memory.
        deferred: embed nothing before `prepared()`, until when different texts are unscored.
    """

    model: str = Field(MINILM, min_length=1)
    provider: Literal["sentence-transformers", "openai"] = "sentence-transformers"
    api_base: str | None = None
    api_key: SecretStr | None = Field(None, exclude=True, repr=False)
    api_key_env: str | None = Field(None, exclude=True)
    cache_folder: Path | None = Field(None, exclude=True)
    deferred: bool = Field(False, exclude=True)

    @field_validator("api_base")
    @classmethod
    def _is_address(cls, address: str | None) -> str | None:
        if address is not None and (not address.startswith(("http://", "https://")) or "@" in address):
            raise ValueError("an address such as http://127.0.0.1:8080/v1, without a user or a key, is needed")
        return address

    @model_validator(mode="after")
    def _one_provider(self) -> TextSimilarityConfig:
        if self.provider == "openai":
            if self.model == MINILM and self.api_base is None:
                raise ValueError("provider openai needs the model's name there, such as text-embedding-3-small")
            return self
        given = [name for name in ("api_base", "api_key", "api_key_env") if getattr(self, name) is not None]
        if given:
            raise ValueError(f"{given[0]} belongs to provider openai; {self.provider} runs on this machine")
        return self


class TextSimilarityEvaluator(LikenessEvaluator):
    """How alike two texts are in meaning: the cosine of their vectors, 0 where it is negative.

    Each different text is embedded once, all that a comparison of lists needs together in batches, and kept; with
    `cache_folder` from run to run. Cosines are rounded to six digits. As with `levenshtein`, numbers and amounts
    ("5 h", "50 h") are not compared by likeness, and lists and objects not at all.

    Raises:
        ImportError: sentence-transformers is not installed; the sentence has the install line. A model that is not here
            is an ImportError, too, when the evaluator is prepared for a run, or else at the first text. Nothing ever
            falls back to another comparison.
        ValueError: a wrong option, or a key that is not set.

    A server that cannot be reached, or gives no vectors, leaves the result unscored.

    >>> meaning = TextSimilarityEvaluator({"provider": "openai", "model": "m", "api_base": "http://127.0.0.1:1/v1"})
    >>> meaning.evaluate("LiCoO₂ powder", "LiCoO2 powder"), meaning.evaluate("5 h", "50 h")
    (1.0, 0.0)
    """

    alias: ClassVar[str] = "text_similarity"
    config_model: ClassVar[type[BaseModel]] = TextSimilarityConfig

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(config)
        options = self._options
        if options.provider == "openai":
            embedder = EndpointEmbedder(options.model, options.api_base, _key(options))
        else:
            embedder = LocalEmbedder(options.model)
        self._vectors = VectorStore(embedder, options.cache_folder)
        self._is_waiting = options.deferred

    def prepared(self) -> Self:
        """The same evaluator, which embeds from now on; its model or server was looked for."""
        self._vectors.check()
        ready = copy.copy(self)
        ready._is_waiting = False
        return ready

    def likeness(self, first: str, second: str) -> float:
        return 1.0 if first == second else float(self._cosines([first], [second])[0, 0])

    def likenesses(self, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
        try:
            values = self._cosines(rows, columns)
        except UnscoredError:
            values = np.full((len(rows), len(columns)), np.nan)
        same = np.array(rows, dtype=object)[:, None] == np.array(columns, dtype=object)[None, :]
        values[same] = 1.0
        return values

    def _cosines(self, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
        if self._is_waiting:
            raise UnscoredError(f"{self.name}: texts are only embedded while an experiment runs")
        vectors = self._vectors.of([*rows, *columns]).astype(np.float64)
        return np.clip(np.round(vectors[: len(rows)] @ vectors[len(rows) :].T, _DIGITS), 0.0, 1.0)

    @property
    def _options(self) -> TextSimilarityConfig:
        return cast(TextSimilarityConfig, self.config)


def _key(options: TextSimilarityConfig) -> str | None:
    """The key to send.

    Raises:
        ValueError: the variable that should hold it is not set.
    """
    if options.api_key is not None:
        return options.api_key.get_secret_value()
    variable = options.api_key_env or (None if options.api_base else "OPENAI_API_KEY")
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise ValueError(
            f"text_similarity takes its key from the environment variable {variable}, which is not set; set it, or "
            "name another one in api_key_env"
        )
    return os.environ[variable]
