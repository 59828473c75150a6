"""totals_of adds up restarts, time below replicas, nodes freed, and money."""

from datetime import timedelta
from typing import Any

import pytest

from inspection.test_history import NOW, a_record, history
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.cli.views.history import history_view
from plimsoll.framework.descheduling.strategy import empties_nodes
from plimsoll.inspection.history.totals import EMPTYING, totals_of
from plimsoll.records.record import Record
from plimsoll.strategies import IN_TREE


def emptied(number: int, phase: str = "Settled", **more: Any) -> Record:
    """One of two moves that empty node n1, which ended an hour ago and took a minute of absence."""
    bundle = {
        "name": "b",
        "position": number,
        "moves": 2,
        "pricePerHour": "0.25 EUR",
        **more.pop("bundle", {}),
    }
    spec = {"strategy": "ConsolidateNodes", "bundle": bundle, **more}
    record = a_record(f"web-{number}", phase, minutes_ago=62, took=120, **spec)
    gone = (NOW - timedelta(minutes=61)).isoformat()
    planned, *ended = record.status.model_dump(mode="json", by_alias=True)["transitions"]
    status = record.status.model_validate(
        {
            **record.status.model_dump(mode="json", by_alias=True, exclude_none=True),
            "transitions": [planned, {"phase": Phase.EVICTED, "time": gone}, *ended],
        }
    )
    return Record(record.namespace, record.name, record.spec, status, record.created)


def test_a_freed_node_saves_its_price_since_its_last_pod_has_settled() -> None:
    answer = history(emptied(1), emptied(2))

    assert answer.totals.model_dump() == {
        "restarts": 2,
        "failures": 0,
        "seconds_below_replicas": 120.0,
        "nodes_freed": 1,
        "nodes_drained": 0,
        "freed_per_hour": {"EUR": 0.25},
        "saved_at_most": {"EUR": 0.25},
    }
    assert history_view(answer)[2:4] == [
        "restarts: 2 pods, 2m below replicas; 0 moves failed or came back",
        "freed: 1 node, 0.25 EUR an hour: at most 0.25 EUR until now, if they were removed",
    ]


@pytest.mark.parametrize(
    ("second", "freed", "drained", "saved"),
    [
        pytest.param(None, 0, 0, {}, id="one-of-two"),
        pytest.param({"phase": "Failed"}, 0, 0, {}, id="failed"),
        pytest.param({"phase": "Returned"}, 0, 0, {}, id="came-back"),
        pytest.param({"bundle": {"name": "c"}}, 0, 0, {}, id="of-another-time"),
        pytest.param({"fromNode": "n9"}, 0, 0, {}, id="of-another-node"),
    ],
)
def test_a_node_is_freed_when_all_its_moves_have_settled(
    second: dict[str, Any] | None, freed: int, drained: int, saved: dict[str, float]
) -> None:
    records = [emptied(1), *([] if second is None else [emptied(2, **second)])]

    totals = totals_of(records, NOW.timestamp())

    assert (totals.nodes_freed, totals.nodes_drained, totals.saved_at_most) == (freed, drained, saved)


def test_the_second_time_that_a_node_is_freed_counts_again_and_currencies_stay_apart() -> None:
    again = {"name": "later", "pricePerHour": "1 USD"}
    records = [emptied(1), emptied(2), emptied(1, bundle=again), emptied(2, bundle=again)]

    totals = totals_of(records, NOW.timestamp())

    assert (totals.nodes_freed, totals.freed_per_hour) == (2, {"EUR": 0.25, "USD": 1.0})


def test_what_was_emptied_on_request_saves_nothing() -> None:
    moves = [emptied(number, strategy="DrainNodes", bundle={"pricePerHour": None}) for number in (1, 2)]

    totals = totals_of(moves, NOW.timestamp())

    assert (totals.nodes_freed, totals.nodes_drained, totals.saved_at_most) == (0, 1, {})


def test_bundles_of_other_strategies_free_no_node() -> None:
    """Such as pods that share a claim, or that make room."""
    moves = [emptied(number, strategy="RemoveDuplicates", bundle={"pricePerHour": None}) for number in (1, 2)]

    assert totals_of(moves, NOW.timestamp()).nodes_freed == 0


def test_a_surge_leaves_no_owner_below_its_replicas() -> None:
    surge = {"deployment": "web", "uid": "d", "replicas": 3}

    totals = totals_of([emptied(1, surge=surge)], NOW.timestamp())

    assert (totals.restarts, totals.seconds_below_replicas) == (1, 0.0)


def test_what_was_refused_restarts_nothing_and_what_came_back_is_a_failure() -> None:
    totals = totals_of([emptied(1, "Blocked"), emptied(2, "Returned")], NOW.timestamp())

    assert (totals.restarts, totals.failures) == (1, 1)


def test_every_strategy_that_empties_nodes_is_known() -> None:
    assert {each.name for each in IN_TREE if empties_nodes(each)} == EMPTYING
