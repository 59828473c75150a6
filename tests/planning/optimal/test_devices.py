"""The planner Optimal counts devices: it relies on none that is not there, and uses all that are."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from devices.builders import DRIVER, a_claim, a_class, a_device, a_slice, exactly, fill
from planning.builders import NOW, reasons, targets
from planning.device_worlds import a_made_claim, a_user, a_world, an_allocation
from planning.rounds import PLACE, UNLIMITED, a_policy
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.fork_devices import ForkDevices, follow_devices
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.planning.moves import (
    EvictionPlan,
    Goal,
    Objective,
    PlanningContext,
    RebalancingConfig,
    replacement_of,
)
from plimsoll.planning.planners import make_plan
from plimsoll.scheduling.devices.contested import contested
from plimsoll.testing.builders import a_cluster, a_node, a_pod

AROUND = PlanningContext(now=NOW)
BROKEN = ["broken=yes:NoSchedule"]
TAINTS: tuple[str, dict[str, Any]] = ("RemovePodsViolatingNodeTaints", {})
FREE = {"minReplicas": 0, "podProtections": {"extraEnabled": ["PodsWithPVC"]}}


def a_config(
    planner: Planner = Planner.OPTIMAL, objective: Any = Objective.FEWEST_VIOLATIONS
) -> RebalancingConfig:
    """A policy that lets all pods with claims move."""
    goal = Goal(objective, seconds=10.0)
    return a_policy(TAINTS, limits=UNLIMITED, evictor=FREE, planner=planner, goal=goal)


def the_plan(cluster: Cluster, **how: Any) -> EvictionPlan:
    """A plan, each move of which is feasible when its turn comes and takes devices of its own."""
    policy = a_config(**how)
    found = make_plan(policy, cluster, AROUND)
    assert found.failures == ()
    carried_out(cluster, policy, found)
    return found


def carried_out(cluster: Cluster, policy: RebalancingConfig, found: EvictionPlan) -> None:
    """Make the moves on a fork; pods that share a claim leave before their replacements come."""
    fork = follow_devices(cluster.fork())
    scheduler = ProfileScheduler(policy.profiles[PLACE], fork)
    bundles: dict[str, list[Any]] = {}
    for move in found.moves:
        bundles.setdefault(move.bundle or move.pod.uid, []).append(move)
    for moves in bundles.values():
        if fork.has_index(ForkDevices):
            ties = [claim.key for move in moves for claim in fork.index(ForkDevices).ties(move.pod)]
            fork.index(ForkDevices).release(dict.fromkeys(ties))
        for move in moves:
            pod = fork.displace(move.pod.uid)
            assert pod is not None
            fresh = replacement_of(pod, fork)
            assert move.target in scheduler.rank(fresh).nodes, f"{move.target} does not take {pod.key}"
            fork.place(replacement_of(pod, fork, move.target), move.target)
    book = fork.objects.ledger(DeviceBook)
    assert max(book.taken.whole.values(), default=0) <= 1
    assert [each for claim in book.claims.values() if (each := contested(book, claim))] == []


def asking(pod: str, node: str, device: str, model: str) -> ResourceClaim:
    """The claim of a pod that asks for a model."""
    claim = a_made_claim(pod, node, [device])
    expression = f'device.attributes["{DRIVER}"].model == "{model}"'
    picky = a_claim("x", {"name": "r", "exactly": exactly(selectors=[{"cel": {"expression": expression}}])})
    return ResourceClaim(metadata=claim.metadata, spec=picky.spec, status=claim.status)


def models(*, busy: str) -> Cluster:
    """A pod that takes any GPU, then one that needs an a100; one node has that, another one a t4."""
    filler = a_pod("filler", node=busy, cpu="3", owner="DaemonSet/d")
    users = [
        a_user(name, "bad", template="t", owner=f"ReplicaSet/{name}", cpu="100m") for name in ("any", "picky")
    ]
    cluster = a_cluster([a_node("bad", taints=BROKEN), a_node("large"), a_node("small")], [*users, filler])
    slices = [
        a_slice("bad", [a_device("d0", "a100"), a_device("d1", "a100")]),
        a_slice("large", [a_device("d0", "a100")]),
        a_slice("small", [a_device("d0", "t4")]),
    ]
    claims = [a_made_claim("any", "bad", ["d0"]), asking("picky", "bad", "d1", "a100")]
    fill(cluster.objects.ledger(DeviceBook), slices, *claims)
    return cluster


def test_who_takes_anything_leaves_what_another_needs() -> None:
    """The emptier node has the a100: Proven sends the first pod there, and the other one stays."""
    cluster = models(busy="small")

    assert targets(the_plan(cluster, planner=Planner.PROVEN)) == {"any": "large"}
    assert targets(the_plan(cluster)) == {"any": "small", "picky": "large"}


def test_no_more_pods_go_than_there_are_devices() -> None:
    """Three want to, two find a device; the refusal of the third one says why."""
    names = ("p", "q", "r")
    cluster = a_world(
        {"bad": 3, "good": 1, "fine": 1},
        [a_user(name, "bad", template="t", owner=f"ReplicaSet/{name}") for name in names],
        *(a_made_claim(name, "bad", [f"d{at}"]) for at, name in enumerate(names)),
        bad=BROKEN,
    )

    found = the_plan(cluster)

    assert sorted(targets(found).values()) == ["fine", "good"]
    assert set(reasons(found).values()) == {"NoFeasibleNode"}
    assert "cannot allocate all claims" in found.refused[0].refusal.message
    assert found.optimisation is not None
    assert found.optimisation.bound == pytest.approx(found.optimisation.value)


def test_a_pool_that_is_not_complete_promises_nothing() -> None:
    """Its device is seen and one of its slices is not: only the node's other pool counts."""
    names = ("p", "q")
    users = [a_user(name, "bad", template="t", owner=f"ReplicaSet/{name}", cpu="100m") for name in names]
    cluster = a_cluster([a_node("bad", taints=BROKEN), a_node("good")], users)
    half = {"name": "half", "generation": 1, "resourceSliceCount": 2}
    slices = [
        a_slice("bad", [a_device("d0"), a_device("d1")]),
        a_slice("good", [a_device("d0")]),
        a_slice("good", [a_device("d0")], name="half", pool=half),
    ]
    claims = [a_made_claim(name, "bad", [f"d{at}"]) for at, name in enumerate(names)]
    fill(cluster.objects.ledger(DeviceBook), slices, *claims)

    found = the_plan(cluster)

    assert list(targets(found).values()) == ["good"]
    assert found.optimisation is not None
    assert found.optimisation.bound == pytest.approx(found.optimisation.value)


