"""Builds pods and nodes from only the fields that a test is about; the other fields are ordinary.

As in the operator, maps such as labels are read-only.

a_pod(cpu="500m", labels={"app": "web"}, node_selector={"disk": "ssd"})
a_node("n1", cpu="4", taints=["dedicated=gpu:NoSchedule"])
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import SHELVES
from plimsoll.model.kinds.pod import Pod, PodSpec
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.watched_object import WatchedObject, WatchedObjects, shelf_key
from plimsoll.model.read_only_dict import sealed

Quantity = str | int | float


def a_pod(  # noqa: PLR0913 - a test names only what it is about
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: str = "",
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] | None = None,
    node: str = "",
    priority: int | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, Any]] = (),
    affinity: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod with one container.

    Args:
        name: Its name; the uid follows from namespace and name unless given.
        namespace: Its namespace.
        uid: Its uid.
        labels: Its labels.
        annotations: Its annotations.
        owner: ``Kind/name`` of its controller, such as ``ReplicaSet/web``.
        cpu: Request, such as ``"500m"``.
        memory: Request, such as ``"1Gi"``.
        requests: Further requests by resource name.
        node: The node it runs on.
        priority: ``spec.priority``.
        node_selector: ``spec.nodeSelector``.
        tolerations: As in the API.
        affinity: As in the API.
        status: As in the API, merged over a running (with a node) or pending status.
        metadata: Further metadata, as in the API.
        **spec: Further fields of the spec, spelled as in the API.

    Raises:
        TypeError: A name is neither an argument nor such a field.
    """
    _check_names("a_pod", spec, PodSpec, "a pod's spec has")
    wanted = {
        key: value
        for key, value in {"cpu": cpu, "memory": memory, **(requests or {})}.items()
        if value is not None
    }
    kind, _, owner_name = owner.partition("/")
    return sealed(
        convert(
            Pod,
            {
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "uid": uid or f"uid-{namespace}-{name}",
                    "labels": dict(labels or {}),
                    "annotations": dict(annotations or {}),
                    "ownerReferences": [
                        {
                            "apiVersion": "apps/v1",
                            "kind": kind,
                            "name": owner_name,
                            "uid": f"uid-{owner}",
                            "controller": True,
                        }
                    ]
                    if owner
                    else [],
                    **(metadata or {}),
                },
                "spec": {
                    "containers": [{"name": "main", "image": "app", "resources": {"requests": wanted}}],
                    "nodeName": node,
                    "priority": priority,
                    "nodeSelector": dict(node_selector or {}),
                    "tolerations": list(tolerations),
                    "affinity": affinity,
                    **spec,
                },
                "status": {"phase": "Running" if node else "Pending", **(status or {})},
            },
        )
    )


def a_node(  # noqa: PLR0913 - a test names only what it is about
    name: str = "node",
    *,
    cpu: Quantity = "4",
    memory: Quantity = "8Gi",
    pods: int = 110,
    allocatable: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Node:
    """A ready node.

    Args:
        name: Its name, and the value of its hostname label.
        cpu: Allocatable.
        memory: Allocatable.
        pods: Allocatable.
        allocatable: Further resources.
        labels: Further labels.
        taints: As kubectl writes them: ``key=value:Effect`` or ``key:Effect``.
        unschedulable: Whether it is cordoned.
        status: Further fields of the status, as in the API.
        **metadata: Further metadata, as in the API.

    Raises:
        TypeError: A name is neither an argument nor such a field.
    """
    _check_names("a_node", metadata, ObjectMeta, "metadata has")
    return sealed(
        convert(
            Node,
            {
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/hostname": name, **(labels or {})},
                    **metadata,
                },
                "spec": {"taints": [a_taint(text) for text in taints], "unschedulable": unschedulable},
                "status": {
                    "allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})},
                    "conditions": [{"type": "Ready", "status": "True"}],
                    **(status or {}),
                },
            },
        )
    )


def _check_names(builder: str, given: Mapping[str, Any], kind: type[msgspec.Struct], holder: str) -> None:
    """Refuse a misspelt argument, which a builder would take for a field that nothing reads."""
    if unknown := sorted(given.keys() - set(kind.__struct_encode_fields__)):
        raise TypeError(
            f"{builder}() has no argument {unknown[0]!r}, and {holder} no field of this name that is read"
        )


def a_taint(text: str) -> dict[str, str]:
    """``key=value:Effect`` or ``key:Effect`` as the API's object."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def a_cluster(
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    objects: Iterable[Any] = (),
    kinds: Iterable[type[WatchedObject]] = (),
) -> Cluster:
    """A cluster of these nodes; pods with a node name are placed, others are left out.

    ``objects`` are objects of other kinds; those of ``kinds`` are known even without any.
    """
    cluster = Cluster()
    cluster.objects.ledger(WatchedObjects).listed.update(kinds)
    for each in objects:
        put(cluster, each)
    for node in nodes:
        cluster.set_node(node)
    for pod in pods:
        if pod.spec.node_name:
            cluster.place(cluster.templates.info(pod), pod.spec.node_name)
    return cluster


def put(cluster: Cluster, new: Any, *, gone: bool = False) -> None:
    """Put an object that is neither pod nor node into a cluster, or take it out."""
    objects, new = cluster.objects, sealed(new)
    objects.version += 1
    if isinstance(new, WatchedObject):
        watched = objects.ledger(WatchedObjects)
        watched.listed.add(type(new))
        watched.replace(*((new, None) if gone else (None, new)))
        return
    shelf = getattr(objects, SHELVES[type(new)])
    key = new.group_key if isinstance(new, PodGroup) else shelf_key(new)
    if gone:
        shelf.pop(key, None)
    else:
        shelf[key] = new


def a_snapshot(
    *nodes: Node,
    pods: Iterable[Pod] = (),
    objects: Iterable[Any] = (),
    kinds: Iterable[type[WatchedObject]] = (),
) -> Snapshot:
    """A snapshot of these nodes, with these pods on them, and the same other objects as ``a_cluster``."""
    return Snapshot(a_cluster(nodes, pods, objects, kinds))


def the_info(pod: Pod, snapshot: Snapshot | None = None) -> PodInfo:
    """The engine's view of a pod."""
    cluster = Cluster() if snapshot is None else snapshot.fork()
    return cluster.templates.info(pod)
