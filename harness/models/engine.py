"""The engine behind every role's LM: store, then limits, then ledger, then the provider.

    request -> key -> in flight or in the store? -> slot -> ledger.reserve -> provider -> ledger.settle -> store
                                                      ^----- retry after a wait -----'

What comes back out of `complete` is one of three things: a complete answer; ProgramFailure (an Exception) when this
request has no usable answer; RunStopped (a BaseException) when no request may follow. Nothing else leaves, so nothing
that is not an answer can become a score.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

from dspy import lm15
from dspy.lm15 import Request, Response
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from harness.errors import ProgramFailure, RunStopped, StopReason, UsageError
from harness.models import faults
from harness.models.calls import Call, calls_of_this_context, next_sample, note_call
from harness.models.ledger import Ledger, Price
from harness.models.limits import EndpointLimits
from harness.models.request_key import request_key, response_from_dict, response_to_dict, with_sampling_seed
from harness.models.store import AnswerStore

__all__ = ["ATTEMPTS", "AsyncRoleEngine", "Endpoint", "Provider", "RoleEngine", "calls_of_this_context"]

ATTEMPTS = 4
UNUSABLE_IN_A_ROW = 3
"""Answers without content, or refused as bad requests, after which the endpoint is taken to be in trouble: an account
that ran dry in the middle of a run says 400 to every request, and none of them may become a score."""
_FAILURES_OF_THE_QUESTION = ("length", "refusal", "context_length")
"""Kinds of failure that a working endpoint may well give again and again."""
REPLAYED = "replayed"
"""Key in `provider_data` of an answer nothing was sent for; holds the usage it had when it was paid."""


class Provider(Protocol):
    """One place that answers requests: a server, a model in this process, a script.

    Attributes:
        model: the name people know it by.
        host: where it is, for people; no credentials; empty when that is no place to look.
        endpoint: a digest of all that decides its answers (`config.endpoint_digest`).
        concurrency: requests it takes at once, at least 1.
        supports_response_schema: it decodes under a JSON Schema.
        supported_params: OpenAI's names of the settings it heeds; "seed" decides whether samples are seeded.
        secrets: values that must never be seen in a message.
    """

    model: str
    host: str
    endpoint: str
    concurrency: int
    supports_response_schema: bool
    supported_params: frozenset[str]
    secrets: tuple[str, ...]

    def complete(self, request: Request) -> Response:
        """One attempt. Raises dspy.lm15 errors; keeps no cache, retries nothing."""
        ...

    def close(self) -> None:
        """Let go of connections and memory."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider with the limits all its roles share."""

    provider: Provider
    limits: EndpointLimits


@dataclass(frozen=True, slots=True)
class _Answer:
    response: Response
    paid: bool


