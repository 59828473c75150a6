"""Plans move pods with resource claims: their devices are free on the fork, and others are given there."""

from random import Random
from typing import Any

import pytest

from devices.builders import a_claim
from planning.builders import planned, reasons, targets
from planning.device_worlds import a_made_claim, a_user, a_world, an_allocation, the_default_profile
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.fork_devices import ForkDevices, follow_devices
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import EvictionPlan, replacement_of

PROFILES = {"default-scheduler": the_default_profile()}
BROKEN = ["broken=yes:NoSchedule"]


def the_plan(cluster: Cluster, *names: str) -> EvictionPlan:
    """A plan with kube-scheduler's plugins."""
    return planned(cluster, *names, profiles=PROFILES)


def taken(cluster: Cluster) -> dict[str, int]:
    """What is taken, as ``node/device``."""
    whole = cluster.objects.ledger(DeviceBook).taken.whole
    return {f"{each.pool}/{each.device}": count for each, count in whole.items()}


def test_a_pod_moves_to_a_node_that_has_a_device_for_it() -> None:
    """Another claim will be made from the template; the cluster itself is as before."""
    cluster = a_world(
        {"bad": 1, "none": 0, "good": 1},
        [a_user("p", "bad", template="t")],
        a_made_claim("p", "bad", ["d0"]),
        bad=BROKEN,
    )

    assert targets(the_plan(cluster)) == {"p": "good"}
    assert taken(cluster) == {"bad/d0": 1}


def test_two_pods_do_not_count_on_one_device() -> None:
    """What the first one's replacement gets, the second one's does not."""
    cluster = a_world(
        {"bad": 2, "good": 1},
        [a_user(name, "bad", template="t", owner=f"ReplicaSet/{name}") for name in ("p", "q")],
        a_made_claim("p", "bad", ["d0"]),
        a_made_claim("q", "bad", ["d1"]),
        bad=BROKEN,
    )

    found = the_plan(cluster)

    assert targets(found) == {"p": "good"}
    assert reasons(found) == {"q": "NoFeasibleNode"}
    assert "cannot allocate all claims" in found.refused[0].refusal.message


def test_devices_of_a_pod_that_leaves_serve_the_next_one() -> None:
    """On the fork they are free as soon as it has left."""
    cluster = a_world(
        {"a": 1, "b": 1, "c": 1},
        [a_user("p", "a", template="t"), a_user("q", "b", template="t")],
        a_made_claim("p", "a", ["d0"]),
        a_made_claim("q", "b", ["d0"]),
        b=BROKEN,
    )
    fork = follow_devices(cluster.fork())
    pod = fork.pods["uid-default-p"]

    fork.displace(pod.uid)
    left = taken(fork)
    fork.place(replacement_of(pod, fork, "c"), "c")
    moved = taken(fork)
    fork.displace(replacement_of(pod, fork).uid)
    fork.place(pod, "a")

    assert (left, moved) == ({"b/d0": 1}, {"b/d0": 1, "c/d0": 1})
    assert taken(fork) == {"a/d0": 1, "b/d0": 1}
    assert fork.objects.ledger(DeviceBook).claims == cluster.objects.ledger(DeviceBook).claims


def test_a_fork_of_a_fork_is_followed_too() -> None:
    """And its changes are its own."""
    cluster = a_world({"a": 1}, [a_user("p", "a", template="t")], a_made_claim("p", "a", ["d0"]))
    fork = follow_devices(cluster.fork())
    twin = fork.fork()

    twin.displace("uid-default-p")

    assert (taken(twin), taken(fork)) == ({}, {"a/d0": 1})


def test_a_claim_that_one_pod_names_is_allocated_again() -> None:
    """All of its users move, so it is deallocated on the way."""
    claim = a_claim("mine", status=an_allocation("bad", ["d0"], ["p"]))
    cluster = a_world({"bad": 1, "good": 1}, [a_user("p", "bad", claim="mine")], claim, bad=BROKEN)

    assert targets(the_plan(cluster)) == {"p": "good"}


