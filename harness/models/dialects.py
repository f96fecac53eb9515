"""How the providers word answers and errors, for the loopback server: one neutral answer, many wire forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer before it is worded for a dialect.

    Attributes:
        text: the answer; several texts are sent as several parts where the dialect has parts.
        thinking: the model's thoughts, which are no part of the answer.
        finish: why it ended: by itself, at the output limit, or because the model refused.
        refusal: what a model that refuses says.
        input_tokens, output_tokens: None leaves the usage out, as some servers do.
        cached_tokens: input tokens that were read from the provider's cache.
        thinking_tokens: tokens of the thoughts.
    """

    text: str | tuple[str, ...] = ""
    thinking: str | None = None
    finish: Finish = "stop"
    refusal: str = ""
    input_tokens: int | None = 10
    output_tokens: int | None = 5
    cached_tokens: int | None = None
    thinking_tokens: int | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of all parts."""
        return (self.text,) if isinstance(self.text, str) else self.text


@dataclass(frozen=True, slots=True)
class Fault:
    """An error before it is worded for a dialect.

    Attributes:
        status: HTTP status.
        message: the provider's words.
        code: its short name for the error.
        retry_after: seconds, sent as the header Retry-After.
    """

    status: int
    message: str
    code: str | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """A provider's way of wording things.

    Attributes:
        name: for people.
        root: the path its addresses end in.
        answer, fault: the JSON body of an answer and of an error.
    """

    name: str
    root: str
    answer: Callable[[Answer], dict[str, Any]]
    fault: Callable[[Fault], Any]


def _present(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value is not None}


def _chat(answer: Answer, thoughts: str | None) -> dict[str, Any]:
    several = len(answer.texts) > 1
    content: Any = [{"type": "text", "text": text} for text in answer.texts] if several else answer.texts[0]
    message: dict[str, Any] = {"role": "assistant", "content": None if answer.refusal else content}
    if answer.refusal:
        message["refusal"] = answer.refusal
    if answer.thinking and thoughts:
        message[thoughts] = answer.thinking
    finish = "content_filter" if answer.finish == "refusal" and not answer.refusal else answer.finish
    body: dict[str, Any] = {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 0,
        "model": "loopback",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop" if answer.refusal else finish}],
    }
    if answer.input_tokens is not None:
        body["usage"] = _chat_usage(answer)
    return body


def _chat_usage(answer: Answer) -> dict[str, Any]:
    read, written = answer.input_tokens or 0, answer.output_tokens or 0
    usage: dict[str, Any] = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    if answer.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": answer.cached_tokens}
    if answer.thinking_tokens is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": answer.thinking_tokens}
    return usage


def _openai(answer: Answer) -> dict[str, Any]:
    return _chat(answer, None)


def _openai_fault(fault: Fault) -> dict[str, Any]:
    return {"error": {"message": fault.message, "type": fault.code or "error", "code": fault.code}}


def _openrouter(answer: Answer) -> dict[str, Any]:
    return _chat(answer, "reasoning") | {"provider": "Somebody"}


def _openrouter_fault(fault: Fault) -> dict[str, Any]:
    raw = {"raw": fault.message, "provider_name": "Somebody"}
    return {"error": {"message": "Provider returned error", "code": fault.status, "metadata": raw}, "user_id": "u"}


def _ollama(answer: Answer) -> dict[str, Any]:
    return _chat(answer, "reasoning") | {"system_fingerprint": "fp_ollama"}


def _ollama_fault(fault: Fault) -> dict[str, Any]:
    return {"error": fault.message}


def _vllm(answer: Answer) -> dict[str, Any]:
    return _chat(answer, "reasoning_content") | {"prompt_logprobs": None}


def _vllm_fault(fault: Fault) -> dict[str, Any]:
    return {"object": "error", "message": fault.message, "type": "BadRequestError", "param": None, "code": fault.status}


def _llama_server(answer: Answer) -> dict[str, Any]:
    return _chat(answer, "reasoning_content") | {"timings": {"predicted_n": answer.output_tokens}}


def _llama_server_fault(fault: Fault) -> dict[str, Any]:
    return {"error": {"code": fault.status, "message": fault.message, "type": fault.code or "invalid_request_error"}}


def _fastapi_fault(fault: Fault) -> dict[str, Any]:
    return {"detail": fault.message}


def _anthropic(answer: Answer) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.thinking:
        content.append({"type": "thinking", "thinking": answer.thinking, "signature": "c2ln"})
    said = (answer.refusal,) if answer.refusal else answer.texts
    content += [{"type": "text", "text": text} for text in said if text]
    usage = {
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "cache_read_input_tokens": answer.cached_tokens,
    }
    return _present(
        {
            "id": "msg_loopback",
            "type": "message",
            "role": "assistant",
            "model": "loopback",
            "content": content,
            "stop_reason": {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}[answer.finish],
            "usage": None if answer.input_tokens is None else _present(usage),
        }
    )


def _anthropic_fault(fault: Fault) -> dict[str, Any]:
    usual = {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    kind = fault.code or usual.get(fault.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": fault.message}, "request_id": "req_1"}


def _gemini(answer: Answer) -> dict[str, Any]:
    if answer.finish == "refusal":
        candidate: dict[str, Any] = {"finishReason": "SAFETY", "finishMessage": answer.refusal}
    else:
        parts: list[dict[str, Any]] = [{"text": answer.thinking, "thought": True}] if answer.thinking else []
        parts += [{"text": text} for text in answer.texts if text]
        finish = {"stop": "STOP", "length": "MAX_TOKENS"}[answer.finish]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish}
    usage = {
        "promptTokenCount": answer.input_tokens,
        "candidatesTokenCount": answer.output_tokens,
        "cachedContentTokenCount": answer.cached_tokens,
        "thoughtsTokenCount": answer.thinking_tokens,
    }
    body: dict[str, Any] = {"candidates": [{**candidate, "index": 0}], "modelVersion": "loopback"}
    return body if answer.input_tokens is None else body | {"usageMetadata": _present(usage)}


def _gemini_fault(fault: Fault) -> dict[str, Any]:
    usual = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        503: "UNAVAILABLE",
    }
    return {
        "error": {
            "code": fault.status,
            "message": fault.message,
            "status": fault.code or usual.get(fault.status, "INTERNAL"),
        }
    }


OPENAI = Dialect("OpenAI", "/v1", _openai, _openai_fault)
OPENROUTER = Dialect("OpenRouter", "/api/v1", _openrouter, _openrouter_fault)
OLLAMA = Dialect("Ollama", "/v1", _ollama, _ollama_fault)
VLLM = Dialect("vLLM", "/v1", _vllm, _vllm_fault)
LLAMA_SERVER = Dialect("llama.cpp server", "/v1", _llama_server, _llama_server_fault)
FASTAPI = Dialect("a server that words errors as FastAPI does", "/v1", _openai, _fastapi_fault)
ANTHROPIC = Dialect("Anthropic", "/v1", _anthropic, _anthropic_fault)
GEMINI = Dialect("Gemini", "/v1beta", _gemini, _gemini_fault)
CHAT_DIALECTS = (OPENAI, OPENROUTER, OLLAMA, VLLM, LLAMA_SERVER, FASTAPI)
"""Servers that speak OpenAI's chat dialect, each with its own small differences."""
DIALECTS = (*CHAT_DIALECTS, ANTHROPIC, GEMINI)
