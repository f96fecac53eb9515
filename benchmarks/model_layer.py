"""What the model layer costs: a call, a replayed call, and a second identical evaluation that sends nothing.

Run it with `make bench`. A call is timed in turn three ways against a server on this machine that answers at once: the
provider's own client alone, a plain dspy.LM on that client, and a role's LM with its answer store on the local disk;
then the role's LM once more, replayed. The medians and the differences are printed and written to
mlruns/benchmarks/model_layer.json.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import dspy
from dspy import lm15

from harness.evaluation import Measure, Runtime, evaluate
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.prompt import prompt_adapter
from harness.models.remote.dspy_provider import DspyProvider
from harness.models.roles import Endpoints, build_role_lm
from harness.models.scripted import ScriptedProvider
from harness.models.store import AnswerStore
from harness.progress import SilentProgress
from harness.scoring import Scoring
from metrics import RecordMetric
from programs import SchemaExtraction, output_contract

CLIENT, PLAIN, ROLE = "the provider's own client", "a plain dspy.LM on it", "the role's LM"
REPLAYED, ABOVE = "the role's LM, replayed", "the role's LM above the client"
CALLS, WARM_UP = 400, 20
EXAMPLES, THREADS = 1000, 8
ANSWERS = {
    "compact": '{"vendor": "Acme", "total": 3.0}',
    "json": '{"record": {"vendor": "Acme", "total": 3.0}}',
}
SCHEMA = {"type": "object", "properties": {"vendor": {"type": "string"}, "total": {"type": "number"}}}
OVERHEAD_GOAL, EVALUATION_GOAL = 1.0, 2.0
"""Milliseconds a call may cost above the provider's own client; seconds a replayed evaluation may take."""


def main() -> None:
    """Measure, print, write."""
    with tempfile.TemporaryDirectory(dir=_local_disk()) as folder:
        document: dict[str, dict[str, float | int]] = {"call": _calls(Path(folder))}
        for adapter in ANSWERS:
            document[f"second evaluation, {adapter} prompts"] = _evaluations(Path(folder), adapter)
    for part, figures in document.items():
        print(part)
        for name, value in figures.items():
            print(f"  {name:58} {value:8.3f}" if isinstance(value, float) else f"  {name:58} {value:8}")
    target = Path("mlruns") / "benchmarks" / "model_layer.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written to {target}")


def _local_disk() -> Path:
    """Where a run's own store would be; a temporary folder may be memory."""
    folder = Path("mlruns") / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _calls(folder: Path) -> dict[str, float | int]:
    """Milliseconds per call, the ways in turn and in changing order, so that whatever else happens falls on all."""
    with _server() as api_base, Endpoints({}) as endpoints, closing(AnswerStore(folder / "calls.db")) as store:
        config = ModelConfig("openai/loopback", api_base=api_base)
        provider = DspyProvider("task", config, {})
        bare = dspy.LM("loopback/plain", engine=_Bare(provider), cache=False, num_retries=0, temperature=0.0)
        lm = build_role_lm("task", config, endpoints=endpoints, store=store, ledger=Ledger())
        ways: list[tuple[str, Callable[[str], object]]] = [
            (CLIENT, lambda text: provider.complete(_request(text))),
            (PLAIN, bare),
            (ROLE, lm),
        ]
        wall: dict[str, list[float]] = {name: [] for name in (CLIENT, PLAIN, ROLE, REPLAYED)}
        work: dict[str, list[float]] = {name: [] for name in wall}
        with dspy.context(disable_history=True):
            for number in range(CALLS + WARM_UP):
                ways.append(ways.pop(0))
                for name, way in (*ways, (REPLAYED, lm)):
                    started, worked = time.perf_counter(), time.thread_time()
                    way(f"bill {number}")
                    wall[name].append(1000 * (time.perf_counter() - started))
                    work[name].append(1000 * (time.thread_time() - worked))
        provider.close()
    return (
        _medians("ms", wall) | _medians("ms of processor time", work) | {f"goal: ms, {ABOVE}, at most": OVERHEAD_GOAL}
    )


def _medians(unit: str, times: dict[str, list[float]]) -> dict[str, float | int]:
    medians = {name: statistics.median(values[WARM_UP:]) for name, values in times.items()}
    medians[ABOVE] = medians[ROLE] - medians[CLIENT]
    return {f"{unit}, {name}": round(value, 3) for name, value in medians.items()}


@contextmanager
def _server() -> Iterator[str]:
    """A server in a process of its own: in this one it would take turns with the caller."""
    program = f"""
import sys
from harness.models.loopback import LoopbackServer
with LoopbackServer([{ANSWERS["json"]!r}]) as server:
    print(server.api_base, flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        api_base = process.stdout.readline().strip()
        if not api_base:
            raise RuntimeError("the server did not start")
        yield api_base
        process.communicate("")


def _request(text: str) -> lm15.Request:
    config = lm15.Config(temperature=0.0, max_tokens=512)
    return lm15.Request(model="openai/loopback", messages=(lm15.Message.user(text),), config=config)


class _Bare:
    """A provider as a dspy engine without store, ledger or limits."""

    supports_function_calling = supports_reasoning = False

    def __init__(self, provider: DspyProvider) -> None:
        self.complete = provider.complete
        self.supports_response_schema = provider.supports_response_schema
        self.supported_params = provider.supported_params


def _evaluations(folder: Path, adapter: str) -> dict[str, float | int]:
    """The same evaluation twice, the second time as another process would: store, ledger and LM opened anew."""
    program = SchemaExtraction(SCHEMA)
    contract = output_contract(program)
    metric = RecordMetric(output_field=contract.field)
    examples = [
        dspy.Example(id=str(n), group=None, expected={"vendor": "Acme", "total": 4.0}, text=f"bill {n}").with_inputs(
            "text"
        )
        for n in range(EXAMPLES)
    ]
    provider = ScriptedProvider(lambda _: ANSWERS[adapter], concurrency=THREADS)

    def once() -> tuple[float, float, int, Any]:
        before, ledger = len(provider.requests), Ledger()
        with (
            closing(AnswerStore(folder / f"{adapter}.db")) as store,
            Endpoints({}, {provider.model: provider}) as endpoints,
        ):
            lm = build_role_lm("task", ModelConfig(provider.model), endpoints=endpoints, store=store, ledger=ledger)
            measure = Measure(Scoring(metric, contract, ledger.stop), {}, contract)
            runtime = Runtime(lm, prompt_adapter(adapter), THREADS, ledger.stop)
            started, worked = time.perf_counter(), time.process_time()
            result = evaluate(
                program, examples, name="x", split="x", measure=measure, runtime=runtime, progress=SilentProgress()
            )
            seconds, worked = time.perf_counter() - started, time.process_time() - worked
        return seconds, worked, len(provider.requests) - before, [row.score.value for row in result.rows]

    first, _, sent_first, scores = once()
    second, worked, sent_second, same_scores = once()
    return {
        "examples": EXAMPLES,
        "requests sent the first time": sent_first,
        "requests sent the second time": sent_second,
        "scores that differ": sum(a != b for a, b in zip(scores, same_scores, strict=True)),
        "seconds, first": round(first, 3),
        "seconds, second": round(second, 3),
        "seconds of processor time, second": round(worked, 3),
        "goal: seconds, at most": EVALUATION_GOAL,
    }


if __name__ == "__main__":
    main()