def parts(node: str) -> list[Any]:
    """A GPU as two halves and a whole, and its counters."""
    devices = [
        a_device(
            name,
            "half" if amount == "4" else "whole",
            consumesCounters=[{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}],
        )
        for name, amount in (("half-0", "4"), ("half-1", "4"), ("whole", "8"))
    ]
    counters = [{"name": "gpu", "counters": {"memory": {"value": "8"}}}]
    return [
        a_slice(node, devices, name=f"{node}-devices", slices=2),
        a_slice(node, [], name=f"{node}-counters", slices=2, sharedCounters=counters),
    ]


def test_counters_are_counted_too() -> None:
    """A whole GPU and a half want to go: each needs a node of its own, although each has three devices."""
    cluster = a_cluster(
        [a_node("bad", taints=BROKEN), a_node("good"), a_node("fine")],
        [a_user(name, "bad", template="t", owner=f"ReplicaSet/{name}") for name in ("half", "whole")],
    )
    slices = [each for node in ("good", "fine") for each in parts(node)]
    slices.append(a_slice("bad", [a_device("d0", "half"), a_device("d1", "whole")]))
    claims = [asking("half", "bad", "d0", "half"), asking("whole", "bad", "d1", "whole")]
    fill(cluster.objects.ledger(DeviceBook), slices, *claims)

    found = targets(the_plan(cluster))

    assert found.keys() == {"half", "whole"}
    assert set(found.values()) == {"good", "fine"}


def test_link_groups_are_counted_as_the_search_finds_them() -> None:
    """Two pods want two devices of one link each; of the four free ones only two are of one link."""
    names = ("p", "q")
    cluster = a_cluster(
        [a_node("bad", taints=BROKEN), a_node("good")],
        [a_user(name, "bad", template="t", owner=f"ReplicaSet/{name}") for name in names],
    )
    links = {"bad": (0, 0, 1, 1), "good": (0, 0, 1, 2)}
    slices = [
        a_slice(
            node, [a_device(f"d{at}", attributes={"link": {"int": link}}) for at, link in enumerate(found)]
        )
        for node, found in links.items()
    ]
    alike = [{"matchAttribute": f"{DRIVER}/link"}]
    claims = [
        a_made_claim("p", "bad", ["d0", "d1"], count=2, constraints=alike),
        a_made_claim("q", "bad", ["d2", "d3"], count=2, constraints=alike),
    ]
    fill(cluster.objects.ledger(DeviceBook), slices, *claims)

    found = the_plan(cluster)

    assert len(found.moves) == 1
    assert found.optimisation is not None
    assert found.optimisation.bound == pytest.approx(found.optimisation.value)


def shared(**second: Any) -> Cluster:
    """Two pods that share a claim, and one that names a claim of its own."""
    team = a_claim("team", status=an_allocation("bad", ["d0"], ["p", "q"]))
    own = a_claim("own", status=an_allocation("bad", ["d1"], ["r"]))
    users = [
        a_user("p", "bad", claim="team", owner="ReplicaSet/p"),
        a_user("q", "bad", claim="team", owner="ReplicaSet/q", **second),
        a_user("r", "bad", claim="own", owner="ReplicaSet/r"),
    ]
    return a_world({"bad": 2, "good": 1, "fine": 1}, users, team, own, bad=BROKEN)


