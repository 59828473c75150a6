"""Gangs whose members have resource claims: each its own devices, or no member starts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from devices.builders import a_claim, a_class
from plimsoll.model.kinds.watch_event import NodeAdded, ObjectAdded
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import FakeClaims
from scheduling.binding.devices import gpus
from scheduling.gangs.gang_scene import GangScene


def a_member(name: str, claim: str) -> Any:
    """A pod of the gang, with a claim."""
    claims = [{"name": "gpu", "resourceClaimName": claim}]
    return a_pod(name, schedulerName="s", labels={"plimsoll.dev/pod-group": "g"}, resourceClaims=claims)


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


@asynccontextmanager
async def sharing(*nodes: Any) -> AsyncIterator[GangScene]:
    """A gang of three whose members name one claim, which has no devices yet; each node has a device."""
    scene = GangScene(claims=FakeClaims(a_claim("shared")))
    scene.claims.watch = lambda event: scene.ingestion.apply([event])
    slices = [gpus(1, node.name) for node in nodes]
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
    claims = [{"name": "gpu", "resourceClaimName": "shared"}]
    labels = {"plimsoll.dev/pod-group": "g"}
    return [
        a_pod(f"m{number}", schedulerName="s", labels=labels, resourceClaims=claims, **more)
        for number in range(3)
    ]


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
