"""Text of a synthesis to GeneralSynthesisOntology."""

from __future__ import annotations

from typing import Any

import dspy
from dspy.signatures.signature import make_signature

from programs.ontology import GeneralSynthesisOntology

# No list of allowed values here: adapters write them from the schema, so prompt and schema cannot disagree.
_INSTRUCTIONS = (
    "Extract the synthesis that the text describes. Take over names, numbers and units as the text gives them, "
    "keep the steps in order, and leave empty what the text does not say."
)
_TARGET_INSTRUCTIONS = " Extract only the synthesis of the target material."


class SynthesisExtraction(dspy.Module):
    """Extracts one synthesis; the result is `prediction.synthesis`, a GeneralSynthesisOntology.

    Args:
        target: also take `target_material`, for texts that describe more than one synthesis.

    >>> SynthesisExtraction(target=True).input_fields
    ('text', 'target_material')
    """

    output_field = "synthesis"

    def __init__(self, target: bool = False) -> None:
        super().__init__()
        self.target = target
        self.input_fields = ("text", "target_material") if target else ("text",)
        fields: dict[str, Any] = {"text": (str, dspy.InputField(desc="description of the synthesis"))}
        if target:
            fields["target_material"] = (str, dspy.InputField(desc="the material whose synthesis is wanted"))
        fields["synthesis"] = (GeneralSynthesisOntology, dspy.OutputField(desc="the synthesis"))
        instructions = _INSTRUCTIONS + (_TARGET_INSTRUCTIONS if target else "")
        self.extract = dspy.Predict(make_signature(fields, instructions))

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Extract from `text` (and `target_material`)."""
        return self.extract(**inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """`forward` for asynchronous callers."""
        return await self.extract.acall(**inputs)

    def arguments(self) -> dict[str, Any]:
        """Constructor arguments as JSON data, enough to build this program again anywhere."""
        return {"target": self.target}
