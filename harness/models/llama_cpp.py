"""A GGUF model in this process, by llama.cpp. The only module that imports the runtime."""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dspy import lm15
from dspy.lm15 import Request, Response

from harness.errors import UsageError
from harness.models.config import ModelConfig, endpoint_digest
from harness.models.schema_bounds import UNKNOWN_ANSWERS, SchemaBounds, apply_bounds
from harness.models.weights import Weights

CONTEXT_TOKENS = 8192
THREADS = 1
"""Fixed, not the machine's core count: another number gives slightly different answers. One, because the runtime's
threads wait for each other by spinning: on two idle cores a second thread saves a third of the time, but beside busy
neighbours it made a call ten times slower (measured: 26 to 57 seconds against 3 to 4)."""

_LONGEST_SOCKET_PATH = 100


class LlamaRuntime:
    """One model file in memory, loaded at the first request, answering one at a time. Safe under threads and forks.

    At temperature 0 the same requests in the same order give the same answers; in another order a few tokens may
    differ, since a reused prompt is read in other portions. The runtime's own server is reachable by nobody: it binds
    a Unix socket in a private folder that is deleted before the first request.

    Args:
        weights: the file.
        n_ctx: tokens of prompt and answer together.
        n_threads: threads of the runtime.
    """

    def __init__(self, weights: Weights, *, n_ctx: int = CONTEXT_TOKENS, n_threads: int = THREADS) -> None:
        self.weights = weights
        self.n_ctx = n_ctx
        self.n_threads = n_threads
        self._lock = threading.Lock()
        self._server: Any = None
        self._inherited: list[Any] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget_server(weakref.ref(self)))

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """The OpenAI-shaped reply to an OpenAI-shaped request; an error is a reply with the key "error".

        Raises:
            ValueError: a request the runtime cannot parse.
            UsageError: the runtime is not installed or cannot read the file.
        """
        with self._lock:
            if self._server is None:
                self._server = _start(self.weights.path, self.n_ctx, self.n_threads)
            return self._server.handle_chat_completions(body)

    def close(self) -> None:
        """Free the model's memory; the next request loads it again."""
        with self._lock:
            self._server = None


class LlamaCppProvider:
    """A model of this process as a provider. Several may share one runtime.

    Args:
        model: the name people know it by.
        runtime: the model in memory.
        bounds: put into every schema sent; None bounds answers nothing is known of.

    See `engine.Provider` for the attributes.
    """

    host = ""
    concurrency = 1
    supports_response_schema = True
    supported_params = frozenset({"temperature", "max_tokens", "top_p", "stop", "seed", "response_format"})
    secrets: tuple[str, ...] = ()
    needs_probe = False

    def __init__(self, model: str, runtime: LlamaRuntime, *, bounds: SchemaBounds | None = None) -> None:
        self.model = model
        self.bounds = bounds or UNKNOWN_ANSWERS
        self._runtime = runtime
        self.endpoint = endpoint_digest(
            ModelConfig(model),
            weights=runtime.weights.sha256,
            n_ctx=runtime.n_ctx,
            n_threads=runtime.n_threads,
            n_parallel=self.concurrency,
            bounds=self.bounds,
        )

    def complete(self, request: Request) -> Response:
        """One answer, decoded under the request's JSON Schema where it has one.

        Raises:
            lm15.ContextLengthError: the prompt does not fit in the runtime's `n_ctx`.
            lm15.InvalidRequestError: a schema or setting llama.cpp cannot take.
            lm15.UnsupportedFeatureError: a message with anything but text.
            UsageError: the runtime is not installed or cannot read the file.
        """
        body = self._body(request)
        try:
            reply = self._runtime.chat(body)
        except ValueError as error:
            raise lm15.InvalidRequestError(" ".join(str(error).split())) from error
        if "error" in reply:
            raise _fault(reply["error"])
        return _response(request.model, reply)

    def give_up(self, setting: str) -> bool:
        """False: the runtime takes every setting."""
        return False

    def adopt(self, facts: Mapping[str, Any]) -> None:
        """Nothing to take over: all is known of the runtime."""

    def facts(self) -> dict[str, Any]:
        """Nothing had to be found out."""
        return {}

    def close(self) -> None:
        """Free the runtime's memory; the next call loads it again."""
        self._runtime.close()

    def _body(self, request: Request) -> dict[str, Any]:
        config = request.config
        messages = [] if request.system is None else [{"role": "system", "content": _text(request.system)}]
        messages += [{"role": message.role, "content": _text(message.parts)} for message in request.messages]
        body: dict[str, Any] = {
            "messages": messages,
            "cache_prompt": True,
            "temperature": 0.0 if config.temperature is None else config.temperature,
            "max_tokens": config.max_tokens,
            "top_p": config.top_p,
            "stop": list(config.stop) or None,
            "seed": config.seed,
            "response_format": self._format(config.response_format),
        }
        return {name: value for name, value in body.items() if value is not None}

    def _format(self, wanted: Any) -> dict[str, Any] | None:
        if wanted is None or wanted["type"] != "json_schema":
            return wanted
        schema = {"name": wanted.get("name", "answer"), "schema": apply_bounds(wanted["schema"], self.bounds)}
        return {"type": "json_schema", "json_schema": schema}


