"""Metrics of figures and links, named in a file."""

import json

import pytest

from harness.assembly import load_experiment
from harness.errors import UsageError
from metrics import CompositeMetric, FigureMetric, LinkingMetric

FIGURE = {"name_to_coordinates": {"a": [[0, 1], [1, 2]]}}
LINKS = [{"plot_index": 0, "mappings": [{"series_name": "a", "material_name": "X"}]}]
SCHEMA = {
    "type": "object",
    "properties": {
        "name_to_coordinates": {"type": "object"},
        "mappings": {"type": "array", "items": {"type": "object"}},
    },
}
EXPERIMENT = """\
program: {programs.schema:SchemaExtraction: {model: schema.json}}
data: rows.jsonl
models: {task: openai/x}
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))

    def write(expected, metric):
        rows = [{"id": str(n), "text": f"text {n}", "expected": expected} for n in range(12)]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "experiment.yaml").write_text(EXPERIMENT + metric)
        return load_experiment("experiment.yaml")

    return write


def test_a_figure_metric_looks_where_the_program_puts_its_result(experiment):
    metric = experiment(FIGURE, "metric: {figure: {worthless: 0.2}}\n").metric
    assert isinstance(metric, FigureMetric)
    assert metric.output_field == "record"
    assert metric.version == FigureMetric(worthless=0.2).version
    assert metric({"expected": FIGURE}, {"record": FIGURE}).value == 1.0


def test_a_linking_metric_and_a_composite(experiment):
    assert isinstance(experiment({"mappings": LINKS}, "metric: linking\n").metric, LinkingMetric)
    both = experiment({**FIGURE, "mappings": LINKS}, "metric: {composite: {figure: {weight: 2}, linking: {}}}\n").metric
    assert isinstance(both, CompositeMetric)
    assert both.compare({**FIGURE, "mappings": LINKS}, FIGURE).value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("metric: {figure: {worthles: 1}}\n", "did you mean 'worthless'"),
        ("metric: {figure: {worthless: -1}}\n", "0 <= exact < worthless"),
        ("metric: {figure: {x_scale: logs}}\n", "did you mean 'log'"),
        ("metric: figures\n", "did you mean 'figure'"),
    ],
)
def test_mistakes_are_told(experiment, metric, words):
    with pytest.raises(UsageError, match=words):
        experiment(FIGURE, metric)


@pytest.mark.parametrize(("metric", "what"), [("figure", "series"), ("linking", "links")])
def test_records_of_another_kind_are_refused(experiment, metric, what):
    with pytest.raises(UsageError, match=f"none of the 12 records holds {what}"):
        experiment({"vendor": "Acme"} if metric == "figure" else {"mappings": []}, f"metric: {metric}\n")
