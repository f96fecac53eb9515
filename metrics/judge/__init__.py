"""Judges: language models that grade an extraction by a rubric, and the metrics made of them."""