def _start(path: Path, n_ctx: int, n_threads: int) -> Any:
    try:
        xllamacpp: Any = importlib.import_module("xllamacpp")  # a compiled module without type stubs
    except ImportError:
        raise UsageError(
            "a local/ model needs the runtime xllamacpp: pip install 'dspy-judge-harness[embedded]'"
        ) from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = n_ctx
    parameters.n_parallel = 1
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = n_threads
        threads.poll = 0  # waiting threads sleep: with busy neighbours spinning costs a factor of two to three
    parameters.n_gpu_layers = 0
    parameters.cache_ram_mib = 0
    parameters.verbosity = 0
    parameters.warmup = False
    parameters.ui = False
    parameters.endpoint_slots = False
    folder = tempfile.mkdtemp(prefix="llm-")  # readable by this user only
    try:
        socket = os.path.join(folder, "s.sock")
        if len(socket.encode()) > _LONGEST_SOCKET_PATH:
            raise UsageError("the path of the temporary folder is too long for a socket: set TMPDIR to a shorter one")
        parameters.hostnames = [socket]
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        words = " ".join(str(error).split())
        raise UsageError(f"llama.cpp cannot load the weights {path}: {words or 'no reason given'}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    other = next((part for part in content if not isinstance(part, lm15.TextPart)), None)
    if other is not None:
        raise lm15.UnsupportedFeatureError(
            f"a local model reads text only, and the program sends a part {other.type!r}"
        )
    return "\n\n".join(part.text for part in content)


def _response(model: str, reply: dict[str, Any]) -> Response:
    choice = reply["choices"][0]
    usage = reply.get("usage", {})
    return Response(
        id=reply.get("id"),
        model=model,
        message=lm15.Message.assistant([lm15.TextPart(choice["message"].get("content") or "")]),
        finish_reason="length" if choice.get("finish_reason") == "length" else "stop",
        usage=lm15.Usage(
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            cache_read_tokens=usage.get("prompt_tokens_details", {}).get("cached_tokens"),
        ),
    )


def _fault(error: dict[str, Any]) -> lm15.LM15Error:
    words = " ".join(str(error.get("message", "")).split())
    if error.get("type") == "exceed_context_size_error":
        needed, room = error.get("n_prompt_tokens"), error.get("n_ctx")
        return lm15.ContextLengthError(f"the prompt has {needed} tokens and the context {room}")
    kind = lm15.ServerError if int(error.get("code", 500)) >= 500 else lm15.InvalidRequestError
    return kind(words, status=error.get("code"))


def _forget_server(reference: weakref.ref[LlamaRuntime]) -> Any:
    """In a forked child: the runtime's threads are gone and its lock may be held, so start anew.

    The inherited server is kept, not destroyed: its destructor would wait for threads that do not exist here.
    """

    def forget() -> None:
        runtime = reference()
        if runtime is not None:
            runtime._inherited.append(runtime._server)
            runtime._server = None
            runtime._lock = threading.Lock()

    return forget
