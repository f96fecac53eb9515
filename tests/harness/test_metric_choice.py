"""The metric of a file: composites, scales, nested record metrics; what is wrong stands with its own line."""

from pathlib import Path

import pytest

from harness.assembly import load_experiment
from harness.errors import UsageError
from harness.experiment import run
from metrics import CompositeMetric, RecordMetric, ScaledMetric

MINE = """\
from metrics import Score


class Mine:
    name, version = "mine", "1"

    def __init__(self, bonus=0.0):
        self.bonus = bonus

    def __call__(self, example, prediction):
        return Score(self.bonus, "mine says so")

    def compare(self, expected, predicted):
        return Score(self.bonus)


class Error(Mine):
    name = "error"

    def __call__(self, example, prediction):
        return abs(example.expected["total"] - (prediction.record.total or 0))

    def compare(self, expected, predicted):
        return abs(expected["total"] - (predicted or {}).get("total", 0))


class OwnScale(Mine):
    def __init__(self, scale):
        self.bonus = float(scale == "mine")
"""


@pytest.fixture
def file(project):
    """Write the metric section of the experiment; `line` numbers begin after the lines before it."""
    (project / "mine.py").write_text(MINE)
    head = (project / "experiment.yaml").read_text()
    first = len(head.splitlines()) + 1

    def write(section):
        (project / "experiment.yaml").write_text(head + section)
        return first

    return write


def metric(*overrides):
    return load_experiment("experiment.yaml", overrides).metric


def refused(*overrides):
    with pytest.raises(UsageError) as error:
        load_experiment("experiment.yaml", overrides)
    return str(error.value)


COMPOSITE = """\
metric:
  composite:
    record:
      weight: 0.6
      fields:
        vendor: exact
        total: {numeric: {relative_tolerance: 0.01}}
    mine.py:Mine: {weight: 0.4, bonus: 0.5}
"""


def test_a_composite_of_the_record_metric_and_ones_own(file):
    file(COMPOSITE)
    made = metric()

    assert isinstance(made, CompositeMetric)
    assert dict(made.weights) == {"record": 0.6, "mine": 0.4}
    score = made.compare({"vendor": "A", "total": 5}, {"vendor": "A", "total": 7})
    assert score.value == pytest.approx(0.6 * 0.5 + 0.4 * 0.5)
    assert score.parts["record"].parts["total"].value == 0.0
    assert made.version != metric("metric.composite.record.weight=0.5").version
    assert made.version != metric("metric.composite.record.fields.vendor=levenshtein").version


def test_parts_under_names_of_ones_own_and_options(file):
    file(
        "metric:\n  composite:\n    missing: renormalise\n    name: both\n"
        "    names: {weight: 3, metric: {record: {fields: {vendor: exact}}}}\n"
        "    numbers: {metric: {record: {fields: {total: numeric}}}}\n"
        "    other: {metric: mine.py:Mine, weight: 0}\n    all:\n      metric: record\n    record:\n"
    )
    made = metric()

    assert dict(made.weights) == {"names": 3.0, "numbers": 1.0, "other": 0.0, "all": 1.0, "record": 1.0}
    assert made.name == "both"
    assert made.version != metric("metric.composite.missing=unscored").version
    assert all(isinstance(part, RecordMetric) for name, part in made.parts.items() if name != "other")
    assert made.compare({"vendor": "A", "total": 5}, {"vendor": "A", "total": 5}).value == 1.0


def test_a_composite_is_an_audit_too(file):
    file("audit:\n  composite:\n    record: {fields: {vendor: exact}}\n    mine.py:Mine: {bonus: 1}\n")

    audit = load_experiment("experiment.yaml").audits["composite"]

    assert list(audit.parts) == ["record", "mine"]


def test_lower_is_better_is_declared_beside_the_metric(file):
    file("metric:\n  mine.py:Error: {minimize: true, scale: [0, 20]}\n")
    made = metric()

    assert isinstance(made, ScaledMetric)
    assert made.name == "error"
    assert made.compare({"total": 10}, {"total": 15}).value == 0.75
    composite = metric("metric={composite: {mine.py:Error: {minimize: true, scale: [0, 20], weight: 2}, record: {}}}")
    assert isinstance(composite.parts["error"], ScaledMetric)


def test_an_argument_that_a_class_names_is_its_own(file):
    file("metric: {mine.py:OwnScale: {scale: mine}}\n")

    assert metric().compare({}, {}).value == 1.0


