"""The picture of a figure's data: it draws whatever was extracted, and the same each time."""

import io
import itertools

import matplotlib.image
import numpy as np
import pytest

from harness.tracking.figure_plot import figure_picture

TRUTH = {
    "name_to_coordinates": {"Pd/ZrO2": [[350, 36], [400, 77], [450, 98]], "blank": [[350, 1], [450, 13]]},
    "title": "Conversion of $CO_2",
    "x_axis_label": "Temperature",
    "x_axis_unit": "°C",
}
READ = {
    "name_to_coordinates": {
        "Pd/ZrO₂": [[351, 37], [399, 76], [450, 96], [450, -1e9]],
        "$\\bad{ name": [[400, 50]],
        "no list": 7,
    }
}


def pixels(picture):
    assert picture.startswith(b"\x89PNG")
    return matplotlib.image.imread(io.BytesIO(picture))


def test_truth_and_prediction_are_drawn():
    both, alone, nothing = (
        pixels(figure_picture(*figures)) for figures in ((TRUTH, READ), (TRUTH, None), (None, None))
    )
    inked = [np.mean(picture[..., :3].min(axis=2) < 0.9) for picture in (both, alone, nothing)]
    assert inked[0] > inked[1] > inked[2] > 0


def test_the_same_figures_give_the_same_bytes():
    assert figure_picture(TRUTH, READ) == figure_picture(TRUTH, READ)


EXTREME = [
    None,
    {},
    {"name_to_coordinates": {"a": [[1e308, 1e-308], [-1e308, 5]], "b": [[1, 1]], "c": []}},
    {"name_to_coordinates": {"a": [[1, 1e-5], [2, 1], [3, 1e5]]}, "x_axis_label": "x" * 500},
    {"name_to_coordinates": {"a": [[1e-320, 1e-320], [2, 1], [3, 1e300]]}},
    {"name_to_coordinates": {str(n): [[n, n]] for n in range(30)}},
    {"name_to_coordinates": {"a": [[n, n % 7] for n in range(20_000)]}},
]


@pytest.mark.parametrize(("expected", "predicted"), [*itertools.product(EXTREME, [*EXTREME[1:5], READ])])
def test_any_figure_is_drawn(expected, predicted):
    pixels(figure_picture(expected, predicted))
