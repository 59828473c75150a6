"""Devices of a move's target are held from the eviction to the replacement, as the room is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from devices.builders import a_claim, a_device, a_slice, fill
from planning.device_worlds import a_made_claim, a_user, an_allocation, the_default_profile
from plimsoll.cluster.reservations import ReservationReason
from plimsoll.cluster.watch_events import PodAdded, PodDeleted
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.holds import DeviceHold
from plimsoll.engine.attempt import schedule
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Snapshot
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from rebalancing.scene import Scene, a_policy, status_of, web
from rebalancing.test_holding import approve, in_stead, left_by_an_earlier_process

MOVABLE: dict[str, Any] = {"evictor": {"podProtections": {"extraEnabled": ["PodsWithPVC"]}}}
LATE = "2026-06-01T00:00:00Z"


def user(name: str, node: str = "", created: str = "2025-12-31T00:00:00Z", **more: Any) -> Any:
    """A pod of the ReplicaSet web with a claim of its own."""
    given = {"template": "t"} | more
    return a_user(
        name,
        node,
        cpu="100m",
        status=status_of(node),
        metadata={"creationTimestamp": created},
        **given,
    )


def a_scene(*claims: Any, devices: int = 1, **kwargs: Any) -> Scene:
    """The pod ``one`` with a device on the tainted node; the other node has devices as well."""
    scene = Scene(**kwargs)
    book = scene.cache.cluster.objects.ledger(DeviceBook)
    slices = [a_slice("bad", [a_device("d0")])]
    slices += [a_slice("good", [a_device(f"d{at}") for at in range(devices)])]
    fill(book, slices, *claims)
    scene.tell(PodDeleted(web(1, "bad")))
    return scene


def book_of(scene: Scene) -> DeviceBook:
    """The device book."""
    return scene.cache.cluster.objects.ledger(DeviceBook)


def held(scene: Scene) -> dict[str, list[str]]:
    """Devices that are held, by holder."""
    return {
        uid: [f"{each.pool}/{each.device}" for given in hold.given.values() for each in given.devices.results]
        for uid, hold in book_of(scene).holds.items()
    }


def decided(scene: Scene, pod: Pod) -> str:
    """Where the scheduler would put a pod."""
    scheduler = ProfileScheduler(the_default_profile(), scene.cache.cluster, nominator=scene.nominator)
    return schedule(scheduler, scene.cache.info(pod)).node


async def test_pods_with_claims_are_protected_unless_the_policy_says_otherwise() -> None:
    """The protection is descheduler's, and on by default."""
    scene = a_scene(a_made_claim("one", "bad", ["d0"]))
    scene.tell(PodAdded(user("one", "bad")))

    async with scene.running(a_policy()):
        await scene.run()
        assert scene.evictor.evicted == []
    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()

    assert scene.evictor.evicted == ["one"]


async def test_the_targets_devices_are_held_for_the_replacement() -> None:
    """No other pod of the same priority gets them; the replacement does, and then they are its claim's."""
    scene = a_scene(a_made_claim("one", "bad", ["d0"]), a_made_claim("rival"), a_made_claim("two"))
    scene.tell(PodAdded(user("one", "bad")))

    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()
        during, rival = held(scene), decided(scene, user("rival"))
        scene.gone(user("one", "bad"))
        scene.tell(PodAdded(user("two", created=LATE)))
        after, taken, goes = held(scene), decided(scene, user("rival")), decided(scene, user("two"))
        placed = user("two", "good", created=LATE)
        scene.tell(PodDeleted(user("two", created=LATE)), PodAdded(placed))

    assert (during, rival) == ({in_stead(scene): ["good/d0"]}, "")
    assert (after, taken, goes) == ({"uid-default-two": ["good/d0"]}, "", "good")
    assert held(scene) == {}
    assert book_of(scene).taken.whole.keys() == {("gpu.example.com", "bad", "d0")}


@asynccontextmanager
async def between_replacements() -> AsyncIterator[Scene]:
    """The first replacement was deleted before it was bound; the second, three, is not there yet."""
    claims = [a_made_claim("one", "bad", ["d0"]), *map(a_made_claim, ("rival", "two", "three"))]
    scene = a_scene(*claims)
    scene.tell(PodAdded(user("one", "bad")))
    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()
        scene.gone(user("one", "bad"))
        scene.tell(PodAdded(user("two", created=LATE)))
        scene.tell(PodDeleted(user("two", created=LATE)))
        yield scene


async def test_a_second_replacement_gets_the_devices_of_the_first() -> None:
    """What was held for it is held for the next."""
    async with between_replacements() as scene:
        between = held(scene)
        scene.tell(PodAdded(user("three", created=LATE)))
        after, rival, goes = held(scene), decided(scene, user("rival")), decided(scene, user("three"))

    assert between == {}
    assert after == {"uid-default-three": ["good/d0"]}
    assert (rival, goes) == ("", "good")


async def test_a_second_replacement_gets_no_devices_that_another_pod_has_taken() -> None:
    """Between the two nothing was held."""
    async with between_replacements() as scene:
        book_of(scene).set_claim(a_made_claim("rival", "good", ["d0"]))
        scene.tell(PodAdded(user("three", created=LATE)))

    assert held(scene) == {}
    assert dict(book_of(scene).taken.whole) == {
        ("gpu.example.com", "bad", "d0"): 1,
        ("gpu.example.com", "good", "d0"): 1,
    }


