import base64
import subprocess
import sys
from dataclasses import replace

import pytest
from dspy import lm15
from dspy.lm15 import Request
from hypothesis import given
from hypothesis import strategies as st

from harness.models.request_key import request_key, sampling_seed, with_sampling_seed

PNG = base64.b64encode(b"\x89PNG one").decode()


def _request(text="q", system="s", image=None, **config):
    parts = [lm15.TextPart(text), *([image] if image else [])]
    config = {"temperature": 0.0, "max_tokens": 5, **config}
    return Request(model="m", system=system, messages=(lm15.Message.user(parts),), config=lm15.Config(**config))


SCHEMA = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
DIFFERENT = {
    "text": (_request("other"), {}),
    "system": (_request(system="other"), {}),
    "temperature": (_request(temperature=0.5), {}),
    "max_tokens": (_request(max_tokens=6), {}),
    "schema": (_request(response_format=SCHEMA), {}),
    "another schema": (_request(response_format={**SCHEMA, "schema": {"type": "array"}}), {}),
    "image": (_request(image=lm15.ImagePart(data=PNG)), {}),
    "another image": (_request(image=lm15.ImagePart(data=base64.b64encode(b"two").decode())), {}),
    "media type": (_request(image=lm15.ImagePart(data=PNG, media_type="image/jpeg")), {}),
    "roles": (replace(_request(), messages=(lm15.Message.assistant("q"), lm15.Message.user("q"))), {}),
    "endpoint": (_request(), {"endpoint": "f"}),
    "rollout": (_request(), {"rollout": 0}),
    "another rollout": (_request(), {"rollout": 1}),
    "replicate": (_request(), {"replicate": 1}),
}


def test_whatever_changes_the_answer_changes_the_key():
    keys = {name: request_key(request, **{"endpoint": "e", **more}) for name, (request, more) in DIFFERENT.items()}

    assert len({*keys.values(), request_key(_request(), endpoint="e")}) == len(DIFFERENT) + 1


def test_the_models_name_is_the_endpoints_business():
    assert request_key(_request(), endpoint="e") == request_key(replace(_request(), model="n"), endpoint="e")


def test_seed_and_sample_count_only_where_the_answer_is_sampled():
    greedy, sampled, unset = _request(), _request(temperature=1.0), _request(temperature=None)

    assert request_key(greedy, endpoint="e", seed=1, sample=2) == request_key(greedy, endpoint="e")
    for request in (sampled, unset):
        keys = {request_key(request, endpoint="e", seed=s, sample=n) for s in (0, 1) for n in (0, 1)}
        assert len(keys) == 4


def test_an_image_by_path_counts_by_its_bytes(tmp_path):
    path = tmp_path / "figure.png"
    path.write_bytes(b"\x89PNG one")
    by_path = request_key(_request(image=lm15.ImagePart(path=path)), endpoint="e")

    assert by_path == request_key(_request(image=lm15.ImagePart(data=PNG)), endpoint="e")
    path.write_bytes(b"changed")
    assert by_path != request_key(_request(image=lm15.ImagePart(path=path)), endpoint="e")


def test_the_key_is_the_same_in_every_process():
    program = (
        "from dspy.lm15 import Request, Message; from harness.models.request_key import request_key;"
        "print(request_key(Request(model='m', messages=(Message.user('α'),)), endpoint='e'))"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1


@pytest.mark.parametrize("temperature", [None, 0.1])
def test_a_sampled_request_gets_the_keys_seed(temperature):
    request = _request(temperature=temperature)

    assert with_sampling_seed(request, "ff" * 32).config.seed == sampling_seed("ff" * 32) == 0x7FFF_FFFF


def test_a_seed_of_its_own_stays_and_greedy_gets_none():
    assert with_sampling_seed(_request(temperature=1.0, seed=3), "ab" * 32).config.seed == 3
    assert with_sampling_seed(_request(), "ab" * 32).config.seed is None


@given(st.text(), st.text())
def test_different_texts_have_different_keys(one, other):
    same = request_key(_request(one), endpoint="e") == request_key(_request(other), endpoint="e")
    assert same is (one == other)
