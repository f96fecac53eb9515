"""The judge of links between plotted series and materials: four criteria from 1 to 5, by the rubric `linking`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from metrics.judge.inputs import extraction_in, refuse_short
from metrics.judge.rubric import load_rubric
from metrics.judge.rubric_judge import RubricJudge, judge_signature

SHORTEST_SOURCE, SHORTEST_JSON = 50, 10
"""Characters below which there is nothing to judge."""


class LinkingEvaluationScore(BaseModel):
    """Four scores from 1 to 5 with their reasons; None is "does not apply" or "could not be read".

    `overall_score` is worked out here: the mean of the four that are there, in full precision.
    """

    material_identity_score: float | None = Field(None, ge=1, le=5)
    material_identity_reasoning: str = ""
    performance_data_correctness_score: float | None = Field(None, ge=1, le=5)
    performance_data_correctness_reasoning: str = ""
    completeness_score: float | None = Field(None, ge=1, le=5)
    completeness_reasoning: str = ""
    format_structure_score: float | None = Field(None, ge=1, le=5)
    format_structure_reasoning: str = ""
    overall_score: float | None = Field(None, ge=1, le=5)
    overall_reasoning: str = ""


class LinkingFailureFlags(BaseModel):
    """Nine kinds of failure, set whatever the scores are; see the rubric for what each means."""

    f1_name_mismatch: bool = False
    f2_one_to_many_synthesis: bool = False
    f3_many_to_one_figure: bool = False
    f4_sample_code_failure: bool = False
    f5_precursor_vs_product: bool = False
    f6_characterization_confusion: bool = False
    f7_dual_axis_error: bool = False
    f8_false_negative: bool = False
    f9_false_positive: bool = False

    def active_flags(self) -> list[str]:
        """The codes of the flags that are set.

        >>> LinkingFailureFlags(f8_false_negative=True, f1_name_mismatch=True).active_flags()
        ['F1', 'F8']
        """
        return [name.partition("_")[0].upper() for name in type(self).model_fields if getattr(self, name)]


class LinkingEvaluation(BaseModel):
    """What the judge says of one paper's links."""

    reasoning: str
    scores: LinkingEvaluationScore
    failure_flags: LinkingFailureFlags = LinkingFailureFlags()
    confidence_level: Literal["low", "medium", "high"] = "medium"
    missing_links: list[str] = []
    spurious_links: list[str] = []
    improvement_suggestions: list[str] = []


def make_linking_judge_signature(
    signature_name: str = "LinkingJudgeSignature",
    instructions: str | None = None,
    source_text_description: str | None = None,
    synthesis_json_description: str | None = None,
    plot_data_json_description: str | None = None,
    linking_output_json_description: str | None = None,
    evaluation_description: str | None = None,
) -> Any:
    """The judge's dspy signature; what is not given comes from the rubric.

    Raises:
        ValueError: an empty text.

    >>> list(make_linking_judge_signature().output_fields)
    ['evaluation']
    """
    return judge_signature(
        load_rubric("linking"),
        LinkingEvaluation,
        signature_name,
        instructions=instructions,
        source_text_description=source_text_description,
        synthesis_json_description=synthesis_json_description,
        plot_data_json_description=plot_data_json_description,
        linking_output_json_description=linking_output_json_description,
        evaluation_description=evaluation_description,
    )


class DspyLinkingJudge(RubricJudge):
    """Judges the links of one paper; see `RubricJudge` for the arguments.

    >>> DspyLinkingJudge().rubric.name
    'linking'
    """

    def __init__(
        self,
        lm: Any = None,
        enable_reasoning_traces: bool = False,
        confidence_threshold: float = 0.7,
        signature: Any = None,
        retry_temperatures: Sequence[float] | None = None,
    ) -> None:
        super().__init__("linking", lm, enable_reasoning_traces, confidence_threshold, retry_temperatures, signature)

    def signature(self) -> Any:
        """The established signature."""
        return make_linking_judge_signature()

    def evaluation_type(self) -> type[BaseModel]:
        """LinkingEvaluation."""
        return LinkingEvaluation

    def forward(self, input: Sequence[str]) -> LinkingEvaluation:  # pyright: ignore[reportIncompatibleMethodOverride]  # established
        """The evaluation of one paper's links.

        Args:
            input: (source_text, synthesis_json, plot_data_json, linking_output_json).

        Raises:
            ValueError: a source under 50 characters, JSON under 10 or none.
            NoAnswerError: the error of the last attempt, when none gave an answer that can be read.
        """
        if not isinstance(input, list | tuple) or len(input) != 4:
            raise ValueError("the judge's input is (source_text, synthesis_json, plot_data_json, linking_output_json)")
        refuse_short("source_text", input[0], SHORTEST_SOURCE)
        names = ("synthesis_json", "plot_data_json", "linking_output_json")
        for name, text in zip(names, input[1:], strict=True):
            extraction_in(name, text, SHORTEST_JSON)
        return super().forward(source_text=input[0], **dict(zip(names, input[1:], strict=True)))
