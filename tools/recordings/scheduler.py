"""Recorded decisions of kube-scheduler: cases read from files, and turned into a cluster to decide on.

A recording is a folder of ``<family>.jsonl.gz``, one case a line: ``{"input": CASE, "expected": ANSWER}``.
CASE holds Kubernetes objects as an API server stores them and, optionally, a KubeSchedulerConfiguration with
one profile; ANSWER holds what kube-scheduler decided, node by node and plugin by plugin. The comparison is
:mod:`recordings.replay`.
"""

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from msgspec.structs import replace

from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.engine.profile import Enabled, Profile, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Node, Pod, PodInfo, Registry
from plimsoll.migration.documents import SourceDocument
from plimsoll.migration.report import ReportWriter
from plimsoll.migration.scheduling_conversion import scheduling_policies
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from plimsoll.model.kinds.workload import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from plimsoll.policies.profiles import profile_config
from recordings.devices import publish_devices

SHELVES: Mapping[str, tuple[str, type[Any]]] = {
    "namespaces": ("namespaces", Namespace),
    "services": ("services", Service),
    "replicationControllers": ("replication_controllers", ReplicationController),
    "replicaSets": ("replica_sets", ReplicaSet),
    "statefulSets": ("stateful_sets", StatefulSet),
    "pdbs": ("budgets", PodDisruptionBudget),
    "pvs": ("volumes", PersistentVolume),
    "pvcs": ("claims", PersistentVolumeClaim),
    "storageClasses": ("storage_classes", StorageClass),
    "csiNodes": ("csi_nodes", CSINode),
    "csiDrivers": ("csi_drivers", CSIDriver),
    "csiStorageCapacities": ("csi_capacities", CSIStorageCapacity),
    "volumeAttachments": ("attachments", VolumeAttachment),
}
"""Field of a case to the shelf of ``ClusterObjects`` it fills, and the kind of its items."""


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded decision.

    Attributes:
        family: The file it stands in, without its endings.
        id: Its name.
        given: The CASE.
        expected: The ANSWER.
    """

    family: str
    id: str
    given: Mapping[str, Any]
    expected: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Situation:
    """A case, ready to be decided.

    Attributes:
        scheduler: On a cluster of the case's objects.
        pod: The pod to place.
        absent: Plugins of the case's profile that do not exist here; they were left out.
    """

    scheduler: ProfileScheduler
    pod: PodInfo
    absent: frozenset[str]


def read_cases(folder: Path, family: str | None = None) -> Iterator[Case]:
    """The cases of a folder, family by family.

    Raises:
        FileNotFoundError: The folder has no recording, or none of that family.
    """
    files = sorted(folder.glob(f"{family or '*'}.jsonl.gz"))
    if not files:
        raise FileNotFoundError(f"{folder} holds no {family or '*'}.jsonl.gz")
    for file in files:
        with gzip.open(file) as lines:
            for line in lines:
                case = orjson.loads(line)
                given = case["input"]
                yield Case(file.name.removesuffix(".jsonl.gz"), given["id"], given, case["expected"])


def situation(case: Case, registry: Registry, defaults: Mapping[str, int]) -> Situation:
    """Build the cluster and the profile of a case.

    Args:
        case: The case.
        registry: The plugins that exist.
        defaults: The default profile: weight by plugin name, in order.
    """
    cluster = Cluster()
    for field, (shelf, kind) in SHELVES.items():
        for each in case.given.get(field, ()):
            value = convert(kind, each)
            meta = value.metadata
            key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            getattr(cluster.objects, shelf)[key] = value
    cluster.objects.version += 1
    publish_devices(case.given, cluster)
    for each in case.given.get("nodes", ()):
        cluster.set_node(convert(Node, each))
    profile, absent = _profile(case.given.get("config"), registry, defaults)
    scheduler = ProfileScheduler(profile, cluster)
    for each in case.given.get("pods", ()):
        pod = convert(Pod, each)
        if pod.is_terminal:
            continue
        info = cluster.templates.info(pod)
        if pod.node_name:
            cluster.place(info, pod.node_name)
        elif pod.nominated_node_name and all(
            plugin.pre_enqueue(info).is_success for plugin in profile.pre_enqueue
        ):
            scheduler.nominator.add(info, pod.nominated_node_name)
    return Situation(scheduler, cluster.templates.info(convert(Pod, case.given["pod"])), absent)


def _converted(config: Mapping[str, Any], registry: Registry) -> SchedulingSpec:
    """The first profile of a KubeSchedulerConfiguration as ``plimsoll convert`` makes it."""
    report = ReportWriter(SourceDocument("recorded", config))
    _, spec = scheduling_policies(config, report, frozenset(registry), keep=True)[0]
    return SchedulingSpec.from_wire(spec["scheduling"])


def _profile(
    config: Mapping[str, Any] | None, registry: Registry, defaults: Mapping[str, int]
) -> tuple[Profile, frozenset[str]]:
    spec = _converted(config, registry) if config else SchedulingSpec(scheduler_name="default-scheduler")
    written = profile_config(spec)
    absent = {name for name in defaults if name not in registry}
    absent |= {each.name for one in written.plugins.values() for each in one.enabled} - set(registry)
    # A recording tries every candidate; live, a share of them is enough.
    preemption = {**written.args.get("DefaultPreemption", {}), "minCandidateNodesPercentage": 100}
    profile = build_profile(
        replace(
            written,
            plugins={
                point: replace(one, enabled=tuple(each for each in one.enabled if each.name in registry))
                for point, one in written.plugins.items()
            },
            args={
                name: given
                for name, given in {**written.args, "DefaultPreemption": preemption}.items()
                if name in registry
            },
        ),
        registry,
        [Enabled(name, weight) for name, weight in defaults.items() if name in registry],
    )
    return profile, frozenset(absent)