def shared(*pods: str) -> Cluster:
    """Pods on a broken node that share one claim, and a node where they could go."""
    claim = a_claim("team", status=an_allocation("bad", ["d0"], pods))
    users = [a_user(name, "bad", claim="team", owner=f"ReplicaSet/{name}") for name in pods]
    return a_world({"bad": 1, "good": 1, "other": 1}, users, claim, bad=BROKEN)


def test_pods_that_share_a_claim_move_together_to_one_node() -> None:
    """Although only one of them was asked for."""
    found = the_plan(shared("p", "q"), "p")

    places = targets(found)
    assert places.keys() == {"p", "q"}
    assert len(set(places.values())) == 1
    assert {move.bundle for move in found.moves} == {"uid-default-p"}


def test_pods_that_share_a_claim_stay_together() -> None:
    """One is protected; nothing on the fork has changed for the pods after them."""
    cluster = shared("p", "q")
    stays = a_user("q", "bad", claim="team", owner="ReplicaSet/q", labels={"stay": "yes"})
    cluster.place(cluster.templates.info(stays), "bad")

    found = the_plan(cluster)

    assert found.moves == ()
    assert reasons(found)["p"] == "NotAll"
    assert "pod default/q must stay" in found.refused[0].refusal.message


def of_group(template: str = "t") -> tuple[Cluster, Cluster]:
    """Two members on a broken node whose group has one claim, and a fork of their cluster."""
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "uid-train"}
    owner = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "train"}
    metadata: dict[str, Any] = {"name": "team", "namespace": "default", "uid": "uid-team"}
    if template:
        metadata["ownerReferences"] = [{**owner, "uid": "uid-train", "controller": True}]
    status = {**an_allocation("bad", ["d0"], ()), "reservedFor": [group]}
    claim = a_claim("team", metadata=metadata, status=status)
    statuses = [{"name": "gpu", "resourceClaimName": "team"}] if template else []
    listed: dict[str, Any] = {}
    if template:
        listed["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    users = [
        a_user(
            name,
            "bad",
            claim="team",
            owner=f"ReplicaSet/{name}",
            schedulingGroup={"podGroupName": "train"},
            status={"phase": "Running", "resourceClaimStatuses": statuses},
            **listed,
        )
        for name in ("p", "q")
    ]
    cluster = a_world({"bad": 1, "good": 1, "other": 1}, users, claim, bad=BROKEN)
    return cluster, follow_devices(cluster.fork())


@pytest.mark.parametrize("template", ["", "t"])
def test_a_claim_of_a_group_keeps_its_members(template: str) -> None:
    """Not even all of them together free its devices: the group does when it is deleted."""
    cluster, fork = of_group(template)

    found = the_plan(cluster)
    for name in ("p", "q"):
        fork.displace(f"uid-default-{name}")

    assert found.moves == ()
    assert reasons(found) == {"p": "SharedClaim", "q": "SharedClaim"}
    assert found.refused[0].refusal.message == (
        "ResourceClaim default/team keeps the pod where its devices are: it is reserved for PodGroup train,"
        " and they are free only once the group is deleted"
    )
    assert taken(fork) == {"bad/d0": 1}


def test_a_member_that_is_evicted_comes_back_to_the_devices_of_its_group() -> None:
    """Its replacement will use the same claim, and no other one from the template."""
    _, fork = of_group()
    pod = fork.pods["uid-default-p"]

    fork.displace(pod.uid)
    fork.place(replacement_of(pod, fork, "bad"), "bad")

    assert taken(fork) == {"bad/d0": 1}
    assert fork.objects.ledger(DeviceBook).holds == {}


def test_a_claim_that_something_unknown_uses_keeps_its_pods() -> None:
    """It would never be deallocated."""
    claim = a_claim("team", status=an_allocation("bad", ["d0"], ["p", "ghost"]))
    cluster = a_world({"bad": 1, "good": 1}, [a_user("p", "bad", claim="team")], claim, bad=BROKEN)

    found = the_plan(cluster)

    assert found.refused[0].refusal.message == (
        "ResourceClaim default/team keeps the pod on its node: pods/ghost uses it as well and is not known "
        "to run on a node"
    )


