"""FigureMetricConformance: what every metric of plotted series must hold."""

from __future__ import annotations

import copy
import itertools
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from metrics.score import Metric
from metrics.testing.attacks import INSTRUCTIONS, JUDGE_ANSWERS, MEGABYTE
from metrics.testing.damage import falls, twin
from metrics.testing.suites import Conformance, number, sound

Series = dict[str, list[list[float]]]

FIGURES: tuple[dict[str, Any], ...] = (
    {
        "name_to_coordinates": {
            "Pd/ZrO2": [[float(x), 2.0 * x + 1] for x in range(12)],
            "Ni": [[float(x), 30 - 1.5 * x] for x in range(12)],
            "blank": [[float(x), 4.0] for x in range(12)],
        },
        "title": "Activity",
        "x_axis_label": "Temperature",
        "x_axis_unit": "C",
        "y_left_axis_label": "Conversion",
        "y_left_axis_unit": "%",
    },
    {
        "name_to_coordinates": {"A": [[1.0, 5.0]], "B": [[10.0**n, 2.0 * n + 3] for n in range(6)]},
        "title": None,
        "x_axis_label": None,
        "x_axis_unit": None,
        "y_left_axis_label": None,
        "y_left_axis_unit": None,
    },
)
"""Rising, falling and flat lines; a single point beside a line over decades."""


