"""Gangs whose members share a claim of their PodGroup: one reservation, the group's."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from devices.builders import DRIVER, a_claim, a_class
from plimsoll.cluster.watch_events import (
    NodeAdded,
    ObjectAdded,
    ObjectDeleted,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.devices.bookings import Booking
from plimsoll.model.kinds.resource_claim import Consumer, ResourceClaim, ResourceClaimStatus
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.builders import a_node
from plimsoll.testing.fakes import DONE, FakeClaims, settled
from scheduling.binding.devices import gpus
from scheduling.gangs.gang_scene import GangScene, a_core_group, core_members

SHARED = {"name": "gpu", "resourceClaimTemplateName": "shared"}
GROUP = "scheduling.k8s.io"
RESERVED = Consumer(api_group=GROUP, resource="podgroups", name="train", uid="uid-train")


def made_for(uid: str = "uid-train", name: str = "train-gpu-x", **more: Any) -> ResourceClaim:
    """A claim that the controller of claims made for a group."""
    owner = {"apiVersion": f"{GROUP}/v1alpha2", "kind": "PodGroup", "name": "train", "uid": uid}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return a_claim(metadata={**metadata, "ownerReferences": [{**owner, "controller": True}]}, **more)


def three(claim: str = "train-gpu-x", **more: Any) -> list[Any]:
    """Members that list the claim as their group does."""
    statuses = [{"name": "gpu", "resourceClaimName": claim}] if claim else []
    return core_members(3, resourceClaims=[SHARED], status={"resourceClaimStatuses": statuses}, **more)


def allocated(node: str, *users: Consumer) -> dict[str, Any]:
    """The status of a claim that has the device of a node."""
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": "d0"}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}}
    return {"status": {"allocation": allocation, "reservedFor": [msgspec.to_builtins(u) for u in users]}}


@asynccontextmanager
async def sharing(*nodes: Any, claim: ResourceClaim) -> AsyncIterator[GangScene]:
    """A scene with nodes of one device each."""
    scene = GangScene(claims=FakeClaims(claim))
    scene.claims.watch = lambda event: scene.ingestion.apply([event])
    running = asyncio.ensure_future(scene.wing.run())
    slices = [gpus(1, node.name) for node in nodes]
    await scene.see(
        *map(NodeAdded, nodes), *map(ObjectAdded, (a_class(), *slices, *scene.claims.claims.values()))
    )
    scene.wing.serve_devices(is_served=True)
    try:
        yield scene
        assert not running.done(), running.exception()
        assert scene.observer.failures == []
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def the_claim(scene: GangScene) -> ResourceClaim:
    (claim,) = scene.claims.claims.values()
    return claim


async def test_members_share_the_claim_and_it_is_reserved_once_for_the_group() -> None:
    """Only the small node is emptier: the claim goes where all have room."""
    async with sharing(a_node("small", cpu="2"), a_node("large", cpu="8"), claim=made_for()) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        await scene.pods(*three())
        await scene.clock.advance(30)

        assert scene.binder.bound == {f"default/train-{number}": "large" for number in range(3)}
        assert the_claim(scene).status.reserved_for == (RESERVED,)
        assert scene.claims.writes == ["finalizers default/train-gpu-x", "status default/train-gpu-x"]


async def test_a_named_claim_that_the_group_lists_is_reserved_for_the_group() -> None:
    named = {"name": "gpu", "resourceClaimName": "mine"}
    async with sharing(a_node("n0", cpu="8"), claim=a_claim("mine")) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[named])))
        await scene.pods(*core_members(3, resourceClaims=[named]))
        await scene.clock.advance(30)

        assert len(scene.bound) == 3
        assert the_claim(scene).status.reserved_for == (RESERVED,)


async def test_a_named_claim_that_the_group_does_not_list_so_is_reserved_for_pods() -> None:
    """The group has it under another name."""
    named = {"name": "gpu", "resourceClaimName": "mine"}
    async with sharing(a_node("n0", cpu="8"), claim=a_claim("mine")) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[{**named, "name": "net"}])))
        await scene.pods(*core_members(3, resourceClaims=[named]))
        await scene.clock.advance(30)

        users = the_claim(scene).status.reserved_for
        assert sorted(each.name for each in users) == ["train-0", "train-1", "train-2"]


async def test_members_wait_for_the_claim_of_their_group() -> None:
    async with sharing(a_node("n0", cpu="8"), claim=made_for()) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        await scene.pods(*three(claim=""))
        await scene.clock.advance(30)

        assert scene.bound == []
        assert {each.gated_by for each in scene.queue} == {"DynamicResources"}

        claims = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "train-gpu-x"}]}
        named = core_members(3, resourceClaims=[SHARED], status=claims)
        await scene.see(*map(PodUpdated, core_members(3, resourceClaims=[SHARED]), named))
        await scene.clock.advance(30)
        assert len(scene.bound) == 3


async def test_a_full_list_of_users_does_not_keep_members_out() -> None:
    """Reserved for the group already: nothing more is written, however many pods use the claim."""
    full = [Consumer(resource="pods", name=f"p{number}", uid=f"u{number}") for number in range(255)]
    claim = made_for(**allocated("n0", RESERVED, *full))
    async with sharing(a_node("n0", cpu="8"), claim=claim) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        await scene.pods(*three())
        await scene.clock.advance(30)

        assert len(scene.bound) == 3
        assert scene.claims.writes == []


async def test_a_member_made_again_comes_back_to_the_group_s_devices() -> None:
    """The other members run there, and the claim stays as it is."""
    nodes = a_node("n0", cpu="8"), a_node("n1", cpu="8")
    async with sharing(*nodes, claim=made_for()) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        pods = three()
        await scene.pods(*pods)
        await scene.clock.advance(30)
        there = scene.binder.bound["default/train-0"]
        before = the_claim(scene)
        await scene.see(PodDeleted(pods[0]))
        again = msgspec.structs.replace(
            pods[0], metadata=msgspec.structs.replace(pods[0].metadata, uid="again", name="again")
        )
        await scene.see(PodAdded(again))
        await scene.clock.advance(30)

        assert scene.binder.bound["default/again"] == there
        assert the_claim(scene) == before


async def test_the_claim_of_an_earlier_group_of_the_name_is_not_the_group_s() -> None:
    """Neither one that was made for it, nor its reservation."""
    async with sharing(a_node("n0", cpu="8"), claim=made_for("earlier")) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        await scene.pods(*three())
        await scene.clock.advance(30)

        assert scene.bound == []
        assert {each.gated_by for each in scene.queue} == {"DynamicResources"}

    named = {"name": "gpu", "resourceClaimName": "mine"}
    earlier = msgspec.structs.replace(RESERVED, uid="earlier")
    async with sharing(a_node("n0", cpu="8"), claim=a_claim("mine", **allocated("n0", earlier))) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[named])))
        await scene.pods(*core_members(3, resourceClaims=[named]))
        await scene.clock.advance(30)

        assert len(scene.bound) == 3
        assert the_claim(scene).status.reserved_for == (earlier, RESERVED)


async def test_a_group_that_goes_while_its_members_are_bound_is_no_user_any_more() -> None:
    """The watch shows the end of the group before the claim: the members are not bound."""
    async with sharing(a_node("n0", cpu="8"), claim=made_for()) as scene:
        group = a_core_group(resourceClaims=[SHARED])
        await scene.see(ObjectAdded(group))
        scene.claims.holds_back = True
        await scene.pods(*three())
        await scene.clock.advance(30)
        await scene.see(ObjectDeleted(group))
        scene.claims.catch_up()
        await scene.see()

        assert scene.bound == []


async def test_a_failed_binding_of_one_member_leaves_the_group_its_claim() -> None:
    """It follows, and nothing is taken back."""
    async with sharing(a_node("n0", cpu="8"), claim=made_for()) as scene:
        scene.binder.answers = [DONE, WriteResult(WriteOutcome.REFUSED, "no")]
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        await scene.pods(*three())
        await scene.clock.advance(30)

        assert len(scene.bound) == 3
        assert scene.binder.sent == 4
        assert scene.claims.writes == ["finalizers default/train-gpu-x", "status default/train-gpu-x"]
        assert the_claim(scene).status.reserved_for == (RESERVED,)


@pytest.mark.parametrize("runs", [0, 1])
async def test_devices_are_given_back_only_while_no_member_has_a_node(runs: int) -> None:
    """The device is on a node that is too small; another one has room."""
    claim = made_for(**allocated("full", RESERVED))
    nodes = a_node("full", cpu="500m"), a_node("free", cpu="8")
    async with sharing(*nodes, claim=claim) as scene:
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        if runs:
            listed: dict[str, Any] = {"resourceClaims": [SHARED], "node": "full", "cpu": "100m", "first": 9}
            statuses = [{"name": "gpu", "resourceClaimName": "train-gpu-x"}]
            await scene.pods(*core_members(1, status={"resourceClaimStatuses": statuses}, **listed))
        await scene.pods(*three())
        await scene.clock.advance(30)
        for _ in range(4):
            await scene.clock.advance(30)

        if runs:
            assert the_claim(scene).status == claim.status
            assert scene.bound == []
        else:
            assert scene.binder.bound == {f"default/train-{number}": "free" for number in range(3)}
            assert the_claim(scene).status.reserved_for == (RESERVED,)


async def test_a_device_that_another_scheduler_has_is_given_back_by_the_last_member() -> None:
    """Its write came before ours. No member is bound, and none keeps the group's claim allocated."""
    other = a_node("n0", cpu="8")
    async with sharing(other, claim=made_for()) as scene:
        theirs = a_claim("theirs", **allocated("n0", Consumer(resource="pods", name="x", uid="x")))
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        scene.claims.holds_back = True
        scene.claims.before = lambda: scene.claims.put(theirs)
        await scene.pods(*three())
        for _ in range(10):
            await scene.clock.advance(0.1)
        written = scene.claims.claims["default/train-gpu-x"]
        scene.claims.catch_up()
        for _ in range(10):
            await scene.clock.advance(0.1)

        assert written.status.reserved_for == (RESERVED,)
        assert scene.bound == []
        assert scene.claims.claims["default/train-gpu-x"].status == ResourceClaimStatus()


async def test_a_member_waits_while_the_claim_of_its_group_is_deallocated() -> None:
    """Bound to what is being given back, it would have no devices."""
    claim = made_for(**allocated("full", RESERVED))
    async with sharing(a_node("full", cpu="8"), claim=claim) as scene:
        devices = scene.wing.devices
        pod, late = (scene.cache.info(each) for each in three()[:2])
        await scene.see(ObjectAdded(a_core_group(resourceClaims=[SHARED])))
        scene.claims.answers = [WriteResult(WriteOutcome.BUSY, "later")]
        freeing = asyncio.ensure_future(devices.deallocate(the_claim(scene), pod))
        await settled()
        booking = Booking(the_claim(scene))
        binding = asyncio.ensure_future(devices.bind(late, "full", (booking,), 60.0))
        await settled()
        early = binding.done()
        await scene.clock.advance(1)
        status = await binding

        assert await freeing == ""
        assert not early
        assert status.message == "claim default/train-gpu-x got deallocated elsewhere in the meantime"
        assert the_claim(scene).status == ResourceClaimStatus()
