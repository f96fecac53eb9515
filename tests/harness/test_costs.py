from harness.costs import TOTAL, with_total
from harness.results import RoleUsage


def test_one_role_has_no_sum():
    assert with_total({}) == {}
    assert list(with_total({"task": RoleUsage(1, 0, 1, 1, 1.0)})) == ["task"]


def test_what_is_unknown_of_one_role_is_unknown_of_all():
    known = RoleUsage(1, 2, 3, 4, 0.5, {"cut": 1}, 5, 6, 0.25, 1)
    unknown = RoleUsage(1, 2, 3, 4, None, {"cut": 2, "timeout": 1}, 5, 6, None)
    assert with_total({"a": known, "b": known})[TOTAL] == RoleUsage(2, 4, 6, 8, 1.0, {"cut": 2}, 10, 12, 0.5, 2)
    total = with_total({"a": known, "b": unknown})[TOTAL]
    assert (total.usd, total.replayed_usd, total.failures) == (None, None, {"cut": 3, "timeout": 1})


def test_a_role_the_store_never_answered_leaves_the_sum_known():
    never = RoleUsage(1, 0, 3, 4, 0.5)
    assert never.replayed_usd is None
    assert with_total({"a": RoleUsage(0, 1, 0, 0, 0.0, replayed_usd=0.25), "b": never})[TOTAL].replayed_usd == 0.25
