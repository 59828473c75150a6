"""Sorts the documents of manifests by their role on a fork: pods, nodes, policies, others."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from plimsoll.inspection.manifests.pod_defaults import Document, ManifestError, PodDefaults
from plimsoll.inspection.manifests.workload_pods import WORKLOAD_KINDS, WorkloadPods, workload_pods
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import DecodeError, convert
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import SHELVES, ClusterObjects
from plimsoll.model.kinds.pod_group import CORE, CorePodGroup, PodGroup
from plimsoll.model.kinds.workload import PodDisruptionBudget, PriorityClass

POLICY = "SchedulingPolicy"

#: Prefix of the uid of every object that exists on the fork only.
NEW = "new:"

_KINDS: dict[str, type[ApiObject]] = {kind.__name__: kind for kind in (*SHELVES, Node)}
#: Cluster-scoped kinds.
_GLOBAL = {"Node", "Namespace", "PriorityClass", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver"}


class Manifests(Struct, frozen=True):
    """The documents of some files.

    Attributes:
        objects: Other objects that affect decisions: classes, claims, budgets, Services, PodGroups.
        left_out: Documents that affect no decision, as ``Kind name``.
    """

    workloads: tuple[WorkloadPods, ...] = ()
    nodes: tuple[Node, ...] = ()
    policies: tuple[Document, ...] = ()
    objects: tuple[ApiObject, ...] = ()
    left_out: tuple[str, ...] = ()

    def pod_groups(self) -> dict[str, PodGroup]:
        """The PodGroups by key, and the Jobs that stand in their place where a policy says so."""
        jobs = (each.group for each in self.workloads if each.group is not None)
        return {each.group_key: each for each in (*self.objects, *jobs) if isinstance(each, PodGroup)}


def read_manifests(documents: Iterable[Any], namespace: str, objects: ClusterObjects) -> Manifests:
    """Read documents; ``namespace`` is that of objects without one.

    Raises:
        ManifestError: A document is not an API object, or does not match its kind.
    """
    pods: list[Document] = []
    nodes: list[Node] = []
    policies: list[Document] = []
    found: list[ApiObject] = []
    left_out: list[str] = []
    ranges: dict[str, list[Document]] = {}
    runtimes: dict[str, Document] = {}
    for document in _flat(documents):
        kind, metadata = document["kind"], document.get("metadata") or {}
        place = metadata.get("namespace") or namespace
        if kind in WORKLOAD_KINDS:
            pods.append(document)
        elif kind == POLICY:
            policies.append(document)
        elif kind == "LimitRange":
            ranges.setdefault(place, []).append(document)
        elif kind == "RuntimeClass":
            runtimes[metadata.get("name", "")] = document
        elif kind in _KINDS:
            read = _read(kind, document, place)
            nodes += [read] if isinstance(read, Node) else []
            found += [] if isinstance(read, Node) else [read]
        else:
            left_out.append(f"{kind} {metadata.get('name', '')}")
    classes = {
        **objects.priority_classes,
        **{each.name: each for each in found if isinstance(each, PriorityClass)},
    }
    defaults = PodDefaults(classes, ranges or None, runtimes or None)
    return Manifests(
        workloads=tuple(workload_pods(each, namespace, defaults) for each in pods),
        nodes=tuple(nodes),
        policies=tuple(policies),
        objects=tuple(found),
        left_out=tuple(left_out),
    )


def shelve(cluster: Cluster, found: ApiObject) -> None:
    """Add or replace an object on a fork; an object that no decision reads is left out."""
    shelf = SHELVES.get(type(found))
    if shelf is None:
        return
    stock: dict[str, ApiObject] = getattr(cluster.objects, shelf)
    key = found.key if found.namespace else found.name
    stock[found.group_key if isinstance(found, PodGroup | CompositePodGroup) else key] = found
    if isinstance(found, PodDisruptionBudget | PodGroup | CompositePodGroup):
        cluster.objects.budget_version += 1
    else:
        cluster.objects.version += 1


def _flat(documents: Iterable[Any]) -> Iterator[Document]:
    """The documents with lists flattened; empty ones are left out."""
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise ManifestError("a document is no object of the Kubernetes API: it has no kind")
        metadata = document.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise ManifestError(f"{document['kind']}: metadata is no mapping")
        for field in ("name", "namespace", "generateName"):
            if not isinstance(metadata.get(field), str | None):
                raise ManifestError(f"{document['kind']}: metadata.{field} is no text; write it in quotes")
        try:
            msgspec.msgpack.encode(document)
        except (OverflowError, TypeError, RecursionError, ValueError) as exc:
            where = f"{document['kind']} {metadata.get('name', '')}"
            raise ManifestError(f"{where}: it cannot be written as JSON: {exc}") from exc
        if document["kind"].endswith("List") and isinstance(document.get("items"), list):
            yield from _flat(document["items"])
        else:
            yield document


def _read(kind: str, document: Document, namespace: str) -> ApiObject:
    name = (document.get("metadata") or {}).get("name")
    if not name:
        raise ManifestError(f"{kind} without a name: every object has metadata.name")
    place = "" if kind in _GLOBAL else namespace
    metadata = {**document["metadata"], "namespace": place, "uid": f"{NEW}{kind}:{place}/{name}"}
    model = _KINDS[kind]
    if model is PodGroup and str(document.get("apiVersion")).startswith(f"{CORE}/"):
        model = CorePodGroup
    try:
        found = convert(model, {**document, "metadata": metadata})
    except DecodeError as exc:
        raise ManifestError(f"{kind} {name}: {exc.cause}") from exc
    if isinstance(found, PodDisruptionBudget):
        return _counted(found)
    return found


def _counted(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    """A new budget with the status that its controller would write."""
    status = msgspec.structs.replace(budget.status, observed_generation=budget.metadata.generation)
    return msgspec.structs.replace(budget, status=status)
