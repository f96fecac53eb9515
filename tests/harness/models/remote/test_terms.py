import pytest
from dspy import lm15
from dspy.lm15 import Request

from harness.models.remote.terms import Terms

SCHEMA = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True}
JSON = {"type": "json_object"}


def _request(**config):
    return Request(model="m", messages=(lm15.Message.user("q"),), config=lm15.Config(**config))


@pytest.mark.parametrize(
    ("terms", "asked", "sent"),
    [
        (Terms("json_schema"), SCHEMA, SCHEMA),
        (Terms("json_object"), SCHEMA, JSON),
        (Terms("none"), SCHEMA, None),
        (Terms("json_schema"), JSON, JSON),
        (Terms("json_object"), JSON, JSON),
        (Terms("none"), JSON, None),
        (Terms("json_schema", json_object=False), SCHEMA, SCHEMA),
        (Terms("json_schema", json_object=False), JSON, None),
        (Terms(None), SCHEMA, SCHEMA),
        (Terms(None, json_object=False), JSON, JSON),
        (Terms("none"), None, None),
    ],
)
def test_json_is_asked_for_as_the_endpoint_takes_it(terms, asked, sent):
    assert terms.adapted(_request(response_format=asked)).config.response_format == sent


def test_refused_sampling_is_left_out():
    terms = Terms("none", refused=frozenset({"temperature", "seed"}))
    config = terms.adapted(_request(temperature=0.0, seed=3, top_p=0.9)).config

    assert (config.temperature, config.seed, config.top_p) == (None, None, 0.9)


def test_the_output_limit_goes_under_its_other_name():
    terms = Terms("none", limit_field="max_completion_tokens")
    config = terms.adapted(_request(max_tokens=77, extensions={"verbosity": "low"})).config

    assert config.max_tokens is None
    assert config.extensions == {"verbosity": "low", "max_completion_tokens": 77}
    assert terms.adapted(_request()) == _request()


def test_a_request_that_fits_is_sent_as_it_is():
    request = _request(temperature=0.0, response_format=SCHEMA)

    assert Terms("json_schema").adapted(request) is request


@pytest.mark.parametrize(
    ("terms", "setting", "asked", "after"),
    [
        (Terms("json_schema"), "response_format", "json_schema", "json_object"),
        (Terms("json_schema", json_object=False), "response_format", "json_schema", "none"),
        (Terms("json_object"), "response_format", "json_object", "none"),
        (Terms("json_schema"), "response_format", "json_object", "json_schema"),
    ],
)
def test_a_refused_format_gives_way_to_the_next_simpler(terms, setting, asked, after):
    changed = terms.without(setting, asked)

    assert changed is not None
    assert changed.schema == after
    assert changed != terms


@pytest.mark.parametrize(
    ("terms", "setting", "asked"),
    [
        (Terms("none"), "response_format", None),
        (Terms(None), "response_format", "json_schema"),
        (Terms("none", refused=frozenset({"seed"})), "seed", None),
        (Terms("none"), "max_tokens", None),
        (Terms("none", limit_field="max_tokens", other_limit_field="max_tokens"), "max_tokens", None),
        (Terms("none"), "top_p", None),
    ],
)
def test_nothing_is_left_to_change(terms, setting, asked):
    assert terms.without(setting, asked) is None


def test_facts_say_what_was_found_out_and_bring_it_back():
    first = Terms(None, other_limit_field="max_completion_tokens")
    found = first.adopting({"schema": "json_schema", "note": ""}, schema=True)
    for setting, asked in [("temperature", None), ("max_tokens", None), ("response_format", "json_object")]:
        found = found.without(setting, asked)

    facts = found.facts(first)
    assert facts == {
        "schema": "json_schema",
        "note": "",
        "json_object": False,
        "refused": ["temperature"],
        "max_tokens_field": "max_completion_tokens",
    }
    assert first.adopting(facts, schema=True) == found
    assert first.facts(first) == {}


def test_facts_that_cannot_be_read_are_passed_over():
    first = Terms(None)
    strange = {"schema": "xml", "refused": "temperature", "max_tokens_field": "n_predict", "other": 1}

    assert first.adopting(strange, schema=True) == first
    assert first.adopting({"refused": ["top_p", ["seed"], "seed"]}, schema=True).refused == {"seed"}


def test_what_the_file_demands_is_not_overruled():
    assert Terms("none").adopting({"schema": "json_schema"}, schema=False).schema == "none"
