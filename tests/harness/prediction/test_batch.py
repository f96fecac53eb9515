"""Predictions over many documents: order, resuming, failures, interrupts."""

import json
import os
import threading
from collections import Counter

import dspy
import pytest
from dspy import lm15

from harness import bundle
from harness.errors import RunStopped, StopReason, UsageError
from harness.prediction import PredictionCounts, predict, predict_bundle
from programs import SchemaExtraction, output_contract

SCHEMA = {
    "title": "Note",
    "type": "object",
    "properties": {"word": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["word"],
}


class Engine:
    """Answers `{"word": <the question>}`; other questions as told; counts what it is asked."""

    supports_function_calling = supports_reasoning = False
    supports_response_schema = True
    supported_params = frozenset(("response_format", "temperature"))

    def __init__(self, **special):
        self.special = special
        self.asked = []
        self.lock = threading.Lock()

    def complete(self, request):
        text = request.messages[0].text  # the question, also when it is asked again
        with self.lock:
            self.asked.append(text)
        answer = self.special.get(text, json.dumps({"word": text}, ensure_ascii=False))
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            answer = answer()
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(answer)]),
            finish_reason="stop",
            usage=lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2),
        )

    def __deepcopy__(self, memo):
        return self


def model(engine, name="scripted/x"):
    return dspy.LM(name, engine=engine, cache=False, num_retries=0)


@pytest.fixture
def loaded(tmp_path):
    return bundle.load(make_bundle(tmp_path / "bundle"))


