"""The engine behind every role's LM: store, then limits, then ledger, then the provider.

    request -> key -> in flight or in the store? -> sent, by `sending.Sender`, until it is answered -> store
                 ^                                                                       |
                 '----------- once more with twice the max_tokens when it is cut <-------'

What comes back out of `complete` is one of three things: a complete answer; ProgramFailure (an Exception) when this
request has no usable answer; RunStopped (a BaseException) when no request may follow. Nothing else leaves, so nothing
that is not an answer can become a score.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn, TypeVar

from dspy import lm15
from dspy.lm15 import Request, Response

from harness.errors import ENDPOINT_KINDS, ProgramFailure, RunStopped, StopReason, UsageError
from harness.models import answers, capabilities, faults
from harness.models.calls import Call, calls_of_this_context, last_key, next_sample, note_call, note_stop
from harness.models.ledger import Ledger, Price
from harness.models.provider import Endpoint, Provider
from harness.models.request_key import request_key, response_from_dict, response_to_dict
from harness.models.sending import ADAPTABLE, Fault, Question, Sender
from harness.models.store import AnswerStore

__all__ = ["AsyncRoleEngine", "Endpoint", "Provider", "RoleEngine", "calls_of_this_context"]

T = TypeVar("T")

UNUSABLE_IN_A_ROW = 3
"""Requests without a usable answer after which the endpoint may be in trouble: an account that ran dry in the middle of
a run says 400 to every request, and none of them may become a score. A request that was answered before is sent again
to find out: where the answers are stored and only the hopeless questions are asked, they come in a row too."""
REPLAYED = "replayed"
"""Key in `provider_data` of an answer nothing was sent for; holds the usage it had when it was paid."""
_TOO_MUCH = ("cut", "context_length", "bad_request")
"""How a request for a longer answer may end that leaves the answer cut."""


@dataclass(frozen=True, slots=True)
class _Answer:
    response: Response
    usd: float | None
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
        wait: Callable[[float], None] | None = None,
    ) -> None:
        self.role = role
        self.provider = endpoint.provider
        self._sender = Sender(role, endpoint, store=store, ledger=ledger, price=price, wait=wait or ledger.pause)
        self._store = store
        self._ledger = ledger
        self._is_free = price == (0.0, 0.0)
        self._seed = seed
        self._replicate = replicate
        self._lock = threading.Lock()
        self._has_answered = False
        self._answerable: Question | None = None
        self._unusable_in_a_row = 0

    def __copy__(self) -> RoleEngine:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> RoleEngine:
        # Optimizers deep-copy programs with everything bound to them; the locks and the model must stay one.
        return self

    def replicated(self, number: int) -> RoleEngine:
        """The same engine under the keys of another replicate."""
        other = object.__new__(RoleEngine)
        other.__dict__.update(self.__dict__, _replicate=number)
        return other

    @property
    def supports_response_schema(self) -> bool:
        """Whether the provider decodes under a JSON Schema, as far as is known by now."""
        return self.provider.supports_response_schema

    @property
    def supported_params(self) -> frozenset[str]:
        """OpenAI's names of the settings the provider heeds, as far as is known by now."""
        return self.provider.supported_params

    def prepare(self) -> None:
        """Find out how the endpoint can be asked for JSON, unless that is known, or an earlier run found it out.

        Raises:
            RunStopped: the model is not there, or a limit is reached.
        """
        self._or_stop(self._prepare)

    def complete(self, request: Request) -> Response:
        """The answer to `request`, paid for at most once.

        Raises:
            ProgramFailure: no usable answer for this request: cut, empty, refused, too long an input.
            RunStopped: the model is not there, a limit is reached, or the run was stopped before.
        """
        began = time.perf_counter()
        try:
            self._ledger.check()
            key, answer = self._or_stop(lambda: self._answer(request))
        except RunStopped as stop:
            note_stop(stop)
            raise
        usage = answer.response.usage
        if not answer.paid:
            self._ledger.replayed(self.role, usage, answer.usd)
        seconds = time.perf_counter() - began
        note_call(Call(self.role, key, not answer.paid, seconds, usage.input_tokens, usage.output_tokens))
        return answer.response if answer.paid else _replayed(answer.response)

    def note_unusable(self, kind: str, sentence: str) -> None:
        """Record that the answer given last cannot be used after all, such as one that does not parse."""
        self._ledger.unusable(self.role, kind)
        text = self._sender.scrubbed(f"{self._sender.who}: {sentence}")
        self._store.put_failure(last_key(self.role), self.provider.endpoint, kind, text)

    def _or_stop(self, work: Callable[[], T]) -> T:
        """What `work` gives; nothing but a failure of this request, or a stop, leaves."""
        try:
            return work()
        except (ProgramFailure, RunStopped):
            raise
        except UsageError as error:  # the store's file went away under the run
            self._stop(str(error))
        except Exception as error:  # noqa: BLE001  a bug of a provider must stop the run: dspy would score it 0
            words = faults.words(error, self.provider.secrets)
            self._stop(f"{self._sender.who}: {words}", traceback.format_exc())

    def _prepare(self) -> None:
        known = self._store.facts(self.provider.endpoint)
        if known is not None:
            self.provider.adopt(known)
        if self.provider.needs_probe:
            self.provider.adopt(asdict(capabilities.probe(self._probe)))
            self._store.put_facts(self.provider.endpoint, self.provider.facts())

    def _probe(self, request: Request) -> Response:
        """One request of a probe, which itself reads what the endpoint refuses about the form."""
        key = request_key(request, endpoint=self.provider.endpoint)
        try:
            return self._sender.reply(Question(key, request, ADAPTABLE - {"response_format"}))[0]
        except Fault as fault:
            if fault.error is not None and fault.name == "bad_request":
                raise fault.error from None
            self._stop(f"{self._sender.who}: {fault.sentence}")

    def _answer(self, request: Request) -> tuple[str, _Answer]:
        """The answer and its key: of the request itself, or of one for a longer answer when it was cut."""
        rollout, sample = next_sample()

        def key(request: Request) -> str:
            return request_key(
                request,
                endpoint=self.provider.endpoint,
                rollout=rollout,
                sample=sample,
                replicate=self._replicate,
                seed=self._seed,
            )

        question = Question(key(request), request)
        try:
            return question.key, self._once(question)
        except ProgramFailure as failure:
            limit = request.config.max_tokens
            if failure.kind != "cut" or limit is None:
                raise
        longer = replace(request, config=replace(request.config, max_tokens=2 * limit))
        # The model may not write that much, which is no reason to send every limit under another name from now on.
        second = Question(key(longer), longer, ADAPTABLE - {"max_tokens"}, longer=True)
        try:
            return second.key, self._once(second)
        except ProgramFailure as failure:
            if failure.kind not in _TOO_MUCH:
                raise
            refused = f"is refused: {str(failure).removeprefix(f'{self._sender.who}: ')}"
            then = f"{2 * limit} {'cuts it too' if failure.kind == 'cut' else refused}"
        cut = answers.cut_answer(self.role, limit)
        raise ProgramFailure(f"{self._sender.who}: {cut.sentence} ({then})", cut.kind)

    def _once(self, question: Question) -> _Answer:
        """The answer from the store or the endpoint, for all who ask the same at this moment."""
        known = self._stored(question)
        if known is not None:  # then there is nothing to wait for, nor to keep from others
            return known
        answer, led = self._store.once(
            question.key, lambda: self._stored(question) or self._fresh(question), waiting=self._ledger.check
        )
        return answer if led else replace(answer, paid=False)

    def _stored(self, question: Question) -> _Answer | None:
        stored = self._store.get(question.key)
        if stored is None:
            return None
        self._has_answered, self._answerable = True, question
        return _Answer(response_from_dict(stored.response), stored.usd, paid=False)

    def _fresh(self, question: Question) -> _Answer:
        if self._store.cut_answer(question.key) is not None:
            self._has_answered = True
            self._ledger.replayed(self.role, lm15.Usage(), 0.0 if self._is_free else None)
            cut = answers.cut_answer(self.role, question.request.config.max_tokens)
            raise ProgramFailure(f"{self._sender.who}: {cut.sentence}", cut.kind)
        try:
            response, usd = self._sender.answer(question)
        except Fault as fault:
            self._give_up(question, fault)
        with self._lock:
            self._has_answered, self._answerable, self._unusable_in_a_row = True, question, 0
        plain = response_to_dict(response)
        if faults.holds_secret(plain, self.provider.secrets):  # a server may know the key, and say it
            plain = faults.scrubbed(plain, self.provider.secrets)
            response = response_from_dict(plain)
        self._store.put(question.key, self.provider.endpoint, plain, usd)
        return _Answer(response, usd, paid=True)

    def _give_up(self, question: Question, fault: Fault) -> NoReturn:
        """Lose this request, or stop the run where the next one would fare no better."""
        sentence = self._sender.scrubbed(f"{self._sender.who}: {fault.sentence}")
        with self._lock:
            self._has_answered = self._has_answered or fault.error is None
            if fault.name in ENDPOINT_KINDS and not question.longer:
                self._unusable_in_a_row += 1
            in_a_row = self._unusable_in_a_row
        if not faults.concerns_one_request(fault.name, has_answered=self._has_answered):
            # One document may be too much for a server that answers every other one.
            if fault.name not in ENDPOINT_KINDS or not self._still_answers():
                self._stop(sentence)
            in_a_row = 0
        if fault.error is not None:
            self._sender.record(question, fault.name, fault.sentence)
        if in_a_row >= UNUSABLE_IN_A_ROW and not self._still_answers():
            self._stop(f"{sentence} ({in_a_row} such answers in a row)")
        raise ProgramFailure(sentence, fault.name) from None  # a provider's own error may quote the key in a traceback

    def _still_answers(self) -> bool:
        """Whether the endpoint answers what it answered before; one call tells."""
        if self._answerable is None or not self._sender.is_answered(self._answerable):
            return False
        with self._lock:
            self._unusable_in_a_row = 0
        return True

    def _stop(self, sentence: str, detail: str = "") -> NoReturn:
        sentence, detail = self._sender.scrubbed(sentence), self._sender.scrubbed(detail)
        raise self._ledger.stop(RunStopped(StopReason.MODEL, sentence, detail)) from None


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


def _replayed(response: Response) -> Response:
    """Nothing was spent now, so the usage is empty; what it once cost is kept beside."""
    usage = response.usage
    once = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return replace(response, usage=lm15.Usage(), provider_data={REPLAYED: once})
