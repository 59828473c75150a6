"""Ceilings: counts, shares, and no ceiling at all."""

import pytest
from msgspec.structs import replace

from plimsoll.planning.limits import Ceiling, LimitLevel, Limits, Tally, Workload
from plimsoll.planning.rebalancing_rules import PresentRule


@pytest.mark.parametrize(
    ("ceiling", "population", "most"),
    [
        (Ceiling(), 10, None),
        (Ceiling(count=3), 10, 3),
        (Ceiling(percent=25), 10, 2),
        (Ceiling(percent=10), 19, 1),
        (Ceiling(percent=1), 10, 1),
        (Ceiling(percent=0), 10, 0),
        (Ceiling(percent=100), 10, None),
    ],
)
def test_what_a_ceiling_allows(ceiling: Ceiling, population: int, most: int | None) -> None:
    """Shares are rounded down, but allow one if they allow anything."""
    assert ceiling.of(population) == most


WEB = Workload("uid-web", "ReplicaSet default/web")


def test_the_minute_counts_what_earlier_cycles_sent() -> None:
    """Four within a minute, three of which were sent before: one more, and that ends the cycle."""
    tally = Tally(Limits(per_minute=Ceiling(count=4), per_workload=Ceiling()), lambda *_: 100, recent=3)

    assert tally.reached("n", "default", WEB) is None
    tally.count("n", "default", WEB)
    reached = tally.reached("n", "default", WEB)

    assert reached.level is LimitLevel.MINUTE
    assert reached.level.ends_cycle
    assert reached.refusal.message == "at most 4 evictions within a minute, 3 of earlier cycles"


def test_the_strictest_budget_wins_and_is_named() -> None:
    """Two budgets are open; the one that allows less speaks."""
    budgets = (("nights", Ceiling(count=5)), ("freeze", Ceiling(count=0)))
    tally = Tally(Limits(budgets=budgets), lambda *_: 100)

    reached = tally.reached("n", "default", WEB)

    assert (reached.level, reached.level.ends_cycle) == (LimitLevel.BUDGET, True)
    assert reached.refusal.message == 'at most 0 evictions by budget "freeze"'


ONE = Ceiling(count=1)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(total=ONE), "at most 1 eviction in this cycle"),
        (Limits(per_node=ONE), "at most 1 eviction from node n"),
        (Limits(per_namespace=ONE), "at most 1 eviction from namespace default"),
        (
            Limits(rules=lambda _: (PresentRule("default/calm", most=1),)),
            "at most 1 eviction an hour by RebalancingRule default/calm",
        ),
        (Limits(per_workload=ONE), "at most 1 eviction of ReplicaSet default/web"),
    ],
)
def test_a_refusal_names_what_is_limited(limits: Limits, sentence: str) -> None:
    """One eviction is allowed, of whatever the limit counts."""
    by_owner = limits.per_workload if "web" in sentence else Ceiling()
    tally = Tally(replace(limits, per_workload=by_owner), lambda *_: 100)

    assert tally.reached("n", "default", WEB) is None
    tally.count("n", "default", WEB)

    assert tally.reached("n", "default", WEB).refusal.message == sentence


def test_a_workload_counts_moves_that_are_under_way() -> None:
    """One of an earlier cycle is enough, and the sentence says so."""
    tally = Tally(Limits(), lambda *_: 100, in_flight={WEB.key: 1})

    message = tally.reached("n", "default", WEB).refusal.message

    assert message == "at most 1 eviction of ReplicaSet default/web, 1 still in flight"
