"""Whatever a field, a metric or a user is called, MLflow takes the name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import path_not_unique, validate_param_and_metric_name

from harness.tracking.names import (
    MAX_NAME,
    clean_name,
    clean_names,
    file_name,
    param_text,
    plain_json,
    shortened,
    storable,
    usable_metrics,
)

anything = st.text(st.characters(exclude_categories=[]), max_size=400)


@given(anything)
def test_every_name_is_taken(name: str) -> None:
    clean = clean_name(name)
    assert validate_param_and_metric_name(clean)
    assert not path_not_unique(clean)
    assert 0 < len(clean) <= MAX_NAME


@given(anything)
def test_a_clean_name_stays_as_it_is(name: str) -> None:
    assert clean_name(clean_name(name)) == clean_name(name)


@given(st.lists(anything, unique=True, max_size=8))
def test_different_names_stay_different(names: list[str]) -> None:
    clean = clean_names(names)
    assert list(clean) == names
    assert len(set(clean.values())) == len(names)
    assert all(validate_param_and_metric_name(name) and len(name) <= MAX_NAME for name in clean.values())


def test_long_names_that_begin_alike_stay_different() -> None:
    clean = clean_names(["a" * 300 + "x", "a" * 300 + "y"])
    assert len(set(clean.values())) == 2


def test_names_of_one_field_path_keep_their_shape() -> None:
    assert clean_name("test/field/steps[*].conditions.temperature") == "test/field/steps.conditions.temperature"


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -float("inf"), "0.5", object(), 1j])
def test_what_is_not_a_finite_number_is_skipped(value: object) -> None:
    assert usable_metrics({"a": value, "b": 1}) == ({"b": 1.0}, ["a"])


def test_numbers_of_numpy_and_counts_survive() -> None:
    values = usable_metrics({"f": np.float32(0.25), "i": np.int64(7), "t": True, "n": 123_456_789}).values
    assert values == {"f": 0.25, "i": 7.0, "t": 1.0, "n": 123_456_789.0}


def test_large_fractions_keep_their_size() -> None:
    assert usable_metrics({"seconds": 1234567.89}).values == {"seconds": 1234568.0}


@given(anything)
def test_text_can_be_written_to_a_file_and_a_database(text: str) -> None:
    kept = storable(text)
    assert "\x00" not in kept.encode().decode()
    assert len(kept) == len(text)


@given(anything, st.integers(30, 200))
def test_shortened_text_keeps_its_limit(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit or len(short) <= len("... (400 characters)")
    assert short == text or "characters" in short


def test_params_are_texts() -> None:
    assert param_text(None) == "null"
    assert param_text({"fields": ("a", 1)}) == '{"fields": ["a", 1]}'
    assert param_text({"path": st}).startswith('{"path": "<module')


@given(anything)
def test_file_names_are_plain(name: str) -> None:
    plain = file_name(name)
    assert plain
    assert len(plain) <= 100
    assert not set(plain) & set('/\\:*?"<>| ')
    assert plain not in (".", "..")


def test_long_file_names_stay_different() -> None:
    assert file_name("a" * 200) != file_name("a" * 201)


def test_records_are_readable() -> None:
    assert plain_json({"a": "é"}) == '{\n  "a": "é"\n}'
    assert plain_json("as it is") == "as it is"
