"""The canonical name of a request: equal for equal questions to the same endpoint, whoever asks."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dspy._vendor.lm15.serde import request_to_dict, response_from_dict, response_to_dict
from dspy.lm15 import Request

__all__ = ["request_key", "response_from_dict", "response_to_dict", "sampling_seed", "with_sampling_seed"]


def request_key(
    request: Request,
    *,
    endpoint: str,
    rollout: int | None = None,
    sample: int = 0,
    replicate: int = 0,
    seed: int = 0,
) -> str:
    """A sha256 over everything the answer depends on; the role is not part of it.

    Args:
        request: messages with image bytes, system text, sampling, schema, tools.
        endpoint: the endpoint's digest; stands for the model and where it is.
        rollout: dspy's number of a fresh sample of the same question.
        sample: the number among several answers drawn by one call (`n` of dspy); like the seed it counts only
            where the answer is sampled.
        replicate: the number of a whole repeated measurement; 0 is the first.
        seed: the run's seed; counts only where the answer is sampled, so that greedy answers serve every seed.
    """
    content = request_to_dict(request)
    del content["model"]
    content["messages"] = _without_paths(content["messages"])
    name = {"endpoint": endpoint, "request": content, "rollout": rollout, "replicate": replicate}
    if request.config.temperature != 0:
        name |= {"seed": seed, "sample": sample}
    return hashlib.sha256(json.dumps(name, sort_keys=True).encode()).hexdigest()


def sampling_seed(key: str) -> int:
    """The seed a sampled request is sent with: another for every rollout, the same on every run; 0..2^31-1."""
    return int(key[:8], 16) & 0x7FFF_FFFF


def with_sampling_seed(request: Request, key: str) -> Request:
    """`request` with a seed of its own where its answer is sampled and it has none."""
    if request.config.temperature == 0 or request.config.seed is not None:
        return request
    return replace(request, config=replace(request.config, seed=sampling_seed(key)))


def _without_paths(part: Any) -> Any:
    """An image given as a file counts by its bytes: the file at that path may change."""
    if isinstance(part, Mapping):
        inner = {name: _without_paths(value) for name, value in part.items()}
        if part.get("type") in ("image", "audio", "video", "document", "binary") and "path" in part:
            with open(part["path"], "rb") as file:
                inner["data"] = base64.b64encode(file.read()).decode("ascii")
            del inner["path"]
        return inner
    if isinstance(part, list):
        return [_without_paths(item) for item in part]
    return part
