"""Parts of Scores by name at any depth, and the fields that went worst, in documents and in the report."""

from harness.evaluation import aggregate_fields
from harness.fields import parts_of, worst_fields
from harness.results import Evaluation, Row, worst_field_document
from harness.tracking.report_examples import worst_by_field
from metrics import CompositeMetric, RecordMetric, Score
from metrics.statistics import aggregate


class Judge:
    name, version = "judge", "1"

    def __call__(self, example, prediction):
        return Score.unscored("no answer", parts={"order": Score(0.4), "units": Score.unscored("not applicable")})

    compare = __call__


RECORD = {"target": "LiCoO2", "steps": [{"action": "mix"}, {"action": "heat"}]}


def row(number, predicted, metric):
    score = metric.compare(RECORD, predicted)
    return Row(f"ex-{number}", None, {}, RECORD, predicted, score)


def evaluation(predictions, metric=None):
    rows = [row(number, one, metric or RecordMetric()) for number, one in enumerate(predictions)]
    return Evaluation("tuned", "test", rows, aggregate([one.score.value for one in rows]), aggregate_fields(rows), {})


PREDICTIONS = [
    RECORD,
    {"target": "LiCoO2", "steps": [{"action": "mix"}]},
    {"target": "NaCl", "steps": [{"action": "mix"}, {"action": "zzzz"}]},
    {},
]


def test_parts_of_every_depth_have_a_name():
    composite = CompositeMetric({"record": RecordMetric(), "judge": Judge()})

    assert list(parts_of(composite.compare(RECORD, RECORD))) == [
        *("record", "judge"),
        *("record/target", "record/steps[*].action", "record/steps[*]"),
        *("record/steps[*]/precision", "record/steps[*]/recall", "record/steps[*]/f1"),
        *("judge/order", "judge/units"),
    ]


def test_every_part_is_aggregated_over_the_examples_that_have_it():
    fields = evaluation(PREDICTIONS).fields

    assert (fields["target"].score, fields["target"].n_total) == (0.5, 4)
    assert fields["steps[*]/recall"].score == (1 + 0.5 + 0.5 + 0) / 4
    assert (fields["steps[*]/precision"].n_scored, fields["steps[*]/precision"].n_total) == (3, 4)


def test_the_worst_fields_come_with_their_worst_examples():
    found = worst_fields(evaluation(PREDICTIONS))

    assert [field.path for field in found] == ["steps[*]", "steps[*].action", "target"]
    assert [one.example_id for one in found[0].rows] == ["ex-3", "ex-2", "ex-1"]
    assert [one.example_id for one in found[2].rows] == ["ex-2", "ex-3"]
    assert worst_fields(evaluation(PREDICTIONS), count=1, rows=1) == [
        type(found[0])(found[0].path, found[0].total, found[0].rows[:1])
    ]
    assert worst_fields(evaluation([RECORD, RECORD])) == []
    assert worst_fields(Evaluation("tuned", "test", [], aggregate([]), {}, {})) == []


def test_what_only_sums_up_and_what_has_no_score_is_no_worst_field():
    found = worst_fields(evaluation(PREDICTIONS, CompositeMetric({"record": RecordMetric(), "judge": Judge()})))

    assert [field.path for field in found] == [
        "judge/order",
        "record/steps[*]",
        "record/steps[*].action",
        "record/target",
    ]


def test_documents_hold_ids_and_numbers_only():
    document = worst_field_document(worst_fields(evaluation(PREDICTIONS))[2])

    assert document["field"] == "target"
    assert (document["score"], document["n_scored"], document["n_total"]) == (0.5, 4, 4)
    assert len(document["interval"]) == 2
    assert document["examples"] == [{"id": "ex-2", "score": 0.0}, {"id": "ex-3", "score": 0.0}]


def test_the_report_says_what_was_wrong_there():
    target = next(field for field in worst_by_field(evaluation(PREDICTIONS)) if field.path == "target")
    action = next(field for field in worst_by_field(evaluation(PREDICTIONS)) if field.path == "steps[*].action")

    assert target.examples[0].said.startswith("target: expected 'LiCoO2', got 'NaCl'")
    assert action.examples[2].said == "steps[1]: missing, expected action 'heat'"
    nested = worst_by_field(evaluation(PREDICTIONS, CompositeMetric({"record": RecordMetric()})))
    assert next(field for field in nested if field.path == "record/target").examples[0].said.startswith("target: exp")
    told = worst_by_field(evaluation([RECORD], CompositeMetric({"judge": Judge()}, missing="renormalise")))
    assert [(field.path, field.examples[0].said) for field in told] == [("judge/order", "")]
