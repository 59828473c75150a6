"""Moves of pods whose claims differ: extended resources, admin access, shared claims, claims made by hand."""

from typing import Any

from devices.builders import DRIVER, a_claim, a_class, a_device, a_slice, exactly
from plimsoll.cluster.watch_events import NodeAdded, PodAdded
from plimsoll.devices.extended_resources import ANNOTATION
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import Consumer, ResourceClaim
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled
from rebalancing.scene import a_policy, status_of
from rebalancing.test_devices import LATE, MOVABLE, book_of, decided, held
from rebalancing.test_holding import in_stead
from rebalancing.test_kinds_of_devices import (
    a_scene,
    allocated,
    given,
    given_to,
    gone,
    made,
    plain,
    refused,
    taken,
    twice,
    user,
)

GPU = "example.com/gpu"
TOGETHER: dict[str, Any] = {"evictor": {**MOVABLE["evictor"], "minReplicas": 0}}


# -- extended resources ----------------------------------------------------------------------------------


def asking(name: str, node: str = "", created: str = "2025-12-31T00:00:00Z") -> Pod:
    """A pod of the ReplicaSet web that requests the resource, without claims in its spec."""
    status = status_of(node)
    if node:
        status["extendedResourceClaimStatus"] = {
            "resourceClaimName": f"{name}-extended",
            "requestMappings": [],
        }
    metadata = {"creationTimestamp": created}
    return a_pod(
        name,
        node=node,
        owner="ReplicaSet/web",
        cpu="100m",
        requests={GPU: 1},
        status=status,
        metadata=metadata,
    )


def made_for(pod: str, device: str, node: str) -> ResourceClaim:
    """The claim that was made for what a pod requests."""
    name = f"{pod}-extended"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"uid-default-{pod}", "controller": True}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "annotations": {ANNOTATION: "true"},
        "ownerReferences": [owner],
    }
    request = {"name": "container-0-request-1", "exactly": exactly()}
    results = [given(device, node, request="container-0-request-1")]
    return a_claim(name, request, metadata=metadata, status=allocated(results, [pod], node=node))


async def test_an_extended_resource_that_a_class_serves_moves_with_its_devices() -> None:
    """No claim stands in the pod's spec; the target's device is held, the old claim goes with its pod."""
    served = a_class(extendedResourceName=GPU)
    scene = a_scene([plain("bad"), plain("good")], made_for("one", "d0", "bad"), made("rival", exactly()))
    book_of(scene).set_class(served)
    scene.tell(PodAdded(asking("one", "bad")))

    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()
        during, claims, early = held(scene), decided(scene, user("rival")), decided(scene, asking("other"))
        scene.gone(asking("one", "bad"))
        book_of(scene).remove_claim("default/one-extended")
        scene.tell(PodAdded(asking("two", created=LATE)))
        late, node = decided(scene, asking("other")), decided(scene, asking("two", created=LATE))
        book_of(scene).set_claim(made_for("two", "d0", "good"))
        scene.tell(PodAdded(asking("two", node, created=LATE)))
        await settled()

    assert scene.evictor.evicted == ["one"]
    assert during == {in_stead(scene): ["good/d0"]}
    assert (claims, early, late, node) == ("", "", "", "good")
    assert (taken(scene), held(scene), twice(scene)) == (["good/d0"], {}, [])
    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]


async def test_an_extended_resource_stays_where_no_device_is_free() -> None:
    """As a claim would."""
    scene = a_scene([plain("bad"), plain("good")], made_for("one", "d0", "bad"))
    book_of(scene).set_class(a_class(extendedResourceName=GPU))
    book_of(scene).set_claim(made_for("other", "d0", "good"))
    scene.tell(PodAdded(asking("one", "bad")), PodAdded(asking("other", "good")))

    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()
        found = refused(scene)

    assert scene.evictor.evicted == []
    assert "cannot allocate all claims" in found["NoFeasibleNode"]


# -- admin access ----------------------------------------------------------------------------------------


async def test_admin_access_moves_to_a_device_that_another_pod_has_and_takes_nothing() -> None:
    """The device of the target is somebody's: that is no obstacle, and a free one stays free for others."""
    admin = exactly(adminAccess=True)
    status = allocated([given("d0", adminAccess=True)], ["one"])
    theirs = allocated([given("d0", "good")], ["owner"], node="good")
    scene = a_scene(
        [plain("bad"), plain("good", 2)],
        made("one", admin, status),
        made("two", admin),
        made("owner", exactly(), theirs),
        made("rival", exactly()),
    )
    scene.tell(PodAdded(user("one", "bad")), PodAdded(user("owner", "good")))

    async with scene.running(a_policy(**TOGETHER)):
        await scene.run()
        during, rival = held(scene), decided(scene, user("rival"))
        gone(scene, "one")
        scene.tell(PodAdded(user("two", created=LATE)))
        given_to(scene, "two", decided(scene, user("two", created=LATE)))
        await settled()

    assert scene.evictor.evicted == ["one"]
    assert during == {in_stead(scene): ["good/d0"]}
    assert rival == "good"
    assert book_of(scene).taken.whole == {(DRIVER, "good", "d0"): 1}
    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]


# -- claims that several pods name -----------------------------------------------------------------------


def team(*pods: str, node: str = "bad", results: Any = None) -> ResourceClaim:
    """A claim made by hand, with a device."""
    request = {"name": "r", "exactly": exactly()}
    return a_claim("team", request, status=allocated(results or [given("d0", node)], pods, node=node))


def member(name: str, node: str = "", created: str = "2025-12-31T00:00:00Z", **more: Any) -> Pod:
    """A pod that names the claim."""
    return user(name, node, created, claim="team", **({"owner": f"ReplicaSet/{name[0]}"} | more))


