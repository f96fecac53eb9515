"""The judge of extracted syntheses: seven criteria from 1 to 5, by the rubric `synthesis`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from metrics.judge.inputs import extraction_in, refuse_short, target_in
from metrics.judge.rubric import load_rubric
from metrics.judge.rubric_judge import RubricJudge, judge_signature

SHORTEST_SOURCE, SHORTEST_RECORD = 50, 20
"""Characters below which there is nothing to judge."""


class GeneralSynthesisEvaluationScore(BaseModel):
    """Seven scores from 1 to 5 with their reasons; None is "does not apply" or "could not be read".

    `overall_score` is worked out here: the mean of the seven that are there, in full precision.
    """

    structural_completeness_score: float | None = Field(None, ge=1, le=5)
    structural_completeness_reasoning: str = ""
    material_extraction_score: float | None = Field(None, ge=1, le=5)
    material_extraction_reasoning: str = ""
    process_steps_score: float | None = Field(None, ge=1, le=5)
    process_steps_reasoning: str = ""
    equipment_extraction_score: float | None = Field(None, ge=1, le=5)
    equipment_extraction_reasoning: str = ""
    conditions_extraction_score: float | None = Field(None, ge=1, le=5)
    conditions_extraction_reasoning: str = ""
    semantic_accuracy_score: float | None = Field(None, ge=1, le=5)
    semantic_accuracy_reasoning: str = ""
    format_compliance_score: float | None = Field(None, ge=1, le=5)
    format_compliance_reasoning: str = ""
    overall_score: float | None = Field(None, ge=1, le=5)
    overall_reasoning: str = ""


class GeneralSynthesisEvaluation(BaseModel):
    """What the judge says of one extraction."""

    reasoning: str
    scores: GeneralSynthesisEvaluationScore
    confidence_level: Literal["low", "medium", "high"] = "medium"
    missing_information: list[str] = []
    extraction_errors: list[str] = []
    improvement_suggestions: list[str] = []


def make_general_synthesis_judge_signature(
    signature_name: str = "GeneralSynthesisJudgeSignature",
    instructions: str | None = None,
    source_text_description: str | None = None,
    extracted_ontology_description: str | None = None,
    target_material_description: str | None = None,
    evaluation_description: str | None = None,
) -> Any:
    """The judge's dspy signature; what is not given comes from the rubric.

    Raises:
        ValueError: an empty text.

    >>> make_general_synthesis_judge_signature().__name__
    'GeneralSynthesisJudgeSignature'
    """
    return judge_signature(
        load_rubric("synthesis"),
        GeneralSynthesisEvaluation,
        signature_name,
        instructions=instructions,
        source_text_description=source_text_description,
        extracted_ontology_json_description=extracted_ontology_description,
        target_material_description=target_material_description,
        evaluation_description=evaluation_description,
    )


class DspyGeneralSynthesisJudge(RubricJudge):
    """Judges an extracted synthesis against its source text; see `RubricJudge` for the arguments.

    >>> judge = DspyGeneralSynthesisJudge()
    >>> [name for name, _ in judge.named_predictors()], list(judge.rubric.criteria)[:2]
    (['evaluate'], ['structural_completeness', 'material_extraction'])
    """

    def __init__(
        self,
        lm: Any = None,
        enable_reasoning_traces: bool = False,
        confidence_threshold: float = 0.7,
        signature: Any = None,
        retry_temperatures: Sequence[float] | None = None,
    ) -> None:
        super().__init__("synthesis", lm, enable_reasoning_traces, confidence_threshold, retry_temperatures, signature)

    def signature(self) -> Any:
        """The established signature."""
        return make_general_synthesis_judge_signature()

    def evaluation_type(self) -> type[BaseModel]:
        """GeneralSynthesisEvaluation."""
        return GeneralSynthesisEvaluation

    def forward(self, input: Sequence[str]) -> GeneralSynthesisEvaluation:  # pyright: ignore[reportIncompatibleMethodOverride]  # established
        """The evaluation of one extraction.

        Args:
            input: (source_text, extracted_ontology_json) or (source_text, extracted_ontology_json, target_material);
                without a target that of the extraction.

        Raises:
            ValueError: a source under 50 characters, a record under 20 or one that is no JSON.
            NoAnswerError: the error of the last attempt, when none gave an answer that can be read.
        """
        if not isinstance(input, list | tuple) or len(input) not in (2, 3):
            raise ValueError("the judge's input is (source_text, extracted_ontology_json[, target_material])")
        source, record, *target = input
        refuse_short("source_text", source, SHORTEST_SOURCE)
        found = extraction_in("extracted_ontology_json", record, SHORTEST_RECORD)
        named = target[0] if target else target_in(found)
        return super().forward(source_text=source, extracted_ontology_json=record, target_material=named)
