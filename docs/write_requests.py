"""Writes docs/requests.md: one program's request in four dialects, as the servers received it.

python docs/write_requests.py
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dspy
import pydantic

from harness.models.config import ModelConfig
from harness.models.dialects import ANTHROPIC, GEMINI, OPENAI, VLLM, Dialect, Fault
from harness.models.ledger import Ledger
from harness.models.loopback import LoopbackServer, Received
from harness.models.prompt import prompt_adapter
from harness.models.roles import Endpoints, build_role_lm
from harness.models.store import AnswerStore

PAGE = Path(__file__).with_name("requests.md")
KEY = "sk-secret"
ANSWER = '{"material": {"formula": "LiCoO₂", "temperature": 850}}'
SHOWN = 24
"""Characters of an image's bytes that are shown."""
_BYTES = re.compile(r"[A-Za-z0-9+/]{64,}={0,2}")
_AUTHORISATION = ("authorization", "x-api-key", "x-goog-api-key", "anthropic-version")

HEAD = """# Requests as they are sent

What one program sends, in four dialects. The page is written by `python docs/write_requests.py` from what servers on
this machine received; a test compares the two. The key is shown as `$KEY`. Of an image's bytes the first {shown}
characters of the base64 text are shown, and how many there are.

```python
class Material(pydantic.BaseModel):
    formula: str
    temperature: int | None = pydantic.Field(description="of calcination, in °C")


class Read(dspy.Signature):
    \"\"\"Read the synthesis.\"\"\"

    scan: dspy.Image = dspy.InputField()
    note: str = dspy.InputField()
    material: Material = dspy.OutputField()
```

The adapter is `json`, the note `LiCoO₂, 静脉 α`. The answer of every server is `{answer}`.
"""


class Material(pydantic.BaseModel):
    formula: str
    temperature: int | None = pydantic.Field(description="of calcination, in °C")


class Read(dspy.Signature):
    """Read the synthesis."""

    scan: dspy.Image = dspy.InputField()
    note: str = dspy.InputField()
    material: Material = dspy.OutputField()


CASES: tuple[tuple[str, str, Dialect, str, bool], ...] = (
    (
        "OpenAI chat",
        "`model: openai/gpt-4.1-mini`. The schema is sent, since the model is known to decode under one.",
        OPENAI,
        "openai/gpt-4.1-mini",
        True,
    ),
    (
        "Anthropic messages",
        "`model: anthropic/claude-sonnet-4-5`. The dialect has no seed and no JSON mode without a schema.",
        ANTHROPIC,
        "anthropic/claude-sonnet-4-5",
        True,
    ),
    (
        "Gemini generateContent",
        "`model: gemini/gemini-2.5-flash`.",
        GEMINI,
        "gemini/gemini-2.5-flash",
        True,
    ),
    (
        "An OpenAI-compatible server of one's own",
        "`model: vllm/qwen` and no key. This server refuses `json_schema`, which one tiny request found out before; "
        "so it is asked for JSON by its JSON mode, and the schema stands in the prompt alone.",
        VLLM,
        "vllm/qwen",
        False,
    ),
)


def page() -> str:
    """The page as it is now."""
    parts = [HEAD.format(shown=SHOWN, answer=ANSWER)]
    for title, words, dialect, model, known in CASES:
        parts.append(f"## {title}\n\n{words}\n\n{_shown(_received(dialect, model, known=known))}")
    return "\n".join(parts)


def _received(dialect: Dialect, model: str, *, known: bool) -> Received:
    def serve(received: Received) -> str | Fault:
        wants_schema = (received.body.get("response_format") or {}).get("type") == "json_schema"
        return Fault(400, "response_format json_schema is not supported") if wants_schema and not known else ANSWER

    with (
        tempfile.TemporaryDirectory() as folder,
        LoopbackServer(serve, dialect) as server,
        Endpoints({"KEY": KEY}) as endpoints,
    ):
        config = ModelConfig(
            model,
            api_base=server.api_base,
            api_key_env="KEY" if known else None,
            response_schema=True if known else "auto",
        )
        store = AnswerStore(Path(folder) / "answers.db")
        lm = build_role_lm("task", config, endpoints=endpoints, store=store, ledger=Ledger())
        lm.engine.prepare()
        image = dspy.Image(f"data:image/png;base64,{base64.b64encode(bytes(range(96))).decode()}")
        with dspy.context(lm=lm, adapter=prompt_adapter("json")):
            read = dspy.Predict(Read)(scan=image, note="LiCoO₂, 静脉 α")
        store.close()
        assert read.material == Material(formula="LiCoO₂", temperature=850)
        return server.requests[-1]


def _shown(request: Received) -> str:
    headers = [f"{name}: {request.headers[name]}" for name in _AUTHORISATION if name in request.headers]
    lines = [f"POST {request.path}", *headers, "", json.dumps(_shortened(request.body), ensure_ascii=False, indent=2)]
    return "```http\n" + "\n".join(lines).replace(KEY, "$KEY") + "\n```\n"


def _shortened(body: Any) -> Any:
    if isinstance(body, Mapping):
        return {name: _shortened(value) for name, value in body.items()}
    if isinstance(body, list):
        return [_shortened(item) for item in body]
    if isinstance(body, str):
        return _BYTES.sub(lambda found: f"{found[0][:SHOWN]}... ({len(found[0])} characters)", body)
    return body


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
