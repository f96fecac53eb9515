"""Two annotated corpora of materials syntheses as records of the synthesis ontology.

`olivetti`: Mysore et al., "The Materials Science Procedural Text Corpus", LAW 2019.
`pcmsp`: Yang et al., "PcMSP: A Dataset for Scientific Action Graphs Extraction from Polycrystalline Materials Synthesis
Procedure Text", Findings of EMNLP 2022.

Rows are `{id, text, gold, meta}`. Only what people annotated becomes part of the record to reach; target type and
synthesis method are not annotated, so they are absent. The decisions, each at the code that takes it:

- `target_compound` is the first target that names something ("samples" does not); a row without one has no record.
- A material stands once, at its first mention, with the first amount and vendor that any mention states. Ratios,
  purities (a bare %), molar masses and amounts that are not one number are no amounts.
- A step is an operation that has a material, a condition or an apparatus; words that name results, sources,
  measurements or whole methods are no operations. Verbs are those of `harness.data.actions`.
- A step's materials leave out the target (it is what comes out) and words such as "mixture".
- A condition goes to its field when the step has one number of that kind, in a unit of it. All others (ranges, lists,
  "overnight", "room temperature", heating rates, cycles) are kept in the step's `description` in the paper's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.data.actions import STIRRED, UNSPECIFIC, is_generic, normal, tidy, verb
from harness.data.formats import read_rows
from harness.data.quantities import measure, measure_text
from harness.data.record import Record
from harness.errors import UsageError, nearest

_CONDITIONS = {
    "temperature": ("temperature", "temp_unit"),
    "duration": ("duration", "time_unit"),
    "pressure": ("pressure", "pressure_unit"),
    "stirring_speed": ("stirring_speed", None),
    "ph": ("ph", None),
}
"""Kind of a measure to the ontology's field for the number and the one for the unit."""

_GASES = {
    "Ar": r"argon|Ar",
    "N2": r"nitrogen|N2",
    "O2": r"oxygen|O2",
    "H2": r"hydrogen|H2",
    "He": r"helium|He",
    "NH3": r"ammonia|NH3",
    "air": r"air",
    "vacuum": r"vacuum|vacuo|evacuated|evacuation",
}
_GAS = re.compile("|".join(rf"(?P<{name}>\b(?i:{words})(?![a-z0-9]))" for name, words in _GASES.items()))
_NO_ATMOSPHERE = re.compile(r"\bfree\b|p\(?H2O|ppm|liquid", re.IGNORECASE)
_ARTICLES = ("a", "an", "the")

_SAME_TEXT = {
    "jjssc201706019": "jjssc201606024",
    "jpromfg201907011": "jpromfg201907010",
}
"""PcMSP papers whose text is another's but for an element: they belong on the same side of a split."""
_REGISTRANT = re.compile(r"^10(1016|1038|1063|1103)(?=[a-z])")


def read_olivetti(path: Path, columns: Mapping[str, str]) -> list[Record]:
    """The olivetti corpus: fields `text`, `title` and `doi` (one paper per row).

    Args:
        path: the JSONL file.
        columns: name used by the program to one of those fields.

    Raises:
        UsageError: what the file holds is not this corpus, or no such field.
    """
    return list(_read(path, columns, "olivetti", _olivetti_fields, _olivetti_record))


def read_pcmsp(path: Path, columns: Mapping[str, str]) -> list[Record]:
    """The PcMSP corpus: fields `text` and `paper`.

    `paper` is the paper's identifier without its publisher's prefix and punctuation: the corpus has some papers twice
    under two spellings, and papers with the text of another. Group by it.

    Args:
        path: the JSONL file.
        columns: name used by the program to one of those fields.

    Raises:
        UsageError: what the file holds is not this corpus, or no such field.
    """
    return list(_read(path, columns, "pcmsp", _pcmsp_fields, _pcmsp_record))


def _read(path: Path, columns: Mapping[str, str], name: str, fields_of: Any, record_of: Any) -> Iterator[Record]:
    for row in read_rows(path):
        try:
            fields, expected = fields_of(row.cells), record_of(row.cells["gold"])
            identity = str(row.cells["id"])
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise UsageError(
                f"{row.where}: this is no row of the {name} corpus ({type(error).__name__}: {error}); "
                "the reader 'records' reads files of your own."
            ) from None
        yield Record(identity, _renamed(fields, columns, name), expected, None, row.where)


