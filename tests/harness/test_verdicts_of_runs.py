"""Whole runs on a model whose true quality is known: noise alone is no gain, a gain is one, silence is never one."""

import hashlib
import json

import pytest

from harness.assembly import load_experiment
from harness.experiment import run
from harness.models.scripted import request_text

SETTINGS = ["data.split={train: 6, validation: 2, test: 64, seed: 0}", "optimizer={nearest_demos: {k: [2]}}"]


@pytest.fixture
def bills(project):
    rows = [
        {"id": f"b{n:02}", "text": f"Bill no. {n * 7919} of {_vendor(n)}, {n + 10} EUR", "expected": _truth(n)}
        for n in range(72)
    ]
    (project / "invoices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _vendor(number):
    return f"{hashlib.md5(str(number).encode()).hexdigest()[:8]} Ltd"


def _truth(number):
    return {"vendor": _vendor(number), "total": number + 10}


def answers(before, after, spoilt=None):
    """A model that gets each field right by chance, this often without and with demonstrations."""

    def script(request):
        text = request_text(request)
        question = next(m.text for m in reversed(request.messages) if m.text.startswith("Bill no. "))
        number = int(question.split()[2]) // 7919
        tuned = text.count("Bill no. ") > 1
        if tuned and spoilt and spoilt(number):
            return "I would rather not."
        return json.dumps(
            {
                field: value if _chance(number, field, tuned) < (after if tuned else before) else _wrong(value)
                for field, value in _truth(number).items()
            }
        )

    return script


def _chance(*what):
    return int(hashlib.sha256(repr(what).encode()).hexdigest()[:8], 16) / 16**8


def _wrong(value):
    return "unknown" if isinstance(value, str) else 7777


def verdict_of(scripted, script):
    endpoints, provider = scripted(script)
    return run(load_experiment("experiment.yaml", SETTINGS), endpoints=endpoints), provider


def test_noise_is_no_gain(bills, scripted):
    result, _ = verdict_of(scripted, answers(0.6, 0.6))
    assert result.baseline.total.score != result.tuned.total.score
    assert result.verdict == "no detectable change"
    assert result.delta.n_pairs == 64


def test_a_true_gain_is_found(bills, scripted):
    result, _ = verdict_of(scripted, answers(0.5, 0.8))
    assert result.verdict == "improved"
    assert result.delta.mean == pytest.approx(0.3, abs=0.12)
    assert result.floor == result.delta


def test_a_program_that_falls_silent_has_not_improved(bills, scripted):
    """The half it still answers got much better."""
    result, provider = verdict_of(scripted, answers(0.5, 1.0, spoilt=lambda number: number % 2))
    assert result.delta.mean > 0.3
    assert result.delta.interval[0] > 0.2
    assert result.verdict != "improved"
    silent = sum(row.failure == "unreadable" for row in result.tuned.rows)
    assert len(provider.requests) == 2 * 64 + silent, "each of them was asked once more"
    document = result.to_document()
    assert (document["baseline"]["readable"], document["tuned"]["readable"]) == (64, 64 - silent)
    [failure] = document["tuned"]["failures"]
    assert (failure["failure"], failure["kind"], failure["count"]) == ("unreadable", "invalid", silent)
    assert any(
        f"tuned: {silent} of 64 unreadable: {silent} invalid; the first is {failure['first']['id']}: " in note
        for note in result.notes
    )
    assert any("with every unreadable answer counted as 0 it is" in note for note in result.notes)