@pytest.mark.parametrize(
    ("section", "line", "words"),
    [
        (
            "metric:\n  record:\n    fields:\n      vendor: exact\n      totall: numeric\n",
            5,
            "the path 'totall' matches",
        ),
        ("metric:\n  record:\n    fields:\n      vendor: exact\n      total: numerci\n", 5, "did you mean 'numeric'"),
        ("metric:\n  record:\n    fields:\n      vendor: nope.py:X\n", 4, "nope.py does not exist"),
        ("metric:\n  record:\n    fields:\n      vendor: mine.py:Mine\n", 4, "is not an evaluator"),
        ("metric:\n  record:\n    exclude:\n      - vendor\n      - totl\n", 3, "the path 'totl' matches nothing"),
        ("metric:\n  record:\n    include: [vendr]\n", 3, "the path 'vendr' matches nothing in any of the 24 records"),
        ("metric:\n  record:\n    include: vendor\n", 3, "include is a list of paths, got 'vendor'"),
        ("metric:\n  record:\n    exclude: [vendor, total]\n", 2, "no value of any of the 24 records counts"),
        ("metric:\n  record:\n    exclud: [vendor]\n", 3, "there is no argument 'exclud'; did you mean 'exclude'?"),
        ("metric:\n  composite:\n    record:\n      fields:\n        totall: numeric\n", 5, "'totall' matches nothing"),
        ("metric:\n  composite:\n    record:\n      fields:\n        total: numerci\n", 5, "did you mean 'numeric'"),
        ("metric:\n  composite:\n    record: {}\n    recrod:\n      weight: 1\n", 4, "no metric of this name; did you"),
        ("metric:\n  composite:\n    record:\n      weight: -1\n", 4, "the weight of 'record' is a number, 0 or more"),
        ("metric:\n  composite:\n    record: 0.6\n", 3, "a part of a composite is NAME: {weight: ..., its arguments}"),
        ("metric:\n  composite:\n    missing: skip\n    record: {}\n", 2, "missing is unscored or renormalise, got"),
        ("metric:\n  composite:\n    record: {weight: 0}\n", 2, "every weight is 0"),
        ("metric:\n  composite: {}\n", 2, "parts are metrics by name, at least one"),
        ("metric: composite\n", 1, "parts are metrics by name, at least one"),
        (
            "metric:\n  composite:\n    one:\n      metric: record\n      fields: {}\n",
            5,
            "beside metric only weight can stand, not 'fields'",
        ),
        ("metric:\n  composite:\n    one:\n      metric: {a: {}, b: {}}\n", 4, "metric must hold one name"),
        (
            "metric:\n  composite:\n    mine:\n      metric: record\n    mine.py:Mine: {}\n",
            5,
            "two parts of the composite are called 'mine'; name one yourself",
        ),
        ("metric:\n  mine.py:Error: {minimize: true, scale: [20, 0]}\n", 2, "of which the first is lower, got [20, 0]"),
        ("metric:\n  mine.py:Error: {minimise: true}\n", 2, "minimise"),
        ("audit:\n  record:\n    fields:\n      totall: numeric\n", 4, "metric record: the path 'totall' matches"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(file, section, line, words):
    first = file(section)

    message = refused()

    assert len(message.splitlines()) == 1
    assert words in message
    assert message.startswith(f"experiment.yaml line {first + line - 1}: ")


def test_everything_wrong_with_the_parts_is_told_at_once(file):
    first = file(
        "metric:\n  composite:\n    record:\n      fields: {totall: numeric}\n    recrod: {}\n    mine.py:Mien: {}\n"
    )

    lines = refused().splitlines()

    assert [words in line for words, line in zip(("'totall'", "'record'", "'Mine'"), lines, strict=True)] == [True] * 3
    assert lines[0].startswith(f"experiment.yaml line {first + 3}: ")


def test_empty_fields_are_evaluators_by_type(file):
    file("metric:\n  record:\n    fields:\n    include:\n")

    assert metric().compare({"vendor": "John Doe"}, {"vendor": "Jon Doe"}).value == 0.875


def test_of_a_metric_to_be_minimised_the_lowest_error_wins(file, scripted):
    file("metric:\n  mine.py:Error: {minimize: true, scale: [0, 40]}\n")
    endpoints, _ = scripted()

    result = run(load_experiment("experiment.yaml"), endpoints=endpoints)

    errors = {side.name: [row.score.details["number"] for row in side.rows] for side in (result.baseline, result.tuned)}
    assert result.verdict == "improved"
    assert max(errors["tuned"]) == 0.0 < min(errors["baseline"])
    assert result.tuned.total.score == 1.0 > result.baseline.total.score
    assert all(candidate.n == 4 for candidate in result.candidates)


def test_a_composite_is_measured_part_by_part(file, scripted):
    file(COMPOSITE)
    endpoints, _ = scripted()

    result = run(load_experiment("experiment.yaml"), endpoints=endpoints)

    fields = {name: total.score for name, total in result.tuned.fields.items()}
    assert fields == {"record": 1.0, "mine": 0.5, "record/vendor": 1.0, "record/total": 1.0}
    assert result.baseline.fields["record/vendor"].n_total == 12
    assert result.tuned.total.score == pytest.approx(0.8)
    assert [field["field"] for field in result.to_document()["worst_fields"]] == ["mine"]
    report = (Path(result.folder) / "report.html").read_text(encoding="utf-8")
    assert "Worst fields after tuning" in report
    assert "mine says so" in report
