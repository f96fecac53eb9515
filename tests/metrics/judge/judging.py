"""What tests of judges share: a source, an extraction, and answers as a judge would give them."""

import json

SOURCE = (
    "LiCoO2 was made by a solid state reaction. Li2CO3 (2.00 g) and Co3O4 (4.34 g) were ground for 1 h and calcined at "
    "900 °C for 12 h in air."
)
RECORD = {
    "target_compound": "LiCoO2",
    "starting_materials": [{"name": "Li2CO3", "amount": 2.0, "unit": "g"}],
    "steps": [{"step_number": 1, "action": "calcine", "conditions": {"temperature": 90.0, "temp_unit": "C"}}],
}
JSON = json.dumps(RECORD)
CRITERIA = (
    "structural_completeness",
    "material_extraction",
    "process_steps",
    "equipment_extraction",
    "conditions_extraction",
    "semantic_accuracy",
    "format_compliance",
)


def scores(default=4.0, **changes):
    """The seven scores with their reasons, some of them changed."""
    said = {}
    for name in CRITERIA:
        said[f"{name}_reasoning"] = f"about {name}"
        said[f"{name}_score"] = changes.get(name, default)
    return said


def evaluation(default=4.0, **changes):
    """A whole evaluation as data."""
    return {
        "reasoning": "steps[0].conditions.temperature is 90, the source says 900 °C",
        "scores": scores(default, **changes),
        "confidence_level": "high",
        "missing_information": ["Co3O4 is missing"],
        "extraction_errors": ["steps[0].conditions.temperature: 90 instead of 900"],
        "improvement_suggestions": [],
    }


def answer(default=4.0, **changes):
    """What a judge answers: an evaluation under its key, as JSON."""
    return json.dumps({"evaluation": evaluation(default, **changes)})


def content(request):
    """All text of a request that arrived at a server."""
    return "\n".join(message["content"] for message in request.body["messages"])
