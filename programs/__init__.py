"""What is tuned: dspy modules and the records they fill."""

from programs.contract import OutputContract, ProgramDeclarationError, RecordError, output_contract
from programs.ontology import Conditions, Equipment, GeneralSynthesisOntology, Material, ProcessStep
from programs.schema import SchemaExtraction
from programs.synthesis import SynthesisExtraction

__all__ = [
    "Conditions",
    "Equipment",
    "GeneralSynthesisOntology",
    "Material",
    "OutputContract",
    "ProcessStep",
    "ProgramDeclarationError",
    "RecordError",
    "SchemaExtraction",
    "SynthesisExtraction",
    "output_contract",
]
