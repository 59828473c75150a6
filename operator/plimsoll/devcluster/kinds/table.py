"""Which resource behaves how."""

from __future__ import annotations

from plimsoll.devcluster.kinds.cluster import Namespaces, Nodes, PriorityClasses
from plimsoll.devcluster.kinds.events import Events
from plimsoll.devcluster.kinds.kind import Kind, StatusKind
from plimsoll.devcluster.kinds.pods import Pods
from plimsoll.devcluster.kinds.policies import PodDisruptionBudgets
from plimsoll.devcluster.kinds.services import Leases, Services
from plimsoll.devcluster.kinds.storage import (
    KeyedData,
    PersistentVolumeClaims,
    PersistentVolumes,
    Secrets,
    StorageClasses,
)
from plimsoll.devcluster.kinds.workloads import (
    CronJobs,
    DaemonSets,
    Deployments,
    Jobs,
    ReplicaSets,
    StatefulSets,
)


def built_in_kinds() -> dict[str, Kind]:
    """By the resource's key; those that are not here are taken as they come."""
    return {
        "configmaps": KeyedData(),
        "events": Events(),
        "events.events.k8s.io": Events(new=True),
        "namespaces": Namespaces(),
        "nodes": Nodes(),
        "persistentvolumeclaims": PersistentVolumeClaims(),
        "persistentvolumes": PersistentVolumes(),
        "pods": Pods(),
        "secrets": Secrets(),
        "services": Services(),
        "customresourcedefinitions.apiextensions.k8s.io": StatusKind(),
        "daemonsets.apps": DaemonSets(),
        "deployments.apps": Deployments(),
        "replicasets.apps": ReplicaSets(),
        "statefulsets.apps": StatefulSets(),
        "cronjobs.batch": CronJobs(),
        "jobs.batch": Jobs(),
        "leases.coordination.k8s.io": Leases(),
        "poddisruptionbudgets.policy": PodDisruptionBudgets(),
        "priorityclasses.scheduling.k8s.io": PriorityClasses(),
        "storageclasses.storage.k8s.io": StorageClasses(),
    }
