"""How often a prompt model gave nothing an optimizer could use, which DSPy only logs."""

from __future__ import annotations

import threading
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback


class PromptCalls(BaseCallback):
    """Counts the predictors that are run while it is attached, and those that raised. Safe under threads.

    Attributes:
        asked: questions asked.
        failed: questions without a usable answer.
        first: the first failure, in its own words.
        last: what the last question was answered, before an optimizer changed it; None when there was no answer.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.failed = 0
        self.first = ""
        self.last: Any | None = None
        self._lock = threading.Lock()
        self._open: set[str] = set()

    def notes(self) -> list[str]:
        """One sentence when anything failed."""
        if not self.failed:
            return []
        return [
            f"{self.failed} of {self.asked} questions to the prompt model had no usable answer, the first: {self.first}"
        ]

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """A question is asked."""
        if isinstance(instance, dspy.Predict):
            with self._lock:
                self.asked += 1
                self._open.add(call_id)

    def on_module_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """It is answered, or not."""
        with self._lock:
            if call_id not in self._open:
                return
            self._open.discard(call_id)
            self.last = outputs
            if isinstance(exception, Exception):
                self.failed += 1
                self.first = self.first or _first_line(exception)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