def make_bundle(folder, settings=None, **arguments):
    program = SchemaExtraction(SCHEMA, **arguments)
    bundle.export(
        folder,
        program=program,
        contract=output_contract(program),
        adapter_name="compact",
        model_settings=settings or {"model": "scripted/x"},
        report={},
    )
    return folder


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ask(tmp_path, *texts, name="in.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps({"id": text, "text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


def failures(output):
    return output.with_name(f"{output.name}.failures.jsonl")


@pytest.mark.parametrize("threads", [1, 4])
def test_rows_come_in_the_inputs_order(tmp_path, loaded, threads):
    texts = [f"wörd {n}" for n in range(12)]
    output = tmp_path / "new" / "out.jsonl"
    counts = predict(loaded, ask(tmp_path, *texts), output, lm=model(Engine()), threads=threads)
    assert counts == PredictionCounts(total=12, answered=12, already_there=0, failed=0)
    assert rows(output) == [{"id": text, "record": {"word": text}} for text in texts]
    assert "wörd" in output.read_text(encoding="utf-8")
    assert not failures(output).exists()


@pytest.mark.parametrize("threads", [1, 4])
def test_one_bad_document_stops_no_other(tmp_path, loaded, threads):
    """J6: results, and beside them each failure with its error and the raw answer."""
    engine = Engine(
        b='{"word": "cut off',
        c='{"n": 3}',
        d=lm15.ServerError("it is on fire"),
    )
    source = ask(tmp_path, "a", "b", "c", "d", " ", "e")
    with source.open("a") as file:
        file.write("not json\n")
    output = tmp_path / "out.jsonl"
    counts = predict(loaded, source, output, lm=model(engine), threads=threads)
    assert counts == PredictionCounts(total=7, answered=2, already_there=0, failed=5)
    assert [row["id"] for row in rows(output)] == ["a", "e"]
    failed = {row.pop("id"): row for row in rows(failures(output))}
    assert list(failed) == ["b", "c", "d", " ", "in.jsonl line 7"]
    assert failed["b"]["answer"] == '{"word": "cut off'
    assert "not complete JSON" in failed["b"]["error"]
    assert "'word' is a required property" in failed["c"]["error"]
    assert "it is on fire" in failed["d"]["error"]
    assert failed[" "] == {"error": "in.jsonl line 5: text is empty", "kind": "input"}
    kinds = {name: row["kind"] for name, row in failed.items()}
    assert kinds == {"b": "invalid", "c": "invalid", "d": "error", " ": "input", "in.jsonl line 7": "input"}
    assert Counter(engine.asked) == {"a": 1, "b": 2, "c": 2, "d": 1, "e": 1}, "what cannot be read is asked once more"
    assert "not valid JSON" in failed["in.jsonl line 7"]["error"]


def test_a_second_time_only_what_failed_is_asked(tmp_path, loaded):
    source, output = ask(tmp_path, "a", "b", "c"), tmp_path / "out.jsonl"
    predict(loaded, source, output, lm=model(Engine(b="nonsense")))
    engine = Engine()
    counts = predict(loaded, source, output, lm=model(engine))
    assert counts == PredictionCounts(total=3, answered=1, already_there=2, failed=0)
    assert engine.asked == ["b"]
    assert [row["id"] for row in rows(output)] == ["a", "b", "c"]
    assert not failures(output).exists()


def test_more_documents_may_be_added_and_gone_ones_are_kept_last(tmp_path, loaded):
    output = tmp_path / "out.jsonl"
    predict(loaded, ask(tmp_path, "a", "gone"), output, lm=model(Engine()))
    engine = Engine()
    predict(loaded, ask(tmp_path, "new", "a"), output, lm=model(engine))
    assert engine.asked == ["new"]
    assert [row["id"] for row in rows(output)] == ["new", "a", "gone"]
    predict(loaded, ask(tmp_path, "gone"), output, lm=model(engine))
    assert engine.asked == ["new"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stop", [RunStopped(StopReason.BUDGET, "spent"), KeyboardInterrupt()])
def test_a_stop_keeps_what_is_finished_and_the_same_call_goes_on(tmp_path, loaded, stop, threads):
    source, output = ask(tmp_path, "a", "b", "c"), tmp_path / "out.jsonl"
    finished = threading.Event()

    def last():
        finished.set()
        return '{"word": "c"}'

    def stopping():
        if threads > 1:
            assert finished.wait(10)
        raise stop

    with pytest.raises(type(stop)):
        predict(loaded, source, output, lm=model(Engine(b=stopping, c=last)), threads=threads)
    done = [row["id"] for row in rows(output)]
    assert done == ["a"] if threads == 1 else "b" not in done
    engine = Engine()
    predict(loaded, source, output, lm=model(engine))
    assert sorted([*done, *engine.asked]) == ["a", "b", "c"]
    assert [row["id"] for row in rows(output)] == ["a", "b", "c"]


def test_what_finished_beside_a_stop_is_kept(tmp_path, loaded):
    """Two at once: the first stops the run while the second is still being answered."""
    begun, stopped = threading.Event(), threading.Event()

    def stopping():
        assert begun.wait(10)
        stopped.set()
        raise RunStopped(StopReason.MODEL, "gone")

    def slow():
        begun.set()
        assert stopped.wait(10)
        return '{"word": "slow"}'

    source, output = ask(tmp_path, "first", "slow", *"xyz"), tmp_path / "out.jsonl"
    with pytest.raises(RunStopped):
        predict(loaded, source, output, lm=model(Engine(first=stopping, slow=slow)), threads=2)
    assert "slow" in [row["id"] for row in rows(output)]


def test_a_sink_that_fails_leaves_the_output_whole(tmp_path, loaded):
    class Phase:
        def advance(self, n=1, note=""):
            raise OSError("the terminal is gone")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    class Sink:
        def phase(self, name, total):
            assert (name, total) == ("predict in.jsonl", 3)
            return Phase()

        def watch(self, usage):
            pass

    output = tmp_path / "out.jsonl"
    with pytest.raises(OSError, match="terminal"):
        predict(loaded, ask(tmp_path, *"abc"), output, lm=model(Engine()), progress=Sink(), threads=2)
    assert len(rows(output)) == 1


def test_a_line_that_was_cut_is_done_again(tmp_path, loaded):
    source, output = ask(tmp_path, "a", "b"), tmp_path / "out.jsonl"
    predict(loaded, source, output, lm=model(Engine()))
    whole = output.read_bytes()
    for cut in (whole[:-5], whole[:-1], whole[: whole.index(b"\n") + 4]):
        output.write_bytes(cut)
        engine = Engine()
        predict(loaded, source, output, lm=model(engine))
        assert output.read_bytes() == whole
        assert engine.asked == ([] if cut == whole[:-1] else ["b"])


def test_a_damaged_output_is_refused(tmp_path, loaded):
    source, output = ask(tmp_path, "a", "b"), tmp_path / "out.jsonl"
    predict(loaded, source, output, lm=model(Engine()))
    for line in ("nonsense", "[1]", '{"id": "a"}'):
        output.write_text(f'{line}\n{{"id": "b", "record": {{}}}}\n')
        with pytest.raises(UsageError, match=r"out.jsonl line 1 is not a row with id and record"):
            predict(loaded, source, output, lm=model(Engine()))


def test_an_output_from_elsewhere_is_refused(tmp_path, loaded):
    source, output = ask(tmp_path, "a"), tmp_path / "out.jsonl"
    output.write_text('{"id": "a"}\n')
    with pytest.raises(UsageError, match=r"out.jsonl exists and was not written by predict"):
        predict(loaded, source, output, lm=model(Engine()))
    assert output.read_text() == '{"id": "a"}\n'
    output.unlink()
    predict(loaded, source, output, lm=model(Engine()))
    other = bundle.load(make_bundle(tmp_path / "other", instructions="Other."))
    with pytest.raises(UsageError, match=r"out.jsonl comes from another bundle"):
        predict(other, source, output, lm=model(Engine()))
    with pytest.raises(UsageError, match=r"comes from another model \(scripted/x, now scripted/y\)"):
        predict(loaded, source, output, lm=model(Engine(), "scripted/y"))
    output.with_name("out.jsonl.origin.json").write_text("[]")
    with pytest.raises(UsageError, match=r"out.jsonl.origin.json cannot be read"):
        predict(loaded, source, output, lm=model(Engine()))
    with pytest.raises(UsageError, match="is a folder; name the file to write"):
        predict(loaded, source, tmp_path, lm=model(Engine()))
    with pytest.raises(UsageError, match=r"in.jsonl is the input"):
        predict(loaded, source, source, lm=model(Engine()))


def test_the_same_ids_with_other_texts_are_refused(tmp_path, loaded):
    """Rows without an id have line numbers: another file would look finished."""
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("text\na\nb\n")
    second.write_text("text\na\nc\n")
    output = tmp_path / "out.jsonl"
    predict(loaded, first, output, lm=model(Engine()))
    assert [row["id"] for row in rows(output)] == [2, 3]
    with pytest.raises(UsageError, match=r"holds an answer for '3', but second.csv line 3 asks something else now"):
        predict(loaded, second, output, lm=model(Engine()))


def test_a_folder_of_texts(tmp_path, loaded):
    papers = tmp_path / "papers"
    papers.mkdir()
    for name in ("b", "a"):
        (papers / f"{name}.txt").write_text(f"text of {name}")
    output = tmp_path / "out.jsonl"
    predict(loaded, str(papers), str(output), lm=model(Engine()))
    assert rows(output) == [{"id": f"{name}.txt", "record": {"word": f"text of {name}"}} for name in "ab"]


class Inventive(dspy.Module):
    """A program whose value is not what it promised."""

    output_field = "number"
    output_type = int
    values = ("three", float("inf"))

    def __init__(self):
        super().__init__()
        self.predict = dspy.Predict("text -> number: int")

    def forward(self, text):
        return dspy.Prediction(number=self.values[int(text)])


def test_an_output_that_breaks_its_schema_is_a_failure(tmp_path):
    program = Inventive()
    folder = tmp_path / "bundle"
    contract = output_contract(program)
    bundle.export(folder, program=program, contract=contract, adapter_name="json", model_settings={}, report={})
    output = tmp_path / "out.jsonl"
    loaded = bundle.load(folder, program=Inventive)
    counts = predict(loaded, ask(tmp_path, "0", "1", "2"), output, lm=model(Engine()))
    assert counts.failed == 3
    assert output.read_text() == ""
    errors = [row["error"] for row in rows(failures(output))]
    assert errors[0] == "the output does not fit the schema: 'three' is not of type 'integer'"
    assert "JSON cannot hold this value" in errors[1]
    assert errors[2].startswith("IndexError: ")


def test_a_bundle_by_its_folder(tmp_path, monkeypatch):
    from harness.models.roles import Endpoints
    from harness.models.scripted import ScriptedProvider

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlruns").mkdir()
    make_bundle(tmp_path / "bundle", {"model": "scripted/small", "temperature": 0.0, "max_tokens": 64})
    source, target = ask(tmp_path, "a", "b"), tmp_path / "out.jsonl"
    provider = ScriptedProvider(lambda request: json.dumps({"word": request.messages[-1].text}), model="scripted/small")
    with_scripted = Endpoints(providers={"scripted/small": provider})
    told = predict_bundle(tmp_path / "bundle", source, target, endpoints=with_scripted)
    assert told == {"total": 2, "answered": 2, "already_there": 0, "failed": 0, "output": str(target), "notes": []}


def test_a_server_of_ones_own_is_not_mistaken_for_a_public_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_bundle(tmp_path / "bundle", {"model": "openai/gpt-x", "own_endpoint": True})
    with pytest.raises(UsageError, match="was tuned with openai/gpt-x on a server of your own"):
        predict_bundle(tmp_path / "bundle", ask(tmp_path, "a"), tmp_path / "out.jsonl")
    make_bundle(tmp_path / "nameless", {"temperature": 0.0})
    with pytest.raises(UsageError, match="the bundle names no model; name one"):
        predict_bundle(tmp_path / "nameless", ask(tmp_path, "a"), tmp_path / "out.jsonl")


def test_a_server_of_ones_own_is_reached_by_its_address(tmp_path, monkeypatch):
    from harness.models.loopback import LoopbackServer, answer

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", "sk-a-secret-of-mine")
    make_bundle(tmp_path / "bundle", {"model": "openai/own", "max_tokens": 64, "own_endpoint": True})
    target = tmp_path / "out.jsonl"
    with LoopbackServer([answer('{"word": "w"}')]) as server:
        told = predict_bundle(
            tmp_path / "bundle", ask(tmp_path, "a"), target, api_base=server.api_base, api_key_env="MY_KEY"
        )
    assert told["answered"] == 1
    assert len(server.requests) == 1
    assert "sk-a-secret" not in "".join(
        path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()
    )
    with pytest.raises(UsageError, match="api_base"):
        predict_bundle(tmp_path / "bundle", ask(tmp_path, "a"), tmp_path / "other.jsonl", api_base="not an address")


def test_what_is_not_a_regular_file_is_never_replaced(tmp_path):
    make_bundle(tmp_path / "bundle", {"model": "scripted/small"})
    source = ask(tmp_path, "a")
    (tmp_path / "link").symlink_to(tmp_path / "target.jsonl")
    with pytest.raises(UsageError, match="not a regular file"):
        predict_bundle(tmp_path / "bundle", source, tmp_path / "link", "local/smollm2-135m")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        predict_bundle(tmp_path / "bundle", source, tmp_path / "pipe", "local/smollm2-135m")
    failures = tmp_path / "out.jsonl.failures.jsonl"
    failures.write_text(source.read_text())
    with pytest.raises(UsageError, match="keeps beside it"):
        predict_bundle(tmp_path / "bundle", failures, tmp_path / "out.jsonl", "local/smollm2-135m")
    assert failures.exists()