async def test_pods_that_share_a_claim_leave_together_and_their_replacements_share_it_again() -> None:
    """They wait until it is released; the target's device is held for both, and for nothing else."""
    scene = a_scene([plain("bad"), plain("good")], team("p1", "q1"), made("rival", exactly()))
    scene.tell(PodAdded(member("p1", "bad")), PodAdded(member("q1", "bad")))

    async with scene.running(a_policy(**TOGETHER)):
        await scene.run()
        during, rival = held(scene), decided(scene, user("rival"))
        for name in ("p1", "q1"):
            scene.gone(member(name, "bad"))
        book_of(scene).set_claim(team().allocated(None))
        scene.tell(*(PodAdded(member(name, created=LATE)) for name in ("p2", "q2")))
        late, first = decided(scene, user("rival")), decided(scene, member("p2", created=LATE))
        consumers = [Consumer(resource="pods", name=name, uid=f"uid-default-{name}") for name in ("p2", "q2")]
        allocation = next(iter(book_of(scene).holds.values())).given["default/team"]
        book_of(scene).set_claim(team().allocated(allocation, tuple(consumers[:1])))
        scene.tell(PodAdded(member("p2", first, created=LATE)))
        second = decided(scene, member("q2", created=LATE))
        book_of(scene).set_claim(team().allocated(allocation, tuple(consumers)))
        scene.tell(PodAdded(member("q2", second, created=LATE)))
        await settled()

    assert sorted(scene.evictor.evicted) == ["p1", "q1"]
    assert sorted(during.values()) == [[], ["good/d0"]], "held once, for both"
    assert (rival, late, first, second) == ("", "", "good", "good")
    assert (taken(scene), held(scene), twice(scene)) == (["good/d0"], {}, [])
    assert [phases[-1] for phases in scene.phases] == ["Settled", "Settled"]


async def test_pods_that_share_a_claim_stay_where_one_is_protected() -> None:
    """It is said which one."""
    scene = a_scene([plain("bad"), plain("good")], team("p1", "q1"))
    scene.tell(PodAdded(member("p1", "bad")), PodAdded(member("q1", "bad", priority=2_000_000_001)))

    async with scene.running(a_policy(**TOGETHER)):
        await scene.run()
        found = refused(scene)

    assert scene.evictor.evicted == []
    assert "pod default/q1 must stay" in found["NotAll"]


# -- claims made by hand ---------------------------------------------------------------------------------


def in_rack(*pods: str) -> ResourceClaim:
    """The claim with a device that the nodes of a rack reach."""
    claim = a_claim("team", {"name": "r", "exactly": exactly()})
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["one"]}]}
    status = allocated([given("r0", "shared")], pods, node="")
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
    return a_claim("team", {"name": "r", "exactly": exactly()}, status=status) if pods else claim


def a_rack(*near: str) -> list[Any]:
    """Nodes near the tainted one."""
    return [NodeAdded(a_node("bad", labels={"rack": "one"}, taints=["broken=yes:NoSchedule"]))] + [
        NodeAdded(a_node(name, labels={"rack": "one"})) for name in near
    ]


def rack_devices() -> Any:
    """A device that the nodes of the rack reach."""
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["one"]}]}
    return a_slice("", [a_device("r0")], nodeSelector={"nodeSelectorTerms": [term]}, allNodes=False)


async def test_a_claim_made_by_hand_stays_allocated_where_its_devices_reach_the_target() -> None:
    """Nothing is waited for, and another pod that uses it stays."""
    scene = a_scene([rack_devices()], in_rack("p1", "q1"))
    scene.tell(*a_rack("near"), PodAdded(member("p1", "bad")), PodAdded(member("q1", "near")))

    async with scene.running(a_policy(**TOGETHER)):
        await scene.run()
        scene.leaving(member("p1", "bad"))
        scene.tell(PodAdded(member("p2", created=LATE)))
        goes = decided(scene, member("p2", created=LATE))

    assert scene.evictor.evicted == ["p1"]
    assert scene.record["spec"]["targetNode"] == "near"
    assert goes == "near"
    assert taken(scene) == ["shared/r0"]


async def test_a_shared_claim_keeps_its_pods_within_its_reach() -> None:
    """Another pod goes on using it, so it is not released; the node beyond is refused."""
    scene = a_scene([rack_devices(), plain("good")], in_rack("p1", "q1"))
    scene.tell(
        *a_rack(), PodAdded(member("p1", "bad")), PodAdded(member("q1", "bad", priority=2_000_000_001))
    )

    async with scene.running(a_policy(**TOGETHER)):
        await scene.run()
        found = refused(scene)

    assert scene.evictor.evicted == []
    assert "resourceclaim not available on the node" in found["NoFeasibleNode"]


async def test_a_claim_of_one_pod_is_released_where_its_devices_do_not_reach_the_target() -> None:
    """The replacement waits until it is, and gets what is held there."""
    scene = a_scene([rack_devices(), plain("good")], in_rack("p1"), made("rival", exactly()))
    scene.tell(*a_rack(), PodAdded(member("p1", "bad")))

    async with scene.running(a_policy(**TOGETHER)):
        await scene.run()
        during, rival = held(scene), decided(scene, user("rival"))
        scene.gone(member("p1", "bad"))
        scene.tell(PodAdded(member("p2", created=LATE)))
        book_of(scene).set_claim(in_rack().allocated(None))
        goes = decided(scene, member("p2", created=LATE))

    assert scene.evictor.evicted == ["p1"]
    assert during == {in_stead(scene): ["good/d0"]}
    assert (rival, goes) == ("", "good")
