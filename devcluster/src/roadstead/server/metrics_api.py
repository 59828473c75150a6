"""Serves metrics.k8s.io: the usage of simulated nodes and of their pods.

Nothing is measured. A pod's usage is its annotation ``roadstead.test/usage``, such as
``cpu=250m,memory=1Gi``, or else its requests; a node's usage is the sum of its pods'. The group is served
while a node with a simulated kubelet exists; otherwise ``kubectl top`` reports that metrics are not
available.

Source: k8s.io/metrics v1.36 ``pkg/apis/metrics/v1beta1/types.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import phase_of
from roadstead.controllers.pod_usage import IDLE, pod_usage
from roadstead.kubelets.nodes import kubelet_of
from roadstead.schemas.timestamps import to_timestamp
from roadstead.values.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roadstead.controllers.context import Context
    from roadstead.schemas.quantities import Amounts
    from roadstead.store.api import Virtual
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

WINDOW_S = 15
_GROUP, _VERSION, _READ = "metrics.k8s.io", "v1beta1", ("get", "list")
NODE_METRICS = Resource(
    _GROUP, _VERSION, "NodeMetrics", "nodes", "", namespaced=False, verbs=_READ, list_kind="NodeMetricsList"
)
POD_METRICS = Resource(
    _GROUP, _VERSION, "PodMetrics", "pods", "", namespaced=True, verbs=_READ, list_kind="PodMetricsList"
)


class MetricsApi:
    """Serves the usage of simulated nodes and of their pods."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._nodes: dict[str, None] = {}

    def start(self) -> None:
        """Follow nodes, and serve the group while one of them is simulated."""
        self._context.api.subscribe("nodes", self._node_changed)
        for node in self._context.api.list("nodes"):
            self._node_changed("ADDED", node, None)

    def _node_changed(self, kind: EventType, node: Obj, _old: Obj | None) -> None:
        name, api = node["metadata"]["name"], self._context.api
        if kind != "DELETED" and kubelet_of(node):
            self._nodes[name] = None
        else:
            self._nodes.pop(name, None)
        served = api.registry.keyed(NODE_METRICS.key) is not None
        if self._nodes and not served:
            for resource, usage in self._served().items():
                api.registry.add(resource)
                api.virtual[resource.key] = usage
        elif served and not self._nodes:
            for resource in self._served():
                api.registry.remove(resource.key)
                del api.virtual[resource.key]

    def _served(self) -> dict[Resource, Virtual]:
        return {
            NODE_METRICS: NodeUsage(self._context, self._nodes),
            POD_METRICS: PodUsage(self._context, self._nodes),
        }


class NodeUsage:
    """The usage of each simulated node."""

    def __init__(self, context: Context, nodes: Iterable[str]) -> None:
        self._context = context
        self._nodes = nodes

    def list(self, _namespace: str | None) -> list[Obj]:
        """A NodeMetrics for each node; they are in no namespace."""
        found = (self._context.find("nodes", name) for name in self._nodes)
        return [self._metrics(node) for node in found if node]

    def _metrics(self, node: Obj) -> Obj:
        running = (
            pod for pod in self._context.pods_on(node["metadata"]["name"]) if phase_of(pod) == "Running"
        )
        used = _sum(map(pod_usage, running))
        return {**_head(NODE_METRICS, node, self._context.now), "usage": _written(used)}


class PodUsage:
    """The usage of each pod that runs on a simulated node."""

    def __init__(self, context: Context, nodes: Iterable[str]) -> None:
        self._context = context
        self._nodes = nodes

    def list(self, namespace: str | None) -> list[Obj]:
        """A PodMetrics for each running pod of a namespace, or of all."""
        pods = (pod for name in self._nodes for pod in self._context.pods_on(name))
        return [
            self._metrics(pod)
            for pod in pods
            if phase_of(pod) == "Running" and namespace in (None, pod["metadata"]["namespace"])
        ]

    def _metrics(self, pod: Obj) -> Obj:
        used = pod_usage(pod)
        containers = pod["spec"]["containers"]
        shares = [{name: amount // len(containers) for name, amount in used.items()} for _ in containers]
        text = [
            {"name": one["name"], "usage": _written(share)}
            for one, share in zip(containers, shares, strict=True)
        ]
        return {**_head(POD_METRICS, pod, self._context.now), "containers": text}


def _head(resource: Resource, obj: Obj, now: float) -> Obj:
    moment = to_timestamp(now)
    kept = ("name", "namespace", "labels")
    metadata = {key: obj["metadata"][key] for key in kept if obj["metadata"].get(key)}
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {**metadata, "creationTimestamp": moment},
        "timestamp": moment,
        "window": f"{WINDOW_S}s",
    }


def _sum(usages: Iterable[Amounts]) -> Amounts:
    total = dict.fromkeys(IDLE, 0)
    for usage in usages:
        for name in total:
            total[name] += usage[name]
    return total


def _written(used: Amounts) -> dict[str, str]:
    """Usage in metrics-server's units: nano-cores and kibibytes."""
    return {"cpu": f"{used['cpu'] * 10**6}n", "memory": f"{used['memory'] // 1000 // 1024}Ki"}
