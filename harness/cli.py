"""The command line. Thin: every command reads its arguments, calls one function and shows what it gives back.

dspy, mlflow and everything that imports them are imported inside the commands, so that help, a mistyped option and
a mistake in a file are answered at once.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from harness.errors import HarnessError, RunStopped, StopReason, UsageError, nearest
from harness.files import kind_of, outside
from harness.progress import choose_progress
from harness.references import check_own_packages
from harness.signals import sigterm_as_interrupt
from harness.spec import json_schema, load_card_spec, load_spec
from harness.terminal import (
    answer,
    answer_json,
    answer_rich,
    drop_stdout,
    say,
    stdout_fails,
    stdout_is_gone,
    stdout_kept_for_the_answer,
)

_KEPT = "what is finished is kept; the same command continues"
_KINDS = ("programs", "evaluators", "metrics", "judges", "optimizers", "models", "readers", "adapters")

_NO_CALLS_HOME = {"MLFLOW_DISABLE_TELEMETRY": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""MLflow reports usage and LiteLLM fetches a price table, both at import and both only told by the environment. The
command owns its process, so it may say so here, before any thread starts; what the user has set is kept."""

app = typer.Typer(
    help="Tune LM extraction programs with DSPy optimizers, and say with an interval whether they got better.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="An experiment file.", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the file, as in data.split.seed=1. Repeatable."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        answer(f"dspy-judge-harness {_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and stop.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what the libraries log.")] = False,
) -> None:
    """Options of every command."""
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


@app.command()
def init(
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Where to write it.", show_default=False)] = ".",
) -> None:
    """Write a project of one's own: a schema, ten examples, an experiment file."""
    from harness.scaffold import next_commands, write_project

    written = write_project(Path(folder))
    answer("\n".join([*(f"wrote {path}" for path in written), "", "Next:", *next_commands(Path(folder))]))


@app.command()
def check(file: FileArgument, changes: SetOption = None, as_json: JsonOption = False) -> None:
    """Show everything wrong with a file, or what a run would do, before anything is spent."""
    spec = load_spec(file, changes or ())
    with stdout_kept_for_the_answer():
        from harness.assembly import assemble
        from harness.planning import check_ready, plan

        experiment = assemble(spec)
        check_ready(experiment)
        document = plan(experiment).to_document()
    if as_json:
        answer_json(document)
        return
    from harness.summary import plan_summary

    answer_rich(*plan_summary(document))


