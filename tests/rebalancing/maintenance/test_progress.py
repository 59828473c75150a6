"""The status of a NodeMaintenance, and the nodes that it begins next, by the state of its nodes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.api.v1alpha1.node_maintenance import MOST_NODES, MaintenancePhase, NodeMaintenance
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.policies.node_maintenance import policy_of, selected
from plimsoll.ports.custom_resources import WatchedMaintenance
from plimsoll.rebalancing.maintenance.progress import (
    MaintenanceFacts,
    NodeFacts,
    NodePlan,
    next_batch,
    phase_of,
    status_of,
)
from plimsoll.testing.builders import a_node

NOW = datetime(2026, 11, 28, 2, tzinfo=UTC)
FULL = NodeFacts("a", leaving=3)
DONE = NodeFacts("b", is_closed=True)
MOVING = NodeFacts("c", leaving=1, is_closed=True, moving=2)
STUCK = {"a": NodePlan(reason="FailedBarePods", message="pod shop/solo: it has no owner")}


def maintenance(**spec: Any) -> NodeMaintenance:
    """A maintenance of nodes a, b and c."""
    return NodeMaintenance.from_wire(
        {
            "metadata": {"name": "kernel", "generation": 1},
            "spec": {"nodes": ["a", "b", "c"], **spec},
        }
    )


def facts(*nodes: NodeFacts, **more: Any) -> MaintenanceFacts:
    """The facts about these nodes, nothing of which is planned."""
    return MaintenanceFacts(**{"now": NOW, "nodes": nodes, "plans": {}, **more})


@pytest.mark.parametrize(
    ("given", "found", "phase"),
    [
        (maintenance(), facts(FULL), "Pending"),
        (maintenance(), facts(FULL, is_open=False), "Pending"),
        (maintenance(), facts(FULL, DONE), "Draining"),
        (maintenance(), facts(FULL, DONE, is_open=False), "Pending"),
        (maintenance(), facts(FULL, MOVING, plans=STUCK), "Draining"),
        (maintenance(), facts(FULL, DONE, plans=STUCK), "Blocked"),
        (maintenance(), facts(FULL, NodeFacts("c", leaving=1), DONE, plans=STUCK), "Draining"),
        (maintenance(), facts(NodeFacts("a", exists=False), DONE), "Blocked"),
        (maintenance(), facts(DONE), "Drained"),
        (maintenance(), facts(NodeFacts("b", is_closed=True, moving=1)), "Draining"),
        (maintenance(), facts(NodeFacts("b")), "Pending"),
        (maintenance(), facts(), "Pending"),
        (maintenance(), facts(FULL, damage="the move of record x failed"), "Stopped"),
        (maintenance(deadline="2026-11-28T02:00:00Z"), facts(MOVING), "Expired"),
        (maintenance(deadline="2026-11-28T02:00:00Z"), facts(DONE), "Drained"),
        (maintenance(deadline="2026-11-28T02:00:01Z"), facts(MOVING), "Draining"),
        (maintenance(suspend=True), facts(DONE), "Suspended"),
        (maintenance(), facts(DONE, invalid="spec.window: it never opens"), "Invalid"),
    ],
)
def test_the_phase_follows_from_the_nodes(
    given: NodeMaintenance, found: MaintenanceFacts, phase: str
) -> None:
    status = status_of(given, found)

    assert status.phase == phase_of(given, found) == phase
    (condition,) = status.conditions
    assert (condition.status == "True") == (phase == "Drained")


@pytest.mark.parametrize("end", [MaintenancePhase.STOPPED, MaintenancePhase.EXPIRED])
def test_an_end_stays_until_the_spec_changes(end: MaintenancePhase) -> None:
    """Though the record of the damage is gone, and the clock was set back; also for the next process."""
    stopped = status_of(maintenance(), facts(FULL, damage="the move of record x failed"))
    kept = stopped.model_copy(update={"phase": end})
    again = maintenance().model_copy(update={"status": kept})
    changed = again.model_copy(update={"metadata": again.metadata.model_copy(update={"generation": 2})})

    assert phase_of(again, facts(FULL)) is end
    later = facts(FULL, now=NOW + timedelta(hours=1))
    assert status_of(again, later).start_time == NOW
    assert phase_of(changed, facts(FULL)) is MaintenancePhase.PENDING
    assert status_of(changed, later).start_time == NOW + timedelta(hours=1)


def test_a_stopped_one_says_why_for_as_long_as_it_is_stopped() -> None:
    first = status_of(maintenance(), facts(FULL, damage="the move of record x failed"))
    again = maintenance().model_copy(update={"status": first})

    assert "the move of record x failed" in status_of(again, facts(FULL)).conditions[0].message


def test_blocked_nodes_are_named_with_the_pod() -> None:
    status = status_of(maintenance(), facts(FULL, DONE, plans=STUCK))

    assert [(each.phase.value, each.reason) for each in status.nodes] == [
        ("Blocked", "FailedBarePods"),
        ("Drained", None),
    ]
    assert "node a is not emptied: pod shop/solo: it has no owner" in status.conditions[0].message
    assert (status.drained, status.total) == (1, 2)


def zoned(name: str, zone: str, *, moving: int = 0) -> NodeFacts:
    """A node of a zone with pods to move."""
    return NodeFacts(name, zone=zone, leaving=2, moving=moving)


@pytest.mark.parametrize(
    ("most", "nodes", "begun", "count", "empty"),
    [
        (1, [FULL, DONE], ("a",), 1, ()),
        (1, [FULL, MOVING], ("a",), 0, ()),
        (2, [FULL, MOVING], ("a",), 1, ()),
        (3, [zoned("x", "1"), zoned("y", "2", moving=1)], ("x",), 2, ()),
        (1, [NodeFacts("e"), FULL], ("a",), 0, ("e",)),
        (2, [NodeFacts("e"), FULL], ("a",), 1, ("e",)),
        (1, [MOVING, NodeFacts("e")], (), 0, ()),
        (2, [NodeFacts("gone", exists=False), DONE], (), 2, ()),
        # Closed with pods on it: something came in between, and nothing is under way.
        (1, [NodeFacts("d", leaving=1, is_closed=True)], ("d",), 1, ()),
    ],
)
def test_no_more_nodes_are_begun_than_may_be_under_way(
    most: int, nodes: list[NodeFacts], begun: tuple[str, ...], count: int, empty: tuple[str, ...]
) -> None:
    batch = next_batch(maintenance(maxConcurrent=most), facts(*nodes))

    assert (batch.nodes, batch.most, batch.empty) == (begun, count, empty)
    assert batch.busy_zones == ({"2": 1} if nodes[-1].zone else {})


def test_the_end_is_expected_at_the_pace_so_far() -> None:
    """Known once a node is drained; it moves with the next one, and not with the clock."""
    given = maintenance()
    waiting = [NodeFacts("b", leaving=2), NodeFacts("c", leaving=2)]
    done = NodeFacts("a", is_closed=True)

    def after(minutes: int, nodes: list[NodeFacts]) -> datetime | None:
        nonlocal given
        status = status_of(given, facts(*nodes, now=NOW + timedelta(minutes=minutes)))
        given = given.model_copy(update={"status": status})
        return status.expected_end

    assert after(0, [FULL, *waiting]) is None
    assert after(10, [done, *waiting]) == NOW + timedelta(minutes=30)
    assert after(15, [done, *waiting]) == NOW + timedelta(minutes=30)
    assert after(30, [done, NodeFacts("b", is_closed=True), waiting[1]]) == NOW + timedelta(minutes=45)
    assert after(40, [done, *(NodeFacts(each, is_closed=True) for each in "bc")]) is None


def test_a_selector_of_more_nodes_than_a_status_lists_is_refused() -> None:
    """The sentence is the status's; without nodes, nothing is begun."""
    given = maintenance(nodes=[], nodeSelector={"matchLabels": {"pool": "old"}})
    nodes = [a_node(f"n{number}", labels={"pool": "old"}) for number in range(MOST_NODES + 1)]

    assert len(selected(given, nodes[1:])) == MOST_NODES
    with pytest.raises(ValueError, match=r"spec\.nodeSelector: selects 1001 nodes, .* at most 1000"):
        selected(given, nodes)


@pytest.mark.parametrize("status", [{}, {"phase": "Draining"}])
def test_a_maintenance_is_read_with_its_status_if_it_has_one(status: dict[str, str]) -> None:
    """One without is new."""
    metadata = ObjectMeta(name="m", uid="u", generation=2)

    document = WatchedMaintenance(metadata=metadata, spec={"nodes": ["a"]}, status=status).document

    assert document == {
        "metadata": {"name": "m", "uid": "u", "generation": 2},
        "spec": {"nodes": ["a"]},
        **({"status": status} if status else {}),
    }


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("possible", [True, False])
def test_a_maintenance_surges_if_it_wants_and_can(wanted: bool, possible: bool) -> None:
    policy = policy_of(maintenance(surge=wanted), ["a"], Mode.ENFORCE, may_surge=possible)

    assert policy.spec.rebalancing is not None
    assert policy.spec.rebalancing.surge is (wanted and possible)
