"""The calls that metrics make: added up over examples, and the most that one example takes."""

import pytest

from harness.metric_calls import calls_of_scoring, most_calls_of_a_score
from metrics import RecordMetric
from metrics.asking import RoleModel

ROLE = RoleModel("judge", "m")
JUDGED = RecordMetric({"steps[*].note": {"score_judge": {"lm": ROLE}}})
LABELLED = RecordMetric(
    {"method": {"label_model_grader": {"allowed_labels": ["a"], "lm": RoleModel("prompt", "m")}}}, name="labelled"
)
EXAMPLES = [
    {"expected": {"method": "a", "steps": [{"note": "x"}, {"note": "y"}]}},
    {"expected": {"steps": [{"note": "x"}]}},
    {"expected": {"method": "a"}},
]


@pytest.mark.parametrize(
    ("metrics", "examples", "calls", "most"),
    [
        ([], EXAMPLES, {}, {}),
        ([JUDGED], [], {}, {}),
        ([RecordMetric()], EXAMPLES, {}, {}),
        ([JUDGED], EXAMPLES, {"judge": 3}, {"judge": 2}),
        ([JUDGED, JUDGED], EXAMPLES, {"judge": 6}, {"judge": 4}),
        ([JUDGED, LABELLED], EXAMPLES, {"judge": 3, "prompt": 2}, {"judge": 2, "prompt": 1}),
        ([LABELLED], EXAMPLES[1:2], {}, {}),
    ],
)
def test_calls_by_role(metrics, examples, calls, most):
    assert calls_of_scoring(metrics, examples) == calls
    assert most_calls_of_a_score(metrics, examples) == most