def _renamed(fields: Mapping[str, Any], columns: Mapping[str, str], name: str) -> dict[str, Any]:
    for new, old in columns.items():
        if old not in fields:
            raise UsageError(
                f"data.columns: the {name} corpus has no field {old!r} for {new!r}; {nearest(old, fields)}"
            )
    kept = {field: value for field, value in fields.items() if field not in columns.values()}
    return kept | {new: fields[old] for new, old in columns.items()}


def _olivetti_fields(cells: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": cells["text"], "title": cells["meta"]["title"], "doi": cells["meta"]["doi"]}


def _olivetti_record(gold: Mapping[str, Any]) -> dict[str, Any] | None:
    steps = [_olivetti_step(step) for step in gold["steps"]]
    return _record(gold["targets"], [_olivetti_material(mention) for mention in gold["precursors"]], steps)


def _olivetti_material(mention: Mapping[str, Any]) -> dict[str, Any]:
    amounts = [(part["value"], part.get("unit")) for part in mention.get("amounts", ())]
    measured = (measure(value, unit, kind) for kind in ("quantity", "concentration") for value, unit in amounts)
    return _material(mention, next((found for found in measured if found is not None), None))


def _olivetti_step(step: Mapping[str, Any]) -> dict[str, Any] | None:
    gases = [part["name"] for part in step["materials"] if part["role"] == "Atmospheric_Material"]
    used = [
        _olivetti_material(part)
        for part in step["materials"]
        if part["role"] not in ("Atmospheric_Material", "Recipe_Target")
    ]
    conditions = _Conditions(step["action"])
    for part in step["conditions"]:
        kind = part["kind"]
        measured = measure(part["value"], part.get("unit"), kind) if kind in _CONDITIONS else None
        conditions.add(kind, measured, _words(part))
    for gas in gases:
        if not conditions.add_atmosphere(gas):
            conditions.add("atmosphere", None, gas)
    devices = [_equipment(part, [_words(about) for about in part.get("properties", ())]) for part in step["apparatus"]]
    return _step(step, used, devices, conditions)


def _words(part: Mapping[str, Any]) -> str:
    """An olivetti measure as the paper had it: "heating rate 5 degC min-1"."""
    value, unit = part["value"], part.get("unit")
    if value is None:
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return tidy(" ".join([*part.get("type", ()), text, *([unit] if unit else [])]))


def _pcmsp_fields(cells: Mapping[str, Any]) -> dict[str, Any]:
    name = cells["meta"]["file"].rsplit("/", 1)[-1].removesuffix(".tsv")
    paper = _REGISTRANT.sub("", re.sub(r"[^a-z0-9]", "", name.lower()))
    return {"text": cells["text"], "paper": _SAME_TEXT.get(paper, paper)}


def _pcmsp_record(gold: Mapping[str, Any]) -> dict[str, Any] | None:
    steps = [_pcmsp_step(step) for step in gold["steps"]]
    return _record(gold["targets"], [_pcmsp_material(mention) for mention in gold["precursors"]], steps)


def _pcmsp_material(mention: Mapping[str, Any]) -> dict[str, Any]:
    # Weight percents and N are purities in this corpus ("99.9 wt.%", "5N"), so only plain quantities are read.
    measured = (measure_text(text, "quantity") for text in mention.get("values", ()))
    return _material(mention, next((found for found in measured if found is not None), None))


def _pcmsp_step(step: Mapping[str, Any]) -> dict[str, Any] | None:
    used = [_pcmsp_material(part) for part in step["materials"] if part["type"] in ("recipe", "intermedium", "others")]
    conditions = _Conditions(step["action"])
    kinds: dict[str, str] = {"pressure_or_atmosphere": "pressure", "rate": "stirring_speed"}
    for part in step["conditions"]:
        kind = kinds.get(part["kind"], str(part["kind"]))
        measured = measure_text(part["text"], kind) if kind in _CONDITIONS else None
        if part["kind"] != "pressure_or_atmosphere" or measured or not conditions.add_atmosphere(part["text"]):
            conditions.add(kind, measured, part["text"])
    return _step(step, used, [_equipment(part, []) for part in step["devices"]], conditions)


class _Conditions:
    """The conditions of one step while they are read: fields of the ontology, and words for what fits none."""

    def __init__(self, action: str) -> None:
        self.any = False
        self._stirred = normal(action) in STIRRED
        self._found: list[tuple[str, Any, str]] = []

    def add(self, kind: str, measured: tuple[float, str] | None, words: str) -> None:
        """Take a measure of `kind`, None where it is not one number, with the paper's words for it."""
        if kind == "misc" and self.add_atmosphere(words):
            return
        self.any = True
        # A centrifuge and a mill have a speed too, and the ontology no field for it.
        fits = measured is not None and (kind != "stirring_speed" or self._stirred)
        self._found.append((kind if fits else "", measured, tidy(words)))

    def add_atmosphere(self, text: str) -> bool:
        """Take exactly one gas, or the vacuum, that `text` names; False and nothing taken otherwise."""
        gases = {str(match.lastgroup) for match in _GAS.finditer(tidy(text))}
        if len(gases) != 1 or _NO_ATMOSPHERE.search(text):
            return False
        self.any = True
        self._found.append(("atmosphere", gases.pop(), tidy(text)))
        return True

    def read(self) -> tuple[dict[str, Any], str]:
        """(fields, description): a kind with one value fills its field, one with several is words like all the rest."""
        fields: dict[str, Any] = {"stirring": True} if self._stirred else {}
        values = {kind: {value for other, value, _ in self._found if other == kind} for kind, _, _ in self._found}
        words: dict[str, None] = {}
        for kind, value, text in self._found:
            if not kind or len(values[kind]) > 1:
                if text and text not in UNSPECIFIC:
                    words[text] = None
            elif kind == "atmosphere":
                fields[kind] = value
            else:
                field, unit_field = _CONDITIONS[kind]
                fields[field] = value[0]
                if unit_field is not None:
                    fields[unit_field] = value[1]
        return fields, "; ".join(words)


def _record(
    targets: Sequence[Mapping[str, Any]], materials: Iterable[dict[str, Any]], steps: Iterable[dict[str, Any] | None]
) -> dict[str, Any] | None:
    names = [tidy(target["name"]) for target in targets if not is_generic(target["name"])]
    if not names:
        return None
    kept = [step for step in steps if step is not None]
    return {
        "target_compound": names[0],
        "starting_materials": _distinct(materials),
        "steps": [{"step_number": number, **step} for number, step in enumerate(kept, 1)],
    }


def _material(mention: Mapping[str, Any], amount: tuple[float, str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": tidy(mention["name"])}
    if amount is not None:
        found["amount"], found["unit"] = amount
    if mention.get("brand"):
        found["vendor"] = tidy(mention["brand"][0])
    return found


def _distinct(mentions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each named material once; later mentions only add what the earlier ones left open."""
    found: dict[str, dict[str, Any]] = {}
    for mention in mentions:
        if is_generic(mention["name"]):
            continue
        known = found.setdefault(normal(mention["name"]), {"name": mention["name"]})
        if "amount" in mention and "amount" not in known:
            known["amount"], known["unit"] = mention["amount"], mention["unit"]
        if "vendor" in mention:
            known.setdefault("vendor", mention["vendor"])
    return list(found.values())


def _equipment(device: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    about = [tidy(word) for word in device.get("descriptors", ()) if word.lower() not in _ARTICLES]
    found: dict[str, Any] = {"name": " ".join([*about, tidy(device["name"])])}
    if settings:
        found["settings"] = "; ".join(settings)
    return found


def _step(
    step: Mapping[str, Any], used: Iterable[dict[str, Any]], devices: list[dict[str, Any]], conditions: _Conditions
) -> dict[str, Any] | None:
    """The step without its number; None for what is no operation or has nothing annotated about it."""
    action = verb(step["action"])
    if action is None or not (step["materials"] or devices or conditions.any):
        return None
    fields, description = conditions.read()
    found: dict[str, Any] = {"action": action}
    if description:
        found["description"] = description
    if materials := _distinct(used):
        found["materials"] = materials
    if devices:
        found["equipment"] = devices
    if fields:
        found["conditions"] = fields
    return found