def crowd_with_devices() -> Cluster:
    """Pods with claims of their own, two that share one, one that names its own, and two made again.

    The claim of the second of these is reserved for its former pod alone.
    """
    again = an_allocation("b", ["d3"], ["again"])
    (user,) = again["reservedFor"]
    kept = {**again, "reservedFor": [{**user, "uid": "uid-of-the-former"}, user]}
    later = an_allocation("b", ["d4"], ["later"])
    (other,) = later["reservedFor"]
    theirs = {**later, "reservedFor": [{**other, "uid": "uid-of-the-former"}]}
    return a_world(
        {"a": 3, "b": 5, "c": 6},
        [
            *(a_user(name, node, template="t") for name, node in (("p", "a"), ("q", "a"), ("r", "b"))),
            *(a_user(name, "b", claim="team") for name in ("one", "two")),
            a_user("own", "a", claim="mine"),
            a_user("again", "b", claim="kept"),
            a_user("later", "b", claim="theirs"),
        ],
        a_made_claim("p", "a", ["d0"]),
        a_made_claim("q", "a", ["d1"]),
        a_made_claim("r", "b", ["d0", "d1"], count=2),
        a_claim("team", status=an_allocation("b", ["d2"], ["one", "two"])),
        a_claim("mine", status=an_allocation("a", ["d2"], ["own"])),
        a_claim("kept", status=kept),
        a_claim("theirs", status=theirs),
    )


def allocations(cluster: Cluster) -> dict[str, object]:
    """The allocation of each claim, and its users."""
    found = cluster.objects.ledger(DeviceBook).claims
    return {
        key: (each.status.allocation, {user.uid for user in each.status.reserved_for})
        for key, each in found.items()
    }


@pytest.mark.parametrize("seed", range(12))
def test_whatever_leaves_and_comes_back_leaves_all_as_it_was(seed: int) -> None:
    """In any order, on this fork and on forks of it, also with a stay elsewhere in between."""
    random, cluster = Random(seed), crowd_with_devices()
    fork = follow_devices(cluster.fork())
    claims, whole = allocations(fork), taken(fork)
    homes = {pod.uid: (pod, cluster.nodes[row].name) for pod, row in cluster.placed()}
    for _ in range(3):
        chosen = random.sample(sorted(homes), random.randint(1, len(homes)))
        away = []
        for uid in chosen:
            pod, _ = homes[uid]
            fork.displace(uid)
            if "resourceClaimTemplateName" in str(pod.pod.spec.resource_claims) or random.random() < 0.3:
                stay = replacement_of(pod, fork, "c")
                fork.place(stay, "c")
                away.append(stay.uid)
        twin, there = fork.fork(), taken(fork)
        for uid in away:
            fork.displace(uid)
        for uid in random.sample(chosen, len(chosen)):
            fork.place(*homes[uid])
        assert allocations(fork) == claims
        assert (taken(fork), taken(twin)) == (whole, there)
    assert taken(cluster) == whole


def test_a_former_pod_of_the_name_keeps_its_claim() -> None:
    """By uid: the claim is allocated for as long as the one that is gone is in its status."""
    fork = follow_devices(crowd_with_devices().fork())
    fork.displace("uid-default-again")

    (user,) = fork.objects.ledger(DeviceBook).claims["default/kept"].status.reserved_for
    assert user.uid == "uid-of-the-former"
    assert taken(fork)["b/d3"] == 1


def test_claims_that_are_unknown_hide_none_that_are_released() -> None:
    """A plan may name one that somebody deletes meanwhile; what was released comes back as it was."""
    fork = follow_devices(crowd_with_devices().fork())
    devices = fork.index(ForkDevices)
    before = allocations(fork)
    released = devices.release(["default/absent", "default/mine", "default/team"])

    assert {each.key for each in released} == {"default/mine", "default/team"}
    assert taken(fork).keys() == {"a/d0", "a/d1", "b/d0", "b/d1", "b/d3", "b/d4"}
    devices.restore(released)
    assert allocations(fork) == before
