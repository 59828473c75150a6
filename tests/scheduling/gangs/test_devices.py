"""Gangs whose members have resource claims: each its own devices, or no member starts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from devices.builders import DRIVER, a_claim, a_class, a_device, a_slice
from plimsoll.cluster.watch_events import NodeAdded, ObjectAdded
from plimsoll.devices.extended_resources import ANNOTATION
from plimsoll.devices.gang_claims import MOST_TURNS
from plimsoll.engine.gangs import placement as gang
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.kinds.resource_slice import ResourceSlice
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.gangs.status import ROUND_S
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClaims
from scheduling.binding.devices import gpus
from scheduling.gangs.gang_scene import GangScene


def a_member(name: str, claim: str, **more: Any) -> Any:
    """A pod of the gang, with a claim."""
    claims, labels = [{"name": "gpu", "resourceClaimName": claim}], {"plimsoll.dev/pod-group": "g"}
    return a_pod(name, schedulerName="s", labels=labels, resourceClaims=claims, **more)


@pytest.mark.parametrize(("devices", "bound"), [(3, ["m0", "m1", "m2"]), (2, [])])
async def test_members_get_devices_of_their_own(devices: int, bound: list[str]) -> None:
    """On one node, decided together: enough devices for all, or none is bound and none is allocated."""
    names = [f"c{number}" for number in range(3)]
    scene = GangScene(claims=FakeClaims(*map(a_claim, names)))
    scene.claims.watch = lambda event: scene.ingestion.apply([event])
    objects = (a_class(), gpus(devices), *scene.claims.claims.values())
    running = asyncio.ensure_future(scene.wing.run())
    await scene.see(NodeAdded(a_node("gpu")), *map(ObjectAdded, objects))
    scene.wing.serve_devices(is_served=True)
    await scene.group("g", minMember=3)
    await scene.pods(*(a_member(f"m{number}", f"c{number}") for number in range(3)))
    await scene.see()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running

    allocations = [each.status.allocation for each in scene.claims.claims.values()]
    given = [each.devices.results[0].device for each in allocations if each is not None]
    assert scene.bound == bound
    assert sorted(given) == (["d0", "d1", "d2"] if bound else [])


def unused(node: str) -> ResourceClaim:
    """A claim that got the device of a node in an attempt that bound no pod."""
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": "d0"}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}}
    return a_claim("shared", status={"allocation": allocation, "reservedFor": []})


@asynccontextmanager
async def sharing(
    *nodes: Any, slices: Sequence[ResourceSlice] = (), claim: ResourceClaim | None = None
) -> AsyncIterator[GangScene]:
    """A gang of three whose members name one claim, which has no devices yet; each node has a device."""
    scene = GangScene(claims=FakeClaims(claim or a_claim("shared")))
    scene.claims.watch = lambda event: scene.ingestion.apply([event])
    slices = slices or [gpus(1, node.name) for node in nodes]
    running = asyncio.ensure_future(scene.wing.run())
    await scene.see(
        *map(NodeAdded, nodes), *map(ObjectAdded, (a_class(), *slices, scene.claims.claims["default/shared"]))
    )
    scene.wing.serve_devices(is_served=True)
    try:
        await scene.group("g", minMember=3)
        yield scene
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def three(**more: Any) -> list[Any]:
    """The members."""
    return [a_member(f"m{number}", "shared", **more) for number in range(3)]


async def test_members_that_share_a_claim_go_where_its_devices_are() -> None:
    """One of them allocates it, and the others wait for that before they reserve it; none is tried again."""
    async with sharing(a_node("small", cpu="1"), a_node("large", cpu="8")) as scene:
        scene.claims.holds_back = True
        await scene.pods(*three(cpu="1"))
        await scene.see()
        early = scene.bound
        scene.claims.catch_up()
        await scene.see()
        scene.claims.holds_back = False

        claim = scene.claims.claims["default/shared"]

    assert early == []
    assert scene.binder.bound == {f"default/m{number}": "large" for number in range(3)}
    assert claim.status.allocation is not None
    assert [each.pool for each in claim.status.allocation.devices.results] == ["large"]
    assert sorted(each.name for each in claim.status.reserved_for) == ["m0", "m1", "m2"]
    assert scene.statuses.conditions == {}


async def test_members_for_which_there_is_no_room_by_the_shared_devices_all_wait() -> None:
    """Nothing is allocated, and no attempt follows until something changes; then all start."""
    async with sharing(a_node("n0", cpu="2"), a_node("n1", cpu="2")) as scene:
        await scene.pods(*three(cpu="1"))
        await scene.see()
        for _ in range(3):
            await scene.clock.advance(30)
        message, attempts = scene.message("m2"), [each.attempts for each in scene.queue]
        await scene.clock.advance(30)
        later = [each.attempts for each in scene.queue]
        bound, claim = scene.bound, scene.claims.claims["default/shared"]
        await scene.see(NodeAdded(a_node("n2", cpu="9")), ObjectAdded(gpus(1, "n2")))
        await scene.clock.advance(30)

    assert bound == []
    assert claim.status.allocation is None
    assert message.startswith("2 of 3 members fit, 3 must; 1 lack a node: 0/2 nodes are available: 1 ")
    assert later == attempts == [1, 1, 1]
    assert scene.binder.bound == {f"default/m{number}": "n2" for number in range(3)}


async def test_a_gang_tries_a_bounded_number_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of twelve nodes has room for two members: the devices of eight are tried, then with preemption."""
    tried: list[int] = []
    one_by_one = gang._one_by_one

    def counting(*args: Any, **options: Any) -> Any:
        tried.append(len(tried))
        return one_by_one(*args, **options)

    monkeypatch.setattr(gang, "_one_by_one", counting)
    async with sharing(*(a_node(f"n{number}", cpu="2") for number in range(12))) as scene:
        await scene.pods(*three(cpu="1"))
        await scene.see()

        assert scene.bound == []
        assert len(tried) == 2 * MOST_TURNS


