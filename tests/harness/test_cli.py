"""The command line: exit codes, sentences, one document on stdout, and nothing heavy before it is needed."""

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from harness.cli import exit_code, main
from harness.errors import HarnessError, RunStopped, StopReason, UsageError
from harness.signals import Terminated
from harness.spec import ExperimentSpec

LEAST = """program: {programs.schema:SchemaExtraction: {model: "schema.py:Invoice"}}
data: invoices.csv
models: {task: local/smollm2-135m}
"""
AGGREGATE = {"score": 0.5, "n_scored": 4, "n_total": 4, "readable": 4, "lower_bound": 0.5, "interval": None}
RESULT = {
    "run_id": "abc123",
    "experiment": "x",
    "verdict": "not comparable",
    "baseline": AGGREGATE,
    "tuned": AGGREGATE,
    "delta": None,
    "audit": {},
    "ledger": {},
    "bundle": "mlruns/b",
    "report": "mlruns/r.html",
    "test_reads": 1,
    "notes": [],
    "reason": "no example was scored for both programs",
    "replayed": False,
    "stopped": None,
}
PLAN = {
    "experiment": "x",
    "splits": {"train": 4},
    "roles": {"task": "local/m"},
    "optimizer": {"none": {}},
    "metric": "record",
    "audit": [],
    "planned_calls": {"task": 8},
    "reserved_calls": 4,
    "estimate": {"input_tokens_per_call": 9, "output_tokens_per_call": 1, "usd": {"task": 0.0}, "how": "somehow"},
    "notes": [],
}
EVALUATION = {
    **AGGREGATE,
    "experiment": "x",
    "program": "baseline",
    "split": "test",
    "fields": {},
    "audit": {},
    "test_reads": 1,
    "ledger": {},
    "notes": [],
}


class Engine:
    """Stands in for the modules that the commands call, and remembers how it was called."""

    def __init__(self, monkeypatch):
        self.calls = []
        self.raises = None
        self.counts = {"total": 3, "answered": 2, "already_there": 0, "failed": 1}
        for module, functions in {
            "harness.assembly": {"assemble": self.assemble},
            "harness.listing": {"listing": self.listing},
            "harness.planning": {
                "plan": self.answers("plan", SimpleNamespace(to_document=lambda: PLAN)),
                "check_ready": lambda experiment: None,
            },
            "harness.experiment": {"run": self.answers("run", SimpleNamespace(to_document=lambda: RESULT))},
            "harness.measurement": {"evaluate_program": self.answers("evaluate", EVALUATION)},
            "harness.exporting": {
                "export_run": self.answers("export", Path("somewhere")),
                "origin": lambda bundle: f"the one in {bundle}",
            },
            "harness.prediction": {"predict_bundle": self.predict},
            "harness.tracking.ui": {"serve_ui": self.serve},
        }.items():
            fake = ModuleType(module)
            vars(fake).update(functions)
            monkeypatch.setitem(sys.modules, module, fake)

    def answers(self, name, answer):
        def function(*arguments, **options):
            options.pop("progress", None)
            self.calls.append((name, arguments, options))
            print("a stray print of some library")
            if self.raises is not None:
                raise self.raises
            return answer

        return function

    def assemble(self, spec):
        assert isinstance(spec, ExperimentSpec)
        return f"experiment {spec.name} seed {spec.data.split.seed}"

    def listing(self, kind):
        return [(f"some {kind}", "a description")]

    def predict(self, *arguments, **server):
        self.calls.append(("predict", arguments[:-1], server))
        return self.counts

    def serve(self, folder, host, port, *, say):
        self.calls.append(("ui", (folder, host, port), {}))
        say("MLflow: http://127.0.0.1")


