"""metrics.k8s.io on simulated nodes."""

import pytest

from roadstead.controllers.pod_usage import USAGE
from roadstead.server.metrics_api import NODE_METRICS, POD_METRICS
from simulated_cluster import Simulation


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    simulation.with_kubelets()
    simulation.nodes("n1")
    return simulation


def test_a_node_uses_what_its_running_pods_use(cluster: Simulation) -> None:
    """By request, by annotation where there is one, and very little where a pod says nothing."""
    cluster.pod("asks", "n1", {"cpu": "500m", "memory": "1Gi"})
    cluster.pod("tells", "n1", {"cpu": "1"}, {USAGE: "cpu=250m,memory=512Mi"})
    cluster.pod("idles", "n1")
    cluster.settle(2)

    (node,) = cluster.api.virtual[NODE_METRICS.key].list(None)

    assert node["metadata"]["name"] == "n1"
    # 500 + 250 + 1 milli-cores; 1 GiB + 512 MiB + 16 MiB
    assert node["usage"] == {"cpu": "751000000n", "memory": f"{(1024 + 512 + 16) * 1024}Ki"}


def test_pods_that_do_not_run_use_nothing(cluster: Simulation) -> None:
    """Only running pods are listed."""
    cluster.pod("runs", "n1")
    cluster.pod("waits")
    cluster.settle(2)

    listed = cluster.api.virtual[POD_METRICS.key].list("default")
    assert [pod["metadata"]["name"] for pod in listed] == ["runs"]
    assert cluster.api.virtual[POD_METRICS.key].list("kube-system") == []


def test_the_group_is_served_only_with_simulated_nodes(cluster: Simulation) -> None:
    """Without anybody to ask there is no such group."""
    assert cluster.api.registry.serves("metrics.k8s.io")

    cluster.api.delete("nodes", None, "n1")

    assert not cluster.api.registry.serves("metrics.k8s.io")


def test_an_unreadable_annotation_counts_as_absent(cluster: Simulation) -> None:
    """The pod's requests are taken instead."""
    cluster.pod("a", "n1", {"cpu": "100m"}, {USAGE: "cpu=much"})
    cluster.settle(2)

    (pod,) = cluster.api.virtual[POD_METRICS.key].list(None)

    assert pod["containers"][0]["usage"]["cpu"] == "100000000n"
