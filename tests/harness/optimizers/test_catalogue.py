"""Every optimizer compiles on a scripted model; arguments are validated; nothing rejected becomes a demo."""

import inspect
import os

import dspy
import pytest
from dspy import lm15, teleprompt

from harness.bundle import export, load
from harness.errors import RunStopped, StopReason, UsageError
from harness.optimizers.catalogue import CATALOGUE, find_optimizer
from metrics.score import Score

WRITES = "Give the label of the sample."
TRAINING = [f"L{number}" for number in range(6)]
SMALL = {
    "bootstrap_random_search": {"num_candidate_programs": 1},
    "gepa": {"max_metric_calls": 40},
    "miprov2": {"num_candidates": 3, "num_trials": 4},
    "simba": {"num_candidates": 2, "max_steps": 2, "bsize": 2},
}
"""Fewer candidates than by default, to be fast."""


@pytest.mark.parametrize("name", sorted(CATALOGUE))
@pytest.mark.parametrize("threads", [1, 3])
def test_every_optimizer_gives_a_plain_program_and_stays_within_its_planned_calls(
    job, scripts, compiled, name, threads, capsys, tmp_path, monkeypatch
):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    made = job(scripts.right_when(scripts.has_demos), prompt=scripts.says(WRITES), threads=threads)
    result = compiled(made, name, **SMALL.get(name, {}))
    entry, arguments = find_optimizer(name, SMALL.get(name, {}), "a file")
    assert set(vars(result.program)) <= set(vars(made.job.program)) | {"program", "output_field"} | set(
        vars(result.program) if name == "nearest_demos" else ()
    )
    for predictor in result.program.predictors():
        assert all(set(demo.keys()) <= {"text", "label"} for demo in predictor.demos)
        assert predictor.lm is None
    planned = entry.calls(arguments, 6, 4, 1)
    assert len(made.provider.requests) <= planned.get("task", 0) + planned.get("teacher", 0)
    assert len(made.prompt.requests) <= planned.get("prompt", 0)
    assert capsys.readouterr() == ("", "")
    assert made.job.program.extract.demos == []
    assert os.listdir() == []


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_what_an_optimizer_gives_is_exported_as_a_bundle_that_sends_the_same_prompts(
    job, scripts, compiled, name, tmp_path
):
    made = job(scripts.right_when(scripts.has_demos), prompt=scripts.says(WRITES))
    program = compiled(made, name, **SMALL.get(name, {})).program
    export(  # compares the prompts itself
        tmp_path / "bundle",
        program=program,
        contract=made.job.measure.contract,
        adapter_name="json",
        model_settings={"model": "scripted/model"},
        report={},
        probes=[{"text": "sample-3"}],
    )
    assert load(tmp_path / "bundle", program=type(made.job.program)).contract.field == "label"


@pytest.mark.parametrize(
    ("judge", "kept"),
    [
        (lambda expected, got: Score(0.0), 0),
        (lambda expected, got: Score(0.2), 0),
        (lambda expected, got: Score.unscored("unreadable"), 0),
        (lambda expected, got: Score.measured(float("nan")), 0),
        (lambda expected, got: Score.measured(False), 0),
        (lambda expected, got: Score.measured(4), 0),
        (lambda expected, got: Score(0.8), 4),
    ],
)
@pytest.mark.parametrize("name", ["bootstrap_few_shot", "bootstrap_random_search", "miprov2"])
def test_only_what_reaches_the_threshold_becomes_a_demo(job, scripts, compiled, name, judge, kept):
    def judged(expected, got):
        return judge(expected, got) if expected in TRAINING else Score(0.5)

    made = job(scripts.right_when(lambda *_: True), prompt=scripts.says(WRITES), metric=scripts.Exact(judged))
    result = compiled(made, name, **SMALL.get(name, {}), max_labeled_demos=0, metric_threshold=0.8)
    reached, tried = next(note.split()[0:3:2] for note in result.notes if "reached metric_threshold" in note)
    assert (int(reached) == int(tried)) == bool(kept)
    if not kept:
        assert result.program.extract.demos == []
        assert all("0 demos" in candidate.description for candidate in result.candidates)
    elif name == "bootstrap_few_shot":
        assert len(result.program.extract.demos) == kept


