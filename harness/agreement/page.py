"""`card.html`: the card as one page that brings everything along; no script, nothing from outside."""

from __future__ import annotations

import base64

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from harness.agreement.card import Card
from harness.agreement.plots import bias_by_criterion, judge_against_people, residuals_by_group
from harness.decimals import fixed
from harness.tracking.plots import svg
from harness.tracking.report import visible
from metrics.agreement import STATISTICS, Agreement

WORDS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "kappa": "weighted kappa",
    "icc2": "ICC(2,1)",
    "mae": "mean error",
    "bias": "bias",
}


def card_page(card: Card) -> str:
    """The page; every text in it is escaped, characters that change how it is read are made visible."""
    environment = Environment(
        loader=PackageLoader("harness.tracking"), autoescape=True, undefined=StrictUndefined, finalize=visible
    )
    environment.filters |= {"number": number, "cell": cell}
    return environment.get_template("card.html.j2").render(
        card=card,
        statistics=STATISTICS,
        words=WORDS,
        bias=_address(bias_by_criterion(card)),
        against={name: _address(judge_against_people(card, name)) for name in card.judges},
        groups={name: _address(residuals_by_group(card, name)) for name in card.judges},
        n_groups=len({row.group for row in card.data.rows}),
    )


def number(value: float | None) -> str:
    """Three decimals, or a dash.

    >>> number(0.4581), number(None)
    ('0.458', '-')
    """
    return "-" if value is None else fixed(value, 3)


def cell(found: Agreement, statistic: str) -> str:
    """A statistic with its interval.

    >>> cell(Agreement(4, 2, spearman=0.5, interval={"spearman": (0.25, 0.75)}), "spearman")
    '0.500 [0.250, 0.750]'
    """
    ends = found.interval.get(statistic)
    told = number(getattr(found, statistic))
    return told if ends is None else f"{told} [{number(ends[0])}, {number(ends[1])}]"


def _address(figure: Figure) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg(figure).encode()).decode()
