"""Does the record metric order extractions as people do? Against a bag of values, on the same rows.

Run it with `HARNESS_DATA=FOLDER python benchmarks/record_against_people.py`. The rows are extractions of
lemat_multi_judge_human.jsonl that a person scored and whose recipe a person wrote down: matched for certain, without
flags. Nothing is fitted. Spearman's rank correlation with the mean of the person's valid criteria; intervals and the
interval of the difference by a bootstrap over papers (all rows of a paper together, both sides on the same resample;
percentiles). Printed, and written to mlruns/benchmarks/record_against_people.json.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from metrics import RecordMetric
from metrics.evaluators.text import trimmed
from metrics.testing.damage import held, leaves
from programs.ontology import GeneralSynthesisOntology

FILE = "lemat_multi_judge_human.jsonl"
CERTAIN = ("exact", "normalised", "reviewed")
RESAMPLES, SEED, CONFIDENCE = 10_000, 0, 0.95
LOW, HIGH = 1.0, 5.0
"""The scale people and judges were given."""

Scores = NDArray[np.float64]


def main() -> None:
    """Measure, print, write."""
    folder = os.environ.get("HARNESS_DATA")
    if not folder:
        print(f"HARNESS_DATA names no folder with {FILE}; nothing to measure")
        return
    rows = scored_rows(Path(folder) / FILE)
    papers = [row["paper_id"] for row in rows]
    people = np.array([valid_mean(row["human"]) for row in rows])
    columns = {
        "record metric": record_scores(RecordMetric(), rows),
        "record metric, by schema": record_scores(RecordMetric(schema=GeneralSynthesisOntology), rows),
        "bag of values, F1": np.array([bag_f1(row["human_recipe"], row["extracted_ontology"]) for row in rows]),
    }
    report(columns, people, papers)


def scored_rows(path: Path) -> list[dict[str, Any]]:
    """The rows whose person's recipe and scores belong to the extraction beyond doubt."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["match"] in CERTAIN and not row["flags"] and row["human_recipe"]]


def valid_mean(judged: Mapping[str, Any]) -> float:
    """The mean of the criteria that have a score on the scale; some hold 0 where nothing was there to judge."""
    valid = [score for score in judged["scores"].values() if score is not None and LOW <= score <= HIGH]
    return sum(valid) / len(valid)


def record_scores(metric: RecordMetric, rows: Sequence[Mapping[str, Any]]) -> Scores:
    """The metric on every row, the person's recipe being expected."""
    return np.array([metric.compare(row["human_recipe"], row["extracted_ontology"]).as_float() for row in rows])


def bag_f1(expected: Any, extracted: Any) -> float:
    """F1 of the values as text under their field's name, whichever item of a list they are in."""
    wanted, found = _bag(expected), _bag(extracted)
    return 2 * (wanted & found).total() / max(1, wanted.total() + found.total())


def _bag(record: Any) -> Counter[tuple[str, str]]:
    paths = list(leaves(record))
    names = [".".join(key for key in path if isinstance(key, str)) for path in paths]
    return Counter((name, trimmed(str(held(record, path))).lower()) for name, path in zip(names, paths, strict=True))


def spearman(first: Scores, second: Scores) -> float:
    """Rank correlation; NaN where one side is constant."""
    ranks = stats.rankdata(first), stats.rankdata(second)
    spread = float(np.std(ranks[0]) * np.std(ranks[1]))
    return float(np.mean((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())) / spread) if spread else np.nan


def resampled(columns: Mapping[str, Scores], people: Scores, papers: Sequence[str]) -> dict[str, Scores]:
    """The correlation of every column on the same resamples of papers."""
    rows_of = [np.flatnonzero(np.array(papers) == paper) for paper in sorted(set(papers))]
    rng = np.random.default_rng(SEED)
    found: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(RESAMPLES):
        rows = np.concatenate([rows_of[index] for index in rng.integers(0, len(rows_of), len(rows_of))])
        for name, scores in columns.items():
            found[name].append(spearman(scores[rows], people[rows]))
    return {name: np.array(values) for name, values in found.items()}


def interval(values: Scores) -> list[float]:
    """The middle 95% of what is a number."""
    tail = (1 - CONFIDENCE) / 2
    return [float(bound) for bound in np.nanquantile(values, [tail, 1 - tail])]


def report(columns: Mapping[str, Scores], people: Scores, papers: Sequence[str]) -> None:
    """The table, and the same as JSON."""
    draws = resampled(columns, people, papers)
    document: dict[str, Any] = {"rows": len(people), "papers": len(set(papers)), "spearman": {}}
    base = "bag of values, F1"
    print(f"{len(people)} extractions of {len(set(papers))} papers; Spearman with the person's mean score [95%]\n")
    print(f"{'':28}{'spearman':>9}  {'interval':18}  minus {base}")
    for name, scores in columns.items():
        value, gain = spearman(scores, people), spearman(scores, people) - spearman(columns[base], people)
        low, high = interval(draws[name])
        row = {"value": value, "interval": [low, high]}
        told = ""
        if name != base:
            bounds = interval(draws[name] - draws[base])
            row |= {"difference": gain, "difference_interval": bounds}
            told = f"{gain:+.3f} [{bounds[0]:+.3f}, {bounds[1]:+.3f}]"
        print(f"{name:28}{value:9.3f}  [{low:+.3f}, {high:+.3f}]    {told}")
        document["spearman"][name] = row
    target = Path("mlruns") / "benchmarks" / "record_against_people.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten to {target}")


if __name__ == "__main__":
    main()
