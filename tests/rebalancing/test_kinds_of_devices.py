"""Moves of pods with every kind of device: to devices that fit, held until the replacement has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from devices.builders import DRIVER, a_claim, a_device, a_slice, exactly, fill
from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.devices.fork_devices import MOST_STEPS, TIMEOUT_S
from plimsoll.devices.pod_devices import held_for
from plimsoll.devices.taken import device_of
from plimsoll.framework import Snapshot
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.resource_claim import Consumer, ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice
from plimsoll.scheduling.devices.contested import contested
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, status_of, web
from rebalancing.test_devices import LATE, MOVABLE, book_of, decided, held
from rebalancing.test_holding import in_stead

Request = Mapping[str, Any]

IS_PART, IS_WHOLE = (
    [{"cel": {"expression": f'device.attributes["{DRIVER}"].part == {value}'}}] for value in ("true", "false")
)


@dataclass(frozen=True)
class Kind:
    """Devices of one kind on both nodes, a pod that has some of them, and another that wants some.

    Attributes:
        slices: Of both nodes.
        asked: What the claim of the pod that moves asks for.
        had: What it has on the node that breaks.
        held: What is held for its replacement, as ``pool/device``.
        rival: What the other pod's claim asks for, which the other node has, were nothing held.
        constraints: Of all claims.
        everywhere: Whether all nodes reach the devices.
        after: Where the other pod goes once the replacement has its devices.
    """

    slices: Sequence[ResourceSlice]
    had: Sequence[Mapping[str, Any]]
    held: Sequence[str]
    asked: Request = field(default_factory=exactly)
    rival: Request = field(default_factory=exactly)
    constraints: Sequence[Mapping[str, Any]] = ()
    everywhere: bool = False
    after: str = ""


def given(device: str, pool: str = "bad", **more: Any) -> dict[str, Any]:
    """A result of an allocation."""
    return {"request": "r", "driver": DRIVER, "pool": pool, "device": device, **more}


def allocated(results: Sequence[Mapping[str, Any]], pods: Sequence[str], *, node: str = "bad") -> Any:
    """The status of a claim with these devices; without a node, every node reaches them."""
    allocation: dict[str, Any] = {"devices": {"results": list(results)}}
    if node:
        place = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [place]}]}
    users = [{"resource": "pods", "name": pod, "uid": f"uid-default-{pod}"} for pod in pods]
    return {"allocation": allocation, "reservedFor": users}


def made(pod: str, asked: Request, status: Any = None, constraints: Sequence[Any] = ()) -> ResourceClaim:
    """The claim that was made for a pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"uid-default-{pod}", "controller": True}
    name = f"{pod}-gpu"
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": [owner]}
    request = {"name": "r", "exactly": dict(asked)}
    return a_claim(name, request, metadata=meta, status=status or {}, constraints=list(constraints))


def parts(node: str) -> list[ResourceSlice]:
    """A GPU of eight units of memory that is handed out whole or as halves, and its counters."""
    counters = [{"name": "gpu", "counters": {"memory": {"value": "8"}}}]

    def drawing(name: str, amount: str, *, is_part: bool) -> dict[str, Any]:
        draws = [{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}]
        return a_device(name, attributes={"part": {"bool": is_part}}, consumesCounters=draws)

    devices = [
        drawing("whole", "8", is_part=False),
        drawing("half-0", "4", is_part=True),
        drawing("half-1", "4", is_part=True),
    ]
    return [
        a_slice(node, devices, name=f"{node}-devices", slices=2),
        a_slice(node, [], name=f"{node}-counters", slices=2, sharedCounters=counters),
    ]


def net(node: str) -> ResourceSlice:
    """A network card of ten units of bandwidth, which pods share."""
    bandwidth = {"bandwidth": {"value": "10"}}
    return a_slice(node, [a_device("net", allowMultipleAllocations=True, capacity=bandwidth)])


def linked(node: str, *links: int) -> ResourceSlice:
    """A device of each of these links."""
    return a_slice(
        node, [a_device(f"d{at}", attributes={"link": {"int": of}}) for at, of in enumerate(links)]
    )


def plain(node: str, count: int = 1) -> ResourceSlice:
    """Ordinary devices of a node, or of all nodes."""
    return a_slice(node, [a_device(f"d{at}") for at in range(count)])


def some(amount: str) -> Request:
    """A share of the bandwidth."""
    return exactly(capacity={"requests": {"bandwidth": amount}})


ON_GOOD = {"key": "metadata.name", "operator": "In", "values": ["good"]}
REACHED = {"nodeSelectorTerms": [{"matchFields": [ON_GOOD]}]}

KINDS = {
    "a-partition": Kind(
        slices=[*parts("bad"), *parts("good")],
        asked=exactly(selectors=IS_PART),
        had=[given("half-0")],
        held=["good/half-0"],
        rival=exactly(selectors=IS_WHOLE),
    ),
    "a-share-of-a-capacity": Kind(
        slices=[net("bad"), net("good")],
        asked=some("6"),
        had=[given("net", shareID="s", consumedCapacity={"bandwidth": "6"})],
        held=["good/net"],
        rival=some("6"),
    ),
    "a-link-group": Kind(
        slices=[linked("bad", 0, 0), linked("good", 0, 1, 1)],
        asked=exactly(2),
        had=[given("d0"), given("d1")],
        held=["good/d1", "good/d2"],
        rival=exactly(2),
        constraints=[{"matchAttribute": f"{DRIVER}/link"}],
    ),
    "a-device-that-all-nodes-reach": Kind(
        slices=[plain("", 1)],
        had=[given("d0", "shared")],
        held=["shared/d0"],
        everywhere=True,
    ),
    "a-device-that-a-selector-reaches": Kind(
        slices=[plain("bad"), a_slice("", [a_device("d0")], nodeSelector=REACHED, allNodes=False)],
        had=[given("d0")],
        held=["shared/d0"],
    ),
}

