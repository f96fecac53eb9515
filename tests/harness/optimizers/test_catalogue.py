"""Every optimizer compiles on a scripted model; arguments are validated; nothing rejected becomes a demo."""

import json
from types import SimpleNamespace

import dspy
import pytest

from harness.errors import RunStopped, UsageError
from harness.evaluation import Measure, Runtime
from harness.models.config import ModelConfig
from harness.models.ledger import Ledger
from harness.models.roles import Endpoints, build_role_lm
from harness.models.scripted import ScriptedProvider, request_text
from harness.models.store import AnswerStore
from harness.optimizers.catalogue import CATALOGUE, compile_program, find_optimizer
from harness.optimizers.compiled import Job
from harness.progress import SilentProgress
from harness.scoring import Scoring
from metrics.score import Score
from programs.contract import output_contract


class Copy(dspy.Module):
    output_field = "label"

    def __init__(self):
        super().__init__()
        self.extract = dspy.Predict("text -> label")

    def forward(self, text):
        return self.extract(text=text)


def example(number, label=True):
    filled = {"label": f"L{number}"} if label else {}
    return dspy.Example(
        id=f"e{number}", group=None, expected=f"L{number}", text=f"sample-{number}", **filled
    ).with_inputs("text")


class Exact:
    name, version = "exact", "1"

    def __init__(self, judge=lambda expected, got: Score(float(expected == got))):
        self.judge = judge

    def __call__(self, example, prediction):
        return self.judge(example.expected, prediction.label)

    def compare(self, expected, predicted):
        return Score(0.0)


def right_when(condition):
    """A model that answers sample-N with LN when `condition(prompt, N)`, else with 'wrong'."""

    def script(request):
        asked = request_text(request)
        number = int(asked.rsplit("sample-", 1)[1].split()[0])
        return json.dumps({"label": f"L{number}" if condition(asked, number) else "wrong"})

    return script


def has_demos(asked, number):
    return asked.count("sample-") > 1


@pytest.fixture
def job(tmp_path):
    opened = []

    def make(script, *, train=range(6), labelled=True, metric=None, validation=range(10, 14), threads=1):
        provider = ScriptedProvider(script, concurrency=threads)
        endpoints = Endpoints(providers={provider.model: provider})
        ledger, store = Ledger(), AnswerStore(tmp_path / f"{len(opened)}.db")
        lm = build_role_lm("task", ModelConfig(provider.model), endpoints=endpoints, store=store, ledger=ledger)
        opened.append((endpoints, store))
        program = Copy()
        contract = output_contract(program)
        examples = [example(number, labelled) for number in train]
        made = Job(
            program=program,
            train=examples,
            labelled=examples if labelled else [],
            validation=[example(number) for number in validation],
            measure=Measure(Scoring(metric or Exact(), contract, ledger.stop), {}, contract),
            runtime=Runtime(lm, dspy.JSONAdapter(), threads, ledger.stop),
            teacher=None,
            seed=0,
            progress=SilentProgress(),
            log=tmp_path / "optimizer.log",
            planned=10,
        )
        return SimpleNamespace(job=made, provider=provider, ledger=ledger)

    yield make
    for endpoints, store in opened:
        endpoints.close()
        store.close()


def compiled(made, name, **arguments):
    return compile_program(*find_optimizer(name, arguments, "a file"), made.job)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
@pytest.mark.parametrize("threads", [1, 3])
def test_every_optimizer_gives_a_plain_program_and_stays_within_its_planned_calls(job, name, threads, capsys):
    made = job(right_when(has_demos), threads=threads)
    result = compiled(made, name)
    entry, arguments = find_optimizer(name, {}, "a file")
    assert not {"candidate_programs", "trial_logs"} & set(vars(result.program))
    for predictor in result.program.predictors():
        assert all(set(demo.keys()) <= {"text", "label", "augmented"} for demo in predictor.demos)
    assert len(made.provider.requests) <= sum(entry.calls(arguments, 6, 4))
    assert capsys.readouterr() == ("", "")
    assert made.job.program.extract.demos == []


def test_random_search_reports_every_candidate_and_picks_a_better_one(job):
    made = job(right_when(has_demos))
    result = compiled(made, "bootstrap_random_search", num_candidate_programs=2)
    assert [candidate.name for candidate in result.candidates] == [
        "no demos", "labelled demos", "bootstrapped in order", "random 0", "random 1",
    ]  # fmt: skip
    scores = [candidate.score for candidate in result.candidates]
    assert scores[0] == 0.0
    assert max(scores) == 1.0
    assert all(candidate.n == 4 for candidate in result.candidates)


