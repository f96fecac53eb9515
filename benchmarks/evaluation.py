"""What the evaluation loop costs beside dspy's own, on a model that answers at once: ratios, measured side by side.

Run it with `make bench`. Each way measures the same program on the same examples with the same metric, five times in
turn; the medians and their ratios are printed and written to mlruns/benchmarks/evaluation.json.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dspy

from harness.evaluation import Measure, Runtime, evaluate
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, build_role_lm
from harness.models.scripted import ScriptedProvider
from harness.models.store import AnswerStore
from harness.progress import SilentProgress
from harness.scoring import Scoring
from metrics import RecordMetric
from programs import SchemaExtraction, output_contract

EXAMPLES, ROUNDS = 200, 5
ANSWER = '{"record": {"vendor": "Acme", "total": 3.0}}'
SCHEMA = {"type": "object", "properties": {"vendor": {"type": "string"}, "total": {"type": "number"}}}


def main() -> None:
    """Measure, print, write."""
    program = SchemaExtraction(SCHEMA)
    contract = output_contract(program)
    metric = RecordMetric(output_field=contract.field)
    expected = {"vendor": "Acme", "total": 4.0}
    examples = [
        dspy.Example(id=str(n), group=None, expected=expected, text=f"bill {n}").with_inputs("text")
        for n in range(EXAMPLES)
    ]

    def as_float(example: dspy.Example, prediction: dspy.Prediction) -> float:
        return metric(example, prediction).as_float()

    def ours(store: AnswerStore, ledger: Ledger, lm: dspy.LM) -> None:
        measure = Measure(Scoring(metric, contract, ledger.stop), {}, contract)
        runtime = Runtime(lm, dspy.JSONAdapter(), 1, ledger.stop)
        evaluate(program, examples, name="x", split="x", measure=measure, runtime=runtime, progress=SilentProgress())

    def theirs(store: AnswerStore, ledger: Ledger, lm: dspy.LM) -> None:
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter(), disable_history=True):
            dspy.Evaluate(devset=examples, metric=as_float, num_threads=1)(program)

    seconds: dict[str, list[float]] = {"harness, fresh": [], "harness, replayed": [], "dspy.Evaluate": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            provider = ScriptedProvider(lambda _: ANSWER)
            store, ledger = AnswerStore(Path(folder) / f"{number}.db"), Ledger()
            lm = build_role_lm(
                "task",
                ModelConfig(provider.model),
                endpoints=Endpoints(environ={}, providers={provider.model: provider}),
                store=store,
                ledger=ledger,
            )
            plain = dspy.LM("scripted/plain", engine=_Bare(provider), cache=False, num_retries=0, temperature=0.0)
            for name, way, model in (
                ("harness, fresh", ours, lm),
                ("harness, replayed", ours, lm),
                ("dspy.Evaluate", theirs, plain),
            ):
                seconds[name].append(_timed(lambda way=way, model=model: way(store, ledger, model)))  # noqa: B023
            store.close()
    _report(seconds)


class _Bare:
    """The scripted model as a dspy engine without store, ledger or limits."""

    supports_function_calling = supports_reasoning = False

    def __init__(self, provider: ScriptedProvider) -> None:
        self.complete = provider.complete
        self.supports_response_schema = provider.supports_response_schema
        self.supported_params = provider.supported_params

    def __deepcopy__(self, memo: dict[int, object]) -> _Bare:
        return self


def _timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _report(seconds: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(times) / EXAMPLES * 1000 for name, times in seconds.items()}
    base = medians["dspy.Evaluate"]
    document = {
        name: {"ms_per_example": round(value, 3), "ratio": round(value / base, 2)} for name, value in medians.items()
    }
    for name, row in document.items():
        print(f"{name:20} {row['ms_per_example']:8.3f} ms per example   {row['ratio']:5.2f} x dspy.Evaluate")
    target = Path("mlruns") / "benchmarks" / "evaluation.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written to {target}")


if __name__ == "__main__":
    main()
