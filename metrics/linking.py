"""LinkingMetric: which series of which figure shows which material, against gold links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from metrics.evaluators.states import has_value
from metrics.evaluators.text import number_in, shown
from metrics.figure.names import resolved
from metrics.inputs import expected_of, predicted_in
from metrics.record.findings import rate_parts
from metrics.score import Score, config_version

_FORMULA = 1
"""Part of the version: raised whenever the same configuration would score differently than before."""
_MAX_CHARACTERS = 4000

Link = tuple[str, str, str]
"""Figure, series, material."""


class LinkingMetric:
    """Precision, recall and F1 of links, a link being one series of one figure with one material.

        value = F1 = 2 * right / (expected + predicted)

    A link is right when gold has it in the same figure. Names are compared as `metrics.figure.names` compares them:
    case, Unicode, LaTeX, separators and look-alikes aside, and never by guessing: "Pd-Cu" is not "CuPd". One series may
    show several materials and one material be shown by several series. A link said twice counts once. Confidence,
    reasons and unmatched series decide nothing.

    Nothing linked where nothing was to be linked is 1, with `n` 0 in the details.

    Args:
        name: what reports call this metric.
        output_field: the prediction's field that holds the links; None: its only one (`reasoning` aside).

    >>> gold = [{"plot_index": 0, "mappings": [{"series_name": "S1", "material_name": "Pd/ZrO2"},
    ...                                        {"series_name": "S2", "material_name": "Ni/ZrO2"}]}]
    >>> found = [{"plot_index": 0, "mappings": [{"series_name": "s1", "material_name": "Pd/ZrO₂"}]}]
    >>> score = LinkingMetric().compare(gold, found)
    >>> round(score.value, 3), score.parts["precision"].value, score.parts["recall"].value
    (0.667, 1.0, 0.5)
    >>> score.feedback
    "figure 0: the link of series 'S2' to material 'Ni/ZrO2' is missing"
    """

    def __init__(self, name: str = "linking", output_field: str | None = None) -> None:
        self._name = name
        self.output_field = output_field

    def __repr__(self) -> str:
        return f"LinkingMetric(name={self._name!r}, output_field={self.output_field!r})"

    @property
    def name(self) -> str:
        """What reports call it."""
        return self._name

    @property
    def version(self) -> str:
        """A digest of everything that can change a score."""
        return config_version("linking", {"formula": _FORMULA})

    def __call__(self, example: Any, prediction: Any) -> Score:
        """Compare `example.expected` with the links in `prediction`; a prediction of None holds none.

        Raises:
            ValueError: the example has no `expected`, or the prediction not the field (the nearest one is named).
        """
        return self.compare(expected_of(example), predicted_in(prediction, self.output_field))

    def compare(self, expected: Any, predicted: Any) -> Score:
        """Compare two sets of links.

        Args:
            expected, predicted: a list of figures with their mappings (models like PlotMaterialMapping or plain data),
                or `{"mappings": [such a list]}`. A figure is known by its `plot_index`, else by its
                `figure_reference`. What cannot be read is a false link where it was predicted, and no link in gold.

        Returns:
            A Score with the parts `precision`, `recall` and `f1` (the first two unscored where one side is empty),
            whose details hold `n` (links on either side), `n_expected`, `n_predicted`, `n_right` and the links missing
            and false as [figure, series, material].
        """
        gold, _ = _links(expected)
        found, unreadable = _links(predicted)
        wanted = dict.fromkeys(gold)
        claimed = dict.fromkeys(_in_words_of(list(wanted), found))
        right = [link for link in claimed if link in wanted]
        missing = [link for link in wanted if link not in claimed]
        false = [link for link in claimed if link not in wanted]
        n_predicted = len(claimed) + unreadable
        sides = len(wanted) + n_predicted
        value = 2 * len(right) / sides if sides else 1.0
        rates = {
            "precision": len(right) / n_predicted if n_predicted else None,
            "recall": len(right) / len(wanted) if wanted else None,
            "f1": value,
        }
        details = {
            "n": len(wanted) + len(false) + unreadable,
            "n_expected": len(wanted),
            "n_predicted": n_predicted,
            "n_right": len(right),
            "missing": [list(link) for link in missing],
            "false": [list(link) for link in false],
        }
        said = "all links are right" if sides else "nothing was to be linked and nothing was"
        return Score(value, _feedback(missing, false, unreadable) or said, rate_parts(rates), details=details)


def _links(value: Any) -> tuple[list[Link], int]:
    """The links that can be read, and how many entries cannot."""
    links: list[Link] = []
    unreadable = 0
    for figure, entry in _entries(value):
        series, material = _field(entry, "series_name"), _field(entry, "material_name")
        if isinstance(series, str) and isinstance(material, str) and has_value(series) and has_value(material):
            links.append((figure, series, material))
        else:
            unreadable += 1
    return links, unreadable


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Each mapping with the figure it belongs to. A mapping may also stand by itself, with its own `plot_index`."""
    if _is_object(value) and not _is_figure(value) and isinstance(_field(value, "mappings"), list | tuple):
        value = _field(value, "mappings")
    for figure in value if isinstance(value, list | tuple) else [value]:
        mappings = _field(figure, "mappings")
        if isinstance(mappings, list | tuple):
            yield from ((_figure(figure), entry) for entry in mappings)
        elif has_value(mappings) or (has_value(figure) and not _is_empty(figure)):
            yield _figure(figure), figure


