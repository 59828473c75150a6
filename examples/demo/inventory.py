"""Makes what the demo puts into the cluster: manifests of nodes, workloads, budgets; values, no I/O."""

import csv
import gzip
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from .shapes import NODE_SHAPES, POD_SHAPES, PRIORITIES, NodeShape, PodShape

Manifest = dict[str, Any]

NAMESPACE = "demo"
SCHEDULER = "plimsoll"
ZONES = ("zone-a", "zone-b", "zone-c")
GPU = "plimsoll.dev/gpu-milli"

#: Asks the development cluster for a simulated kubelet.
KUBELET = "roadstead.test/kubelet"

#: Share of the capacity of the first nodes that the workloads of a made-up cluster ask for.
LOAD = 0.55


@dataclass(frozen=True, slots=True)
class Inventory:
    """A cluster to be built.

    Attributes:
        nodes: Present from the start.
        late_nodes: Added when the cluster drifts.
        workloads: Deployments, in the order in which they are submitted.
        budgets: PodDisruptionBudgets of some of them.
        pods: How many pods the workloads make.
        source: Where the shapes come from, for the reader.
    """

    nodes: tuple[Manifest, ...]
    late_nodes: tuple[Manifest, ...]
    workloads: tuple[Manifest, ...]
    budgets: tuple[Manifest, ...]
    pods: int
    source: str


class TraceError(Exception):
    """A folder that does not hold the trace."""


def from_statistics(nodes: int, seed: int) -> Inventory:
    """A cluster of ``nodes`` nodes whose shapes are drawn from the trace's statistics."""
    random = Random(seed)  # noqa: S311 - a reproducible example, no secret
    shapes = random.choices(NODE_SHAPES, [shape.count for shape in NODE_SHAPES], k=nodes)
    late = nodes // 4
    capacity = sum(shape.cpu_milli for shape in shapes[: nodes - late])
    replicas: Counter[PodShape] = Counter()
    while sum(shape.cpu_milli * count for shape, count in replicas.items()) < LOAD * capacity:
        shape = random.choices(POD_SHAPES, [shape.count for shape in POD_SHAPES])[0]
        if any(_fits(shape, node) for node in shapes):
            replicas[shape] += 1
    return _inventory(shapes, late, replicas.items(), "statistics of the OpenB trace")


def from_trace(folder: Path) -> Inventory:
    """The whole node and pod list of an OpenB folder (all its nodes from the start).

    Raises:
        TraceError: A file is missing or not as described.
    """
    nodes, pods = folder / "openb_node_list_all_node.csv.gz", folder / "openb_pod_list_default.csv.gz"
    for path in (nodes, pods):
        if not path.is_file():
            raise TraceError(
                f"{path.name} is not in {folder}; TRACE takes the folder of the OpenB trace, whose lists are "
                f"{nodes.name} and {pods.name}"
            )
    shapes = [
        NodeShape(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])
        for row in _rows(nodes)
    ]
    replicas = Counter(
        PodShape(
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["num_gpu"] or 0) * int(row["gpu_milli"] or 0),
            row["qos"],
            tuple(sorted(set(filter(None, (row.get("gpu_spec") or "").split("|"))))),
        )
        for row in _rows(pods)
    )
    return _inventory(shapes, 0, replicas.items(), f"the OpenB trace in {folder.name}")


def _rows(path: Path) -> Iterable[dict[str, str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)
    except (OSError, UnicodeDecodeError, csv.Error) as exc:
        raise TraceError(f"{path} cannot be read as a gzipped table: {exc}") from exc


def _fits(pod: PodShape, node: NodeShape) -> bool:
    return (
        pod.cpu_milli <= node.cpu_milli
        and pod.memory_mib <= node.memory_mib
        and pod.gpu_milli <= node.gpus * 1000
    )


def _inventory(
    shapes: Sequence[NodeShape], late: int, replicas: Iterable[tuple[PodShape, int]], source: str
) -> Inventory:
    nodes = tuple(node_manifest(number, shape) for number, shape in enumerate(shapes))
    workloads = [
        (f"w{number:03}-{shape.qos.lower()}", shape, count)
        for number, (shape, count) in enumerate(replicas, start=1)
    ]
    return Inventory(
        nodes=nodes[: len(nodes) - late],
        late_nodes=nodes[len(nodes) - late :],
        workloads=tuple(workload_manifest(*each) for each in workloads),
        budgets=tuple(
            budget_manifest(name, count)
            for name, shape, count in workloads
            if shape.qos == "LS" and count > 2
        ),
        pods=sum(count for _, _, count in workloads),
        source=source,
    )


def node_manifest(number: int, shape: NodeShape) -> Manifest:
    """A Node of that shape; zones take turns."""
    name = f"node-{number:04}"
    amounts = {
        "cpu": f"{shape.cpu_milli}m",
        "memory": f"{shape.memory_mib}Mi",
        "ephemeral-storage": "1Ti",
        "pods": "110",
    }
    if shape.gpus:
        amounts[GPU] = str(shape.gpus * 1000)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
        "disk": "ssd" if number % 2 == 0 else "hdd",
    }
    if shape.gpu_model:
        labels["gpu.model"] = shape.gpu_model
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {KUBELET: "simulated"}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def workload_manifest(name: str, shape: PodShape, replicas: int) -> Manifest:
    """A Deployment of pods of that shape, to be placed by our scheduler."""
    requests = {"cpu": f"{shape.cpu_milli}m", "memory": f"{shape.memory_mib}Mi"}
    limits = {}
    if shape.gpu_milli:
        requests[GPU] = limits[GPU] = str(shape.gpu_milli)
    spec: Manifest = {
        "schedulerName": SCHEDULER,
        "priorityClassName": priority_class(shape.qos),
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": "example.com/workload:1",
                "resources": {"requests": requests, "limits": limits},
            }
        ],
    }
    if shape.gpu_models:
        spec["affinity"] = _node_affinity("gpu.model", shape.gpu_models)
    elif not shape.gpu_milli:
        spec["affinity"] = _node_affinity("disk", ("ssd",))
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def _node_affinity(key: str, values: Sequence[str]) -> Manifest:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def budget_manifest(name: str, replicas: int) -> Manifest:
    """A PodDisruptionBudget that lets a tenth of the workload go at a time, one pod at least."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "maxUnavailable": max(1, replicas // 10),
            "selector": {"matchLabels": {"app": name}},
        },
    }


def priority_class(qos: str) -> str:
    """The name of the PriorityClass for a quality of service."""
    return f"demo-{qos.lower() or 'be'}"


def priority_class_manifests() -> tuple[Manifest, ...]:
    """The PriorityClasses that the workloads name."""
    return tuple(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": priority_class(qos)},
            "value": value,
        }
        for qos, value in PRIORITIES.items()
    )