@pytest.mark.parametrize("name", ["bootstrap_few_shot", "bootstrap_random_search", "miprov2"])
def test_a_threshold_of_one_keeps_no_answer_of_0_8(job, scripts, compiled, name):
    made = job(
        scripts.right_when(lambda *_: True), prompt=scripts.says(WRITES), metric=scripts.Exact(lambda *_: Score(0.8))
    )
    result = compiled(made, name, **SMALL.get(name, {}), max_labeled_demos=0, metric_threshold=1.0)
    assert result.program.extract.demos == []
    assert any(note.startswith("0 of ") and "reached" in note for note in result.notes)


def test_scores_that_are_missing_are_counted_and_told(job, scripts, compiled):
    made = job(scripts.right_when(lambda *_: True), metric=scripts.Exact(lambda *_: Score.unscored("unreadable")))
    result = compiled(made, "bootstrap_few_shot", max_labeled_demos=0)
    assert "6 of 6 metric calls while tuning gave no score" in result.notes[0]


@pytest.mark.parametrize("name", ["bootstrap_few_shot", "miprov2"])
def test_records_that_do_not_fit_are_never_shown_as_labelled_demos(job, scripts, compiled, name):
    made = job(scripts.right_when(lambda *_: False), prompt=scripts.says(WRITES), labelled=False)
    result = compiled(made, name, **SMALL.get(name, {}))
    assert result.program.extract.demos == []
    assert "no training record fits the schema, so labelled demos are off" in result.notes


def test_nearest_demos_chooses_the_smaller_k_among_equals(job, scripts, compiled):
    result = compiled(job(scripts.right_when(scripts.has_demos)), "nearest_demos", k=[1, 2, 4])
    assert result.candidates[0].name == "k=1"
    assert result.program.dump_bundle()["k"] == min(
        int(candidate.name[2:]) for candidate in result.candidates if candidate.score == 1.0
    )


def test_one_k_costs_no_call(job, scripts, compiled):
    made = job(scripts.right_when(lambda *_: True))
    assert compiled(made, "nearest_demos", k=3).program.dump_bundle()["k"] == 3
    assert made.provider.requests == []


def test_random_search_reports_every_candidate_and_picks_a_better_one(job, scripts, compiled):
    result = compiled(job(scripts.right_when(scripts.has_demos)), "bootstrap_random_search", num_candidate_programs=2)
    assert [candidate.name for candidate in result.candidates] == [
        "no demos", "labelled demos", "bootstrapped in order", "random 0", "random 1",
    ]  # fmt: skip
    scores = [candidate.score for candidate in result.candidates]
    assert scores[0] == 0.0
    assert max(scores) == 1.0
    assert all(candidate.n == 4 for candidate in result.candidates)


