"""Everything of the package that asks a model through the judge suite; a new one is one line."""

import dspy

from harness.models.scripted import ScriptedProvider
from metrics import CompositeMetric, RecordMetric
from metrics.testing import JudgeConformance, conformance

SCORES = {"good_answer": '{"reason": "as it should be", "score": 0.9}', "bad_answer": '{"reason": "no", "score": 0.1}'}


def says(answer):
    """A model that says the same to everything."""
    provider = ScriptedProvider(lambda request: answer, "scripted/judge")
    return dspy.LM("scripted/judge", engine=provider, cache=False, num_retries=0)


def judged_whole(answer):
    return RecordMetric({"$": {"score_judge": {"lm": says(answer)}}})


def judged_in_part(answer):
    return CompositeMetric({"judged": judged_whole(answer), "target": RecordMetric({"target_compound": "exact"})})


TestScoreJudgeOfARecord = conformance(JudgeConformance, judged_whole, **SCORES)
TestInAComposite = conformance(JudgeConformance, judged_in_part, **SCORES)