@pytest.fixture
def engine(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(LEAST, encoding="utf-8")
    return Engine(monkeypatch)


@pytest.fixture
def harness(capsys):
    """Runs one command in this process: (exit code, stdout, stderr)."""

    def command(*arguments):
        code = exit_code(arguments)
        return code, *capsys.readouterr()

    return command


# --- commands --------------------------------------------------------------------------------------------------


def test_run_prints_the_verdict_and_nothing_stray_on_stdout(engine, harness):
    code, out, err = harness("run", "x.yaml", "--set", "data.split.seed=5", "--force")
    assert code == 0
    assert engine.calls == [("run", ("experiment x seed 5",), {"force": True})]
    assert out.startswith("x: not comparable (no example was scored for both programs)")
    assert "harness ui" in out
    assert err == "a stray print of some library\n"


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_verdict_on_less_than_was_asked_for_is_shown_and_is_exit_code_3(engine, harness, monkeypatch, as_json):
    stopped = {**RESULT, "stopped": "the budget of 9 calls is spent: tuning was stopped there"}
    monkeypatch.setitem(sys.modules["harness.experiment"].__dict__, "run", engine.answers(
        "run", SimpleNamespace(to_document=lambda: stopped)))  # fmt: skip
    code, out, err = harness("run", "x.yaml", *as_json)
    assert code == 3
    assert json.loads(out) == stopped if as_json else "not comparable" in out
    assert err.splitlines()[1:] == [
        "stopped: the budget of 9 calls is spent: tuning was stopped there",
        "what is finished is kept; the same command continues",
    ]


def test_sigterm_is_told_like_ctrl_c(engine, harness):
    engine.raises = Terminated("terminated by SIGTERM")
    code, _, err = harness("run", "x.yaml")
    assert (code, err.splitlines()[1]) == (130, "stopped: terminated by SIGTERM")


@pytest.mark.parametrize(
    ("arguments", "document"),
    [
        (("run", "x.yaml"), RESULT),
        (("check", "x.yaml"), PLAN),
        (("evaluate", "x.yaml"), EVALUATION),
        (("export", "abc", "somewhere"), {"bundle": "somewhere", "candidate": "tuned"}),
        (("predict", "b", "in.csv", "out.jsonl"), {"total": 3, "answered": 2, "already_there": 0, "failed": 1}),
        (("list", "readers"), {"readers": [{"name": "some readers", "description": "a description"}]}),
    ],
)
def test_json_is_one_document_and_nothing_else(engine, harness, arguments, document):
    code, out, _ = harness(*arguments, "--json")
    assert code == 0
    assert json.loads(out) == document


def test_check_shows_the_plan(engine, harness):
    code, out, _ = harness("check", "x.yaml")
    assert (code, engine.calls[0][0]) == (0, "plan")
    assert out.startswith("x: nothing wrong")


def test_evaluate_takes_a_file_or_a_bundle_and_a_file(engine, harness):
    Path("bundle").mkdir()
    assert harness("evaluate", "x.yaml")[1].startswith("x: baseline on test")
    assert harness("evaluate", "bundle", "x.yaml", "--set", "data.split.seed=2")[0] == 0
    assert engine.calls == [
        ("evaluate", ("experiment x seed 0",), {"bundle": None}),
        ("evaluate", ("experiment x seed 2",), {"bundle": Path("bundle")}),
    ]
    assert harness("evaluate", "bundle") == (
        2,
        "",
        "error: bundle is a folder; a bundle is scored on the data of a file: harness evaluate bundle FILE\n",
    )
    assert harness("evaluate", "x.yaml", "x.yaml") == (
        2,
        "",
        "error: there is no bundle x.yaml; the bundle's folder comes first, then the experiment file\n",
    )


def test_export_says_where_and_how_to_use_it(engine, harness):
    code, out, _ = harness("export", "x", "somewhere", "--candidate", "baseline")
    assert (code, engine.calls) == (0, [("export", ("x", Path("somewhere"), "baseline"), {})])
    assert out == "wrote somewhere: the one in somewhere\nUse it: harness predict somewhere INPUT OUTPUT\n"


def test_predict_says_what_became_of_the_documents(engine, harness):
    options = ("--model", "openai/m", "--api-base", "http://gpu:8000/v1", "--api-key-env", "MY_KEY")
    code, out, _ = harness("predict", "b", "in.csv", "out.jsonl", *options)
    assert (code, out) == (0, "total: 3\nanswered: 2\nalready there: 0\nfailed: 1\n")
    server = {"program": None, "api_base": "http://gpu:8000/v1", "api_key_env": "MY_KEY"}
    assert engine.calls == [("predict", (Path("b"), Path("in.csv"), Path("out.jsonl"), "openai/m"), server)]


def test_predict_fails_when_every_document_did(engine, harness):
    engine.counts = {"total": 3, "answered": 0, "already_there": 0, "failed": 3}
    assert harness("predict", "b", "in.csv", "out.jsonl")[0] == 1
    engine.counts = {"total": 0, "answered": 0, "already_there": 0, "failed": 0}
    assert harness("predict", "b", "in.csv", "out.jsonl")[0] == 0


def test_ui_serves_on_this_machine_only_unless_told(engine, harness):
    assert harness("ui") == (0, "MLflow: http://127.0.0.1\n", "")
    assert harness("ui", "--host", "0.0.0.0", "--port", "8080")[0] == 0
    assert [call[1] for call in engine.calls] == [(Path(), "127.0.0.1", 5000), (Path(), "0.0.0.0", 8080)]


def test_init_writes_a_project_and_says_what_to_type(engine, harness):
    code, out, _ = harness("init", "mine")
    assert code == 0
    assert out.splitlines()[:2] == ["wrote mine/schema.py", "wrote mine/invoices.csv"]
    assert out.splitlines()[-4:] == [
        "  cd mine",
        "  harness check experiment.yaml",
        "  harness run experiment.yaml",
        "  harness ui",
    ]
    code, out, err = harness("init", "mine")
    assert (code, out) == (2, "")
    assert err.startswith("error: mine already holds schema.py,")


def test_list_and_schema_know_their_kinds(engine, harness):
    assert "some evaluators   a description" in harness("list", "evaluators")[1]
    assert harness("list", "evaluator") == (
        2,
        "",
        "error: there is nothing to list under 'evaluator'; did you mean 'evaluators'?\n",
    )
    assert json.loads(harness("schema", "experiment")[1])["title"] == "ExperimentSpec"
    assert harness("schema", "experimnt")[2] == "error: there is no schema 'experimnt'; did you mean 'experiment'?\n"


def test_version_and_help(harness):
    code, out, err = harness("--version")
    assert (code, err) == (0, "")
    assert out.startswith("dspy-judge-harness 0.")
    for arguments in ((), ("--help",), ("run", "--help")):
        code, out, err = harness(*arguments)
        assert (code, err) == (0, "")
        assert "Usage: harness" in out


def test_verbose_shows_what_libraries_log(engine, harness, monkeypatch):
    asked = {}
    monkeypatch.setattr("logging.basicConfig", lambda **options: asked.update(options))
    harness("-v", "list", "readers")
    assert asked["level"] == 20


# --- what goes wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "x.yaml", "--foce"), ("No such option: --foce", "--force", "see harness run --help")),
        (("rnu",), ("No such command 'rnu'. Did you mean 'run'?", "see harness --help")),
        (("run",), ("Missing argument 'FILE'.", "see harness run --help")),
        (("run", "a.yaml", "b.yaml"), ("unexpected extra argument", "see harness run --help")),
        (("export", "x", "y", "--candidate", "tund"), ("'tund' is not one of 'tuned', 'baseline'",)),
        (("ui", "--port", "99999"), ("'--port'", "see harness ui --help")),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_code_2(harness, arguments, words):
    code, out, err = harness(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    for word in words:
        assert word in err
    assert "Traceback" not in err


def test_every_mistake_in_a_file_is_told(engine, harness):
    Path("x.yaml").write_text(LEAST + "optimiser: x\nadapter: jsn\n", encoding="utf-8")
    for command in ("check", "run", "evaluate"):
        code, out, err = harness(command, "x.yaml")
        assert (code, out) == (2, "")
        assert err.splitlines() == [
            "error: x.yaml line 4: unknown key 'optimiser' in the experiment; did you mean 'optimizer'?",
            "error: x.yaml line 5: adapter must be json, chat or compact, not 'jsn'; did you mean 'json'?",
        ]


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (UsageError("one\ntwo"), 2, ["error: one", "error: two"]),
        (HarnessError("the program raises"), 1, ["error: the program raises"]),
        (
            RunStopped(StopReason.METRIC, "the metric raised KeyError", "Traceback ...\nKeyError"),
            1,
            ["error: the metric raised KeyError", "Traceback ...", "KeyError", "KEPT"],
        ),
        (RunStopped(StopReason.MODEL, "401 from openai"), 1, ["error: 401 from openai", "KEPT"]),
        (RunStopped(StopReason.BUDGET, "200 calls are spent"), 3, ["stopped: 200 calls are spent", "KEPT"]),
        (RunStopped(StopReason.INTERRUPT, "interrupted"), 130, ["stopped: interrupted", "KEPT"]),
        (KeyboardInterrupt(), 130, ["stopped: interrupted", "KEPT"]),
        (UsageError("\x1b[2Jhidden"), 2, ["error: ?[2Jhidden"]),
    ],
)
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_whatever_ends_a_run_is_a_sentence_and_an_exit_code(engine, harness, error, code, lines, as_json):
    engine.raises = error
    assert harness("run", "x.yaml", *as_json)[:2] == (code, "")
    engine.raises = error
    said = harness("run", "x.yaml")[2].splitlines()
    kept = "what is finished is kept; the same command continues"
    assert said[1:] == [line.replace("KEPT", kept) for line in lines]