def _typo(expected, got):
    return got.anser


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (_typo, "AttributeError: 'str' object has no attribute 'anser'"),
        (lambda *_: None, "it returned NoneType, not a metrics.Score"),
        (lambda *_: 4, "it returned int, not a metrics.Score"),
        (lambda *_: float("nan"), "it returned float, not a metrics.Score"),
        (lambda *_: dspy.Prediction(score=0.0), "it returned Prediction, not a metrics.Score"),
    ],
)
@pytest.mark.parametrize("name", ["bootstrap_few_shot", "bootstrap_random_search", "miprov2", "nearest_demos", "simba"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_broken_metric_stops_every_optimizer_at_its_first_call(job, scripts, compiled, name, threads, judge, words):
    made = job(
        scripts.right_when(lambda *_: True),
        prompt=scripts.says(WRITES),
        metric=scripts.Exact(judge),
        threads=threads,
    )
    with pytest.raises(RunStopped, match=words) as stopped:
        compiled(made, name, **SMALL.get(name, {}))
    assert stopped.value.reason is StopReason.METRIC
    assert len(made.provider.requests) <= threads
    assert made.prompt.requests == []


@pytest.mark.parametrize("name", ["bootstrap_random_search", "miprov2", "simba"])
def test_a_model_that_is_gone_stops_every_optimizer(job, scripts, compiled, name):
    made = job(lambda _: lm15.AuthError("no such key"), prompt=scripts.says(WRITES))
    with pytest.raises(RunStopped, match="no such key"):
        compiled(made, name, **SMALL.get(name, {}))
    assert len(made.provider.requests) == 1


@pytest.mark.parametrize("name", ["bootstrap_random_search", "miprov2", "nearest_demos", "simba"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_budget_that_ends_the_search_gives_the_best_program_by_then(job, scripts, compiled, name, threads):
    settings = {"prompt": scripts.says(WRITES), "train": range(4), "threads": threads}
    whole = job(scripts.right_when(scripts.has_demos), **settings)
    compiled(whole, name, **SMALL.get(name, {}))
    needed = sum(usage.calls for usage in whole.ledger.usage().values())
    reached = []
    for calls in sorted({*range(0, needed, max(1, needed // 6)), needed - 1}):
        made = job(scripts.right_when(scripts.has_demos), max_calls=calls, **settings)
        result = compiled(made, name, **SMALL.get(name, {}))
        assert result.stopped is not None
        assert result.stopped.reason is StopReason.BUDGET
        assert sum(usage.calls for usage in made.ledger.usage().values()) == calls
        assert any("tuning ended early" in note for note in result.notes)
        best = max((candidate.score for candidate in result.candidates if candidate.n == 4), default=0.0)
        holds = name == "nearest_demos" or any(predictor.demos for predictor in result.program.predictors())
        assert holds == (best > 0) or name == "nearest_demos"
        reached.append(best)
    assert reached == sorted(reached)
    assert name == "simba" or reached[-1] == 1.0


@pytest.mark.parametrize("name", ["labeled_few_shot", "bootstrap_random_search", "miprov2", "simba"])
def test_equal_seeds_give_equal_programs(job, scripts, compiled, name):
    def run(seed):
        made = job(
            scripts.right_when(lambda asked, number: scripts.has_demos(asked, number) or number % 2),
            prompt=scripts.says(WRITES, "Name the label.", "Say which label the sample has."),
            train=range(8),
            seed=seed,
        )
        program = compiled(made, name, **SMALL.get(name, {})).program
        return program.extract.signature.instructions, [demo.toDict() for demo in program.extract.demos]

    assert run(3) == run(3)
    assert any(run(3) != run(seed) for seed in (4, 5, 6))


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
        ("miprov2", {"auto": "lite"}, "miprov2.auto: Input should be 'light', 'medium' or 'heavy', got 'lite'"),
        ("miprov2", {"auto": "light", "num_trials": 3}, "line 3: miprov2: give either auto, or num_candidates and"),
        ("miprov2", {"num_trials": 3}, "num_trials needs num_candidates beside it"),
        ("miprov2", {"log_dir": "x"}, "has no argument 'log_dir'"),
        ("simba", {"bsize": 0}, "greater than or equal to 1, got 0"),
    ],
)
def test_wrong_names_and_values_are_one_sentence(name, arguments, words):
    with pytest.raises(UsageError, match=words):
        find_optimizer(name, arguments, "experiment.yaml line 3")


@pytest.mark.parametrize(
    ("name", "made_by"),
    [
        ("labeled_few_shot", teleprompt.LabeledFewShot),
        ("bootstrap_few_shot", teleprompt.BootstrapFewShot),
        ("bootstrap_random_search", teleprompt.BootstrapFewShotWithRandomSearch),
        ("miprov2", teleprompt.MIPROv2),
        ("simba", teleprompt.SIMBA),
    ],
)
def test_every_argument_is_one_of_the_installed_optimizer(name, made_by):
    known = {*inspect.signature(made_by).parameters, *inspect.signature(made_by.compile).parameters}
    # Our adapter applies the threshold, so that it holds for every candidate set.
    assert set(CATALOGUE[name].arguments.model_fields) - {"metric_threshold"} <= known