def test_pods_that_share_a_claim_go_together() -> None:
    """And the pod with a claim of its own to another node."""
    found = targets(the_plan(shared()))

    assert found.keys() == {"p", "q", "r"}
    assert found["p"] == found["q"] != found["r"]


def test_pods_that_share_a_claim_stay_together() -> None:
    """As Proven says, in its words."""
    found = the_plan(shared(priority=2_000_000_001))

    assert targets(found).keys() == {"r"}
    assert reasons(found)["p"] == "NotAll"


def test_extended_resources_that_a_class_serves_are_devices() -> None:
    """No node has them; one of three pods stays."""
    names = ("p", "q", "r")
    users = [
        a_pod(name, node="bad", owner=f"ReplicaSet/{name}", requests={"example.com/gpu": 1}) for name in names
    ]
    cluster = a_world({"bad": 3, "good": 1, "fine": 1}, users, bad=BROKEN)
    cluster.objects.ledger(DeviceBook).set_class(a_class(extendedResourceName="example.com/gpu"))

    found = the_plan(cluster)

    assert sorted(targets(found).values()) == ["fine", "good"]


def test_as_few_nodes_are_used_as_devices_allow() -> None:
    """Three pods with a device each, and two devices on each node: one node can be freed, not two."""
    nodes = ("a", "b", "c")
    cluster = a_world(
        dict.fromkeys(nodes, 2),
        [a_user(f"on-{node}", node, template="t", owner=f"ReplicaSet/{node}") for node in nodes],
        *(a_made_claim(f"on-{node}", node, ["d0"]) for node in nodes),
    )

    found = the_plan(cluster, objective=Objective.FEWEST_NODES)

    assert len(found.moves) == 1
    assert found.optimisation is not None
    assert found.optimisation.bound == pytest.approx(found.optimisation.value)


def drawn(seed: int) -> Cluster:
    """Nodes with devices of two models, and pods that ask for one or two of one, or of any."""
    rng = random.Random(seed)
    nodes = {
        name: [rng.choice(["a100", "t4"]) for _ in range(rng.randint(1, 3))] for name in ("a", "b", "c", "d")
    }
    taken: Mapping[str, list[str]] = {name: [] for name in nodes}
    users, claims = [], []
    for number in range(rng.randint(2, 6)):
        node = rng.choice(list(nodes))
        free = [f"d{at}" for at in range(len(nodes[node])) if f"d{at}" not in taken[node]]
        if not free:
            continue
        device = rng.choice(free)
        taken[node].append(device)
        name = f"p{number}"
        users.append(a_user(name, node, template="t", owner=f"ReplicaSet/{name}", cpu="100m"))
        model = nodes[node][int(device[1:])]
        picky = rng.random() < 0.5
        claims.append(asking(name, node, device, model) if picky else a_made_claim(name, node, [device]))
    tainted = rng.sample(list(nodes), 2)
    cluster = a_cluster([a_node(name, taints=BROKEN if name in tainted else ()) for name in nodes], users)
    slices = [
        a_slice(name, [a_device(f"d{at}", model) for at, model in enumerate(found)])
        for name, found in nodes.items()
    ]
    fill(cluster.objects.ledger(DeviceBook), slices, *claims)
    return cluster


def most_possible(cluster: Cluster) -> int:
    """How many pods of tainted nodes could get a device elsewhere, found by trying all."""
    book = cluster.objects.ledger(DeviceBook)
    open_nodes = [node for node in cluster.nodes if not node.spec.taints]
    free = [
        (device.id, device.device.attributes["model"].string)
        for node in open_nodes
        for pool in book.slices.pools_of(node)
        for device in pool.devices
        if device.id not in book.taken.whole
    ]
    leaving = []
    for uid, pod in cluster.pods.items():
        row = cluster.row_of_pod(uid)
        assert row is not None
        if cluster.nodes[row].spec.taints:
            claim = book.claims[f"{pod.key}-gpu"]
            (request,) = claim.spec.devices.requests
            assert request.exactly is not None
            selectors = request.exactly.selectors
            leaving.append(next((m for m in ("a100", "t4") if selectors and m in str(selectors)), ""))

    def best(pods: Sequence[str], devices: Sequence[Any]) -> int:
        if not pods:
            return 0
        rest = [
            1 + best(pods[1:], [other for other in devices if other is not each])
            for each in devices
            if pods[0] in ("", each[1])
        ]
        return max([best(pods[1:], devices), *rest])

    return best(leaving, free)


@pytest.mark.parametrize("seed", range(25))
def test_as_many_pods_go_as_can(seed: int) -> None:
    """As an exhaustive search finds; each plan can be carried out."""
    cluster = drawn(seed)

    assert len(the_plan(cluster).moves) == most_possible(cluster)