async def test_a_pod_of_a_higher_priority_may_take_the_devices_of_a_replacement() -> None:
    """As it may take its room."""
    scene = a_scene(a_made_claim("one", "bad", ["d0"]), a_made_claim("vip"), a_made_claim("two"))
    scene.tell(PodAdded(user("one", "bad")))

    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()
        firm = decided(scene, user("vip", priority=9))
        scene.gone(user("one", "bad"))
        scene.tell(PodAdded(user("two", created=LATE)))
        later = decided(scene, user("vip", priority=9))

    assert (firm, later) == ("", "good")


async def test_a_restart_holds_the_devices_again() -> None:
    """From the record, like the room: the pod that is moved is leaving, or one like it runs."""
    scene = a_scene(a_made_claim("one", "bad", ["d0"]))
    scene.tell(PodAdded(user("one", "bad")))
    scene.on_record(left_by_an_earlier_process("one"))
    scene.leaving(user("one", "bad"))

    async with scene.running(a_policy(**MOVABLE)):
        found = held(scene)

    assert list(found.values()) == [["good/d0"]]


async def test_devices_that_another_scheduler_took_stop_the_move() -> None:
    """Judged again, the target does not take the pod; the record says so, and nothing is evicted."""
    scene = a_scene(a_made_claim("one", "bad", ["d0"]))
    scene.tell(PodAdded(user("one", "bad")))

    async with scene.running(a_policy("Approve", **MOVABLE)):
        await scene.run()
        theirs = a_claim("theirs", status=an_allocation("good", ["d0"], ["stranger"]))
        book_of(scene).set_claim(theirs)
        approve(scene)
        await scene.clock.advance(2)

    assert scene.evictor.evicted == []
    assert held(scene) == {}
    assert "cannot allocate all claims" in scene.record["status"]["message"]


async def test_a_replacement_waits_for_a_claim_that_it_names() -> None:
    """Until the pod that leaves has given it back; else it would only return to it."""
    claim = a_claim("mine", status=an_allocation("bad", ["d0"], ["one"]))
    scene = a_scene(claim)
    named = {"template": "", "claim": "mine"}
    scene.tell(PodAdded(user("one", "bad", **named)))
    plugin = DynamicResources(DynamicResourcesArgs())

    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()
        scene.leaving(user("one", "bad", **named))
        scene.tell(PodAdded(user("two", created=LATE, **named)))
        two = scene.cache.info(user("two", created=LATE, **named))
        waits = plugin.pre_enqueue_on(two, Snapshot(scene.cache.cluster))
        scene.gone(user("one", "bad", **named))
        book_of(scene).set_claim(claim.allocated(None))
        goes = plugin.pre_enqueue_on(two, Snapshot(scene.cache.cluster))

    assert scene.evictor.evicted == ["one"]
    assert waits.message == "resource claim default/mine is still allocated to pods that are leaving"
    assert goes.is_success
    assert decided(scene, user("two", **named)) == "good"


@pytest.mark.parametrize("nodes", [["bad"], ["good"], ["bad", "good"], ["good", "bad"], ["bad", "bad"]])
async def test_devices_are_handed_on_with_a_nomination_to_their_own_node_only(nodes: list[str]) -> None:
    """Also at a second nomination: devices of a node that the pod does not go to are free again."""
    scene = a_scene(a_made_claim("one", "bad", ["d0"]), a_made_claim("two"), devices=0)
    scene.tell(PodAdded(user("one", "bad")), PodAdded(user("two", created=LATE)))
    two = scene.cache.info(user("two", created=LATE))
    holder, leaving = Holder(HolderKind.BENEFICIARY, two.uid), ("uid-default-one",)
    scene.book.reserve_in_stead(holder, two, "bad", ReservationReason.ROOM, "b", leaving=leaving)

    for at, node in enumerate(nodes, 1):
        scene.book.nominate(two, node, "b", instead=holder.uid if at == 1 else "")
        own = {two.uid: ["bad/d0"]} if {*nodes[:at]} == {"bad"} else {}
        assert held(scene) == own
    scene.book.release_uid(two.uid)
    scene.book.release_uid(holder.uid)
    assert held(scene) == {}


async def test_what_is_held_stays_held_while_the_former_pods_claim_is_released() -> None:
    """The controller is slower than the scheduler; devices that somebody else took are not waited for."""
    scene = a_scene(a_made_claim("one", "bad", ["d0"]), a_made_claim("two"), devices=0)
    scene.tell(PodAdded(user("one", "bad")), PodAdded(user("two", created=LATE)))
    two = scene.cache.info(user("two", created=LATE))

    holder, leaving = Holder(HolderKind.BENEFICIARY, two.uid), ("uid-default-one",)
    scene.book.reserve_in_stead(holder, two, "bad", ReservationReason.ROOM, "b", leaving=leaving)
    scene.book.nominate(two, "bad", "b", instead=holder.uid)
    before = scene.book.awaits_devices(two.uid)
    scene.gone(user("one", "bad"))
    after = scene.book.awaits_devices(two.uid)
    book_of(scene).remove_claim("default/one-gpu")

    assert held(scene) == {two.uid: ["bad/d0"]}
    assert (before, after, scene.book.awaits_devices(two.uid)) == (False, True, False)


async def test_devices_of_a_group_s_claim_are_not_waited_for() -> None:
    """They stay allocated though all of its pods have left."""
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "uid-train"}
    status = {**an_allocation("bad", ["d0"], ()), "reservedFor": [group]}
    scene = a_scene(a_claim("team", status=status), a_made_claim("two"), devices=0)
    two = scene.cache.info(user("two", created=LATE))
    allocation = book_of(scene).claims["default/team"].status.allocation
    assert allocation is not None
    book_of(scene).hold(DeviceHold(two.uid, 0, "bad", {"default/two-gpu": allocation}))

    assert not scene.book.awaits_devices(two.uid)