@app.command()
def run(
    file: FileArgument,
    changes: SetOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Run a finished experiment again, with fresh samples.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tune a program and say with an interval whether it got better."""
    spec = load_spec(file, changes or ())
    with stdout_kept_for_the_answer():
        from harness.assembly import assemble
        from harness.experiment import run as run_experiment

        document = run_experiment(assemble(spec), force=force, progress=choose_progress()).to_document()
    if as_json:
        answer_json(document)
    else:
        from harness.summary import run_summary

        answer_rich(*run_summary(document))
    if document["stopped"]:  # there is a verdict, on less than was asked for
        raise typer.Exit(_stopped(RunStopped(StopReason.BUDGET, document["stopped"])))


@app.command()
def evaluate(
    target: Annotated[str, typer.Argument(metavar="FILE|BUNDLE", help="What to score.", show_default=False)],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]", help="With a bundle: the file that names data and metric.", show_default=False
        ),
    ] = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a program or a bundle on the test split, without tuning."""
    kind = kind_of(Path(target))
    bundle = Path(target) if file is not None or kind == "folder" else None
    if bundle is not None and file is None:
        raise UsageError(
            f"{target} is a folder; a bundle is scored on the data of a file: harness evaluate {target} FILE"
        )
    if bundle is not None and kind != "folder":
        raise UsageError(f"there is no bundle {target}; the bundle's folder comes first, then the experiment file")
    spec = load_spec(file or target, changes or ())
    with stdout_kept_for_the_answer():
        from harness.assembly import assemble
        from harness.measurement import evaluate_program

        document = evaluate_program(assemble(spec), bundle=bundle, progress=choose_progress())
    if as_json:
        answer_json(document)
        return
    from harness.summary import evaluation_summary

    answer_rich(*evaluation_summary(document))


@app.command()
def agree(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A card file.", show_default=False)],
    changes: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how far judges agree with people, with intervals: the judge card."""
    spec = load_card_spec(file, changes or ())
    with stdout_kept_for_the_answer():
        from harness.agreement.run import agree as make

        document = make(spec, progress=choose_progress())
    if as_json:
        answer_json(document)
        return
    from harness.agreement.summary import card_summary

    answer_rich(*card_summary(document))


@app.command()
def export(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run id, the start of one, or an experiment's name (its latest run).",
            show_default=False,
        ),
    ],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where to write the bundle.", show_default=False)],
    candidate: Annotated[
        Literal["tuned", "baseline"], typer.Option(metavar="tuned|baseline", help="Which program to export.")
    ] = "tuned",
    as_json: JsonOption = False,
) -> None:
    """Write the tuned program of a run as a bundle: JSON and text, no pickle, no key."""
    with stdout_kept_for_the_answer():
        from harness.exporting import export_run, origin

        written = export_run(reference, Path(folder), candidate)
    if as_json:
        answer_json({"bundle": str(written), "candidate": candidate})
        return
    answer(f"wrote {written}: {origin(written)}\nUse it: harness predict {written} INPUT OUTPUT")


@app.command()
def predict(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle's folder.", show_default=False)],
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="JSONL, JSON, CSV or texts to run it on.", show_default=False)
    ],
    target: Annotated[str, typer.Argument(metavar="OUTPUT", help="Where to write what it gives.", show_default=False)],
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Another model than the bundle's.", show_default=False)
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:CLASS", help="The class, for a program of your own.", show_default=False),
    ] = None,
    api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of a server of your own.", show_default=False)
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds its key.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a bundle over a file or folder of texts; started again, it goes on where it stopped."""
    with stdout_kept_for_the_answer():
        from harness.prediction import predict_bundle

        counts = predict_bundle(
            Path(bundle),
            Path(source),
            Path(target),
            model,
            choose_progress(),
            program=program,
            api_base=api_base,
            api_key_env=api_key_env,
        )
    if as_json:
        answer_json(counts)
    else:
        from harness.summary import counts_summary

        answer("\n".join(counts_summary(counts)))
    if counts["failed"] and counts["failed"] == counts["total"]:
        raise typer.Exit(1)


@app.command()
def ui(
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 5000,
) -> None:
    """Open MLflow's pages on the runs of this folder."""
    from harness.tracking.ui import serve_ui

    serve_ui(Path(), host, port, say=answer)


@app.command(name="list")
def list_names(
    kind: Annotated[str, typer.Argument(metavar="|".join(_KINDS), help="What to list.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """List what can be named in a file."""
    if kind not in _KINDS:
        raise UsageError(f"there is nothing to list under {kind!r}; {nearest(kind, _KINDS)}")
    with stdout_kept_for_the_answer():
        from harness.listing import listing

        rows = listing(kind)
    if as_json:
        answer_json({kind: [{"name": name, "description": description} for name, description in rows]})
        return
    from harness.summary import listing_table

    answer_rich(listing_table(rows))


@app.command()
def schema(
    kind: Annotated[str, typer.Argument(metavar="experiment|card", help="Which file.", show_default=False)],
) -> None:
    """Print the JSON Schema of a file, for editors."""
    answer_json(json_schema(kind))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 1 failed, 2 wrong usage or file, 3 stopped by budget, 130 interrupted."""
    for variable, value in _NO_CALLS_HOME.items():
        os.environ.setdefault(variable, value)
    sys.exit(exit_code(sys.argv[1:] if arguments is None else arguments))


def exit_code(arguments: Sequence[str]) -> int:
    """Run one command; whatever ends it becomes a sentence on stderr and an exit code."""
    try:
        check_own_packages()
        _refuse_nul(arguments)
        command = typer.main.get_command(app)
        with sigterm_as_interrupt(), command.make_context("harness", list(arguments) or ["--help"]) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.TyperException as wrong:
        return _wrong_usage(wrong)
    except HarnessError as error:
        _say_errors(str(error))
        return error.exit_code
    except RunStopped as stopped:
        return _stopped(stopped)
    except KeyboardInterrupt as interrupt:
        return _stopped(RunStopped(StopReason.INTERRUPT, str(interrupt) or "interrupted"))
    except BrokenPipeError:
        if not stdout_is_gone():
            return _defect()
        drop_stdout()
    except OSError as error:
        return _refused_by_the_machine(error)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            return 0  # rich's way of saying that the reader of a help text has gone
        _say_errors("a program or a file it imports called sys.exit() in the middle of the work; nothing was decided")
        return 1
    except Exception:  # noqa: BLE001  # the last line of defence: shown in full, as what it is
        return _defect()
    return 0


def _refuse_nul(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if "\0" in argument:
            raise UsageError(f"the argument {argument!r} holds the character NUL, which no path and no name has")


def _refused_by_the_machine(error: OSError) -> int:
    """A full disk, a folder nobody may write to: not our defect, and not the user's arguments."""
    sentence = outside(error)
    if sentence is None:
        return _defect()
    _say_errors(sentence)
    say(_KEPT)
    if stdout_fails():
        drop_stdout()
    return 1


def _say_errors(message: str) -> None:
    for line in message.splitlines():
        say(f"error: {line}")


def _wrong_usage(wrong: typer.TyperException) -> int:
    _say_errors(wrong.format_message().replace("Value error, ", ""))
    context = getattr(wrong, "ctx", None)
    say(f"see {context.command_path if context is not None else 'harness'} --help")
    return wrong.exit_code


def _stopped(stopped: RunStopped) -> int:
    asked_for = stopped.reason in (StopReason.BUDGET, StopReason.INTERRUPT)
    say(f"{'stopped' if asked_for else 'error'}: {stopped.message}")
    if stopped.detail:
        say(stopped.detail)
    say(_KEPT)
    return stopped.exit_code


def _defect() -> int:
    traceback.print_exc()
    python = ".".join(map(str, sys.version_info[:3]))
    say(
        f"error: this is a defect in dspy-judge-harness {_version()} (Python {python}); "
        "please report it with the lines above"
    )
    return 1


def _version() -> str:
    from harness import __version__

    return __version__
