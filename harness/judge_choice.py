"""Judges that a file names: their rubric, their model by its role, and how a metric is made of them.

```yaml
metric:
  rubric_judge: {rubric: invoice_rubric.yaml, samples: 3}
  synthesis_judge: {panel: [judge, judges.second], reliability: resample}
```
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import UsageError, nearest
from harness.spec import CardSpec, ExperimentSpec
from metrics.asking import RoleModel
from metrics.score import Metric

JUDGES: Mapping[str, str] = {
    "rubric_judge": "a judge by a rubric of your own",
    "synthesis_judge": "seven criteria of an extracted synthesis, against its source",
    "linking_judge": "four criteria of the links between plotted series and materials",
}
"""Name in a file to what it judges."""

_JUDGE = "judge"
_OF_JUDGE = ("enable_reasoning_traces", "confidence_threshold", "retry_temperatures")
_OURS = ("role", "panel", "panel_aggregate", "rubric", "gate", "score_map")


def judge_metric(
    name: str,
    arguments: Mapping[str, Any],
    spec: ExperimentSpec | CardSpec,
    where: str,
    *,
    output_field: str | None,
    source: str | None,
    gate: Callable[[Any], Metric],
) -> Metric:
    """The metric of one judge, or of a panel, whose models are still those of their roles.

    Args:
        name: one of JUDGES.
        arguments: what stands below it in the file.
        spec: the file, whose models are the roles.
        where: the place in the file, for the error.
        output_field: of the program.
        source: the program's input that holds the source; None leaves it to the metric.
        gate: makes the metric of a gate from `{NAME: {arguments}}`.

    Raises:
        UsageError: an argument or a role that is not there, a rubric that cannot be used.
    """
    from metrics.judge.metric import JudgeMetric

    given = {key: value for key, value in arguments.items() if value is not None}
    known = [
        key
        for key in (*_OURS, *_OF_JUDGE, *inspect.signature(JudgeMetric).parameters)
        if key != "judge" and (key != "rubric" or name == "rubric_judge")
    ]
    for key in given:
        if key not in known:
            raise UsageError(f"{where}: there is no argument {key!r}; {nearest(str(key), known)}")
    roles = _roles(given, where)
    of_judge = {key: given.pop(key) for key in _OF_JUDGE if key in given}
    rubric = _rubric(name, given.pop("rubric", None), spec.folder, where)
    # `panel` is a list of roles; how its judges become one is `panel_aggregate`.
    options = {key: value for key, value in given.items() if key not in ("role", "panel", "panel_aggregate")}
    options |= {"panel": given["panel_aggregate"]} if "panel_aggregate" in given else {}
    if "score_map" in options:
        options["score_map"] = spec.folder / str(options["score_map"])
    if "gate" in options:
        options |= _gate(options["gate"], gate, where)
    try:
        judges = [_judge(name, rubric, _model(role, spec, name, where), of_judge) for role in roles]
        if source is not None:
            shown = {field: source for field, one in judges[0].rubric.inputs.items() if one.origin == "source"}
            options["inputs"] = {**shown, **(options.get("inputs") or {})}
        return JudgeMetric(judges, **{"name": name, "output_field": output_field, **options})
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}") from error


def _roles(given: Mapping[str, Any], where: str) -> list[str]:
    panel = given.get("panel")
    if panel is not None:
        if "role" in given:
            raise UsageError(f"{where}: role names one judge and panel several; leave one of them out")
        if not isinstance(panel, list) or not panel or not all(isinstance(role, str) for role in panel):
            raise UsageError(f"{where}: panel is a list of roles, such as [judge, judges.second], got {panel!r}")
        return panel
    return [str(given.get("role", _JUDGE))]


def _model(role: str, spec: ExperimentSpec | CardSpec, name: str, where: str) -> RoleModel:
    models = spec.models.given()
    if role not in models:
        ask = f"models: {{{_JUDGE}: ...}}" if role == _JUDGE else f"models.{role}"
        there = nearest(role, [known for known in models if known != "task"])
        raise UsageError(f"{where}: {name} asks a model; name it: {ask}; {there}")
    return RoleModel(role, models[role].model)


def _rubric(name: str, given: Any, folder: Path, where: str) -> Any:
    from metrics.judge.rubric import load_rubric

    if name != "rubric_judge":
        return None
    if given is None:
        raise UsageError(f"{where}: a rubric_judge goes by a rubric: rubric: my_rubric.yaml, or synthesis, or linking")
    text = str(given)
    try:
        return load_rubric(folder / text if text.endswith((".yaml", ".yml")) else text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error


def _judge(name: str, rubric: Any, lm: RoleModel, options: Mapping[str, Any]) -> Any:
    from metrics.judge.linking import DspyLinkingJudge
    from metrics.judge.rubric_judge import RubricJudge
    from metrics.judge.synthesis import DspyGeneralSynthesisJudge

    if name == "rubric_judge":
        return RubricJudge(rubric, lm, **options)
    return (DspyGeneralSynthesisJudge if name == "synthesis_judge" else DspyLinkingJudge)(lm, **options)


def _gate(given: Any, make: Callable[[Any], Metric], where: str) -> dict[str, Any]:
    """`gate: {grounded: {...}, at_least: 0.5}` as a metric and its threshold."""
    if not isinstance(given, Mapping):
        return {"gate": make(given)}
    named = {key: value for key, value in given.items() if key != "at_least"}
    at_least = given.get("at_least", 1.0)
    if isinstance(at_least, bool) or not isinstance(at_least, int | float) or not 0 <= at_least <= 1:
        raise UsageError(f"{where}: gate: at_least is a number from 0 to 1, got {at_least!r}")
    return {"gate": make(named), "gate_at_least": float(at_least)}