@pytest.mark.parametrize(
    ("judge", "kept"),
    [
        (lambda expected, got: Score(0.0), 0),
        (lambda expected, got: Score(0.2), 0),
        (lambda expected, got: Score.unscored("unreadable"), 0),
        (lambda expected, got: Score.measured(float("nan")), 0),
        (lambda expected, got: Score.measured(4), 0),
        (lambda expected, got: Score(0.8), 4),
    ],
)
def test_only_what_reaches_the_threshold_becomes_a_demo(job, judge, kept):
    made = job(right_when(lambda asked, number: True), metric=Exact(judge))
    result = compiled(made, "bootstrap_few_shot", max_labeled_demos=0, metric_threshold=0.8)
    assert len(result.program.extract.demos) == kept


def test_scores_that_are_missing_are_counted_and_told(job):
    made = job(right_when(lambda *_: True), metric=Exact(lambda *_: Score.unscored("unreadable")))
    result = compiled(made, "bootstrap_few_shot", max_labeled_demos=0)
    assert "6 of 6 metric calls while tuning gave no score" in result.notes[0]


def test_records_that_do_not_fit_are_never_shown_as_labelled_demos(job):
    made = job(right_when(lambda *_: False), labelled=False)
    result = compiled(made, "bootstrap_few_shot")
    assert result.program.extract.demos == []
    assert "no training record fits the schema, so labelled demos are off" in result.notes


def test_nearest_demos_chooses_the_smaller_k_among_equals(job):
    result = compiled(job(right_when(has_demos)), "nearest_demos", k=[1, 2, 4])
    assert result.candidates[0].name == "k=1"
    assert result.program.dump_bundle()["k"] == min(
        int(candidate.name[2:]) for candidate in result.candidates if candidate.score == 1.0
    )


def test_one_k_costs_no_call(job):
    made = job(right_when(lambda *_: True))
    assert compiled(made, "nearest_demos", k=3).program.dump_bundle()["k"] == 3
    assert made.provider.requests == []


def _bug(expected, got):
    raise TypeError("a typo")


@pytest.mark.parametrize("name", ["bootstrap_few_shot", "bootstrap_random_search", "nearest_demos"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_broken_metric_stops_every_optimizer_at_its_first_call(job, name, threads):
    made = job(right_when(lambda *_: True), metric=Exact(_bug), threads=threads)
    with pytest.raises(RunStopped, match="TypeError: a typo"):
        compiled(made, name)
    assert len(made.provider.requests) <= threads


def test_a_model_that_is_gone_stops_every_optimizer(job):
    from dspy import lm15

    made = job([lm15.AuthError("no such key")])
    with pytest.raises(RunStopped, match="no such key"):
        compiled(made, "bootstrap_random_search")
    assert len(made.provider.requests) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("nearest_demo", {}, "did you mean 'nearest_demos'"),
        ("nearest_demos", {"kk": 3}, "has no argument 'kk'"),
        ("nearest_demos", {"k": []}, "nearest_demos.k"),
        ("nearest_demos", {"k": 0}, "greater than or equal to 1, got 0"),
        ("nearest_demos", {"k": [2, True]}, "nearest_demos.k"),
        ("bootstrap_random_search", {"num_candidate_programs": 10**9}, "less than or equal to 200"),
        ("bootstrap_random_search", {"num_candidates": 3}, "did you mean 'num_candidate_programs'"),
        ("labeled_few_shot", {"k": 0}, "greater than or equal to 1, got 0"),
        ("none", {"k": 1}, "it takes no arguments"),
    ],
)
def test_wrong_names_and_values_are_one_sentence(name, arguments, words):
    with pytest.raises(UsageError, match=words):
        find_optimizer(name, arguments, "experiment.yaml line 3")


def test_equal_seeds_give_equal_programs(job):
    first = compiled(job(right_when(lambda *_: True)), "labeled_few_shot").program.extract.demos
    second = compiled(job(right_when(lambda *_: True)), "labeled_few_shot").program.extract.demos
    assert [demo.toDict() for demo in first] == [demo.toDict() for demo in second]
