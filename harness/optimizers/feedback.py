"""What an optimizer that reads is told: a number, and in words what was wrong with the answer.

The words come from the Score: field by field what was expected and what came, the worst first. Of an answer that could
not be used they say how it failed, with the answer itself, because an instruction can often cure that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from harness.errors import ProgramFailure
from harness.failures import failure_of
from harness.optimizers.adapters import UNSCORED_FOR_OPTIMIZERS, MetricAdapter
from harness.scoring import Scoring
from metrics.score import Score
from programs.contract import RecordError

MOST_LINES = 20
MOST_CHARACTERS = 3000
LONGEST_LINE = 600
LONGEST_ANSWER = 800
"""Characters of an unreadable answer that are quoted: its beginning and its end."""

_SENTENCES = {
    "cut": "it was too long and was cut off before its end",
    "refusal": "the model refused to answer",
    "empty": "it was empty",
    "context_length": "the input was too long for the model",
    "bad_request": "the server refused the request",
    "unreadable_reply": "the server's reply was no answer",
    "error": "the server broke off with an error",
}
"""Of a model's failures only what an instruction may change; where the model is and what it is called stays here."""


class AsFeedback(MetricAdapter):
    """`metric(example, prediction, trace=None, pred_name=None, pred_trace=None) -> dspy.Prediction(score, feedback)`.

    For optimizers that let a model read the feedback. The call with a predictor's name asks again for the feedback of
    an answer that was scored before: it is answered from the scoring's memory and not counted. Every call returns a
    Prediction of its own, since optimizers write into it. Nothing is raised but a stop of the run: what cannot be
    scored is told as 0, and the feedback says so.

    Args:
        scoring: the metric, remembered.
        told: called after every counted metric call, for progress.

    Attributes:
        calls: answers that were asked for a score, failed ones included.
        failures: answers that could not be used, by kind.
    """

    def __init__(self, scoring: Scoring, told: Callable[[], None] = lambda: None) -> None:
        super().__init__(scoring, told)
        self.failures: Counter[str] = Counter()

    def __call__(
        self,
        example: Any,
        prediction: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> dspy.Prediction:
        counted = pred_name is None
        try:
            score = self._scoring.score(example, prediction)
        except RecordError as error:
            return self._told_failure(ProgramFailure(str(error), "invalid"), counted)
        except Exception as error:  # noqa: BLE001  # no prediction at all; a bug of the metric is no Exception
            return self._told_failure(error, counted)
        value = UNSCORED_FOR_OPTIMIZERS if score.value is None else score.value
        if counted:
            self._count(unscored=score.value is None)
        return dspy.Prediction(score=value, feedback=feedback_text(score))

    def failed(self, error: BaseException) -> dspy.Prediction:
        """The same for a program that raised `error` instead of answering; counted."""
        return self._told_failure(error, counted=True)

    def notes(self) -> list[str]:
        """How many answers counted as 0 although nothing was scored, and why."""
        notes = []
        if self.unscored:
            notes.append(f"{self.unscored} of {self.calls} metric calls while tuning gave no score and counted as 0")
        if self.failures:
            kinds = ", ".join(f"{times} {kind}" for kind, times in self.failures.most_common())
            failed = self.failures.total()
            notes.append(f"{failed} of {self.calls} answers while tuning could not be used and counted as 0 ({kinds})")
        return notes

    def _told_failure(self, error: BaseException, counted: bool) -> dspy.Prediction:
        kind = failure_kind(error)
        if counted:
            self._count(failure=kind)
        return dspy.Prediction(score=UNSCORED_FOR_OPTIMIZERS, feedback=failure_text(error))

    def _count(self, *, unscored: bool = False, failure: str | None = None) -> None:
        with self._lock:
            self.calls += 1
            self.unscored += unscored
            if failure is not None:
                self.failures[failure] += 1
        self._told()


def feedback_text(score: Score) -> str:
    """A Score in words: its value, its own feedback, then the parts that are not right, the worst first.

    At most 20 lines and 3,000 characters; what is left out is counted.

    >>> print(feedback_text(Score(0.5, "year: expected 1994, got 1949")))
    Score 0.50 of 1.
    year: expected 1994, got 1949
    >>> print(feedback_text(Score.unscored("the judge's answer could not be read")))
    No score: the judge's answer could not be read. It counts as 0 here, which says nothing about the answer.
    """
    if score.value is None:
        head = f"No score: {score.error}. It counts as 0 here, which says nothing about the answer."
        own = [] if score.feedback == score.error else score.feedback.splitlines()
    else:
        head, own = f"Score {score.value:.2f} of 1.", score.feedback.splitlines()
    lines = [line for line in own if line.strip()]
    return _capped(head, [*lines, *_part_lines(score, lines)])


def failure_text(error: BaseException) -> str:
    """How an answer failed, and the answer itself where there is one, shortened in its middle.

    >>> failure_text(ProgramFailure("task model 'm' at host: answer cut at max_tokens=9", "cut"))
    'The answer could not be used (cut): it was too long and was cut off before its end. It counts as 0.'
    """
    kind = failure_kind(error)
    sentence = (_SENTENCES.get(kind) or failure_of(error).sentence).rstrip(".")
    text = f"The answer could not be used ({kind}): {clipped(sentence, LONGEST_LINE)}. It counts as 0."
    answer = unreadable_answer(error)
    return f"{text}\nThe answer was:\n{clipped(answer.strip(), LONGEST_ANSWER)}" if answer else text


def failure_kind(error: BaseException) -> str:
    """The name of a failure: "cut", "refusal", "invalid" ..., or "program" for an error of the program's own.

    >>> failure_kind(KeyError("steps"))
    'program'
    """
    failure = failure_of(error)
    return failure.kind or failure.side


def unreadable_answer(error: BaseException) -> str | None:
    """The text that could not be parsed, when an exception or one behind it holds it."""
    return next((e.lm_response for e in _chain(error) if isinstance(e, AdapterParseError) and e.lm_response), None)


def clipped(text: str, longest: int) -> str:
    """`text` without its middle when it is longer than `longest` characters; says how much is left out.

    >>> clipped("a" * 50 + "z" * 50, 30)
    'aaaaaaaaaaaaaaaaaaaa ... (70 characters left out) ... zzzzzzzzzz'
    """
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail]} ... ({len(text) - longest:,} characters left out) ... {text[-tail:]}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _part_lines(score: Score, told: list[str]) -> Iterator[str]:
    """A line for every part that is not fully right, unless the score's own feedback speaks of its place."""
    places = {re.sub(r"\[\d+\]", "[*]", line.partition(":")[0]) for line in told}
    wrong = [(name, part) for name, part in score.parts.items() if part.value is None or part.value < 1.0]
    for name, part in sorted(wrong, key=lambda named: -1.0 if named[1].value is None else named[1].value):
        if name in places:
            continue
        said = "no score" if part.value is None else f"{part.value:.2f}"
        words = " ".join(part.feedback.split())
        yield f"{name}: {said}" + (f" ({words})" if words else "")


def _capped(head: str, lines: list[str]) -> str:
    kept: list[str] = []
    length = len(head)
    for line in lines[:MOST_LINES]:
        short = clipped(line, LONGEST_LINE)
        length += len(short) + 1
        if length > MOST_CHARACTERS:
            break
        kept.append(short)
    left = len(lines) - len(kept)
    return "\n".join([head, *kept, *([f"... and {left} more lines left out"] if left else [])])