async def test_members_whose_sibling_cannot_allocate_give_up() -> None:
    """The server refuses the allocation: the others do not wait for it for ever, and all are tried again."""
    async with sharing(a_node("n0", cpu="8")) as scene:
        refused = WriteResult(WriteOutcome.REFUSED, "no")
        scene.claims.answers = [refused]
        await scene.pods(*three(cpu="1"))
        await scene.see()
        first = scene.bound
        for _ in range(4):
            await scene.clock.advance(30)

    assert first == []
    assert scene.bound == ["m0", "m1", "m2"]


async def test_the_first_member_goes_where_all_have_room() -> None:
    """Alone, it would go to the node that is emptier by what scores count."""
    crowded = a_pod("other", node="empty", cpu="100m")
    async with sharing(a_node("empty", cpu="2200m"), a_node("used", cpu="8")) as scene:
        await scene.pods(crowded, *(a_pod(f"u{at}", node="used", cpu="1") for at in range(5)))
        await scene.pods(*three(cpu="1"))
        await scene.see()

    assert scene.binder.bound == {f"default/m{number}": "used" for number in range(3)}


async def test_devices_are_looked_for_elsewhere_where_others_find_no_room_by_them() -> None:
    """One member must go to a node that the first one does not choose."""
    async with sharing(a_node("empty", cpu="8"), a_node("used", cpu="8", labels={"disk": "ssd"})) as scene:
        members = [a_member("m0", "shared", cpu="2"), a_member("m1", "shared", cpu="1")]
        members.append(a_member("m2", "shared", cpu="1", node_selector={"disk": "ssd"}))
        await scene.pods(a_pod("other", node="used", cpu="3"), *members)
        await scene.see()

    assert scene.binder.bound == {f"default/m{number}": "used" for number in range(3)}


async def test_devices_of_a_zone_that_is_too_small_are_left() -> None:
    """No node has room for all; of two zones one has three nodes."""
    nodes = [a_node(f"a{at}", cpu="2", labels={"zone": "a"}) for at in range(2)]
    nodes += [a_node(f"b{at}", cpu="1100m", labels={"zone": "b"}) for at in range(3)]
    slices = [
        a_slice(
            "",
            [a_device("d0")],
            name=zone,
            allNodes=False,
            pool={"name": zone, "generation": 1, "resourceSliceCount": 1},
            nodeSelector={
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
                ]
            },
        )
        for zone in ("a", "b")
    ]
    async with sharing(*nodes, slices=slices) as scene:
        await scene.pods(*three(cpu="1"), *(a_pod(f"o{at}", node=f"a{at}", cpu="200m") for at in range(2)))
        await scene.see()

    assert sorted(scene.binder.bound.values()) == ["b0", "b1", "b2"]