class FigureMetricConformance(Conformance):
    """Checks for a metric with `compare(expected, predicted)` of figures as plain data (`name_to_coordinates`).

    Attributes:
        figures: the figures to test with.
        attack_limit: the most that a figure without anything right in it may score.
        seconds: for two figures with two series of ten thousand points.

    >>> from metrics.figure import FigureMetric
    >>> class TestMine(FigureMetricConformance):
    ...     make = lambda self: FigureMetric()
    >>> TestMine().test_missing_points_never_pay()
    """

    figures: ClassVar[Sequence[Mapping[str, Any]]] = FIGURES
    attack_limit: ClassVar[float] = 0.5
    seconds: ClassVar[float] = 2.0

    def make(self) -> Metric:
        """The metric under test."""
        raise self._needs_make()

    # Right and wrong

    def test_a_figure_against_itself_is_one(self) -> None:
        metric = self.make()
        for figure in self._figures():
            assert math.isclose(self._value(metric, figure, copy.deepcopy(figure)), 1.0), (
                "a figure against itself is not 1"
            )

    def test_right_beats_wrong(self) -> None:
        metric = self.make()
        for figure in self._figures():
            close = _moved(figure, lambda x, y: (x, y * 1.01))
            far = _moved(figure, lambda x, y: (x * 7 + 1000, -900 - y))
            values = [self._value(metric, figure, one) for one in (figure, close, far)]
            assert values[0] >= values[1] > values[2], f"right, close and far off: {values}"

    def test_nothing_extracted_is_zero(self) -> None:
        metric = self.make()
        for figure in self._figures():
            empty_series = {**figure, "name_to_coordinates": {name: [] for name in _series(figure)}}
            bare = {"name_to_coordinates": {}}
            for nothing in (None, bare, {**figure, "name_to_coordinates": {}}, empty_series):
                value = self._value(metric, figure, nothing)
                assert value == 0.0, f"a figure without a point scores {value}"

    def test_more_noise_never_pays(self) -> None:
        metric = self.make()
        for figure in self._figures():
            noisy = [_noisy(figure, size) for size in (0.0, 0.03, 0.3, 3.0, 30.0)]
            values = [self._value(metric, figure, one) for one in (figure, *noisy)]
            assert falls(values), f"noise pays: {values}"
            assert values[-1] < values[0], f"noise costs nothing: {values}"

    def test_missing_points_never_pay(self) -> None:
        metric = self.make()
        for figure in self._figures():
            for name, points in _series(figure).items():
                values = [
                    self._value(metric, figure, _with(figure, name, points[:n])) for n in range(len(points), -1, -1)
                ]
                assert falls(values), f"points of {name!r} left out pay: {values}"
                assert values[-1] < values[0], f"all points of {name!r} left out cost nothing"

    def test_missing_series_never_pay(self) -> None:
        metric = self.make()
        for figure in self._figures():
            names = list(_series(figure))
            values = [self._value(metric, figure, _only(figure, names[:n])) for n in range(len(names), 0, -1)]
            assert falls(values), f"series left out pay: {values}"
            assert values[-1] < values[0], f"series left out cost nothing: {values}"

    def test_false_points_never_pay(self) -> None:
        metric = self.make()
        for figure in self._figures():
            for name, points in _series(figure).items():
                false = [[-500.0 - n, 700.0 + 9 * n] for n in range(20)]
                values = [
                    self._value(metric, figure, _with(figure, name, [*points, *false[:n]])) for n in (0, 1, 5, 20)
                ]
                assert falls(values), f"false points in {name!r} pay: {values}"
                assert values[-1] < values[0], f"false points in {name!r} cost nothing"

    def test_false_series_never_pay(self) -> None:
        metric = self.make()
        for figure in self._figures():
            values = [self._value(metric, figure, figure)]
            more = figure
            for n in range(1, 4):
                more = _with(more, f"false {n}", [[-100.0 * n, 50.0], [-90.0 * n, 999.0]])
                values.append(self._value(metric, figure, more))
            assert falls(values), f"false series pay: {values}"
            assert values[-1] < values[0], f"false series cost nothing: {values}"

    def test_order_changes_nothing(self) -> None:
        metric, chance = self.make(), random.Random(0)
        for figure in self._figures():
            noisy = _noisy(figure, 0.05)
            value = self._value(metric, figure, noisy)
            mixed = {name: chance.sample(points, len(points)) for name, points in reversed(_series(noisy).items())}
            other = self._value(metric, figure, {**noisy, "name_to_coordinates": mixed})
            assert math.isclose(value, other), f"in another order {other} instead of {value}"

    def test_twins_of_characters_change_nothing(self) -> None:
        metric = self.make()
        for figure in self._figures():
            named = {twin(name): points for name, points in _series(figure).items()}
            value = self._value(metric, figure, {**figure, "name_to_coordinates": named})
            assert math.isclose(value, 1.0), f"with the names in other characters {value}"

    # The contract

    def test_every_result_is_a_score_in_bounds(self) -> None:
        metric = self.make()
        bad: tuple[float, ...] = (math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0)
        odd = [_with(self._figures()[0], "Ni", [[x, y] for x, y in itertools.product(bad, bad)])]
        odd += [_only(self._figures()[0], [name]) for name in _series(self._figures()[0])]
        odd += [_with(self._figures()[0], name, [[0.0, 0.0]]) for name in ("", " ", "\ud800", "x" * 10_000)]
        for expected, predicted in itertools.product(self._figures(), [*self._figures(), *odd, None]):
            sound(metric.compare(expected, predicted))

    def test_the_same_question_has_the_same_answer(self) -> None:
        first, second = self.make(), self.make()
        assert first.version == second.version, "two metrics made alike have different versions"
        for expected, predicted in itertools.product(
            self._figures(), [_noisy(figure, 0.1) for figure in self._figures()]
        ):
            said = {
                (score.value, score.feedback)
                for score in (one.compare(expected, predicted) for one in (first, first, second))
            }
            assert len(said) == 1, f"one question, several answers: {said}"

    def test_nothing_given_is_changed(self) -> None:
        metric = self.make()
        given = [*self._figures(), *(_noisy(figure, 0.1) for figure in self._figures())]
        before = copy.deepcopy(given)
        for expected, predicted in itertools.product(given, given):
            metric.compare(expected, predicted)
        assert given == before, "a figure was changed"

    def test_feedback_names_the_series_that_is_wrong(self) -> None:
        metric = self.make()
        for figure in self._figures():
            for name in _series(figure):
                left_out = _only(figure, [other for other in _series(figure) if other != name])
                feedback = metric.compare(figure, left_out).feedback
                assert name in feedback, f"{name!r} is missing and not in the feedback {feedback!r}"

    # Attacks

    def test_one_point_or_a_point_per_series_does_not_pay(self) -> None:
        metric = self.make()
        figure = self._figures()[0]
        one = {name: points[:1] for name, points in _series(figure).items()}
        for series in (one, dict(list(one.items())[:1])):
            value = self._value(metric, figure, {**figure, "name_to_coordinates": series})
            assert value <= self.attack_limit, f"{len(series)} series of one point score {value}"

    def test_points_everywhere_do_not_pay(self) -> None:
        metric = self.make()
        figure = self._figures()[0]
        everywhere = [[x / 4, y / 2] for x in range(48) for y in range(0, 70)]
        series = dict.fromkeys(_series(figure), everywhere)
        value = self._value(metric, figure, {**figure, "name_to_coordinates": series})
        assert value <= self.attack_limit, f"a point everywhere scores {value}"

    def test_the_same_series_under_every_name_does_not_pay(self) -> None:
        metric = self.make()
        for figure in self._figures():
            points = next(iter(_series(figure).values()))
            for names in ([*_series(figure)], [*_series(figure), *(f"copy {n}" for n in range(20))]):
                value = self._value(metric, figure, {**figure, "name_to_coordinates": dict.fromkeys(names, points)})
                assert value < 1.0, f"one series under {len(names)} names costs nothing"

    def test_text_is_no_figure(self) -> None:
        metric = self.make()
        for figure, text in itertools.product(self._figures(), (*JUDGE_ANSWERS, *INSTRUCTIONS)):
            labels = {
                key: text if isinstance(text, str) else str(text) for key in figure if key != "name_to_coordinates"
            }
            value = self._value(metric, figure, {**labels, "name_to_coordinates": {str(text): [[0.123, 0.456]]}})
            assert value <= self.attack_limit, f"{text!r} for a figure scores {value}"

    def test_ten_thousand_points_and_a_megabyte_are_answered_in_time(self) -> None:
        metric, chance = self.make(), random.Random(0)
        points = {name: [[n / 100, chance.random() + n / 500] for n in range(10_000)] for name in ("a", "b")}
        many = {**self._figures()[0], "name_to_coordinates": points}
        long = _with(self._figures()[0], MEGABYTE, [[0.0, 1.0]])
        self._value(metric, self._figures()[0], self._figures()[0])  # imports
        for expected, predicted in ((many, _noisy(many, 0.01)), (self._figures()[0], long), (many, many)):
            started = time.process_time()
            self._value(metric, expected, predicted)
            took = time.process_time() - started
            assert took < self.seconds, f"a large figure took {took:.1f} s"

    def _figures(self) -> list[Mapping[str, Any]]:
        return copy.deepcopy(list(self.figures))

    def _value(self, metric: Metric, expected: Any, predicted: Any) -> float:
        return number(metric.compare(expected, predicted), "a figure")


def _series(figure: Mapping[str, Any]) -> Series:
    return dict(figure["name_to_coordinates"])


def _with(figure: Mapping[str, Any], name: str, points: list[list[float]]) -> dict[str, Any]:
    return {**figure, "name_to_coordinates": {**figure["name_to_coordinates"], name: points}}


def _only(figure: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {**figure, "name_to_coordinates": {name: _series(figure)[name] for name in names}}


def _moved(figure: Mapping[str, Any], move: Callable[[float, float], tuple[float, float]]) -> dict[str, Any]:
    series = {name: [list(move(*point)) for point in points] for name, points in _series(figure).items()}
    return {**figure, "name_to_coordinates": series}


def _noisy(figure: Mapping[str, Any], size: float) -> dict[str, Any]:
    """Every point moved up or down by a fixed pattern times `size` of the figure's height, so that noise nests."""
    chance = random.Random(0)
    heights = [y for points in _series(figure).values() for _, y in points]
    reach = size * ((max(heights) - min(heights)) or 1.0)
    return _moved(figure, lambda x, y: (x, y + reach * chance.choice((-1.0, 1.0)) * chance.uniform(0.5, 1.0)))
