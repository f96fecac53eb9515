"""Export of a tuned program, and loading it again: a folder of JSON and text, no pickle, no secret.

    manifest.json         format, program, adapter, model settings without endpoint or key, versions
    program.json          instructions, demos and fields per predictor, and a wrapper's own state
    output_schema.json    JSON Schema of the output, verbatim
    report.json           how well it did
    prompts/NAME.txt      the messages each predictor sends, `{text}` standing for an input
    prompts/NAME.json     the response format that goes with them, where the adapter sends one
    HASHES                sha256 of every file

Programs of this package load without any of the user's files: a pydantic class has become its JSON Schema, and
since requests follow from that schema alone, they are the same bytes. An export that would not give the same
prompts after loading is refused.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from harness.bundle.documents import Manifest, ModelSettings, ProgramState, checked, read_json
from harness.bundle.folder import MANIFEST, read_folder, write_folder
from harness.bundle.privacy import refuse_private, without_folders
from harness.bundle.state import captured_state, first_difference, restored, unwrapped
from harness.errors import UsageError, nearest
from harness.foreign import foreign_code, told
from harness.models.prompt import decoding_schema, prompt_adapter, prompt_text
from programs import SchemaExtraction, SynthesisExtraction
from programs.contract import (
    OutputContract,
    ProgramDeclarationError,
    forward_parameters,
    output_contract,
    predictors_of,
)
from programs.json_schema import short

FORMAT = "dspy-judge-harness bundle"
FORMAT_VERSION = 1
PROGRAM = "program.json"
MODEL_SETTINGS = frozenset(ModelSettings.model_fields)
"""What a bundle may say about its model; anything else (endpoint, key, headers) stays out.

