"""How much a difference of two numbers is worth: the options and the curve that `numeric` and `quantity` share."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from metrics.evaluators.base import EvaluatorConfig


class ToleranceConfig(EvaluatorConfig):
    """A tolerance and a way down from it.

    Attributes:
        absolute_tolerance: a difference up to this counts 1, in the value's own unit.
        relative_tolerance: a difference up to this share of the expected value counts 1. The larger of the two holds.
        partial: "none": beyond the tolerance 0. "linear": from 1 at the tolerance down to 0.
        width: where "linear" reaches 0: that many tolerances beyond the tolerance.
    """

    absolute_tolerance: float = Field(0.0, ge=0.0)
    relative_tolerance: float = Field(1e-6, ge=0.0)
    partial: Literal["none", "linear"] = "none"
    width: float = Field(1.0, gt=0.0)

    def credit(self, difference: NDArray[np.float64], tolerance: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each difference is worth, 0..1; 0 where it is NaN.

        >>> ToleranceConfig(partial="linear", width=2).credit(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 1.0]))
        array([1. , 0.5, 0. ])
        """
        credit = (difference <= tolerance).astype(np.float64)
        if self.partial == "linear":
            with np.errstate(invalid="ignore", over="ignore"):  # infinitely far beyond, or no number at all: no slope
                beyond, reach = difference - tolerance, self.width * tolerance
            sloped = (beyond > 0) & (beyond < reach)
            credit[sloped] = 1.0 - beyond[sloped] / reach[sloped]
        return credit