async def test_an_unused_allocation_of_a_shared_claim_is_given_back() -> None:
    """Its node is full: the members wait until that is written, and start where there is room."""
    full, free = a_node("full", cpu="2"), a_node("free", cpu="8")
    async with sharing(full, free, claim=unused("full")) as scene:
        await scene.pods(a_pod("other", node="full", cpu="2"), *three(cpu="1"))
        await scene.see()
        for _ in range(3):
            await scene.clock.advance(30)
        claim = scene.claims.claims["default/shared"]

    assert scene.binder.bound == {f"default/m{number}": "free" for number in range(3)}
    assert claim.status.allocation is not None
    assert [each.pool for each in claim.status.allocation.devices.results] == ["free"]


async def test_members_wait_where_the_unused_allocation_cannot_be_given_back() -> None:
    """Their conditions and that of their group say why, and all are tried again."""
    full, free = a_node("full", cpu="2"), a_node("free", cpu="8")
    async with sharing(full, free, claim=unused("full")) as scene:
        busy = WriteResult(WriteOutcome.BUSY, "later")
        refused = WriteResult(WriteOutcome.REFUSED, "claims are frozen")
        scene.claims.answers = [busy, busy, refused]
        await scene.pods(a_pod("other", node="full", cpu="2"), *three(cpu="1"))
        await scene.see()
        for _ in range(9):
            await scene.clock.advance(ROUND_S)
        message, early = scene.message("m1"), scene.bound
        status = scene.group_statuses.statuses["g"]
        for _ in range(4):
            await scene.clock.advance(30)

    assert "deallocating resource claim default/shared: claims are frozen" in message
    assert status["conditions"][0]["message"] == message
    assert early == []
    assert scene.bound == ["m0", "m1", "m2"]


async def test_what_was_allocated_on_the_fork_alone_is_not_given_back() -> None:
    """Two of three members find room by the devices that the first one would get: nothing is written."""
    async with sharing(a_node("n0", cpu="2"), a_node("n1", cpu="2")) as scene:
        await scene.pods(*three(cpu="1"))
        await scene.see()
        for _ in range(3):
            await scene.clock.advance(30)

    assert scene.claims.writes == []


def left_over(pod: str) -> ResourceClaim:
    """A claim that an earlier attempt created for the extended resources of a pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"uid-default-{pod}", "controller": True}
    metadata = {"name": f"{pod}-left", "namespace": "default", "uid": f"uid-{pod}-left"}
    marked = {"annotations": {ANNOTATION: "true"}, "ownerReferences": [owner]}
    return a_claim(f"{pod}-left", metadata={**metadata, **marked})


async def test_claims_that_a_former_attempt_left_for_extended_resources_are_deleted() -> None:
    """The member that no node has a device for has no use for its own."""
    left = [left_over(name) for name in ("m0", "m1")]
    scene = GangScene(claims=FakeClaims(*left))
    scene.claims.watch = lambda event: scene.ingestion.apply([event])
    served = a_class("gpu", extendedResourceName="example.com/gpu")
    wanted = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    more: Any = {
        "schedulerName": "s",
        "labels": {"plimsoll.dev/pod-group": "g"},
        "containers": [{"name": "c", "resources": wanted}],
    }
    async with scene.running():
        await scene.see(NodeAdded(a_node("n0")), *map(ObjectAdded, (served, *left)))
        scene.wing.serve_devices(is_served=True)
        await scene.group("g", minMember=2)
        await scene.pods(*(a_pod(name, **more) for name in ("m0", "m1")))
        await scene.see()

    assert scene.bound == []
    assert len(scene.claims.claims) < 2
    assert {each.split()[0] for each in scene.claims.writes} == {"delete"}
