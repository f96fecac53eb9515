"""One role's requests on their way: under the endpoint's limits, booked in the ledger, sent again while that may help.

slot -> ledger.reserve -> provider -> ledger.settle -> usable?
 ^------ after a wait, or without a refused setting -----'
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from dspy import lm15
from dspy.lm15 import Request, Response
from tenacity import RetryCallState, Retrying, retry_if_exception

from harness.models import answers, faults
from harness.models.calls import Call, note_call, note_sending
from harness.models.ledger import Ledger, Price
from harness.models.limits import Slot
from harness.models.provider import Endpoint
from harness.models.request_key import with_sampling_seed
from harness.models.store import AnswerStore

ADAPTABLE = frozenset({"temperature", "max_tokens", "seed", "response_format"})
"""Settings a request may be sent without, or otherwise, when the endpoint refuses them."""
_STEPS_DOWN = {"response_format": 2}
"""How often one request may be changed for one setting: from a schema to some JSON to none; any other setting once."""

Sent = tuple[Response, float | None]
"""A response and what it cost in USD, None unknown."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request under its key.

    Attributes:
        key: its name in the store.
        request: as it was asked.
        adaptable: the settings that may be changed when the endpoint refuses them.
        longer: the second try of a cut answer, which says nothing of the endpoint when it is refused.
    """

    key: str
    request: Request
    adaptable: frozenset[str] = ADAPTABLE
    longer: bool = False


class Fault(Exception):
    """An attempt without a usable answer.

    Attributes:
        name: see `faults.fault_name`; or the kind of an answer that cannot be used.
        sentence: what happened, in the provider's words, without secrets.
        request: what was sent.
        error: what the provider raised; None when it answered.
        is_answered_otherwise: the provider can send it without what was refused.
    """

    def __init__(self, name: str, sentence: str, request: Request, error: lm15.LM15Error | None = None) -> None:
        super().__init__(sentence)
        self.name = name
        self.sentence = sentence
        self.request = request
        self.error = error
        self.is_answered_otherwise = False


class Sender:
    """Sends the requests of one role to one endpoint. Safe under threads.

    Args:
        role: the role's name in the ledger.
        endpoint: provider and limits.
        store: where answers that cannot be used are recorded, and what the endpoint refuses.
        ledger: the run's accounts.
        price: USD per million tokens, None when unknown.
        wait: lets seconds pass; may come back early when the run is stopped.

    Attributes:
        who: role, model and place, for sentences.
    """

    def __init__(
        self,
        role: str,
        endpoint: Endpoint,
        *,
        store: AnswerStore,
        ledger: Ledger,
        price: Price | None,
        wait: Callable[[float], None],
    ) -> None:
        self._role = role
        self._provider = endpoint.provider
        self._limits = endpoint.limits
        self._store = store
        self._ledger = ledger
        self._price = price
        self._wait = wait
        at = f" at {endpoint.provider.host}" if endpoint.provider.host else ""
        self.who = f"{role} model {endpoint.provider.model!r}{at}"

    def answer(self, question: Question) -> Sent:
        """A usable answer in its one shape.

        Raises:
            Fault: that of the last attempt, when no other is worth it.
            RunStopped: a limit is reached, or the run was stopped.
        """
        return self._tried(question, self._usable)

    def reply(self, question: Question) -> Sent:
        """Whatever the endpoint answers, cut and empty answers too. Raises as `answer`."""
        return self._tried(question, self._sent)

    def is_answered(self, question: Question) -> bool:
        """Whether one attempt gives a usable answer."""
        try:
            self._usable(question)
        except Fault:
            return False
        return True

    def record(self, question: Question, kind: str, sentence: str) -> None:
        """Keep why a request got no usable answer."""
        text = self.scrubbed(f"{self.who}: {sentence}")
        self._store.put_failure(question.key, self._provider.endpoint, kind, text)

    def scrubbed(self, text: str) -> str:
        """`text` without the provider's secrets."""
        return faults.scrub(text, self._provider.secrets)

    def _tried(self, question: Question, attempt: Callable[[Question], Sent]) -> Sent:
        met: Counter[str] = Counter()
        given_up: Counter[str] = Counter()

        def is_worth_another(fault: BaseException) -> bool:
            if not isinstance(fault, Fault):
                return False
            fault.is_answered_otherwise = self._does_without(fault, question, given_up)
            if fault.is_answered_otherwise:
                return True
            met[fault.name] += 1
            too_large = getattr(fault.error, "provider_code", None) == "reply_too_large"  # the next would be, too
            if not too_large and met[fault.name] < faults.attempts(fault.name, has_answered=self._limits.has_answered):
                return True
            if met[fault.name] > 1:
                fault.sentence += f" ({met.total()} attempts)"
            return False

        def seconds_to_wait(state: RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome else None
            # After a 429 the whole endpoint waits, and its slots see to that.
            if not isinstance(fault, Fault) or fault.is_answered_otherwise or fault.name == "rate_limit":
                return 0.0
            return faults.seconds_to_wait(fault.error, met.total(), question.key)

        retrying = Retrying(
            retry=retry_if_exception(is_worth_another), wait=seconds_to_wait, sleep=self._sleep, reraise=True
        )
        note_sending()
        with self._limits.whole_request(self._ledger.check):
            return retrying(attempt, question)

    def _sleep(self, seconds: float) -> None:
        if seconds:
            self._wait(seconds)

    def _does_without(self, fault: Fault, question: Question, given_up: Counter[str]) -> bool:
        """Whether the provider can send the request without the setting that was refused."""
        setting = faults.refused_setting(fault.error, fault.request)
        if setting is None or setting not in question.adaptable or given_up[setting] >= _STEPS_DOWN.get(setting, 1):
            return False
        given_up[setting] += 1
        if not self._provider.give_up(setting):
            return False
        self._store.put_facts(self._provider.endpoint, self._provider.facts())
        return True

    def _usable(self, question: Question) -> Sent:
        began = time.perf_counter()
        response, usd = self._sent(question)
        response = answers.normalised(response)
        trouble = answers.unusable(response, role=self._role, max_tokens=question.request.config.max_tokens)
        if trouble is None:
            return response, usd
        self._ledger.unusable(self._role, trouble.kind)
        self.record(question, trouble.kind, trouble.sentence)
        usage, seconds = response.usage, time.perf_counter() - began
        note_call(Call(self._role, question.key, False, seconds, usage.input_tokens, usage.output_tokens))
        raise Fault(trouble.kind, trouble.sentence, question.request)

    def _sent(self, question: Question) -> Sent:
        """One attempt: sent under the limits, booked whatever comes back."""
        request = question.request
        if "seed" in self._provider.supported_params:
            request = with_sampling_seed(request, question.key)
        with self._limits.slot(wait=self._wait, waiting=self._ledger.check) as slot:
            self._ledger.reserve(self._role)
            began = time.perf_counter()
            try:
                response = self._provider.complete(request)
            except lm15.LM15Error as error:
                raise self._fault(error, request, slot) from None
            except BaseException:
                self._ledger.attempt_failed(self._role, "error")
                raise
            slot.answered()
            usd = self._ledger.settle(self._role, response.usage, self._price, time.perf_counter() - began)
        return response, usd

    def _fault(self, error: lm15.LM15Error, request: Request, slot: Slot) -> Fault:
        name = faults.fault_name(error)
        self._ledger.attempt_failed(self._role, name)
        if name == "rate_limit":
            slot.refused(faults.server_hint(error))
        return Fault(name, faults.words(error, self._provider.secrets), request, error)
