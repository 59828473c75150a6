"""The constraints of a pod that strategies look at."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.testing.builders import a_pod, the_info
from plimsoll.toolkit.descheduling.spread_populations import DomainSizes, spread_constraints_of


def test_a_constraint_whose_selector_is_invalid_hides_no_other() -> None:
    """The API refuses such a selector; whatever was stored before, the others count."""
    wrong = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}
    constraints = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}
        for key, when, selector in (
            ("zone", "DoNotSchedule", wrong),
            ("rack", "ScheduleAnyway", {"matchLabels": {"app": "web"}}),
            ("host", "DoNotSchedule", {"matchLabels": {"app": "web"}}),
        )
    ]
    pod = the_info(a_pod(topologySpreadConstraints=constraints))

    assert [each.topology_key for each in spread_constraints_of(pod, ("DoNotSchedule",))] == ["host"]
    both = spread_constraints_of(pod, ("DoNotSchedule", "ScheduleAnyway"))
    assert [each.topology_key for each in both] == ["rack", "host"]


@given(
    st.one_of(
        st.just({}),
        st.fixed_dictionaries({"a": st.integers(0, 5), "b": st.integers(0, 5), "c": st.integers(0, 5)}),
    ),
    st.integers(1, 2),
    st.sampled_from(["na", "nb", "gone"]),
    st.sampled_from(["na", "nb", "gone"]),
)
def test_an_excess_is_counted_above_the_smallest_domain(
    sizes: dict[str, int], skew: int, source: str, target: str
) -> None:
    """Asking what a move would leave changes nothing, however often it is asked."""
    rule: Any = SimpleNamespace(max_skew=skew)
    domain_of = {"na": "a", "nb": "b"} if sizes else {}
    kept = DomainSizes(rule, domain_of, frozenset(), Counter(sizes))

    def plain(counts: Counter[str]) -> int:
        line = min(counts.values(), default=0) + skew
        return sum(max(0, each - line) for each in counts.values())

    moved = Counter(sizes)
    if source != target:
        moved.update(
            {kept.domain_of[each]: by for each, by in ((source, -1), (target, 1)) if each in domain_of}
        )
    for _ in range(2):
        assert kept.line == min(sizes.values(), default=0) + skew
        assert kept.excess == plain(Counter(sizes))
        assert kept.excess_after(source, target) == plain(moved)
