"""nearest_demos: for each question, the labelled examples most like it become the demos.

Choosing demos per question beats any fixed set for a small model (about ten points in our measurements), costs
no model call beyond choosing k, needs no metric at inference, and is exported as plain data: the labelled
examples and k. Similarity is the cosine of TF-IDF weighted character n-grams of the inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import dspy
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import linear_kernel

from programs.contract import predictors_of

NGRAM_RANGE = (2, 5)
"""Lengths of the character n-grams, inside word boundaries: long enough to tell compounds apart."""


class NearestDemos(dspy.Module):
    """A program whose predictors see, for each call, the k most similar labelled examples as demos.

    The nearest demo comes last, next to the question. Ties are broken by id, so equal inputs give equal
    requests. The wrapped program is not changed; every call works on a copy, so threads do not disturb each
    other.

    Args:
        program: the program to wrap.
        demos: labelled examples as plain data: `id`, the program's inputs and the output field's value.
        k: how many demos a call gets; fewer when there are fewer examples.
        inputs: names of the inputs that are compared.

    Raises:
        ValueError: no demos, or k below 1.
    """

    def __init__(self, program: dspy.Module, demos: Sequence[Mapping[str, Any]], k: int, inputs: Sequence[str]) -> None:
        super().__init__()
        if not demos:
            raise ValueError("nearest_demos needs at least one labelled example, got none")
        if k < 1:
            raise ValueError(f"nearest_demos needs k of at least 1, got {k}")
        self.program = program
        self.output_field = str(program.output_field)
        self._k = k
        self._inputs = tuple(inputs)
        self._demos = sorted((dict(demo) for demo in demos), key=lambda demo: str(demo["id"]))
        self._vectoriser = TfidfVectorizer(analyzer="char_wb", ngram_range=NGRAM_RANGE, sublinear_tf=True)
        self._vectors = self._vectoriser.fit_transform([self._text(demo) for demo in self._demos])

    def forward(self, **inputs: Any) -> Any:
        """Run the wrapped program with the demos nearest to `inputs`."""
        return self.with_demos(inputs)(**inputs)

    async def aforward(self, **inputs: Any) -> Any:
        """`forward` for asynchronous callers."""
        return await self.with_demos(inputs).acall(**inputs)

    def nearest(self, inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The k most similar labelled examples, the nearest last."""
        similarities = linear_kernel(self._vectoriser.transform([self._text(inputs)]), self._vectors)[0]
        # A stable sort of the negated similarities keeps the order by id among ties.
        order = np.argsort(-np.round(similarities, 9), kind="stable")[: self._k]
        return [self._demos[index] for index in reversed(order)]

    def with_demos(self, inputs: Mapping[str, Any]) -> dspy.Module:
        """A copy of the wrapped program that holds the demos for `inputs`."""
        program = self.program.deepcopy()
        demos = self.nearest(inputs)
        for _, predictor in predictors_of(program):
            predictor.demos = [
                dspy.Example({name: demo[name] for name in predictor.signature.fields if name in demo})
                for demo in demos
                if can_show(predictor, demo)
            ]
        return program

    def _text(self, values: Mapping[str, Any]) -> str:
        # A text without one n-gram would leave the vectoriser without a vocabulary.
        return "\n".join(str(values.get(name, "")) for name in self._inputs).strip() or "-"

    def dump_bundle(self) -> dict[str, Any]:
        """The state as plain data, for a bundle: k, the compared inputs and the labelled examples."""
        return {"k": self._k, "inputs": list(self._inputs), "demos": [dict(demo) for demo in self._demos]}

    @classmethod
    def load_bundle(cls, program: dspy.Module, state: Mapping[str, Any]) -> NearestDemos:
        """The module `dump_bundle` described, around `program`."""
        return cls(program, state["demos"], state["k"], state["inputs"])


def can_show(predictor: Any, demo: Collection[str]) -> bool:
    """A labelled example (its field names) is a demo for a predictor whose every input and some output it holds.

    Outputs it lacks, such as the reasoning of a ChainOfThought, are left out of the prompt.
    """
    signature = predictor.signature
    return all(name in demo for name in signature.input_fields) and any(
        name in demo for name in signature.output_fields
    )
