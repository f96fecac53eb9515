"""Tuned programs as folders of JSON and text: export, load, what may not be in them."""

from harness.bundle.format import FORMAT, FORMAT_VERSION, MODEL_SETTINGS, LoadedProgram, export, load

__all__ = ["FORMAT", "FORMAT_VERSION", "MODEL_SETTINGS", "LoadedProgram", "export", "load"]
