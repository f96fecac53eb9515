"""JudgeMetric: a judge, or a panel of several, as a metric."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from metrics.asking import RoleModel, role_lm
from metrics.evaluators.lm_evaluator import NoAnswerError
from metrics.inputs import predicted_in
from metrics.judge.aggregates import AGGREGATES, Aggregate, combined_verdict, mean_by_weight
from metrics.judge.inputs import holds_nothing, judge_inputs
from metrics.judge.rubric_judge import RubricJudge
from metrics.judge.score_map import ScoreMap, load_score_map
from metrics.judge.verdict import CriterionVerdict, Verdict
from metrics.nearest import nearest
from metrics.score import Metric, Score, config_version

Reliability = Literal["keep", "resample", "unscored"]
"""What becomes of a verdict whose confidence is below the judge's threshold: it counts; it is asked for anew, at most
`RESAMPLES` times; it leaves no score."""
RESAMPLES = 2

_LONGEST = 4_000


class JudgeMetric:
    """What one or several judges say of an extraction, from 0 to 1.

        overall = sum(weight * score) / sum(weight)     over the criteria that have a score
        value   = (overall - lowest) / (highest - lowest)

    Every criterion is a part; one that does not apply is none. What could not be read never counts: a criterion without
    a score is left out and named in the details, a sample likewise, and where a judge of the panel gave no readable
    answer (or under half of its samples) there is no score. The feedback holds the judge's reasons, the worst first.

    Args:
        judge: a RubricJudge, or several on the same rubric: a panel.
        weights: by criterion, in place of the rubric's.
        samples: answers of each judge.
        sample_temperature: at which they are drawn when there are several.
        aggregate: how the samples of a judge become one: see `aggregates.Aggregate`.
        panel: how the judges become one.
        panel_weights: of the judges, for `mean` and `vote`.
        reliability: see `Reliability`.
        score_map: a ScoreMap or the path of one, applied to the overall score.
        gate: a metric that is asked first; an extraction below `gate_at_least` scores 0 and no judge is asked.
        output_field: of the prediction; None takes its only one.
        inputs: fields of the example by the rubric's inputs.
        name: what reports call it; None takes the rubric's name.

    Raises:
        ValueError: settings that do not fit together; one sentence.

    >>> metric = JudgeMetric(RubricJudge("synthesis", RoleModel("judge", "m")), samples=3)
    >>> metric.name, dict(metric.model_calls({}))
    ('synthesis_judge', {'judge': 3})
    """

    def __init__(
        self,
        judge: RubricJudge | Sequence[RubricJudge],
        *,
        weights: Mapping[str, float] | None = None,
        samples: int = 1,
        sample_temperature: float = 1.0,
        aggregate: Aggregate = "mean",
        panel: Aggregate = "mean",
        panel_weights: Sequence[float] | None = None,
        reliability: Reliability = "keep",
        score_map: ScoreMap | str | Path | None = None,
        gate: Metric | None = None,
        gate_at_least: float = 1.0,
        output_field: str | None = None,
        inputs: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        self.judges = (judge,) if isinstance(judge, RubricJudge) else tuple(judge)
        _refuse_mixed(self.judges)
        self.rubric = self.judges[0].rubric
        self.weights = _weights(weights, self.rubric.criteria)
        self.samples = samples
        self.sample_temperature = sample_temperature
        self.aggregate: Aggregate = aggregate
        self.panel: Aggregate = panel
        self.panel_weights = None if panel_weights is None else tuple(panel_weights)
        self.reliability = reliability
        self.score_map = load_score_map(score_map) if isinstance(score_map, str | Path) else score_map
        self.gate, self.gate_at_least = gate, gate_at_least
        self.output_field = output_field
        self.inputs = dict(inputs or {})
        self._name = name or f"{self.rubric.name}_judge"
        self._replicate = 0
        self._refuse_nonsense()

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._name

    @property
    def version(self) -> str:
        """A digest of everything that can change a score; never a key."""
        settings = {
            "judges": [judge.version for judge in self.judges],
            "thresholds": [judge.confidence_threshold for judge in self.judges],
            "weights": self.weights,
            "samples": [self.samples, self.sample_temperature if self.samples > 1 else None],
            "aggregate": [self.aggregate, self.panel, self.panel_weights],
            "reliability": self.reliability,
            "score_map": None if self.score_map is None else self.score_map.model_dump(),
            "gate": None if self.gate is None else [self.gate.version, self.gate_at_least],
            "inputs": self.inputs,
        }
        return config_version("judge_metric", settings)

    def __call__(self, example: Any, prediction: Any) -> Score:
        """Judge the extraction in `prediction` against the example's source.

        Raises:
            ValueError: the example or the prediction lacks a field that is to be shown.
        """
        if self.gate is not None:
            passed = self.gate(example, prediction)
            if passed.value is None or passed.value < self.gate_at_least:
                return _stopped(self.gate, passed)
        extraction = predicted_in(prediction, self.output_field)
        try:
            is_nothing = holds_nothing(extraction)
        except ValueError as error:
            return Score.unscored(f"{self.name}: the extraction cannot be read: {error}")
        if is_nothing and self.rubric.empty == "zero":
            return Score(0.0, "nothing was extracted")
        shown = judge_inputs(self.rubric, example, extraction, self.inputs)
        try:
            verdicts = [self._judged(judge, shown) for judge in self.judges]
        except NoAnswerError as error:
            return Score.unscored(f"{self.name}: {error.sentence()}", details=error.details())
        return self.score_of(combined_verdict(verdicts, self.panel, self.panel_weights))

    def compare(self, expected: Any, predicted: Any) -> Score:
        """Not possible: a judge needs the source.

        Raises:
            NotImplementedError: always, as a composite expects of a metric that needs the example.
        """
        raise NotImplementedError(f"{self.name} needs the source of an extraction, not only the record")

    def score_of(self, verdict: Verdict) -> Score:
        """The Score of a verdict, live or recorded."""
        overall = mean_by_weight(verdict.scores, self.weights)
        parts = {
            name: self._part(name, one) for name, one in verdict.criteria.items() if one.status != "not_applicable"
        }
        details = _details(verdict, overall)
        feedback = _feedback(verdict)
        if overall is None:
            return Score.unscored(
                f"{self.name}: no criterion that counts has a score", feedback=feedback, parts=parts, details=details
            )
        certain = verdict.confidence_value
        details["reliable"] = certain is None or certain >= self.judges[0].confidence_threshold
        if not details["reliable"] and self.reliability == "unscored":
            sentence = f"{self.name}: the judge is not sure enough ({verdict.confidence})"
            return Score.unscored(sentence, feedback=feedback, parts=parts, details=details)
        if self.score_map is not None:
            details["mapped"] = overall = self.score_map(overall, *verdict.scale)
        return Score(self.rubric.value(overall), feedback, parts, details=details)

    def model_calls(self, expected: Any) -> Mapping[str, int]:
        """Calls by role that one score takes at most, answers asked for again not counted."""
        calls: dict[str, int] = {}
        for judge in self.judges:
            if isinstance(judge.lm, RoleModel):
                calls[judge.lm.role] = calls.get(judge.lm.role, 0) + self.samples
        return calls

    def bind(self, lms: Mapping[str, Any]) -> JudgeMetric:
        """The same metric, of the same version, with a run's LMs in its judges."""
        bound = copy.copy(self)
        bound.judges = tuple(
            judge.with_lm(role_lm(judge.lm, lms)) if isinstance(judge.lm, RoleModel) else judge for judge in self.judges
        )
        return bound

    def replicated(self, number: int) -> JudgeMetric:
        """The same metric whose judges are asked anew: replicate `number` of a repeated measurement."""
        other = copy.copy(self)
        other._replicate = number
        return other

    def _judged(self, judge: RubricJudge, shown: Mapping[str, str]) -> Verdict:
        """The samples of one judge as one verdict."""
        temperature = self.sample_temperature if self.samples > 1 else None
        given: list[Verdict] = []
        last: NoAnswerError | None = None
        for sample in range(self.samples):
            try:
                given.append(self._reliable(judge, shown, sample, temperature))
            except NoAnswerError as error:
                if error.kind != "unreadable":
                    raise
                last = error
        if last is not None and 2 * len(given) < self.samples:
            raise last
        return combined_verdict(given, self.aggregate)

    def _reliable(
        self, judge: RubricJudge, shown: Mapping[str, str], sample: int, temperature: float | None
    ) -> Verdict:
        verdict = self._asked(judge, shown, sample, temperature)
        if self.reliability != "resample":
            return verdict
        for again in range(1, RESAMPLES + 1):
            certain = verdict.confidence_value
            if certain is None or certain >= judge.confidence_threshold:
                break
            verdict = self._asked(judge, shown, sample + again * self.samples, self.sample_temperature)
        return verdict

    def _asked(self, judge: RubricJudge, shown: Mapping[str, str], sample: int, temperature: float | None) -> Verdict:
        import dspy  # the judge has it already; importing this module need not

        # Nothing of the program that is being measured is touched: not its trace, not its usage.
        with dspy.context(trace=[], usage_tracker=None, track_usage=False):
            return judge.verdict(shown, sample=sample, replicate=self._replicate, temperature=temperature)

    def _part(self, name: str, one: CriterionVerdict) -> Score:
        if one.score is None:
            return Score.unscored(f"{name}: {one.reason}", details={"said": one.said})
        return Score(self.rubric.value(one.score), one.reason, details={"score": one.score})

    def _refuse_nonsense(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples is 1 or more, got {self.samples}")
        if self.samples > 1 and not self.sample_temperature > 0:
            raise ValueError("several samples at temperature 0 are one and the same; raise sample_temperature")
        for key, value, known in (
            ("aggregate", self.aggregate, AGGREGATES),
            ("panel", self.panel, AGGREGATES),
            ("reliability", self.reliability, get_args(Reliability)),
        ):
            if value not in known:
                raise ValueError(f"{key} {value!r} is not known; {nearest(str(value), known)}")
        if self.panel_weights is not None:
            if len(self.panel_weights) != len(self.judges):
                raise ValueError(f"{len(self.panel_weights)} panel_weights for {len(self.judges)} judges")
            if self.panel not in ("mean", "vote") or min(self.panel_weights) < 0 or not any(self.panel_weights):
                raise ValueError("panel_weights are 0 or more, not all 0, and for panel: mean or vote")
        unknown = [name for name in self.inputs if name not in self.rubric.inputs]
        if unknown:
            raise ValueError(f"inputs: the rubric shows no {unknown[0]!r}, {nearest(unknown[0], self.rubric.inputs)}")


def _refuse_mixed(judges: Sequence[RubricJudge]) -> None:
    if not judges:
        raise ValueError("a judge metric needs a judge")
    other = next((judge for judge in judges if judge.rubric.digest != judges[0].rubric.digest), None)
    if other is not None:
        raise ValueError(
            f"the judges of a panel go by one rubric, not by {judges[0].rubric.label} and {other.rubric.label}"
        )


def _weights(given: Mapping[str, float] | None, criteria: Mapping[str, Any]) -> dict[str, float]:
    for name, weight in (given or {}).items():
        if name not in criteria:
            raise ValueError(f"weights: there is no criterion {name!r}, {nearest(name, criteria)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise ValueError(f"weights: that of {name} is a number, 0 or more, got {weight!r}")
    weights = {name: one.weight for name, one in criteria.items()} | {
        name: float(weight) for name, weight in (given or {}).items()
    }
    if not any(weights.values()):
        raise ValueError("weights: every weight is 0, so nothing would be measured")
    return weights


def _stopped(gate: Metric, passed: Score) -> Score:
    """What an extraction scores that does not pass the gate: no judge is asked about it."""
    details = {"gate": gate.name, **passed.details}
    if passed.value is None:
        return Score.unscored(
            f"{gate.name}: {passed.error}", feedback=passed.feedback, parts=passed.parts, details=details
        )
    return Score(
        0.0, f"{gate.name} gives {passed.value:.2f}: {passed.feedback}"[:_LONGEST], passed.parts, details=details
    )


def _details(verdict: Verdict, overall: float | None) -> dict[str, Any]:
    left_out = {name: one.status for name, one in verdict.criteria.items() if one.score is None}
    return {
        "overall": overall,
        "rubric": verdict.rubric,
        "confidence": verdict.confidence,
        "level": verdict.level,
        "temperature": verdict.temperature,
        "attempts": verdict.attempts,
        "raw": verdict.raw[:_LONGEST],
        **({"repaired": list(verdict.repairs)} if verdict.repairs else {}),
        **({"left_out": left_out} if left_out else {}),
        **({"flags": [name for name, is_set in verdict.flags.items() if is_set]} if verdict.flags else {}),
    }


def _feedback(verdict: Verdict) -> str:
    """The judge's reasons, the worst criterion first, then its lists."""
    low, high = verdict.scale
    lines = [f"{name}: no score ({one.reason})" for name, one in verdict.criteria.items() if one.status == "unreadable"]
    for name, score in sorted(verdict.scores.items(), key=lambda item: item[1]):
        if score < high:
            lines.append(f"{name}: {score:g} on the scale from {low:g} to {high:g}: {verdict.criteria[name].reason}")
    for name, texts in verdict.lists.items():
        if texts:
            lines.append(f"{name.replace('_', ' ')}: {'; '.join(texts)}")
    lines += [f"flag {name}" for name, is_set in verdict.flags.items() if is_set]
    return "\n".join(lines)[:_LONGEST] or "the judge finds nothing wrong"
