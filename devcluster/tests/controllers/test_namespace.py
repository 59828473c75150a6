"""Namespaces that are deleted."""

from typing import Any

import pytest

from simulated_cluster import Simulation


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    simulation.with_controllers()
    simulation.api.create("namespaces", {"metadata": {"name": "tenant"}})
    return simulation


def fill(cluster: Simulation, count: Any) -> None:
    for number in range(count):
        cluster.api.create("configmaps", {"metadata": {"name": f"c{number}", "namespace": "tenant"}})


def delete(cluster: Simulation) -> None:
    cluster.api.delete("namespaces", None, "tenant")
    cluster.settle(5)


def test_an_empty_namespace_goes(cluster: Simulation) -> None:
    """There is nothing to wait for."""
    delete(cluster)

    assert cluster.get("namespaces", "tenant", None) is None


def test_everything_in_it_goes_first(cluster: Simulation) -> None:
    """Also what is more than one batch, and of several kinds; other namespaces keep theirs."""
    fill(cluster, 200)
    cluster.api.create("leases.coordination.k8s.io", {"metadata": {"name": "a", "namespace": "tenant"}})
    cluster.api.create("configmaps", {"metadata": {"name": "c0", "namespace": "default"}})

    delete(cluster)

    assert cluster.api.list("configmaps", "tenant") == []
    assert cluster.get("namespaces", "tenant", None) is None
    assert cluster.get("configmaps", "c0")


def test_it_waits_for_finalizers_and_says_so(cluster: Simulation) -> None:
    """An object with a finalizer keeps its namespace, whose conditions tell which."""
    kept = {"name": "kept", "namespace": "tenant", "finalizers": ["example.com/keep"]}
    cluster.api.create("configmaps", {"metadata": kept})

    delete(cluster)
    conditions = cluster.get("namespaces", "tenant", None)["status"]["conditions"]
    told = {one["type"]: one["message"] for one in conditions if one["status"] == "True"}
    assert told == {
        "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances"
        ),
    }
    cluster.api.patch("configmaps", "tenant", "kept", {"metadata": {"finalizers": None}})
    cluster.settle(5)

    assert cluster.get("namespaces", "tenant", None) is None
