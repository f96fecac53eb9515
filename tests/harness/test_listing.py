"""What can be named is listed, one line each."""

import pytest

from harness.errors import UsageError
from harness.listing import listing


@pytest.mark.parametrize(
    "kind", ["programs", "evaluators", "metrics", "judges", "optimizers", "models", "readers", "adapters"]
)
def test_everything_that_can_be_named_is_listed_in_one_line(kind):
    rows = listing(kind)
    assert rows
    assert all(name and line and "\n" not in line for name, line in rows)


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'optimizers'"):
        listing("optimisers")
