"""Is the winner's gain on validation more than the metric's own noise?

A metric that says something else each time it is asked (a sampled judge, a random tie break) makes some candidate
look better than the program it started from, and the more candidates, the better the luckiest looks. So the metric is
applied again to answers it has scored before. When it agrees with itself nothing more is done, and nothing was paid:
the answers come from the store. When it does not, winner and baseline are scored anew and the winner has to win again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import dspy

from harness.optimizers.compiled import Compiled, Job
from harness.optimizers.tuning import on_validation
from metrics.statistics import FEWEST_GROUPS, PairedDifference, paired_difference

_AGAIN = (1, 2)
"""Fresh replicates; none of them chose the winner."""
_PERFECT = 0.95
"""Share of perfect answers above which there is hardly anything to learn from."""
_ROUNDING = 1e-9

Values = Sequence[float | None]


def above_noise(job: Job, compiled: Compiled) -> Compiled:
    """The same, or with the program as it was when the winner's gain lies within the metric's noise.

    Only for searches that chose among candidates on validation.

    Raises:
        RunStopped: the metric raised, a model is gone, a budget is spent.
    """
    recorder = job.recorder
    if not compiled.candidates or not recorder.examples:
        return compiled
    notes = list(compiled.notes)
    before = _values(job, job.program, "baseline") if recorder.knows_baseline else None
    if before is not None:
        notes += _signal(before, [tried.score for tried in recorder.tried if tried.full])
    if not recorder.is_baseline(compiled.program):
        known = job.program if before is not None else compiled.program
        first = before if before is not None else _values(job, known, "winner")
        again = _values(job, known, "the metric again", replicate=_AGAIN[0])
        if _differ(first, again):
            note, kept = _rescore(job, compiled.program, _sd_of_mean(first, again))
            notes.append(note)
            compiled = replace(compiled, program=compiled.program if kept else job.program)
    return replace(compiled, notes=notes)


def _rescore(job: Job, winner: dspy.Module, noise: float) -> tuple[str, bool]:
    """What fresh scores say, and whether the winner stays."""
    baseline_first, winner_first = _values(job, job.program, "baseline"), _values(job, winner, "winner")
    chosen_by = _mean(winner_first) - _mean(baseline_first)
    baseline, anew = (
        _average([_values(job, program, "fresh scores", replicate=number) for number in _AGAIN])
        for program in (job.program, winner)
    )
    groups = [example["group"] for example in job.recorder.examples]
    difference = paired_difference(baseline, anew, groups, seed=job.seed)
    measured = f"the metric gives the same answers means that vary with a standard deviation of {noise:.3f}"
    if difference is not None and _is_gain(difference):
        return f"{measured}; scored anew, the best candidate still gains {_told(difference)} on validation", True
    return (
        f"the best candidate's gain on validation, {chosen_by:+.2f}, lies within the metric's noise ({measured}; "
        f"scored anew, the gain is {_told(difference)}): the program is left as it was",
        False,
    )


def _values(job: Job, program: dspy.Module, name: str, *, replicate: int = 0) -> Values:
    rows = on_validation(job, program, name, replicate=replicate).rows
    return [row.score.value for row in rows]


def _signal(before: Values, scores: Sequence[float]) -> list[str]:
    """Whether validation can tell candidates apart at all."""
    known = [value for value in before if value is not None]
    if known and max(known) - min(known) <= _ROUNDING and max(scores) - min(scores) <= _ROUNDING:
        return [
            f"no signal: every one of {len(known)} validation examples scores {known[0]:.2f} whatever was tried, so "
            "there was nothing to choose by"
        ]
    perfect = sum(value >= 1 - _ROUNDING for value in known)
    if known and perfect >= _PERFECT * len(before):
        return [
            f"no signal: the program as it was gets {perfect} of {len(before)} validation examples perfectly right, so "
            "there was hardly anything to learn from"
        ]
    return []


def _differ(first: Values, again: Values) -> bool:
    return any(
        (one is None) != (other is None) or (one is not None and other is not None and abs(one - other) > _ROUNDING)
        for one, other in zip(first, again, strict=True)
    )


def _sd_of_mean(first: Values, again: Values) -> float:
    """Standard deviation of the mean over the examples that comes from the metric alone.

    Two scores of one answer differ by twice the variance of one, on average.
    """
    pairs = [(one or 0.0, other or 0.0) for one, other in zip(first, again, strict=True)]
    return math.sqrt(sum((one - other) ** 2 / 2 for one, other in pairs)) / len(pairs)


def _average(replicates: Sequence[Values]) -> list[float | None]:
    """Per example the mean of its scored replicates; None where there is none."""
    averages: list[float | None] = []
    for values in zip(*replicates, strict=True):
        known = [value for value in values if value is not None]
        averages.append(math.fsum(known) / len(known) if known else None)
    return averages


def _mean(values: Values) -> float:
    """As optimizers see it: what was not scored counts as 0."""
    return math.fsum(value or 0.0 for value in values) / len(values)


def _is_gain(difference: PairedDifference) -> bool:
    return (
        difference.interval is not None and difference.n_groups >= FEWEST_GROUPS and difference.interval[0] > _ROUNDING
    )


def _told(difference: PairedDifference | None) -> str:
    if difference is None:
        return "unknown, since nothing could be scored"
    if difference.interval is None or difference.n_groups < FEWEST_GROUPS:
        return f"{difference.mean:+.2f} over too few independent examples"
    low, high = difference.interval
    return f"{difference.mean:+.2f} (95% interval {low:+.2f} to {high:+.2f})"
