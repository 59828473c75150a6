"""Room for a pending gang: all required members get it, or no pod is moved."""

from typing import Any

import pytest

from plimsoll.api.v1alpha1.annotations import APPROVED
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import NodeAdded, NodeDeleted, ObjectAdded, PodAdded, PodDeleted
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, status_of

UNLIMITED = {"total": "100%", "perNode": "100%", "perNamespace": "100%", "perWorkload": "100%"}


def small(number: int, node: str, **kwargs: Any) -> Pod:
    return a_pod(
        f"s{number}",
        owner=f"ReplicaSet/small-{number}",
        cpu="2",
        node=node,
        status=status_of(node),
        **kwargs,
    )


def member(number: int, cpu: str = "3", group: str = "train", **kwargs: Any) -> Pod:
    return a_pod(f"{group}-{number}", cpu=cpu, labels={"plimsoll.dev/pod-group": group}, **kwargs)


def a_group(min_member: int, name: str = "train", **spec: Any) -> ObjectAdded:
    return ObjectAdded(
        convert(
            PodGroup,
            {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": min_member, **spec}},
        )
    )


def crowded(*events: ObjectAdded | PodAdded | NodeAdded, spares: int = 2, **kwargs: Any) -> Scene:
    """Two nodes of four cores with a pod of two on each, and places of two cores elsewhere."""
    scene = Scene()
    scene.tell(
        NodeDeleted(a_node("bad")),
        NodeDeleted(a_node("good")),
        *(NodeAdded(a_node(f"large-{n}", cpu="4")) for n in range(2)),
        *(NodeAdded(a_node(f"spare-{n}", cpu="2")) for n in range(spares)),
        *(PodAdded(small(n, f"large-{n}", **kwargs)) for n in range(2)),
        *events,
    )
    return scene


def a_free_policy(
    mode: str = "Enforce", limits: dict[str, int] | None = None, planner: str = "Proven"
) -> SchedulingPolicy:
    return a_policy(
        mode,
        planner=planner,
        strategies=[{"name": "MakeRoomForPending"}],
        limits=UNLIMITED | (limits or {}),
        evictor={"minReplicas": 0},
    )


def gang(count: int = 2, **kwargs: Any) -> list[PodAdded]:
    return [PodAdded(member(number, **kwargs)) for number in range(count)]


def nominated(scene: Scene) -> dict[str, Any]:
    """Uids by node of who is nominated, but for replacements of moved pods."""
    return {
        node: set(pods)
        for node, pods in scene.nominator.by_node.items()
        if any("train" in pod.name for pod in pods.values())
    }


@pytest.mark.parametrize("planner", ["Proven", "Optimal"])
async def test_a_gang_is_served_whole(planner: str) -> None:
    """Both moves are one bundle for both members; their rooms are kept, and handed over together."""
    scene = crowded(a_group(2), *gang())

    async with scene.running(a_free_policy(planner=planner)):
        await scene.run()
        kept = nominated(scene)
        bundles = [each["spec"]["bundle"] for each in scene.records.documents.values()]
        scene.tell(PodDeleted(small(0, "large-0")))
        between = nominated(scene)
        scene.tell(PodDeleted(small(1, "large-1")))
        after = nominated(scene)
        profile = scene.wing.configs.profiles["default-scheduler"]
        scheduler = ProfileScheduler(profile, scene.cache.cluster, nominator=scene.nominator)
        members = [(scene.cache.info(member(n)), scheduler) for n in range(2)]
        decided = place_together(members, scene.cache.cluster, 2)
        await settled()

    assert sorted(scene.evictor.evicted) == ["s0", "s1"]
    assert len({each["name"] for each in bundles}) == 1
    assert {each["beneficiary"]["name"] for each in bundles} == {"train-0"}
    assert [[one["pod"]["name"] for one in each["members"]] for each in bundles] == [["train-1"]] * 2
    assert kept == between
    assert set(kept) == {"large-0", "large-1"}
    assert not any(uid in uids for uids in kept.values() for uid in ("uid-default-train-0",))
    assert sorted(uid for uids in after.values() for uid in uids) == [
        "uid-default-train-0",
        "uid-default-train-1",
    ]
    assert {each.node for each in decided.placements} == {"large-0", "large-1"}


@pytest.mark.parametrize(
    ("events", "spares", "limits"),
    [
        pytest.param([a_group(2), *gang()], 1, {}, id="room-for-one-only"),
        pytest.param([a_group(2), *gang()], 2, {"total": 1}, id="limit-for-one-only"),
        pytest.param([a_group(3), *gang()], 2, {}, id="too-few-members"),
        pytest.param(gang(), 2, {}, id="no-group"),
        pytest.param([a_group(2, minResources={"cpu": "64"}), *gang()], 2, {}, id="min-resources"),
        pytest.param([a_group(3), *gang(3)], 2, {}, id="no-room-for-the-third"),
        pytest.param([a_group(2), *gang(cpu="1")], 2, {}, id="fits-as-it-is"),
        pytest.param([a_group(2), *gang(cpu="5")], 2, {}, id="fits-nowhere"),
    ],
)
async def test_no_pod_moves_for_a_part_of_a_gang(
    events: list[Any], spares: int, limits: dict[str, int]
) -> None:
    """Nor for one that cannot start, or that the scheduler places by itself."""
    scene = crowded(*events, spares=spares)

    async with scene.running(a_free_policy(limits=limits)):
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.nominator.by_node == {}


async def test_no_pod_of_higher_priority_moves_for_a_gang() -> None:
    """Its least important member counts."""
    scene = crowded(
        a_group(2),
        PodAdded(member(0, priority=100)),
        PodAdded(member(1, priority=1)),
        priority=50,
    )

    async with scene.running(a_free_policy()):
        await scene.run()

    assert scene.evictor.evicted == []


async def test_members_beyond_those_that_must_start_together_wait() -> None:
    """Two of three must; the third is left to the scheduler, and to a later run."""
    scene = crowded(a_group(2), *gang(3))

    async with scene.running(a_free_policy()):
        await scene.run()
        await scene.run()

    assert sorted(scene.evictor.evicted) == ["s0", "s1"]
    bundles = [each["spec"]["bundle"] for each in scene.records.documents.values()]
    assert {len(each["members"]) for each in bundles} == {1}


async def test_a_member_that_fits_takes_no_move_and_its_room_is_kept() -> None:
    """One place is free already: one move makes the other, and both are held."""
    scene = crowded(a_group(2), *gang(), NodeAdded(a_node("free", cpu="3")), spares=1)

    async with scene.running(a_free_policy()):
        await scene.run()

    assert len(scene.evictor.evicted) == 1
    assert "free" in nominated(scene)
    assert len(nominated(scene)) == 2


async def test_a_gang_that_has_started_gets_room_pod_by_pod() -> None:
    """One member runs and is enough; the next is a pending pod like any other."""
    running = a_pod(
        "train-9",
        node="large-0",
        cpu="1",
        labels={"plimsoll.dev/pod-group": "train"},
        status=status_of("large-0"),
    )
    scene = crowded(a_group(1), PodAdded(running), PodAdded(member(0)), spares=1)

    async with scene.running(a_free_policy()):
        await scene.run()

    assert len(scene.evictor.evicted) == 1
    (record,) = scene.records.documents.values()
    assert record["spec"]["bundle"]["beneficiary"]["name"] == "train-0"


async def test_all_room_is_free_when_one_member_goes() -> None:
    """Before the moves are made: the gang cannot start any more."""
    scene = crowded(a_group(2), *gang())

    async with scene.running(a_free_policy()):
        await scene.run()
        scene.tell(PodDeleted(member(1)))
        left = nominated(scene)

    assert left == {}


async def test_approved_moves_keep_the_room_of_every_member() -> None:
    """Nothing happens before all are approved."""
    scene = crowded(a_group(2), *gang())

    async with scene.running(a_free_policy("Approve")):
        await scene.run()
        proposals = list(scene.keeper.known)
        for key in proposals:
            assert scene.evictor.evicted == []
            namespace, name = key.split("/")
            scene.wing.approvals.annotated(namespace, name, {APPROVED: "true"})
            await scene.clock.advance(2)
        kept = nominated(scene)

    assert len(proposals) == 2
    assert sorted(scene.evictor.evicted) == ["s0", "s1"]
    assert set(kept) == {"large-0", "large-1"}


async def test_a_refused_bundle_names_the_gang() -> None:
    """The status says that the limit stops it."""
    scene = crowded(a_group(2), *gang())

    async with scene.running(a_free_policy(limits={"total": 1})):
        await scene.run()

    refused = {each["reason"] for each in scene.statuses.statuses[POLICY]["counts"]["refused"]}
    assert "TotalLimit" in refused


# -- in one topology domain --------------------------------------------------------------------------------

RACK = "example.com/rack"


def racks(*events: Any, fillers: dict[str, int], spares: int = 4) -> Scene:
    """Racks of two nodes of four cores, each with pods of two cores on its nodes; places of two elsewhere."""
    scene = Scene()
    scene.tell(NodeDeleted(a_node("bad")), NodeDeleted(a_node("good")))
    number = 0
    for rack, count in fillers.items():
        names = [f"{rack}-{n}" for n in range(2)]
        scene.tell(*(NodeAdded(a_node(name, cpu="4", labels={RACK: rack})) for name in names))
        for at in range(count):
            scene.tell(PodAdded(small(number, names[at % 2])))
            number += 1
    scene.tell(*(NodeAdded(a_node(f"spare-{n}", cpu="2")) for n in range(spares)), *events)
    return scene


def a_racked_group(**topology: str) -> ObjectAdded:
    return a_group(2, topology=topology or {"required": RACK})


@pytest.mark.parametrize(
    ("fillers", "rack", "moves"),
    [
        pytest.param({"r1": 3, "r2": 2}, "r2", 2, id="the-second-is-cheaper"),
        pytest.param({"r1": 2, "r2": 4, "r3": 1}, "r3", 1, id="one-member-fits-as-it-is"),
    ],
)
async def test_room_is_made_in_the_rack_that_needs_the_fewest_moves(
    fillers: dict[str, int], rack: str, moves: int
) -> None:
    """A full node needs two moves for a member, one with a single pod one; then the group starts there."""
    scene = racks(a_racked_group(), *gang(), NodeAdded(a_node("free", cpu="3")), fillers=fillers)

    async with scene.running(a_free_policy()):
        await scene.run()
        kept = nominated(scene)
        for number in range(sum(fillers.values())):
            if f"s{number}" in scene.evictor.evicted:
                scene.gone(scene.cache.cluster.pods[f"uid-default-s{number}"].pod)
        profile = scene.wing.configs.profiles["default-scheduler"]
        scheduler = ProfileScheduler(profile, scene.cache.cluster, nominator=scene.nominator)
        members = [(scene.cache.info(member(n)), scheduler) for n in range(2)]
        decided = place_together(members, scene.cache.cluster, 2, within=RACK)

    assert {node[:2] for node in kept} == {rack}
    assert len(scene.evictor.evicted) == moves
    assert {each.node for each in decided.placements} == {f"{rack}-0", f"{rack}-1"}


async def test_without_the_label_room_is_made_across_racks() -> None:
    """One move in each of two racks is the least, and nothing forbids it."""
    scene = racks(a_group(2), *gang(), fillers={"r1": 3, "r2": 3})

    async with scene.running(a_free_policy()):
        await scene.run()
        kept = nominated(scene)

    assert {node[:2] for node in kept} == {"r1", "r2"}
    assert len(scene.evictor.evicted) == 2


@pytest.mark.parametrize(
    ("events", "fillers", "spares"),
    [
        pytest.param([a_racked_group(), *gang()], {"r1": 4, "r2": 4}, 1, id="no-place-for-those-that-leave"),
        pytest.param([a_racked_group(), *gang(cpu="5")], {"r1": 2}, 4, id="too-large"),
        pytest.param([a_racked_group(), *gang()], {"r1": 0, "r2": 2}, 4, id="a-rack-is-free"),
        pytest.param([a_racked_group(required="other"), *gang()], {"r1": 2}, 4, id="no-such-label"),
        pytest.param(
            [
                a_racked_group(),
                PodAdded(member(0, node="r1-0", status=status_of("r1-0"))),
                PodAdded(small(20, "r1-1")),
                *gang(2)[1:],
            ],
            {"r1": 0, "r2": 2},
            4,
            id="one-has-a-node",
        ),
    ],
)
async def test_no_pod_moves_for_a_group_that_no_rack_can_take(
    events: list[Any], fillers: dict[str, int], spares: int
) -> None:
    """Or that one takes already, or whose other members decide where."""
    scene = racks(*events, fillers=fillers, spares=spares)

    async with scene.running(a_free_policy()):
        await scene.run()

    assert scene.evictor.evicted == []
    assert scene.statuses.statuses[POLICY]["lastRun"]["failures"] == []
