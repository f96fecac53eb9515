"""Texts to vectors: by a model on this machine, or by a server that speaks OpenAI's embeddings dialect."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from metrics.evaluators.embedding_models import LocatedModel, check_library, locate
from metrics.score import UnscoredError

Vectors = NDArray[np.float32]

OPENAI = "https://api.openai.com/v1"
_BATCH = 64
_TIMEOUT = 60.0
_RETRIES = 4
_LONGEST_REASON = 300


class Embedder(Protocol):
    """Gives each text a vector of length 1."""

    def identity(self) -> str:
        """What decides the vectors: equal identities give a text the same vector.

        Raises:
            ImportError: the model is not here.
        """
        ...

    def check(self) -> None:
        """Make sure that it can embed.

        Raises:
            ImportError, ValueError: it cannot; one sentence.
        """
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text. Called by one thread at a time.

        Raises:
            UnscoredError: it cannot be had now.
        """
        ...


class LocalEmbedder:
    """sentence-transformers on the processor, one thread: more of them only get in each other's way beside a run's own.

    N. Reimers, I. Gurevych, "Sentence-BERT", EMNLP 2019. A text longer than the model reads is cut there (256 word
    pieces for MiniLM).

    Raises:
        EmbeddingsMissingError: the library is not installed.
    """

    def __init__(self, model: str) -> None:
        check_library()
        self._name = model
        self._located: LocatedModel | None = None
        self._model: Any = None

    def identity(self) -> str:
        """The digest of the weights."""
        return f"sentence-transformers {self._place().sha256}"

    def check(self) -> None:
        """Find the weights and check them; they are loaded for the first text that is not known yet."""
        self._place()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """In batches of texts of about the same length."""
        torch: Any = importlib.import_module("torch")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return self._loaded().encode(
                list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False
            )
        finally:
            torch.set_num_threads(threads)

    def _place(self) -> LocatedModel:
        if self._located is None:
            self._located = locate(self._name)
        return self._located

    def _loaded(self) -> Any:
        if self._model is None:
            with _no_progress_bar():
                library: Any = importlib.import_module("sentence_transformers")
                folder = str(self._place().folder)
                self._model = library.SentenceTransformer(folder, device="cpu", local_files_only=True)
        return self._model


class EndpointEmbedder:
    """Any server with OpenAI's `POST /embeddings`.

    Args:
        model: its name there.
        api_base: the address, up to and with `/v1`; None is OpenAI's own.
        api_key: sent as the bearer; never shown.
    """

    def __init__(self, model: str, api_base: str | None, api_key: str | None) -> None:
        self._model, self._api_base, self._api_key = model, api_base or OPENAI, api_key
        self._client: Any = None

    def identity(self) -> str:
        """Address and model."""
        return f"openai {self._api_base.rstrip('/')} {self._model}"

    def check(self) -> None:
        """Embed one word: a wrong key, address or model is found before anything else is paid."""
        try:
            self.embed(["a"])
        except UnscoredError as error:
            raise ValueError(f"text_similarity: {error}") from error

    def embed(self, texts: Sequence[str]) -> Vectors:
        """In batches; what is asked too often or fails for a moment is tried again."""
        rows = [self._batch(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        if len({row.shape[1] for row in rows}) > 1:
            raise UnscoredError(self._sentence("its vectors differ in length"))
        return np.concatenate(rows)

    def _batch(self, texts: Sequence[str]) -> Vectors:
        import openai  # comes with dspy

        if self._client is None:
            self._client = openai.OpenAI(
                base_url=self._api_base, api_key=self._api_key or "none", max_retries=_RETRIES, timeout=_TIMEOUT
            )
        try:
            reply = self._client.embeddings.create(model=self._model, input=list(texts), encoding_format="float")
            ordered = sorted(reply.data, key=lambda item: item.index)
            vectors = np.array([item.embedding for item in ordered], dtype=np.float32)
        except openai.OpenAIError as error:
            raise UnscoredError(self._sentence(str(error))) from error
        except (AttributeError, TypeError, ValueError) as error:
            raise UnscoredError(self._sentence(f"its reply holds no vectors: {error}")) from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise UnscoredError(self._sentence(f"it gave {len(vectors)} vectors for {len(texts)} texts"))
        if [item.index for item in ordered] != list(range(len(texts))):
            raise UnscoredError(self._sentence("its vectors are not numbered by the texts"))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or (lengths == 0).any():
            raise UnscoredError(self._sentence("a vector holds no direction"))
        return vectors / lengths

    def _sentence(self, reason: str) -> str:
        reason = reason.replace(self._api_key, "***") if self._api_key else reason
        reason = " ".join(reason.split())[:_LONGEST_REASON]
        return f"the embeddings of {self._model!r} at {self._api_base} cannot be had: {reason}"


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Loading weights draws a bar of its own, which would tear the one of a run."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    was_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_shown:
            logging.enable_progress_bar()
