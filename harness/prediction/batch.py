"""A bundle over many documents: resumable, failures beside the output, no document stops another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import ValidationError

from harness.bundle import LoadedProgram, load
from harness.errors import UsageError
from harness.failures import INVALID, failure_of
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, RoleLM, build_role_lm
from harness.models.schema_bounds import SchemaBounds
from harness.prediction.documents import Document, read_documents
from harness.prediction.output import PredictionOutput, refuse_output
from harness.progress import Progress, SilentProgress
from harness.references import load_object
from harness.session import open_store
from harness.side_by_side import side_by_side
from harness.spec import ModelSpec
from programs.contract import OutputContract, RecordError
from programs.json_schema import dotted, short


@dataclass(frozen=True, slots=True)
class PredictionCounts:
    """How many documents there are, and what became of them.

    Attributes:
        total: documents in the input.
        answered: answered now.
        already_there: answered before, in the output when it was opened.
        failed: tried now, and among the failures.
    """

    total: int
    answered: int
    already_there: int
    failed: int


@dataclass(frozen=True, slots=True)
class _Outcome:
    answer: Any = None
    error: str | None = None
    details: Mapping[str, Any] | None = None  # kind, and the raw answer where there is one


def predict(
    loaded: LoadedProgram,
    input: Path | str,
    output: Path | str,
    *,
    lm: dspy.LM,
    progress: Progress | None = None,
    threads: int = 1,
) -> PredictionCounts:
    """Run a program over every document of a file or folder.

    Args:
        loaded: what `harness.load` gave.
        input: JSONL, JSON or CSV with the program's inputs and optionally `id` per row; a .txt or .md file, or a
            folder of those, for a program with one input.
        output: JSONL, a row `{"id": ..., "<output field>": ...}` per answer, in the input's order. One that is there
            is continued: documents with an answer are not asked again, failed ones are.
        lm: the model.
        progress: told of every document.
        threads: documents at once, from 1.

    Returns:
        What became of the documents; failures are in `OUTPUT.failures.jsonl` with error, kind and raw answer. A kind
        is one of `errors.FAILURE_KINDS`, or "input" for a document that cannot be read, "program" for an error of the
        program's own.

    Raises:
        UsageError: an input or output that cannot be used, among them an output of another bundle or model.
        RunStopped, KeyboardInterrupt: what was finished before is in the output.
    """
    source, target = Path(input), Path(output)
    refuse_output(source, target)
    documents = read_documents(source, loaded.contract.inputs)
    origin = {"bundle": loaded.digest, "model": str(lm.model)}
    answered = failed = 0
    with PredictionOutput(target, field=loaded.contract.field, origin=origin, documents=documents) as written:
        before = written.finished
        todo = [document for document in documents if str(document.id) not in before]
        with (progress or SilentProgress()).phase(f"predict {source.name}", len(todo)) as phase:
            for index, outcome in side_by_side(lambda document: _ask(loaded, document, lm), todo, threads=threads):
                document = todo[index]
                if outcome.error is None:
                    written.add(document, outcome.answer)
                    answered += 1
                else:
                    written.fail(document, outcome.error, **(outcome.details or {}))
                    failed += 1
                phase.advance()
    return PredictionCounts(len(documents), answered, len(documents) - len(todo), failed)


def _ask(loaded: LoadedProgram, document: Document, lm: dspy.LM) -> _Outcome:
    if document.error is not None:
        return _Outcome(error=document.error, details={"kind": "input"})
    try:
        prediction = loaded(lm=lm, **document.inputs)
    except Exception as error:  # noqa: BLE001  # whatever one document brings up must not stop the others
        return _failed(error)
    try:
        return _Outcome(answer=_checked(loaded.contract.result(prediction), loaded.contract))
    except RecordError as error:
        return _Outcome(
            error=f"the output does not fit the schema: {error}",
            details={"kind": INVALID, "answer": str(prediction)},
        )


def _failed(error: Exception) -> _Outcome:
    failure = failure_of(error)
    # An LM that is not a role's raises dspy's own errors: they are the server's, not the program's.
    kind = failure.kind or ("error" if isinstance(error, LMError) else failure.side)
    raw = _raw_answer(error)
    return _Outcome(error=failure.sentence, details={"kind": kind} | ({} if raw is None else {"answer": raw}))


def _checked(value: Any, contract: OutputContract) -> Any:
    plain = contract.plain(value)
    error = best_match(Draft202012Validator(dict(contract.schema)).iter_errors(plain))
    if error is not None:
        raise RecordError(dotted(error.absolute_path), short(error.message))
    return plain


def _raw_answer(error: BaseException) -> str | None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AdapterParseError):
            return str(cause.lm_response)
        cause = cause.__cause__ or cause.__context__
    return None


def predict_bundle(
    bundle: Path,
    source: Path,
    target: Path,
    model: str | None = None,
    progress: Progress | None = None,
    *,
    program: str | None = None,
    api_base: str | None = None,
    api_key_env: str | None = None,
    endpoints: Endpoints | None = None,
) -> dict[str, Any]:
    """`predict` with the model the bundle names, or another one; answers are kept in this folder's store.

    Args:
        bundle: the bundle's folder.
        source: input, as for `predict`.
        target: output.
        model: a model to use instead of the bundle's.
        progress: told of every document, and of calls.
        program: `my_program.py:MyProgram`, for a bundle of a program of one's own.
        api_base: the address of the server, for a model of one's own.
        api_key_env: the environment variable that holds its key.
        endpoints: where models come from; tests hand in scripted ones.

    Returns:
        The counts, where the output and the failures are, and as `notes` what a user must know of the bundle.

    Raises:
        UsageError: a bundle of a user's own program without `program`, a missing key or weights, a program that
            was tuned on a server whose address a bundle does not hold.
    """
    loaded = load(bundle, program=load_object(program, Path()) if program is not None else None)
    refuse_output(source, target)
    shown = progress or SilentProgress()
    opened = open_model(loaded, model, api_base=api_base, api_key_env=api_key_env, progress=shown, endpoints=endpoints)
    with opened as lm:
        threads = lm.engine.provider.concurrency
        counts = predict(loaded, source, target, lm=lm, progress=shown, threads=threads)
    failures = {"failures": f"{target}.failures.jsonl"} if counts.failed else {}
    return {**asdict(counts), "output": str(target), **failures, "notes": list(loaded.notes)}


@contextmanager
def open_model(
    loaded: LoadedProgram,
    model: str | None = None,
    *,
    api_base: str | None = None,
    api_key_env: str | None = None,
    progress: Progress | None = None,
    endpoints: Endpoints | None = None,
) -> Iterator[RoleLM]:
    """The model a bundle was tuned with, or another one, for as long as the block lasts.

    Answers are kept in this folder's store, `mlruns/answers.db`, so the same question is never paid twice.

    Args:
        loaded: what `harness.load` gave.
        model: a model to use instead of the bundle's, as an experiment file names it.
        api_base: the address of the server, for a model of one's own.
        api_key_env: the environment variable that holds its key.
        progress: shows calls and cost.
        endpoints: where models come from; tests hand in scripted ones.

    Raises:
        UsageError: a missing key or weights, a bundle tuned on a server whose address it does not hold.
    """
    settings = dict(loaded.model)
    config = _model_config(settings, model, api_base, api_key_env)
    bounds = SchemaBounds(**settings["bounds"]) if config.is_local and settings.get("bounds") else None
    store = open_store()
    try:
        with endpoints or Endpoints() as opened:
            ledger = Ledger()
            lm = build_role_lm("task", config, endpoints=opened, store=store, ledger=ledger, bounds=bounds)
            if progress is not None:
                progress.watch(ledger.usage)
            yield lm
    finally:
        store.close()


def _model_config(
    settings: Mapping[str, Any], model: str | None, api_base: str | None, api_key_env: str | None
) -> ModelConfig:
    if model is None and "model" not in settings:
        raise UsageError("the bundle names no model; name one")
    if model is None and api_base is None and settings.get("own_endpoint"):
        raise UsageError(
            f"the bundle was tuned with {settings['model']} on a server of your own, whose address a bundle does not "
            "hold; give the address (--api-base) or another model (--model)"
        )
    try:
        named = ModelSpec.model_validate(
            {"model": model or settings["model"], "api_base": api_base, "api_key_env": api_key_env}
        )
    except ValidationError as invalid:
        error = invalid.errors()[0]
        field = "".join(f"{part} " for part in error["loc"])
        raise UsageError(f"{field}{error['msg'].removeprefix('Value error, ')}") from None
    return ModelConfig(
        model=named.model,
        api_base=named.api_base,
        api_key_env=named.api_key_env,
        temperature=settings.get("temperature") or 0.0,
        max_tokens=settings.get("max_tokens"),
    )
