"""Strategies that make room make it for devices too: whole nodes, link groups, few moves."""

from typing import Any

import pytest
from msgspec.structs import replace

from devices.builders import DRIVER, a_claim, a_class, a_device, a_slice, fill
from planning.device_worlds import a_made_claim, a_user, an_allocation
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.devices_wanted import wanted_devices
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.planning.moves import EvictionPlan, PlanningContext
from plimsoll.planning.planners import proven_plan
from plimsoll.strategies.consolidate_nodes import ConsolidateNodes
from plimsoll.strategies.defragment_resource import DefragmentResource
from plimsoll.strategies.make_room_for_pending import MakeRoomForPending
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from strategies.builders import a_context, a_strategy
from strategies.making_room import NOW, a_rebalancing, moves_of, planned, served


def linked(nodes: dict[str, int], links: int = 4) -> Cluster:
    """Nodes with so many devices, of which each ``links`` in a row are linked."""
    cluster = a_cluster([a_node(name) for name in nodes])
    slices = [
        a_slice(
            name,
            [a_device(f"d{at}", attributes={"link": {"int": at // links}}) for at in range(count)],
        )
        for name, count in nodes.items()
    ]
    fill(cluster.objects.ledger(DeviceBook), slices)
    return cluster


def running(cluster: Cluster, **users: tuple[str, list[str]]) -> Cluster:
    """Pods with devices: node and names of devices by pod."""
    book = cluster.objects.ledger(DeviceBook)
    for name, (node, devices) in users.items():
        pod = a_user(name, node, template="t", owner=f"ReplicaSet/{name}")
        cluster.place(cluster.templates.info(pod), node)
        book.set_claim(a_made_claim(name, node, devices, count=len(devices)))
    return cluster


def waiting(cluster: Cluster, count: int, **more: Any) -> Any:
    """A pending pod whose claim asks for so many devices."""
    claim: ResourceClaim = a_made_claim("job", count=count, **more)
    cluster.objects.ledger(DeviceBook).set_claim(claim)
    return a_user("job", template="t")


def a_plan(strategy: Strategy, cluster: Cluster, *pods: Any) -> EvictionPlan:
    """What the strategy proposes and the planner proves; all pods with devices may move."""
    return planned(strategy, [], list(pods), cluster=cluster)


RACK = "example.com/rack"
MAKE_ROOM = a_strategy(MakeRoomForPending, maxMovesPerPod=8)


def test_room_is_made_for_a_job_that_wants_all_devices_of_a_node() -> None:
    """One node has three users, the other one: that one moves."""
    cluster = running(
        linked({"a": 8, "b": 8}),
        x=("a", ["d0"]),
        y=("a", ["d1"]),
        z=("b", ["d4"]),
    )

    found = a_plan(MAKE_ROOM, cluster, waiting(cluster, 8))

    assert moves_of(found) == [("z", "b", "a")]
    assert served(found) == {"job": "b"}


def test_room_is_made_in_one_link_group() -> None:
    """Four devices are free on each node, and of one link nowhere; one move is enough."""
    cluster = running(
        linked({"a": 8, "b": 8}),
        x=("a", ["d0", "d1", "d4"]),
        y=("a", ["d5"]),
        z=("b", ["d0"]),
        w=("b", ["d4"]),
        v=("b", ["d5"]),
    )

    found = a_plan(
        MAKE_ROOM, cluster, waiting(cluster, 4, constraints=[{"matchAttribute": f"{DRIVER}/link"}])
    )

    assert moves_of(found) == [("z", "b", "a")]


def test_nodes_that_lack_fewer_devices_are_looked_at_first() -> None:
    """By the devices that may be allocated: an incomplete pool gives none, and lacks none."""
    free = {"a": 0, "b": 1, "c": 2, "d": 1, "e": 2}
    context = a_context([a_node(name) for name in free])
    book = context.cluster.objects.ledger(DeviceBook)
    sizes = {name: 1 if name == "d" else 2 for name in free}
    slices = [
        a_slice(name, [a_device(f"d{at}", attributes={"link": {"int": at}}) for at in range(size)])
        for name, size in sizes.items()
    ]
    part = {"name": "e-part", "generation": 1, "resourceSliceCount": 2}
    fill(book, [*slices, a_slice("e", [a_device("d0")], name="e-part", pool=part)])
    for name in "ab":
        taken = [f"d{at}" for at in range(2 - free[name])]
        book.set_claim(a_made_claim(f"on-{name}", name, taken, count=len(taken)))
    book.set_claim(a_made_claim("in-part", "e-part", ["d0"]))
    pod = waiting(context.cluster, 2, constraints=[{"matchAttribute": f"{DRIVER}/link"}])

    wanted = wanted_devices(context.cluster.templates.info(pod), context)

    assert wanted is not None
    assert [context.cluster.nodes[row].name for row in wanted.rows(context)] == ["c", "e", "b", "a"]


@pytest.mark.parametrize("claims", [False, True])
def test_a_group_gets_devices_in_the_rack_that_has_most_of_them_free(claims: bool) -> None:
    """The last of ten racks: its two users move, and pods of the others are too important to be moved."""
    racks = [f"r{number}" for number in range(10)]
    nodes = [a_node(f"{rack}-{at}", labels={RACK: rack}) for rack in racks for at in range(2)]
    spares = [a_node(f"spare-{at}") for at in range(2)]
    cluster = a_cluster([*nodes, *spares])
    book = cluster.objects.ledger(DeviceBook)
    serving = [] if claims else [a_class("serving", extendedResourceName="example.com/gpu")]
    slices = [a_slice(node.name, [a_device("d0"), a_device("d1")]) for node in (*nodes, *spares)]
    fill(book, slices, classes=serving)
    for node in nodes:
        is_last = node.name.startswith("r9")
        for device in ("d0",) if is_last else ("d0", "d1"):
            user = f"{node.name}-{device}"
            more: Any = {"owner": f"ReplicaSet/{user}", "priority": 0 if is_last else 9}
            cluster.place(cluster.templates.info(a_user(user, node.name, template="t", **more)), node.name)
            book.set_claim(a_made_claim(user, node.name, [device]))
    spec = {"minMember": 2, "topology": {"required": RACK}}
    group = convert(PodGroup, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    cluster.objects.pod_groups[group.key] = group
    of: Any = {"labels": {"plimsoll.dev/pod-group": "g"}}
    asked: Any = {"requests": {"cpu": "1", "example.com/gpu": 2}, **of}
    pods = [a_user(f"m{at}", template="t", **of) if claims else a_pod(f"m{at}", **asked) for at in "01"]
    for pod in pods if claims else ():
        book.set_claim(a_made_claim(pod.name, count=2))
    waits = PlanningContext(NOW, unplaced=[cluster.templates.info(pod) for pod in pods], gangs={group.key: 2})

    found = proven_plan(a_rebalancing(MAKE_ROOM), cluster, waits)

    assert {move[:2] for move in moves_of(found)} == {("r9-0-d0", "r9-0"), ("r9-1-d0", "r9-1")}
    assert {move.target for move in found.moves} == {"spare-0"}


@pytest.mark.parametrize("users", ["x", "xy"])
def test_a_pod_that_shares_its_devices_is_not_moved_for_them(users: str) -> None:
    """One user of a device leaves it to the job; two of one claim stay, though b has a device for both."""
    cluster = running(linked({"a": 2, "b": 1}), x=("a", ["d0"]))
    if users == "xy":
        cluster.place(cluster.templates.info(a_user("y", "a", claim="x-gpu", owner="ReplicaSet/y")), "a")
        shared = a_claim("x-gpu", status=an_allocation("a", ["d0"], users))
        cluster.objects.ledger(DeviceBook).set_claim(
            replace(a_made_claim("x", "a", ["d0"]), status=shared.status)
        )

    moves = moves_of(a_plan(MAKE_ROOM, cluster, waiting(cluster, 2)))

    assert moves == ([("x", "a", "b")] if users == "x" else [])


def test_nothing_moves_where_it_would_not_be_enough() -> None:
    """Nine devices are on no node, and devices in use elsewhere leave no place for who would leave."""
    cluster = running(linked({"a": 2, "b": 2}), x=("a", ["d0"]), y=("b", ["d0", "d1"]))

    assert moves_of(a_plan(MAKE_ROOM, cluster, waiting(cluster, 9))) == []
    assert moves_of(a_plan(MAKE_ROOM, cluster, waiting(cluster, 2))) == []


def defragmented(cluster: Cluster, **args: Any) -> list[tuple[str, ...]]:
    """The moves of DefragmentResource."""
    return moves_of(a_plan(a_strategy(DefragmentResource, **args), cluster))


def test_a_node_with_all_of_its_devices_free_is_made() -> None:
    """Three users on two nodes fit one of them; the one that is alone leaves."""
    cluster = running(linked({"a": 4, "b": 4}), x=("a", ["d0"]), y=("a", ["d1"]), z=("b", ["d3"]))
    devices = {"deviceClassName": "gpu", "count": 4}

    assert defragmented(cluster, devices=devices) == [("z", "b", "a")]


def test_no_group_is_gained_by_losing_another() -> None:
    """Node b has one group of four; the users of a would break it."""
    cluster = running(linked({"a": 4, "b": 4}), x=("a", ["d0"]))

    assert defragmented(cluster, devices={"deviceClassName": "gpu", "count": 4}) == []


def test_a_link_group_is_freed_on_the_node_itself_or_another_one() -> None:
    """Of eight devices the two users sit on both links; one of them joins the user of the other node."""
    cluster = running(linked({"a": 8, "b": 4}), x=("a", ["d0"]), y=("a", ["d4"]), z=("b", ["d0"]))
    devices = {"deviceClassName": "gpu", "count": 4, "matchAttribute": f"{DRIVER}/link"}

    assert defragmented(cluster, devices=devices) == [("x", "a", "b"), ("y", "a", "b")]


def test_an_extended_resource_that_a_class_serves_is_a_block_of_devices() -> None:
    """No node has it itself."""
    cluster = running(linked({"a": 4, "b": 4}), x=("a", ["d0"]), z=("b", ["d3"]))
    cluster.objects.ledger(DeviceBook).set_class(a_class(extendedResourceName="example.com/gpu"))

    assert len(defragmented(cluster, block={"example.com/gpu": 4})) == 1


def test_a_block_of_devices_needs_the_rest_of_the_block_as_well() -> None:
    """Ten cpus are on no node, so that no block is to be had."""
    cluster = running(linked({"a": 4, "b": 4}), x=("a", ["d0"]), z=("b", ["d3"]))
    devices = {"deviceClassName": "gpu", "count": 4}

    assert defragmented(cluster, devices=devices, block={"cpu": "1"}) != []
    assert defragmented(cluster, devices=devices, block={"cpu": "10k"}) == []


def consolidated(cluster: Cluster, **args: Any) -> list[tuple[str, ...]]:
    """The moves of ConsolidateNodes."""
    return moves_of(a_plan(a_strategy(ConsolidateNodes, **args), cluster))


def test_the_node_with_the_fewest_devices_in_use_is_emptied() -> None:
    """Its pod goes where the most are, and that is not over-committed."""
    cluster = running(
        linked({"a": 4, "b": 4, "c": 4}),
        x=("a", ["d0", "d1", "d2"]),
        y=("b", ["d0", "d1"]),
        z=("c", ["d0"]),
    )

    assert consolidated(cluster, deviceThresholds={"gpu": 50}) == [("z", "c", "a")]
    assert consolidated(cluster, deviceThresholds={"gpu": 20}) == []


def test_a_node_whose_devices_find_no_place_stays() -> None:
    """Two devices are free in all, on two nodes."""
    cluster = running(
        linked({"a": 2, "b": 2, "c": 2}), x=("a", ["d0"]), y=("b", ["d0"]), z=("c", ["d0", "d1"])
    )

    assert consolidated(cluster, deviceThresholds={"gpu": 100}) == [("x", "a", "b")]
