"""A Deployment with one pod, as the API returns it."""

from typing import Any

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.deployment import Deployment
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import ReplicaSet
from plimsoll.testing.builders import a_cluster, a_node, a_pod

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def a_deployment(
    name: str = "web",
    *,
    annotations: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    status: dict[str, int] | None = None,
    **spec: Any,
) -> Deployment:
    """One replica, at rest, with the strategy that the API fills in."""
    template = {"metadata": {"labels": {"app": name}, "annotations": annotations or {}}, "spec": {}}
    settled = {"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    return convert(
        Deployment,
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-Deployment/{name}",
                "generation": 3,
                **(metadata or {}),
            },
            "spec": {"replicas": 1, "template": template, **spec},
            "status": {**settled, **(status or {})},
        },
    )


def a_replica_set(name: str = "web", digest: str = "1", kind: str = "Deployment") -> ReplicaSet:
    return convert(
        ReplicaSet,
        {
            "metadata": {
                "name": f"{name}-{digest}",
                "namespace": "default",
                "uid": f"uid-ReplicaSet/{name}-{digest}",
                "ownerReferences": [
                    {"kind": kind, "name": name, "uid": f"uid-{kind}/{name}", "controller": True}
                ],
            },
            "spec": {"replicas": 1},
        },
    )


def an_only_pod(name: str = "web-1-x", *, node: str, digest: str = "1", **kwargs: Any) -> Pod:
    labels = {"app": "web", "pod-template-hash": digest}
    given = {"cpu": "1", "owner": f"ReplicaSet/web-{digest}", "status": READY, **kwargs}
    return a_pod(name, node=node, labels=labels, **given)


def a_crowded_node(
    pod: Pod | None = None, replica_set: ReplicaSet | None = None, nodes: list[Node] | None = None
) -> Cluster:
    """The only pod of a Deployment and others on one node; another node is empty."""
    nodes = nodes or [a_node("full"), a_node("idle")]
    others = [a_pod("other", cpu="2", node="full", owner="Job/other")]
    cluster = a_cluster(nodes, [pod or an_only_pod(node="full"), *others])
    found = replica_set or a_replica_set()
    cluster.objects.replica_sets[f"default/{found.metadata.name}"] = found
    return cluster