def test_a_defect_shows_its_traceback_and_asks_for_a_report(engine, harness):
    engine.raises = ZeroDivisionError("of ours")
    code, out, err = harness("run", "x.yaml")
    assert (code, out) == (1, "")
    assert "Traceback (most recent call last)" in err
    assert "ZeroDivisionError: of ours" in err
    assert err.splitlines()[-1].startswith("error: this is a defect in dspy-judge-harness 0.")
    assert err.splitlines()[-1].endswith("please report it with the lines above")


def test_a_broken_pipe_that_is_not_stdout_is_a_defect(engine, harness):
    engine.raises = BrokenPipeError("of some socket")
    code, _, err = harness("run", "x.yaml")
    assert code == 1
    assert "please report it" in err


def test_a_program_that_exits_does_not_pass_for_a_finished_run(engine, harness):
    engine.raises = SystemExit(0)
    code, out, err = harness("run", "x.yaml")
    assert (code, out) == (1, "")
    assert "called sys.exit() in the middle of the work" in err


def test_help_into_a_closed_pipe_is_no_error(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert exit_code(["--help"]) == 0
        monkeypatch.undo()


def test_a_pipe_closed_while_a_command_writes_is_no_error(engine, monkeypatch):
    def closed(*_, **__):
        raise BrokenPipeError

    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        stream.write("something to flush")
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr("harness.cli.answer_json", closed)
        assert exit_code(["schema", "experiment"]) == 0
        monkeypatch.undo()


def test_main_exits_with_the_code(capsys, monkeypatch):
    for arguments, code in ((["--version"], 0), (["nonsense"], 2)):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
    monkeypatch.setattr(sys, "argv", ["harness", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.count("dspy-judge-harness") == 2