def _is_empty(value: Any) -> bool:
    """Whether it is a figure, or all figures, without mappings."""
    names = ("series_name", "material_name")
    is_mapping = any(has_value(_field(value, name)) for name in names)
    has_place = _is_figure(value) or (isinstance(value, Mapping) and "mappings" in value)
    return has_place and not is_mapping


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping | BaseModel)


def _is_figure(value: Any) -> bool:
    return any(_field(value, name) is not None for name in ("plot_index", "figure_reference", "unmatched_series"))


def _figure(value: Any) -> str:
    """What a figure is known by: its index, else its reference, else nothing."""
    index = _field(value, "plot_index")
    if isinstance(index, str) and number_in(index) is not None:
        index = number_in(index)
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    reference = _field(value, "figure_reference")
    known_by = index if has_value(index) else reference
    return str(known_by) if has_value(known_by) else ""


def _field(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None) if isinstance(value, BaseModel) else None


def _in_words_of(gold: Sequence[Link], found: Sequence[Link]) -> list[Link]:
    """The links found, with each name written as gold writes it in that figure (series) or anywhere (material)."""
    if not found:
        return []
    figures = resolved([link[0] for link in found], [link[0] for link in gold])
    materials = resolved([link[2] for link in found], [link[2] for link in gold])
    series = [link[1] for link in found]
    for figure in set(figures):
        places = [place for place, known in enumerate(figures) if known == figure]
        written = resolved([series[place] for place in places], [link[1] for link in gold if link[0] == figure])
        for place, name in zip(places, written, strict=True):
            series[place] = name
    return list(zip(figures, series, materials, strict=True))


def _feedback(missing: Sequence[Link], false: Sequence[Link], unreadable: int) -> str:
    lines = [f"{_told(link)} is missing" for link in missing] + [f"{_told(link)} is false" for link in false]
    if unreadable:
        entries = "1 entry names" if unreadable == 1 else f"{unreadable} entries name"
        lines.append(f"{entries} no series and material")
    kept: list[str] = []
    length = 0
    for line in lines:
        length += len(line) + 1
        if length > _MAX_CHARACTERS:
            return "\n".join([*kept, f"... and {len(lines) - len(kept)} more lines"])
        kept.append(line)
    return "\n".join(kept)


def _told(link: Link) -> str:
    figure, series, material = link
    place = f"figure {figure}: " if figure else ""
    return f"{place}the link of series {shown(series)} to material {shown(material)}"
