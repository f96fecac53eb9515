"""Which item of one list goes with which item of another, so that the sum of the gains is as high as it can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pairs = list[tuple[int, int]]


def best_pairs(gain: NDArray[np.float64], *, ordered: bool) -> Pairs:
    """Pairs (row, column), each row and column at most once, with the highest sum of `gain`; only gains above 0.

    Without order it is the linear sum assignment (H. Kuhn, Naval Research Logistics 2, 1955; scipy's
    implementation). With order, pairs must not cross: the alignment of two sequences (S. Needleman, C. Wunsch,
    Journal of Molecular Biology 48, 1970), where leaving something out costs nothing.

    >>> best_pairs(np.array([[0.0, 1.0], [1.0, 0.0]]), ordered=False)
    [(0, 1), (1, 0)]
    >>> best_pairs(np.array([[0.0, 1.0], [1.0, 0.0]]), ordered=True)
    [(1, 0)]
    """
    if 1 in gain.shape:
        row, column = np.unravel_index(int(gain.argmax()), gain.shape)
        return [(int(row), int(column))] if gain[row, column] > 0 else []
    if ordered:
        return _aligned(gain)
    from scipy.optimize import linear_sum_assignment  # takes a third of a second to import; many records have no list

    rows, columns = linear_sum_assignment(gain, maximize=True)
    return [(row, column) for row, column in zip(rows.tolist(), columns.tolist(), strict=True) if gain[row, column] > 0]


def _aligned(gain: NDArray[np.float64]) -> Pairs:
    n_rows, n_columns = gain.shape
    best = np.zeros((n_rows + 1, n_columns + 1))
    for row in range(n_rows):
        taken = np.maximum(best[row, 1:], best[row, :-1] + gain[row])
        best[row + 1, 1:] = np.maximum.accumulate(taken)
    pairs: Pairs = []
    row, column = n_rows, n_columns
    while row and column:
        if best[row, column] == best[row, column - 1]:
            column -= 1
        elif best[row, column] == best[row - 1, column]:
            row -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((row, column))
    return pairs[::-1]