`own_endpoint` says that the model was reached at an address of the user's own, so that nobody takes a provider's
public model of the same name for it.
"""

_OWN: Mapping[str, type[Any]] = {
    "programs.schema:SchemaExtraction": SchemaExtraction,
    "programs.synthesis:SynthesisExtraction": SynthesisExtraction,
}


@dataclass(frozen=True)
class LoadedProgram:
    """A program as it was exported, ready to be called.

    Attributes:
        program: the module, its state restored.
        contract: its output; `contract.plain(value)` makes JSON data of what it puts out.
        adapter: the prompt adapter it was tuned with.
        adapter_name: that adapter's name.
        model: model name and settings it was tuned with.
        digest: the bundle's identity.
        notes: what a user must know, for example that other versions give other prompts.
    """

    program: dspy.Module
    contract: OutputContract
    adapter: dspy.Adapter
    adapter_name: str
    model: Mapping[str, Any]
    digest: str
    notes: tuple[str, ...] = ()

    def __call__(self, *, lm: dspy.BaseLM | None = None, **inputs: Any) -> dspy.Prediction:
        """Run the program under its adapter.

        Args:
            lm: the model; the one in dspy's settings when it is left out.
            inputs: the program's inputs by name.

        Raises:
            UsageError: an input is missing or unknown, or there is no model.
        """
        self._check(inputs)
        if lm is None and dspy.settings.lm is None:
            raise UsageError("there is no model: pass lm=dspy.LM(...) or call inside dspy.context(lm=dspy.LM(...))")
        with dspy.context(adapter=self.adapter, **({} if lm is None else {"lm": lm})):
            return self.program(**inputs)

    def _check(self, inputs: Mapping[str, Any]) -> None:
        missing = [name for name in self.contract.inputs if name not in inputs]
        if missing:
            raise UsageError(f"the program needs {', '.join(self.contract.inputs)}; {', '.join(missing)} is missing")
        taken = {*self.contract.inputs, *(part.name for part in forward_parameters(unwrapped(self.program)))}
        for name in inputs:
            if name not in taken:
                raise UsageError(f"the program has no input {name!r}; {nearest(name, self.contract.inputs)}")


def export(
    folder: Path,
    *,
    program: dspy.Module,
    contract: OutputContract,
    adapter_name: str,
    model_settings: Mapping[str, Any],
    report: Mapping[str, Any],
    program_reference: Mapping[str, Any] | None = None,
    probes: Iterable[Mapping[str, Any]] = (),
    forbidden: Iterable[str] = (),
    overwrite: bool = False,
) -> str:
    """Write a program as a bundle.

    Args:
        folder: where; must not exist, or be empty.
        program: the tuned program, in the wrapper its optimizer gave it if there is one.
        contract: its output contract.
        adapter_name: json, chat or compact.
        model_settings: keys of `MODEL_SETTINGS`.
        report: JSON data for report.json.
        program_reference: `{"class": "my_program.py:MyProgram", "arguments": {...}}` of a user's program, for people;
            programs of this package describe themselves.
        probes: inputs on which the prompts before and after are compared; placeholders are always compared.
        forbidden: values that may appear nowhere (keys, endpoints). Values of environment variables that are
            named like secrets are looked for in any case.
        overwrite: replace a bundle that is there.

    Returns:
        The bundle's digest.

    Raises:
        UsageError: the folder is taken, something cannot be written as JSON, a secret would be written, or the
            loaded program would send other prompts.
        ValueError: a model setting that is not in `MODEL_SETTINGS`.
    """
    adapter = prompt_adapter(adapter_name)
    state = captured_state(program, by_alias=adapter_name == "compact")
    documents = {
        MANIFEST: _manifest(unwrapped(program), contract, adapter_name, model_settings, program_reference),
        PROGRAM: state,
        "output_schema.json": contract.schema,
        "report.json": report,
    }
    files = {name: _json_text(document, name) for name, document in documents.items()}
    files |= _prompt_files(program, adapter, _placeholders(contract))
    refuse_private(files, forbidden, without_paths=(MANIFEST, "report.json"), environ=os.environ)
    _refuse_other_prompts(program, contract, adapter, files, probes)
    return write_folder(folder, files, overwrite=overwrite)


def _manifest(
    program: dspy.Module,
    contract: OutputContract,
    adapter_name: str,
    model_settings: Mapping[str, Any],
    program_reference: Mapping[str, Any] | None,
) -> dict[str, Any]:
    unknown = sorted(set(model_settings) - MODEL_SETTINGS)
    if unknown:
        raise ValueError(
            f"a bundle does not hold the model setting {unknown[0]!r}; {nearest(unknown[0], MODEL_SETTINGS)}"
        )
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "program": _reference(program, program_reference),
        "output_field": contract.field,
        "inputs": list(contract.inputs),
        "adapter": adapter_name,
        "model": without_folders(dict(model_settings)),
        "versions": _versions(),
    }


def _reference(program: dspy.Module, given: Mapping[str, Any] | None) -> dict[str, Any]:
    for name, kind in _OWN.items():
        if type(program) is kind:
            return {"class": name, "arguments": program.arguments()}
    if given is None:
        return {"class": type(program).__qualname__, "arguments": {}}
    return without_folders({"class": given["class"], "arguments": dict(given.get("arguments", {}))})


def _versions() -> dict[str, str]:
    names = ("dspy", "pydantic", "jsonschema", "dspy-judge-harness")
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in names}


def _json_text(document: Any, name: str) -> str:
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} of the bundle cannot be written as JSON: {error}") from error
    return f"{text}\n"


def _placeholders(contract: OutputContract) -> dict[str, Any]:
    return {name: f"{{{name}}}" for name in contract.inputs}


def _prompt_files(program: dspy.Module, adapter: dspy.Adapter, inputs: Mapping[str, Any]) -> dict[str, str]:
    """What each predictor sends, by file name."""
    files: dict[str, str] = {}
    formats = {
        name: decoding_schema(predictor.signature, adapter) for name, predictor in predictors_of(unwrapped(program))
    }
    for name, text in prompt_text(program, adapter, inputs).items():
        file = f"prompts/{re.sub(r'[^A-Za-z0-9._-]+', '_', name)}"
        while f"{file}.txt" in files:
            file += "_"
        files[f"{file}.txt"] = text
        if formats.get(name) is not None:
            files[f"{file}.json"] = _json_text(formats[name], f"{file}.json")
    return files


def _refuse_other_prompts(
    program: dspy.Module,
    contract: OutputContract,
    adapter: dspy.Adapter,
    files: Mapping[str, str],
    probes: Iterable[Mapping[str, Any]],
) -> None:
    """Load the bundle from memory and compare what both programs would send, byte for byte."""
    name, arguments = json.loads(files[MANIFEST])["program"].values()
    checked(Path("the bundle"), MANIFEST, json.loads(files[MANIFEST]), Manifest)
    checked(Path("the bundle"), PROGRAM, json.loads(files[PROGRAM]), ProgramState)
    fresh = _own_program(name, arguments, "the bundle") if name in _OWN else unwrapped(program).reset_copy()
    loaded = restored(fresh, json.loads(files[PROGRAM]), "the bundle")
    for inputs in [_placeholders(contract), *probes]:
        before, after = (_prompt_files(each, adapter, inputs) for each in (program, loaded))
        for name in before:
            if before[name] != after.get(name):
                line = _first_other_line(before[name], after.get(name, ""))
                raise UsageError(f"the bundle is not written: after loading, {name} would differ {line}")


def _first_other_line(before: str, after: str) -> str:
    pairs = itertools.zip_longest(before.split("\n"), after.split("\n"), fillvalue="(nothing)")
    number, (one, other) = next((number, pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return f"in line {number}: {one[:100]!r} before, {other[:100]!r} after"


def load(folder: Path | str, program: Any = None) -> LoadedProgram:
    """The program a bundle holds.

    Args:
        folder: the bundle.
        program: for a program of the user's own, its class or an instance; for SchemaExtraction optionally an
            instance with the pydantic class, so that records are its instances.

    Raises:
        UsageError: not a bundle, changed after the export, written by a newer version, another program than the
            one it was made from, or a program that is not given.
    """
    folder = Path(folder)
    files, digest = read_folder(folder)
    documents = {name: read_json(folder, files, name) for name in (MANIFEST, PROGRAM, "output_schema.json")}
    manifest = _checked_manifest(folder, documents[MANIFEST])
    checked(folder, PROGRAM, documents[PROGRAM], ProgramState)
    module = restored(_instance(folder, manifest, program), documents[PROGRAM], str(folder))
    contract = _checked_contract(folder, manifest, documents["output_schema.json"], module)
    adapter = _adapter(folder, manifest)
    try:
        prompts = _prompt_files(module, adapter, _placeholders(contract))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:  # what a demo holds is free
        raise UsageError(f"{folder}: {PROGRAM} holds demos that give no prompt: {told(error)}") from error
    return LoadedProgram(
        program=module,
        contract=contract,
        adapter=adapter,
        adapter_name=manifest.adapter,
        model=manifest.model.model_dump(exclude_unset=True),
        digest=digest,
        notes=_notes(folder, manifest, files, prompts),
    )


def _checked_manifest(folder: Path, document: Any) -> Manifest:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(f"{folder} is not a bundle: {MANIFEST} does not say format {FORMAT!r}")
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise UsageError(
            f"{folder} has bundle format {short(repr(version))}, this version of the package reads {FORMAT_VERSION}"
        )
    return checked(folder, MANIFEST, document, Manifest)


def _own_program(name: str, arguments: Mapping[str, Any], where: str) -> dspy.Module:
    # A model given as text would be a file of this machine; bundles hold the schema itself.
    if isinstance(arguments.get("model", {}), dict):
        try:
            return _OWN[name](**arguments)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{where}: {name} cannot be made from its arguments: {error}") from error
    raise UsageError(f"{where}: {name} cannot be made from its arguments: model is not a JSON Schema")


def _instance(folder: Path, manifest: Manifest, program: Any) -> dspy.Module:
    name, arguments = manifest.program.name, manifest.program.arguments
    if program is None:
        if name not in _OWN:
            call = f"load({str(folder)!r}, program={name.rsplit(':')[-1]})"
            raise UsageError(f"{folder} holds a program of your own, {name}: call {call}, or give --program")
        return _own_program(name, arguments, str(folder))
    if isinstance(program, dspy.Module):
        return program.deepcopy()
    if not (isinstance(program, type) and issubclass(program, dspy.Module)):
        raise UsageError(f"program is a dspy.Module class or an instance of one, got {type(program).__name__}")
    with foreign_code(f"{program.__name__} cannot be made from the arguments in {folder}; pass an instance instead"):
        return program(**arguments)


def _adapter(folder: Path, manifest: Manifest) -> dspy.Adapter:
    try:
        return prompt_adapter(manifest.adapter)
    except ValueError as error:
        raise UsageError(f"{folder}: {error}") from error


def _checked_contract(folder: Path, manifest: Manifest, schema: Any, module: dspy.Module) -> OutputContract:
    try:
        contract = output_contract(module)
    except ProgramDeclarationError as error:
        raise UsageError(f"{folder} belongs to another program: {error}") from error
    saved = {"output field": manifest.output_field, "inputs": manifest.inputs, "schema": schema}
    present = {"output field": contract.field, "inputs": list(contract.inputs), "schema": dict(contract.schema)}
    difference = first_difference(saved, present)
    if difference:
        raise UsageError(f"{folder} belongs to another program: it differs at {difference}")
    return contract


def _notes(folder: Path, manifest: Manifest, files: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    changed = [name for name in now if files.get(name) != now[name]]
    if not changed:
        return ()
    present = _versions()
    versions = [
        f"{name} {version} then, {present.get(name)} now"
        for name, version in manifest.versions.items()
        if present.get(name) != version
    ]
    if not versions:
        line = _first_other_line(files.get(changed[0], ""), now[changed[0]])
        raise UsageError(f"{folder} does not give the prompts it was exported with: {changed[0]} differs {line}")
    return (f"other prompts than when it was exported, {changed[0]} for one: {'; '.join(versions)}",)
