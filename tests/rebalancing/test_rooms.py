"""Room for a pending pod is kept while moves are under way, handed over when they are made, released else."""

from typing import Any

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import NodeAdded, NodeDeleted, PodAdded, PodDeleted, PodUpdated
from plimsoll.engine.attempt import schedule
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.names import BundleKey, NodeName, PodUid
from plimsoll.ports.writes import WriteResult
from plimsoll.rebalancing.execution.targets import ROOM_S
from plimsoll.rebalancing.moves.instructions import ReserveRoom
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled
from rebalancing.scene import Scene, a_policy

MAKES_ROOM = {"strategies": [{"name": "MakeRoomForPending"}]}
BIG = a_pod("big", cpu="7")


def small(name: str, node: str) -> Pod:
    return a_pod(name, owner="ReplicaSet/small", cpu="2", node=node, labels={"app": "small"})


def crowded() -> Scene:
    """Eight cores with two pods of two, and two elsewhere; seven are wanted, so both have to leave."""
    scene = Scene()
    scene.tell(
        NodeDeleted(a_node("bad")),
        NodeDeleted(a_node("good")),
        NodeAdded(a_node("large", cpu="8")),
        NodeAdded(a_node("spare", cpu="4")),
        PodAdded(small("s0", "large")),
        PodAdded(small("s1", "large")),
        PodAdded(BIG),
    )
    return scene


def a_free_policy() -> SchedulingPolicy:
    unlimited = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"}
    return a_policy(limits=unlimited, evictor={"minReplicas": 0}, **MAKES_ROOM)  # type: ignore[arg-type] # fields as in the API


def on(scene: Scene, node: str) -> dict[str, Any]:
    """Names and uids of who is nominated to a node."""
    return {uid: pod.name for uid, pod in scene.nominator.by_node.get(node, {}).items()}


def decided(scene: Scene, pod: Pod) -> str:
    """The node that the scheduler would give to a pod now."""
    profile = scene.wing.configs.profiles["default-scheduler"]
    scheduler = ProfileScheduler(profile, scene.cache.cluster, nominator=scene.nominator)
    return schedule(scheduler, scene.cache.info(pod)).node


async def test_the_room_is_kept_until_the_last_has_left_and_then_the_pod_s_own() -> None:
    """After the first of two: neither the pod nor another gets it. After the second: the pod does."""
    scene = crowded()

    async with scene.running(a_free_policy()):
        await scene.run()
        kept = on(scene, "large")
        scene.tell(PodDeleted(small("s0", "large")))
        between = on(scene, "large"), decided(scene, a_pod("thief", cpu="3"))
        scene.tell(PodDeleted(small("s1", "large")))
        after = on(scene, "large"), decided(scene, a_pod("thief", cpu="3")), decided(scene, BIG)
        await settled()

    assert scene.evictor.evicted == ["s0", "s1"]
    assert list(kept.values()) == ["big"]
    assert BIG.uid not in kept, "the pod itself is not nominated before the room is there"
    assert between == (kept, "")
    assert after == ({BIG.uid: "big"}, "", "large")


async def test_no_second_room_is_made_while_one_is_under_way() -> None:
    """The next run leaves it at that."""
    scene = crowded()

    async with scene.running(a_free_policy()):
        await scene.run()
        scene.tell(NodeAdded(a_node("late", cpu="8")), PodAdded(small("t", "late")))
        scene.tell(NodeAdded(a_node("later", cpu="2")))
        await scene.run()

    assert scene.evictor.evicted == ["s0", "s1"]


async def test_the_room_is_free_when_the_pod_goes() -> None:
    """No pod waits for it any more."""
    scene = crowded()

    async with scene.running(a_free_policy()):
        await scene.run()
        scene.tell(PodDeleted(BIG))
        left = on(scene, "large")

    assert left == {}


async def test_the_rest_stays_when_the_pod_finds_a_place_during_the_run() -> None:
    """Before the second eviction the pod is deleted: one pod has moved in vain, not two."""
    scene = crowded()

    async with scene.running(a_free_policy()):
        evict = scene.evictor.evict

        async def evict_and_lose(pod: Pod) -> WriteResult:
            scene.tell(PodDeleted(BIG))
            return await evict(pod)

        scene.evictor.evict = evict_and_lose  # type: ignore[method-assign] # replaced for this test
        await scene.run()
        left = on(scene, "large")

    assert scene.evictor.evicted == ["s0"]
    assert left == {}


async def test_the_room_is_free_when_a_move_is_not_made() -> None:
    """The second eviction is refused permanently: the pod cannot come."""
    scene = crowded()

    async with scene.running(a_free_policy()):
        create, written = scene.records.create, []

        async def create_and_change(document: dict[str, Any]) -> WriteResult:
            written.append(document)
            if len(written) == 2:
                scene.tell(PodDeleted(small("s1", "large")), PodAdded(small("s1", "spare")))
            return await create(document)

        scene.records.create = create_and_change  # type: ignore[assignment, method-assign] # replaced for this test
        await scene.run()
        left = on(scene, "large")

    assert scene.evictor.evicted == ["s0"]
    assert left == {}


async def test_room_of_a_gang_is_handed_over_to_all_of_it_or_to_none() -> None:
    """One of two is being deleted when the pod that moved has left."""
    scene = crowded()
    gang = [a_pod(f"member-{at}", cpu="3") for at in (1, 2)]
    leaving = small("s0", "large")
    scene.tell(*map(PodAdded, gang))
    places = tuple((PodUid(pod.uid), NodeName("large")) for pod in gang)
    room = ReserveRoom(BundleKey("tidy/b"), places, frozenset({PodUid(leaving.uid)}))
    scene.wing.executor._immediate[ReserveRoom](room)
    kept = sorted(on(scene, "large").values())
    scene.tell(PodUpdated(leaving, small("s0", "large")))
    stands = list(on(scene, "large"))

    going = a_pod("member-2", cpu="3", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    scene.tell(PodUpdated(gang[1], going))
    scene.tell(PodDeleted(leaving))

    assert kept == ["member-1", "member-2"]
    assert not {pod.uid for pod in gang} & {*stands}
    assert on(scene, "large") == {}


async def test_the_room_is_free_in_the_end_when_no_pod_leaves() -> None:
    """A pod that does not terminate holds up no other for ever."""
    scene = crowded()

    async with scene.running(a_free_policy()):
        await scene.run()
        await scene.clock.advance(ROOM_S)
        left = on(scene, "large")

    assert left == {}
