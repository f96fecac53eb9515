"""A tuned program, and a user's own, as the tests of bundles export them."""

import datetime
import enum
import hashlib
import json
from types import SimpleNamespace

import dspy
import pydantic
import pytest
from dspy import lm15

from harness import bundle
from harness.bundle.folder import HASHES
from harness.optimizers.nearest import NearestDemos
from programs import SchemaExtraction, output_contract

SETTINGS = {"model": "local/smollm2-135m", "temperature": 0.0, "max_tokens": 512}


class Engine:
    """Answers every request with one text and keeps the requests."""

    supports_function_calling = supports_reasoning = False
    supports_response_schema = True
    supported_params = frozenset(("response_format", "temperature"))

    def __init__(self, answer):
        self.answer = answer
        self.requests = []

    def complete(self, request):
        self.requests.append(request)
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(self.answer)]),
            finish_reason="stop",
            usage=lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2),
        )

    def __deepcopy__(self, memo):
        return self


def model(engine):
    return dspy.LM("scripted/x", engine=engine, cache=False, num_retries=0)


class Unit(enum.Enum):
    EUR = "EUR"
    USD = "USD"


class Line(pydantic.BaseModel):
    name: str
    amount: float | None = None
    within: list["Line"] = []


class Invoice(pydantic.BaseModel):
    """An invoice."""

    vendor: str = pydantic.Field(description="who sent it")
    day: datetime.datetime | None = None
    unit: Unit = Unit.EUR
    lines: list[Line] = []


RECORDS = [
    {"vendor": "Müller \u2028 & Söhne \U0001f4b6", "day": "2024-01-02T03:04:05+01:00", "unit": "USD"},
    {
        "vendor": 'a "quoted"\nname\\',
        "lines": [{"name": "静脉", "amount": 0.1}, {"name": "x", "within": [{"name": "y"}]}],
    },
]


def tuned(record_model=Invoice, instructions="Read ünïcode,\n\n  keep indents.\n"):
    """A SchemaExtraction as an optimizer leaves it."""
    program = SchemaExtraction(record_model)
    program.extract.signature = program.extract.signature.with_instructions(instructions)
    contract = output_contract(program)
    program.extract.demos = [
        dspy.Example(text=f"text {n}\twith tab", record=contract.validate(record), id=n, group="10.1/x", augmented=True)
        for n, record in enumerate(RECORDS)
    ]
    return program


def export(folder, program, adapter="compact", **more):
    arguments = {"model_settings": SETTINGS, "report": {"verdict": "improved"}, **more}
    contract = output_contract(program)
    return bundle.export(folder, program=program, contract=contract, adapter_name=adapter, **arguments)


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rewrite(folder, name, change):
    """Change a file and its hash, as someone would who writes bundles by hand."""
    path = folder / name
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    names = [line[66:] for line in (folder / HASHES).read_text().splitlines()]
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}" for name in names]
    (folder / HASHES).write_text("\n".join(lines) + "\n")


def nearest():
    pool = [
        {"id": str(n), "text": text, "record": {"vendor": text}} for n, text in enumerate(("ab cd", "ef gh", "ij kl"))
    ]
    return NearestDemos(SchemaExtraction(Invoice), pool, k=2, inputs=("text",))


class Mine(dspy.Module):
    """A user's own program."""

    output_field = "label"

    def __init__(self, hint="", kind="text -> label"):
        super().__init__()
        self.steps = [dspy.ChainOfThought(kind)]
        self.hint = hint

    def forward(self, text, more=None):
        return self.steps[0](text=text)


def mine(**arguments):
    program = Mine(**arguments)
    program.steps[0].predict.demos = [
        dspy.Example(text="t", reasoning="r", label="l"),
        dspy.Example(text="u", label="v"),
    ]
    return program


@pytest.fixture
def kit():
    """Everything above, for tests in other files."""
    parts = (Engine, model, Invoice, SETTINGS, tuned, export, files_of, rewrite, nearest, Mine, mine)
    return SimpleNamespace(**{getattr(part, "__name__", "SETTINGS"): part for part in parts})