NEAR = {name: kind for name, kind in KINDS.items() if not kind.everywhere}


def user(name: str, node: str = "", created: str = "2025-12-31T00:00:00Z", **more: Any) -> Pod:
    """A pod of the ReplicaSet web with a claim that was made for it, unless it names one."""
    status = status_of(node)
    claim = more.pop("claim", "")
    asked: dict[str, Any] = {"name": "gpu", "resourceClaimName": claim}
    if not claim:
        asked = {"name": "gpu", "resourceClaimTemplateName": "t"}
        status["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
    more = {"resourceClaims": [asked], "cpu": "100m", "owner": "ReplicaSet/web"} | more
    return a_pod(name, node=node, status=status, metadata={"creationTimestamp": created}, **more)


def a_scene(
    slices: Sequence[ResourceSlice], *claims: ResourceClaim, classes: Sequence[DeviceClass] = ()
) -> Scene:
    """The tainted node, the other one, and devices."""
    scene = Scene()
    fill(book_of(scene), slices, *claims, classes=classes)
    scene.tell(PodDeleted(web(1, "bad")))
    return scene


def of_kind(kind: Kind) -> Scene:
    """The pod ``one`` with its devices on the tainted node, and claims of those that come later."""
    status = allocated(kind.had, ["one"], node="" if kind.everywhere else "bad")
    scene = a_scene(
        kind.slices,
        made("one", kind.asked, status, kind.constraints),
        made("two", kind.asked, constraints=kind.constraints),
        made("rival", kind.rival, constraints=kind.constraints),
    )
    scene.tell(PodAdded(user("one", "bad")))
    return scene


def gone(scene: Scene, name: str) -> None:
    """A pod has left, and the controller of claims has deleted what was made for it."""
    scene.gone(user(name, "bad"))
    book_of(scene).remove_claim(f"default/{name}-gpu")


def given_to(scene: Scene, name: str, node: str, *, claim: str = "") -> None:
    """A pod runs on a node, with the devices that it gets there."""
    book, cluster = book_of(scene), scene.cache.cluster
    waits = user(name, created=LATE, claim=claim)
    hold = held_for(scene.cache.info(waits), Snapshot(cluster), cluster.rows[node], MOST_STEPS, TIMEOUT_S)
    assert hold is not None, f"{node} has no devices for {name}"
    consumer = Consumer(resource="pods", name=name, uid=f"uid-default-{name}")
    for key, allocation in hold.given.items():
        book.set_claim(book.claims[key].allocated(allocation, (consumer,)))
    scene.tell(PodUpdated(waits, user(name, node, created=LATE, claim=claim)))


def twice(scene: Scene) -> list[str]:
    """What was handed out twice."""
    book = book_of(scene)
    return [found for claim in book.claims.values() if (found := contested(book, claim))]


def taken(scene: Scene) -> list[str]:
    """The devices of all claims and holds, as often as they were given."""
    book = book_of(scene)
    found = [claim.status.allocation for claim in book.claims.values()]
    found += [each for hold in book.holds.values() for each in hold.given.values()]
    return sorted(
        f"{device_of(each).pool}/{device_of(each).device}"
        for allocation in found
        if allocation is not None
        for each in allocation.devices.results
    )


def refused(scene: Scene) -> dict[str, str]:
    """Why pods stay, by reason."""
    found = scene.statuses.statuses[POLICY]["counts"].get("refused", [])
    return {each["reason"]: each["message"] for each in found}


@pytest.mark.parametrize("planner", ["Proven", "Optimal"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_the_devices_are_the_replacements_and_no_rivals(kind: Kind, planner: str) -> None:
    """From the eviction until the replacement has them; then the move is verified, and nothing is held."""
    scene = of_kind(kind)

    async with scene.running(a_policy(planner=planner, **MOVABLE)):
        await scene.run()
        during, early = held(scene), decided(scene, user("rival"))
        gone(scene, "one")
        scene.tell(PodAdded(user("two", created=LATE)))
        late, node = decided(scene, user("rival")), decided(scene, user("two", created=LATE))
        given_to(scene, "two", node)
        last = decided(scene, user("rival"))
        await settled()

    assert scene.evictor.evicted == ["one"]
    assert scene.record["spec"]["targetNode"] == "good"
    assert during == {in_stead(scene): list(kind.held)}
    assert (early, late, node, last) == ("", "", "good", kind.after)
    assert taken(scene) == sorted(kind.held)
    assert (held(scene), twice(scene)) == ({}, [])
    assert scene.phases == [["Planned", "Evicting", "Evicted", "Settled"]]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_without_what_is_held_the_rival_would_get_it(kind: Kind) -> None:
    """So nothing else keeps it away."""
    scene = of_kind(kind)

    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()
        book_of(scene).drop(in_stead(scene))
        gone(scene, "one")
        goes = decided(scene, user("rival"))

    assert goes == "good"


@pytest.mark.parametrize("kind", NEAR.values(), ids=NEAR)
async def test_nothing_moves_where_a_rival_has_them_already(kind: Kind) -> None:
    """And the refusal says what is missing."""
    scene = of_kind(kind)
    scene.tell(PodAdded(user("rival")))
    given_to(scene, "rival", "good")

    async with scene.running(a_policy(**MOVABLE)):
        await scene.run()
        found = refused(scene)

    assert scene.evictor.evicted == []
    assert held(scene) == {}
    assert "cannot allocate all claims" in found["NoFeasibleNode"]
