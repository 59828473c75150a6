"""The garbage collector: dependents of owners that are gone, and owners that wait."""

from typing import Any

import pytest

from simulated_cluster import Simulation

LEASE = "leases.coordination.k8s.io"
MISSING = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def reference(owner: Any, *, block: bool = False, **changed: Any) -> Any:
    message = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"]}
    message["uid"] = owner["metadata"]["uid"]
    return {**message, **({"blockOwnerDeletion": True} if block else {}), **changed}


def owner(cluster: Simulation, name: str = "owner", **metadata: Any) -> Any:
    return cluster.api.create("configmaps", {"metadata": {"name": name, "namespace": "default", **metadata}})


def dependent(
    cluster: Simulation,
    *references: Any,
    name: str = "dependent",
    namespace: str = "default",
    **metadata: Any,
) -> Any:
    message = {"name": name, "namespace": namespace, "ownerReferences": list(references), **metadata}
    return cluster.api.create(LEASE, {"metadata": message, "spec": {}})


def delete(cluster: Simulation, name: str = "owner", propagation: Any = None) -> None:
    cluster.api.delete("configmaps", "default", name, propagation=propagation)
    cluster.settle()


def test_background_takes_the_dependents(cluster: Simulation) -> None:
    """The owner is deleted immediately, its dependents and theirs after it."""
    dependent(cluster, reference(owner(cluster)))
    middle = cluster.get(LEASE, "dependent")
    below: dict[str, Any] = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    dependent(cluster, reference(middle, **below), name="below")
    cluster.settle()

    delete(cluster, propagation="Background")

    assert cluster.get(LEASE, "dependent") is None
    assert cluster.get(LEASE, "below") is None


def test_foreground_waits_for_those_that_block(cluster: Simulation) -> None:
    """The owner stays, being deleted, until the dependent with a finalizer is gone."""
    dependent(cluster, reference(owner(cluster), block=True), finalizers=["example.com/keep"])

    delete(cluster, propagation="Foreground")
    assert cluster.get("configmaps", "owner")["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in cluster.get(LEASE, "dependent")["metadata"]
    cluster.api.patch(LEASE, "default", "dependent", {"metadata": {"finalizers": None}})
    cluster.settle()

    assert cluster.get(LEASE, "dependent") is None
    assert cluster.get("configmaps", "owner") is None


def test_foreground_does_not_wait_for_those_that_do_not_block(cluster: Simulation) -> None:
    """Without blockOwnerDeletion a dependent's finalizer keeps only itself."""
    dependent(cluster, reference(owner(cluster)), finalizers=["example.com/keep"])

    delete(cluster, propagation="Foreground")

    assert cluster.get("configmaps", "owner") is None
    assert "deletionTimestamp" in cluster.get(LEASE, "dependent")["metadata"]


def test_orphans_stay_and_forget_their_owner(cluster: Simulation) -> None:
    """The dependent loses its reference, then the owner goes."""
    dependent(cluster, reference(owner(cluster)))

    delete(cluster, propagation="Orphan")

    assert cluster.get("configmaps", "owner") is None
    assert "ownerReferences" not in cluster.get(LEASE, "dependent")["metadata"]


def test_one_living_owner_is_enough(cluster: Simulation) -> None:
    """References to owners that are gone are taken off; with the last owner the dependent goes."""
    one, two = owner(cluster, "one"), owner(cluster, "two")
    dependent(cluster, reference(one), reference(two))

    delete(cluster, "one")
    assert cluster.get(LEASE, "dependent")["metadata"]["ownerReferences"] == [reference(two)]
    delete(cluster, "two")

    assert cluster.get(LEASE, "dependent") is None


@pytest.mark.parametrize(
    ("changed", "namespace", "stays"),
    [
        pytest.param({"uid": MISSING}, "default", False, id="an-owner-that-never-was"),
        pytest.param({}, "kube-system", False, id="an-owner-in-another-namespace"),
        pytest.param({"uid": MISSING, "kind": "Unheard"}, "default", True, id="a-kind-that-is-not-served"),
        pytest.param({}, "default", True, id="an-owner-that-is-there"),
    ],
)
def test_owners_that_cannot_be_found(cluster: Simulation, changed: Any, namespace: Any, stays: Any) -> None:
    """An absent owner takes its dependents, an unknown kind does not."""
    dependent(cluster, reference(owner(cluster), **changed), namespace=namespace)

    cluster.settle()

    assert (cluster.get(LEASE, "dependent", namespace) is not None) is stays


def test_collects_what_was_orphaned_before_it_started(simulation: Simulation) -> None:
    """At its start it looks at everything that is there."""
    gone = owner(simulation)
    dependent(simulation, reference(gone))
    simulation.api.delete("configmaps", "default", "owner")

    simulation.with_controllers().settle()

    assert simulation.get(LEASE, "dependent") is None
