"""The order a person would give to damaged figures, on real ones.

The data of 81 plots and of 9 figures digitised by people, each damaged in the same ways. From best to worst, the means
of the scores have to fall in this order:

1. read exactly;
2. noise of 2% of the axes: what careful reading gives, and as good as the data itself for nearly every use;
3. one series shifted by a tenth of the y axis: all shapes are right, one level is wrong;
4. one series left out, or there without a point: what is there is right, and the gap can be seen;
5. the names of two series swapped: two materials carry each other's values, and nothing shows it;
6. one point of each series: the names are right and the figure is not there;
7. one point of one series.
"""

import copy
import json
import os
from pathlib import Path

import numpy as np
import pytest

from metrics import FigureMetric

FOLDER = os.environ.get("HARNESS_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="HARNESS_DATA, the folder of real figures, is not set")


@pytest.fixture(scope="module")
def figures():
    read = [
        json.loads(line)["gold"]
        for file in ("lemat_plots.jsonl", "lemat_real_plots.jsonl")
        for line in (Path(FOLDER or "") / file).read_text(encoding="utf-8").splitlines()
    ]
    assert len(read) == 90
    return read


def series_of(figure):
    return copy.deepcopy(figure["name_to_coordinates"])


def ranges(figure):
    return np.ptp(np.concatenate([np.array(points) for points in series_of(figure).values()]), axis=0)


def noisy(figure, share, seed=0):
    """Each coordinate off by up to `share` of its axis."""
    rng = np.random.default_rng(seed)
    reach = ranges(figure) * share
    return {
        name: (np.array(points) + rng.uniform(-reach, reach, (len(points), 2))).tolist()
        for name, points in series_of(figure).items()
    }


def shifted(figure):
    series = series_of(figure)
    first = next(iter(series))
    return {**series, first: [[x, y + 0.1 * ranges(figure)[1]] for x, y in series[first]]}


def left_out(figure):
    return dict(list(series_of(figure).items())[1:])


def emptied(figure):
    series = series_of(figure)
    return {**series, next(iter(series)): []}


def swapped(figure):
    series = series_of(figure)
    first, second, *_ = series
    return {**series, first: series[second], second: series[first]}


def one_point_each(figure):
    return {name: points[:1] for name, points in series_of(figure).items()}


def one_point(figure):
    return dict(list(one_point_each(figure).items())[:1])


def value(figure, series):
    return FigureMetric().compare(figure, {**figure, "name_to_coordinates": series}).value


def test_every_figure_against_itself_is_one(figures):
    assert {value(figure, series_of(figure)) for figure in figures} == {1.0}


def test_careful_reading_is_good(figures):
    values = [value(figure, noisy(figure, 0.02, seed)) for figure in figures for seed in range(3)]
    assert min(values) >= 0.9
    assert max(values) < 1.0


def test_more_noise_is_worse(figures):
    means = [
        np.mean([value(figure, noisy(figure, share)) for figure in figures])
        for share in (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    ]
    assert means == sorted(means, reverse=True)
    assert means[0] == 1.0
    assert means[-1] < 0.1


def test_the_order_a_person_would_give(figures):
    several = [figure for figure in figures if len(figure["name_to_coordinates"]) > 1]
    damages = (lambda figure: noisy(figure, 0.02), shifted, left_out, swapped, one_point_each, one_point)
    means = [np.mean([value(figure, damage(figure)) for figure in several]) for damage in damages]
    gaps = -np.diff([1.0, *means])
    assert (gaps > 0.02).all(), means
    assert means[-1] < 0.1
    for figure in several:
        assert value(figure, emptied(figure)) == value(figure, left_out(figure)) <= 0.9


def test_a_single_series_by_one_point(figures):
    for figure in (figure for figure in figures if len(figure["name_to_coordinates"]) == 1):
        assert value(figure, one_point(figure)) <= 0.5
        assert value(figure, {}) == value(figure, emptied(figure)) == 0.0


def test_the_look_alikes_of_a_scanned_legend_are_known(figures):
    (khan,) = (figure for figure in figures if "Ru/Ce02" in figure["name_to_coordinates"])
    series = series_of(khan)
    assert value(khan, {name.replace("Ce02", "CeO₂"): points for name, points in series.items()}) == 1.0
    catalysts = ("Ru-Ni/Ce02", "Ni-Ru/Ce02", "NiRu/Ce02")
    without = {name: points for name, points in series.items() if name not in catalysts[1:]}
    assert value(khan, without) == pytest.approx(0.8)