class RoleEngine:
    """A dspy engine for one role. Safe under threads.

    Args:
        role: the role's name in the file and in the ledger.
        endpoint: provider and limits.
        store: answers; also lets equal requests in flight wait for one.
        ledger: the run's accounts and its stop.
        price: USD per million tokens, None when unknown.
        seed: the run's seed, mixed into the seeds of sampled answers.
        replicate: the number of a whole repeated measurement; other than 0 never shares sampled or greedy answers.
        attempts: how often a request is tried while the failure may pass.
        wait: lets seconds pass between attempts; None waits for real, but not past a stop.
    """

    supports_function_calling = False
    supports_reasoning = False

    def __init__(
        self,
        role: str,
        endpoint: Endpoint,
        *,
        store: AnswerStore,
        ledger: Ledger,
        price: Price | None = None,
        seed: int = 0,
        replicate: int = 0,
        attempts: int = ATTEMPTS,
        wait: Callable[[float], None] | None = None,
    ) -> None:
        self.role = role
        self.provider = endpoint.provider
        self.supports_response_schema = endpoint.provider.supports_response_schema
        self.supported_params = endpoint.provider.supported_params
        self._limits = endpoint.limits
        self._store = store
        self._ledger = ledger
        self._price = price
        self._seed = seed
        self._replicate = replicate
        self._attempts = attempts
        self._wait = wait or ledger.pause
        self._has_answered = False
        self._unusable_in_a_row = 0

    def __copy__(self) -> RoleEngine:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> RoleEngine:
        # Optimizers deep-copy programs with everything bound to them; the locks and the model must stay one.
        return self

    def complete(self, request: Request) -> Response:
        """The answer to `request`, paid for at most once.

        Raises:
            ProgramFailure: no usable answer for this request: cut, empty, refused, too long an input.
            RunStopped: the model is not there, a limit is reached, or the run was stopped before.
        """
        self._ledger.check()
        began = time.perf_counter()
        try:
            key = self._key(request)
            answer, led = self._store.flights.do(key, lambda: self._stored_or_fresh(key, request))
        except (ProgramFailure, RunStopped):
            raise
        except UsageError as error:  # the store's file went away under the run
            self._stop(str(error))
        except Exception as error:  # noqa: BLE001  a bug of a provider must stop the run: dspy would score it 0
            self._stop(f"{self._who()}: {self._words(error)}", traceback.format_exc())
        paid = led and answer.paid
        if not paid:
            self._ledger.cached(self.role)
        usage = answer.response.usage
        note_call(Call(self.role, key, not paid, time.perf_counter() - began, usage.input_tokens, usage.output_tokens))
        return answer.response if paid else _replayed(answer.response)

    def _key(self, request: Request) -> str:
        rollout, sample = next_sample()
        return request_key(
            request,
            endpoint=self.provider.endpoint,
            rollout=rollout,
            sample=sample,
            replicate=self._replicate,
            seed=self._seed,
        )

    def _stored_or_fresh(self, key: str, request: Request) -> _Answer:
        stored = self._store.get(key)
        if stored is not None:
            self._has_answered = True
            return _Answer(response_from_dict(stored), paid=False)
        cut = self._store.cut_answer(key)
        if cut is not None:
            self._ledger.cached(self.role)
            raise ProgramFailure(cut)
        response = self._send_until_answered(key, request)
        self._refuse_incomplete(key, request, response)
        self._has_answered = True
        self._unusable_in_a_row = 0
        self._store.put(key, self.provider.endpoint, response_to_dict(response))
        return _Answer(response, paid=True)

    def _send_until_answered(self, key: str, request: Request) -> Response:
        if "seed" in self.supported_params:
            request = with_sampling_seed(request, key)
        retrying = Retrying(
            stop=stop_after_attempt(self._attempts),
            wait=_seconds_to_wait,
            retry=retry_if_exception(faults.is_retryable),
            sleep=self._wait,
            reraise=True,
        )
        try:
            return retrying(self._send, request)
        except lm15.LM15Error as error:
            self._give_up(key, error)

    def _send(self, request: Request) -> Response:
        with self._limits.slot():
            self._ledger.reserve(self.role)
            response = self.provider.complete(request)
        self._ledger.settle(self.role, response.usage, self._price)
        return response

    def _give_up(self, key: str, error: lm15.LM15Error) -> NoReturn:
        sentence = f"{self._who()}: {self._words(error)}"
        if faults.concerns_one_request(error, has_answered=self._has_answered):
            self._fail(key, error.code or "bad_request", sentence)
        if faults.is_retryable(error):
            sentence += f" ({self._attempts} attempts)"
        self._stop(sentence)

    def _refuse_incomplete(self, key: str, request: Request, response: Response) -> None:
        who = self._who()
        if response.finish_reason == "length":
            limit = request.config.max_tokens
            at = f"max_tokens={limit}" if limit else "the server's own limit"
            self._fail(key, "length", f"{who}: answer cut at {at}; raise models.{self.role}.max_tokens")
        refusal = " ".join(part.text for part in response.message.parts if isinstance(part, lm15.RefusalPart))
        if refusal or response.finish_reason == "content_filter":
            self._fail(key, "refusal", f"{who}: refused to answer{': ' + refusal if refusal else ''}")
        if response.finish_reason == "error":
            self._fail(key, "error", f"{who}: the server ended the answer with an error")
        calls = any(isinstance(part, lm15.ToolCallPart) for part in response.message.parts)
        if not calls and not (response.text or "").strip():
            self._fail(key, "empty", f"{who}: empty answer")

    def _fail(self, key: str, kind: str, sentence: str) -> NoReturn:
        sentence = faults.scrub(sentence, self.provider.secrets)
        self._store.put_failure(key, self.provider.endpoint, kind, sentence)
        if kind not in _FAILURES_OF_THE_QUESTION:
            self._unusable_in_a_row += 1
            if self._unusable_in_a_row >= UNUSABLE_IN_A_ROW:
                self._stop(f"{sentence} ({self._unusable_in_a_row} such answers in a row)")
        raise ProgramFailure(sentence) from None  # a provider's own error may quote the key in a traceback

    def _stop(self, sentence: str, detail: str = "") -> NoReturn:
        detail = faults.scrub(detail, self.provider.secrets)
        raise self._ledger.stop(RunStopped(StopReason.MODEL, sentence, detail)) from None

    def _who(self) -> str:
        at = f" at {self.provider.host}" if self.provider.host else ""
        return f"{self.role} model {self.provider.model!r}{at}"

    def _words(self, error: Exception) -> str:
        return faults.words(error, self.provider.secrets)


class AsyncRoleEngine:
    """The same engine for `acall`: each call in a thread, context variables carried along."""

    def __init__(self, engine: RoleEngine) -> None:
        self._engine = engine

    def __copy__(self) -> AsyncRoleEngine:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> AsyncRoleEngine:
        return self

    async def complete(self, request: Request) -> Response:
        """See RoleEngine.complete."""
        return await asyncio.to_thread(self._engine.complete, request)


def _seconds_to_wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return faults.seconds_to_wait(error, state.attempt_number) if error else 0.0


def _replayed(response: Response) -> Response:
    """Nothing was spent now, so the usage is empty; what it once cost is kept beside."""
    usage = response.usage
    once = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return replace(response, usage=lm15.Usage(), provider_data={REPLAYED: once})
